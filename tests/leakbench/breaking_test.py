"""A file of scores is scored as attacks are, refused in one line if it is wrong, and breaks an entry."""

import json

import msgspec
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from analysis.leakbench import breaking, entry_files, ranking
from analysis.leakbench.autoleak import autoleak
from analysis.leakbench.boards import BOARDS, GAINS, KNOWN, Board
from analysis.leakbench.entry_files import Entry, Reading, Result, Score
from tests.sweeps import tiny
from vfljax.errors import UserError
from vfljax.sweep.grid import parse
from vfljax.sweep.known import split_arrays
from vfljax.sweep.plan import make_plan

SEEDS = 5
CONFIG = tiny(
    data={"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
    seeds=SEEDS,
    grid={"undefended": {}},
    attacks={"norm": {}},
    **{"model.top": "generator"},
)
NOBODY, FORTY = Board("split", 0, False), Board("split", KNOWN, False)
MALICIOUS, NO_SPLIT = Board("split", KNOWN, True), Board("no_split", KNOWN, False)
NAMES = {board: breaking.array_name(board, GAINS[0]) for board in BOARDS}


@pytest.fixture(scope="module")
def of():
    return breaking.truth(CONFIG)


@pytest.fixture(scope="module")
def arrays():
    plan = make_plan(parse(CONFIG))
    return split_arrays(plan.dataset.labels, plan.splits)


@pytest.fixture(scope="module")
def good(arrays):
    """Scores [seeds, N, 2] that read much of the labels, from seed to seed less."""
    labels = arrays["labels"][arrays["train"]]
    noise = np.random.default_rng(0).normal(size=labels.shape) * np.arange(1, 6)[:, None]
    toward = 2.0 * labels - 1 + noise / 2
    return np.stack([-toward, toward], axis=-1)


def score(board, gain, leak=0.6, knob=1.0):
    by_seed = tuple(leak + away for away in (-0.02, -0.01, 0.0, 0.01, 0.02))
    reading = Reading(leak, (leak - 0.05, leak + 0.05), "norm", "norm", by_seed, 100)
    return Score(board, gain, "scored", {"noise.scale": knob}, reading, utility=0.9, alone=0.5)


def entry(name="mine", leak=0.6):
    """An entry with one strength for both shares, but on the board of malicious parties without labels."""
    scores = [
        score(b, g, leak, 2.0 if g != GAINS[0] and b.malicious else 1.0)
        for b in BOARDS
        for g in GAINS
    ]
    scores = [Score(*s.place, "no strength") if s.board == NO_SPLIT else s for s in scores]
    result = Result(autoleak().version, "r", "d", {}, {}, tuple(scores))
    return Entry(name=name, method={"noise": {"scale": 1.0}}, results={"breast_cancer": result})


def written(tmp_path, **arrays):
    np.savez(tmp_path / "scores.npz", **arrays)
    return tmp_path / "scores.npz"


def test_scores_are_scored_as_attacks_are(tmp_path, of, arrays, good):
    file = written(tmp_path, **{NAMES[FORTY]: good, NAMES[NOBODY]: -good})
    found = breaking.readings(file, entry(), "breast_cancer", of)
    labels = arrays["labels"][arrays["train"]]
    expected = []
    for q in range(SEEDS):
        unknown = np.setdiff1d(np.arange(len(labels[q])), arrays["known_order"][q][:KNOWN])
        expected.append(roc_auc_score(labels[q][unknown], good[q, unknown, 1]))
    assert found[FORTY, GAINS[0]].by_seed == pytest.approx(expected, abs=2e-5)
    assert found[FORTY, GAINS[0]].leak == pytest.approx(np.mean(expected), abs=2e-5)
    # attackers without labels are granted the direction, those with labels are not
    assert found[NOBODY, GAINS[0]].by_seed == found[FORTY, GAINS[0]].by_seed
    turned = breaking.readings(
        written(tmp_path, **{NAMES[FORTY]: -good}), entry(), "breast_cancer", of
    )
    assert turned[FORTY, GAINS[0]].leak == pytest.approx(1 - found[FORTY, GAINS[0]].leak, abs=1e-4)
    lower, upper = found[FORTY, GAINS[0]].limits
    half = 2.776 * np.std(expected, ddof=1) / SEEDS**0.5  # Student's t, 4 degrees of freedom
    assert lower == pytest.approx(np.mean(expected) - half, abs=1e-3)
    assert upper == pytest.approx(min(1, np.mean(expected) + half), abs=1e-3)


def test_scores_count_where_as_much_is_allowed_of_the_same_strength(tmp_path, of, good):
    file = written(tmp_path, **{NAMES[FORTY]: good})
    found = breaking.readings(file, entry(), "breast_cancer", of)
    assert {*found} == {(FORTY, 0.5), (FORTY, 0.9), (MALICIOUS, 0.5)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda a: {NAMES[FORTY]: a[:, :-1]}, "give numbers [5, 200, 2]"),
        (lambda a: {NAMES[FORTY]: a[:4]}, "give numbers [5, 200, 2]"),
        (lambda a: {NAMES[FORTY]: a[..., :1]}, "give numbers [5, 200, 2]"),
        (lambda a: {NAMES[FORTY]: a.astype(str)}, "give numbers [5, 200, 2]"),
        (lambda a: {NAMES[FORTY]: a * np.where(np.arange(200) == 7, np.nan, 1)[:, None]}, "row 7"),
        (lambda a: {NAMES[FORTY]: a * 1e300}, "give a finite score"),
        (lambda a: {"split_known41_kept50": a}, "did you mean 'split_known40_kept50'"),
        (lambda a: {NAMES[NO_SPLIT]: a}, "has no figure at no_split_known40_kept50"),
        (lambda a: {NAMES[FORTY]: np.array([{}])}, "holds Python objects"),
        (lambda a: {}, "holds no array"),
    ],
)
def test_a_wrong_file_is_refused_in_one_line(tmp_path, of, good, change, message):
    file = written(tmp_path, **change(good))
    with pytest.raises(UserError, match=r"^[^\n]+$") as refused:
        breaking.readings(file, entry(), "breast_cancer", of)
    assert message in str(refused.value)


