"""Scores that were typed in disagree with those that are made anew."""

import msgspec
import pytest

from analysis.leakbench import entry_files
from analysis.leakbench.entry_files import Verified
from analysis.leakbench.retraining import TOLERANCE, compare
from tests.leakbench.entry_files_test import entry
from vfljax.errors import UserError

SCORES = entry("mine", 0.7).results["digits"].scores


def changed(**fields):
    return (msgspec.structs.replace(SCORES[0], **fields), *SCORES[1:])


def leaking(leak):
    return changed(reading=msgspec.structs.replace(SCORES[0].reading, leak=leak))


@pytest.mark.parametrize(
    ("anew", "what"),
    [
        (leaking(0.72), "leak"),
        (changed(utility=0.5), "utility"),
        (changed(alone=0.5), "alone"),
        (changed(knobs={"noise.scale": 0.1}), "knobs"),
        (changed(outcome="no strength", reading=None), "outcome"),
    ],
)
def test_scores_that_differ_disagree(anew, what):
    _, difference = compare(SCORES, anew)
    assert difference is not None
    assert (difference.place, difference.what) == ("split_known0_kept50", what)


def test_what_another_machine_moves_does_not_disagree():
    assert compare(SCORES, leaking(0.7 + TOLERANCE / 2)) == (pytest.approx(TOLERANCE / 2), None)


def test_verified_scores_cannot_be_changed(tmp_path):
    whole = entry("mine", 0.7)
    result = msgspec.structs.replace(whole.results["digits"], plugins={})
    record = Verified("d", "r", "m", TOLERANCE, 0.0, entry_files.digest(result.scores))

    def of(scores):
        verified = msgspec.structs.replace(result, scores=scores, verified=record)
        return msgspec.structs.replace(whole, results={"digits": verified})

    entry_files.write(tmp_path / "mine.json", of(result.scores))
    entry_files.check(entry_files.read(tmp_path / "mine.json"), tmp_path)
    with pytest.raises(UserError, match="changed since they were verified"):
        entry_files.check(of(leaking(0.69)), tmp_path)


def test_a_mean_is_that_of_its_leaks_by_seed(tmp_path):
    whole = entry("mine", 0.7)
    typed = msgspec.structs.replace(SCORES[0].reading, by_seed=(0.7, 0.8, 0.75))
    result = msgspec.structs.replace(
        whole.results["digits"], plugins={}, scores=changed(reading=typed)
    )
    with pytest.raises(UserError, match="0.7 is not the mean"):
        entry_files.check(msgspec.structs.replace(whole, results={"digits": result}), tmp_path)
