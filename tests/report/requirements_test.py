"""What a pipeline asks of a sweep, and the exit status where it is not met."""

import math

import pytest

from tests.report.made import BARE, PROTECTS, made
from vfljax.api import console
from vfljax.errors import UnmetError, UserError
from vfljax.report import requirements
from vfljax.report.verdicts import Verdict


@pytest.fixture
def unmet(monkeypatch):
    """What a sweep does not meet."""

    def asked(judged, most=math.nan, refused=()):
        monkeypatch.setattr(requirements, "judge_sweep", lambda workdir: judged)
        return requirements.unmet("w", most, refused)

    return asked


def test_what_is_switched_on_is_held_to_the_most_and_to_verdicts(unmet):
    judged = made(BARE, PROTECTS)
    upper = judged.decisions["split"].point["leak_upper"]
    assert unmet(judged, most=upper) == ""
    sentence = unmet(judged, most=upper - 1e-5)
    assert "with noise, leak AUC may be" in sentence
    shown, allowed = sentence.split("may be ")[1].split(": more than --fail_above=")
    assert float(shown) > float(allowed.rstrip("."))  # as many digits as it takes
    assert unmet(judged, refused={Verdict.IS_UNDEFENDED}) == ""
    assert "the verdict is 'protects" in unmet(judged, refused={Verdict.PROTECTS})


def test_each_answer_has_its_requirements(unmet):
    none = made(BARE, BARE)
    assert "with no defense, leak AUC may be .9" in unmet(none, most=0.9)
    assert unmet(none, most=1.0) == ""
    none.decisions["split"].bare["incomplete"] = True
    assert "with no defense, attacks lack figures" in unmet(none, most=1.0)
    assert "No defense that was tried" in unmet(none, refused={Verdict.CANNOT_SAY})
    nothing = made({"probe/mean": 0.61})
    assert unmet(nothing, most=0.7, refused={Verdict.CANNOT_SAY}) == ""
    assert "is 'nothing to protect'" in unmet(nothing, refused={Verdict.NOTHING_TO_PROTECT})
    assert "Open: no defense" in unmet(made(BARE), most=1.0)
    assert "1 seed allows" in unmet(made(BARE, seeds=1), most=1.0)
    no_gain = made(BARE | {"test_utility": 0.8}, PROTECTS)
    assert "Do not federate" in unmet(no_gain, most=1.0)
    assert "no attack has any figure" in unmet(made({"test_utility": 0.9}), most=0.9)


def test_what_is_not_met_ends_with_status_3(capsys):
    assert console.fail(UnmetError("leak AUC may be 0.9.")) == 3
    assert console.fail(UserError("x.")) == 2
    assert capsys.readouterr().err.startswith("error: leak AUC may be 0.9.")