def test_an_honest_file_breaks_an_entry_and_moves_its_rank(tmp_path, of, good):
    file = written(tmp_path, **{NAMES[FORTY]: good})
    mine, other = entry(), entry("other", 0.7)
    broken, found = breaking.broken_by(file, mine, "breast_cancer", of, "Eve", "so")
    assert {(b.board, b.gain) for b in broken.broken} == {*found}
    record = broken.broken[0]
    (tmp_path / "mine.json").write_bytes(b"")
    (tmp_path / record.scores).write_bytes(file.read_bytes())

    def ranks(mine):
        boards = ranking.rankings([mine, other])
        return next(board.ranks for board in boards if board.board == FORTY)

    assert found[FORTY, 0.5].leak > 0.8
    assert (ranks(mine), ranks(broken)) == ({"mine": 1, "other": 2}, {"other": 1, "mine": 2})
    again, _ = breaking.broken_by(file, broken, "breast_cancer", of, "Eve", "so")
    assert again == broken  # what is known is not broken twice
    # what --verify does
    entry_files.write(tmp_path / "mine.json", broken)
    stored = entry_files.read(tmp_path / "mine.json")
    entry_files.check(stored, tmp_path)
    assert breaking.score_again(stored, tmp_path, "breast_cancer", of) == 3
    typed = msgspec.structs.replace(
        record, reading=msgspec.structs.replace(record.reading, leak=0.999)
    )
    typed_in = msgspec.structs.replace(broken, broken=(typed,))
    with pytest.raises(UserError, match="and not 0.999"):
        breaking.score_again(typed_in, tmp_path, "breast_cancer", of)
    (tmp_path / record.scores).write_bytes(b"another")
    with pytest.raises(UserError, match="is not the file of Eve's scores"):
        entry_files.check(stored, tmp_path)
    assert json.loads((tmp_path / "mine.json").read_text())["broken"][0]["by"] == "Eve"
