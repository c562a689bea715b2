"""Entries of LeakBench are checked when they are read, and ranked by the strongest reading."""

import hashlib
import json
import re

import msgspec
import pytest

from analysis.leakbench import entry_files
from analysis.leakbench.autoleak import autoleak
from analysis.leakbench.boards import BOARDS, GAINS
from analysis.leakbench.entry_files import Break, Entry, Reading, Result, Score
from vfljax.errors import UserError, packaged

NOISE = {"method": {"noise": {"scale": [0.1, 1.0]}}}
STORED = packaged("analysis/leakbench/entries")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({}, "missing required field `method`"),
        ({**NOISE, "rank": 1}, "unknown field `rank`"),
        ({"method": {}}, "undefended.json alone"),
        ({"method": {"noise": {"scale": [0.1] * 13}}}, "length <= 12"),
        ({"method": {"kdk": {"epsilon": [0.1], "k": [2]}}}, "lists of kdk.epsilon and kdk.k"),
        ({**NOISE, "knobs": {"mnist": {}}}, "Invalid enum value 'mnist'"),
        ({**NOISE, "knobs": {"digits": {"typo": {}}}}, "defense in knobs of"),
        ({**NOISE, "broken": [{"data": "digits"}]}, "missing required field `board`"),
    ],
)
def test_what_is_no_entry_is_refused_in_one_line(tmp_path, fields, message):
    (tmp_path / "mine.json").write_text(json.dumps(fields))
    with pytest.raises(UserError, match=r"^[^\n]+$") as refused:
        entry_files.read(tmp_path / "mine.json")
    assert "mine.json" in str(refused.value)
    assert message in str(refused.value)


@pytest.mark.parametrize("text", ["", '{"method": NaN}', "[" * 100_000])
def test_a_file_that_is_no_json_is_refused(tmp_path, text):
    (tmp_path / "mine.json").write_text(text)
    with pytest.raises(UserError, match="is no entry"):
        entry_files.read(tmp_path / "mine.json")


HASHES = {"mine:row": "a" * 64}


def of_board(leak, knobs, **fields):
    limits = (leak - 0.01, leak + 0.01) if leak < 0.99 else (0.99, 1.0)
    reading = Reading(leak=leak, limits=limits, attack="norm", variant="norm")
    return {"board": BOARDS[0], "gain": GAINS[0], "knobs": knobs, "reading": reading, **fields}


def entry(name, leak, *broken):
    score = Score(outcome="scored", utility=0.9, **of_board(leak, {"noise.scale": 1.0}))
    others = [Score(board, gain, "no strength") for board in BOARDS for gain in GAINS]
    result = Result(autoleak().version, "r", "d", {}, HASHES, (score, *others[1:]))
    breaks = tuple(
        Break(
            **of_board(stronger, {"noise.scale": scale}),
            **{"data": "digits", "sha256": "", "by": "Eve", "how": "so", "date": "d"},
            plugins={"mine:row": plugin * 64},
        )
        for stronger, scale, plugin in broken
    )
    return Entry(name=name, **NOISE, results={"digits": result}, broken=breaks)


def test_an_entry_is_read_as_it_was_written(tmp_path):
    whole = entry("mine", 0.7, (0.8, 1.0, "a"))
    entry_files.write(tmp_path / "folder/mine.json", whole)
    assert entry_files.read(tmp_path / "folder/mine.json") == whole


def test_a_stronger_attack_counts_at_its_strength_alone():
    whole = entry("mine", 0.7, (0.9, 0.1, "a"), (0.9, 1.0, "b"), (0.8, 1.0, "a"), (0.75, 1.0, "a"))
    reading, broken = whole.best_known("digits", BOARDS[0], GAINS[0])
    assert (reading.leak, broken.by) == (0.8, "Eve")
    assert whole.best_known("digits", BOARDS[0], GAINS[1]) is None
    assert whole.best_known("spambase", BOARDS[0], GAINS[0]) is None


def test_the_stored_entries_are_sound():
    for path in STORED.glob("*.json"):
        entry_files.check(entry_files.read(path), STORED)
    autoleak().require_current()


@pytest.mark.parametrize(
    ("result", "fields", "message"),
    [
        ({"autoleak": "0.9"}, {}, "AutoLeak 0.9, and this is "),
        ({"scores": ()}, {}, "lacks boards of digits"),
        ({}, {"plugin": "mine.py"}, "mine.py has changed since"),
        ({}, {"plugin": "../mine.py"}, "no file of mine:row"),
    ],
)
def test_what_does_not_belong_to_the_scores_is_refused(tmp_path, result, fields, message):
    (tmp_path / "mine.py").write_text("")
    whole = entry("mine", 0.7)
    of_plugin = {"method": {"mine:row": {}}, "plugin": "mine.py"}
    scores = {"digits": msgspec.structs.replace(whole.results["digits"], **result)}
    changed = msgspec.structs.replace(whole, **{**of_plugin, **fields}, results=scores)
    with pytest.raises(UserError, match=re.escape(message)):
        entry_files.check(changed, tmp_path)
    hashes = {"mine:row": hashlib.sha256(b"").hexdigest()}
    right = msgspec.structs.replace(whole.results["digits"], plugins=hashes)
    entry_files.check(
        msgspec.structs.replace(whole, **of_plugin, results={"digits": right}), tmp_path
    )
