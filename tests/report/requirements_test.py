"""What a pipeline asks of a sweep, and the exit status where it is not met."""

import math

import pytest

from tests.sweeps import assessed, assessment
from vfljax.cli import common
from vfljax.errors import UnmetError, UserError
from vfljax.report import requirements
from vfljax.report.judging import Verdict

PLAIN = assessment("plain", 0.9, 0.97, attack="norm")
NOISE = assessment("noise", 0.9, 0.56, {"noise.scale": 1.0})


@pytest.fixture
def unmet(monkeypatch):
    """What these assessments do not meet."""

    def asked(*found, most=math.nan, refused=()):
        monkeypatch.setattr(requirements, "assess_sweep", lambda workdir: assessed(*found))
        return requirements.unmet("w", most, refused)

    return asked


def test_the_upper_limit_of_what_is_recommended_is_held_to_the_most(unmet):
    (shown,) = assessed(PLAIN, NOISE).methods
    limit = float(shown.leak.limits[1])
    assert limit > shown.leak.mean
    assert unmet(PLAIN, NOISE, most=limit) == ""
    sentence = unmet(PLAIN, NOISE, most=(limit + shown.leak.mean) / 2)
    assert f"with noise scale=1, leak AUC may be {limit:.3f}: more than --fail_above" in sentence


def test_undefended_is_asked_where_nothing_is_recommended(unmet):
    assert "with no defense, leak AUC may be 0.9" in unmet(PLAIN, most=0.9)
    assert unmet(PLAIN, most=1.0) == ""
    assert "no defense is recommended" in unmet(PLAIN, refused={Verdict.CANNOT_SAY})


def test_verdicts_are_refused(unmet):
    (shown,) = assessed(PLAIN, NOISE).methods
    assert unmet(PLAIN, NOISE, refused={Verdict.IS_UNDEFENDED}) == ""
    assert f"the verdict is '{shown.verdict}'" in unmet(PLAIN, NOISE, refused={shown.verdict})
    assert unmet(PLAIN) == ""  # nothing is asked


def test_what_is_not_met_ends_with_status_3(capsys):
    assert common.fail(UnmetError("leak AUC may be 0.9.")) == 3
    assert common.fail(UserError("x.")) == 2
    assert capsys.readouterr().err.startswith("error: leak AUC may be 0.9.")


def test_a_verdict_that_does_not_exist_is_refused_before_the_work():
    options = common.Options(common.REQUIREMENTS)
    options(["report", "--fail_verdict=nothing"])
    with pytest.raises(UserError, match="choose from is_undefended, nothing_to_protect"):
        common.requirement(options)
