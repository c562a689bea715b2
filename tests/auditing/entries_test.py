"""Entries of LeakBench are checked when they are read, and ranked by the strongest reading."""

import json

import msgspec
import pytest

from vfljax.auditing import boards, entries
from vfljax.auditing.boards import BOARDS, GAINS
from vfljax.auditing.entries import Break, Entry, Reading, Result, Score
from vfljax.errors import UserError, packaged

NOISE = {"method": {"noise": {"scale": [0.1, 1.0]}}}
SCORE = {"board": {"federation": "split", "known": 40, "malicious": False}, "gain": 0.5}
RESULT = {
    **{"autoleak": "1.0", "revision": "r", "date": "d", "versions": {}, "plugins": {}},
    "scores": [{**SCORE, "outcome": "scored"}],
}
STORED = packaged("analysis/leakbench/entries")


def with_score(**fields):
    scores = [{**RESULT["scores"][0], **fields}]
    return {**NOISE, "results": {"digits": {**RESULT, "scores": scores}}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ([], "Expected `object`, got `array`"),
        ({}, "missing required field `method`"),
        ({**NOISE, "rank": 1}, "unknown field `rank`"),
        ({"method": {}}, "undefended.json alone"),
        ({"method": {"noise": 0.1}}, "got `float` - at `$.method[...]`"),
        ({"method": {"noise": {"scale": []}}}, "length >= 1"),
        ({"method": {"noise": {"scale": [0.1] * 13}}}, "length <= 12"),
        ({"method": {"kdk": {"epsilon": [0.1], "k": [2]}}}, "lists of kdk.epsilon and kdk.k"),
        ({**NOISE, "knobs": {"mnist": {}}}, "Invalid enum value 'mnist'"),
        ({**NOISE, "title": 3}, "got `int` - at `$.title`"),
        ({**NOISE, "results": {"digits": {}}}, "missing required field `autoleak`"),
        (with_score(reading={"leak": 1.5, "limits": None, "attack": "", "variant": ""}), "<= 1.0"),
        (with_score(board={**SCORE["board"], "known": 7}), "Invalid enum value 7"),
        ({**NOISE, "broken": [{"data": "digits"}]}, "missing required field `board`"),
    ],
)
def test_what_is_no_entry_is_refused_in_one_line(tmp_path, fields, message):
    (tmp_path / "mine.json").write_text(json.dumps(fields))
    with pytest.raises(UserError, match=r"^[^\n]+$") as refused:
        entries.read(tmp_path / "mine.json")
    assert "mine.json" in str(refused.value)
    assert message in str(refused.value)


@pytest.mark.parametrize("text", ["", "{", '{"method": NaN}', "[" * 100_000, "\ufeff{}", "\x00"])
def test_a_file_that_is_no_json_is_refused(tmp_path, text):
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(UserError, match="is no entry"):
        entries.read(tmp_path / "mine.json")


def of_board(leak, knobs, **fields):
    reading = Reading(leak=leak, limits=None, attack="norm", variant="norm")
    return {"board": BOARDS[0], "gain": GAINS[0], "knobs": knobs, "reading": reading, **fields}


def entry(name, leak, *broken):
    score = Score(outcome="scored", utility=0.9, **of_board(leak, {"noise.scale": 1.0}))
    result = Result("1.0", "r", "d", {}, {}, (score, Score(BOARDS[0], GAINS[1], "no strength")))
    breaks = tuple(
        Break(
            **of_board(stronger, {"noise.scale": scale}),
            **{"data": "digits", "sha256": "", "by": "Eve", "how": "so", "date": "d"},
        )
        for stronger, scale in broken
    )
    return Entry(name=name, **NOISE, results={"digits": result}, broken=breaks)


def test_an_entry_is_read_as_it_was_written(tmp_path):
    whole = entry("mine", 0.7, (0.8, 1.0))
    path = entries.write(tmp_path, whole)
    assert entries.read(path) == whole
    assert entries.read_all(tmp_path) == [whole]


def test_a_stronger_attack_counts_at_its_strength_alone():
    whole = entry("mine", 0.7, (0.9, 0.1), (0.8, 1.0), (0.75, 1.0))
    reading, broken = whole.best_known("digits", BOARDS[0], GAINS[0])
    assert (reading.leak, broken.by) == (0.8, "Eve")
    assert whole.best_known("digits", BOARDS[0], GAINS[1]) is None
    assert whole.best_known("spambase", BOARDS[0], GAINS[0]) is None


def test_the_stored_entries_are_sound():
    every = entries.read_all(STORED)
    entries.check(every, STORED)
    boards.autoleak().require_current()


def test_changes_since_a_score_are_named(tmp_path):
    whole = entry("mine", 0.7)
    result = msgspec.structs.replace(whole.results["digits"], plugins={"mine:row": "0" * 64})
    changed = msgspec.structs.replace(whole, plugin="mine.py", results={"digits": result})
    (tmp_path / "mine.py").write_text("")
    with pytest.raises(UserError, match=r"mine.py has changed since"):
        entries.check([changed], tmp_path)
    old = msgspec.structs.replace(whole.results["digits"], autoleak="0.9")
    with pytest.raises(UserError, match=r"AutoLeak 0.9, and this is 1.0"):
        entries.check([msgspec.structs.replace(whole, results={"digits": old})], tmp_path)
