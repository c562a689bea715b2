"""What a pipeline asks of a sweep, and the exit status where it is not met."""

import math
import re

import pytest

from tests.sweeps import assessed, assessment
from vfljax.errors import UnmetError, UserError
from vfljax.report import requirements
from vfljax.report.judging import Verdict

PLAIN = assessment("plain", 0.9, 0.97, attack="norm")
NOISE = assessment("noise", 0.9, 0.56, {"noise.scale": 1.0})


@pytest.fixture
def check(monkeypatch):
    """Asks of these assessments, compared."""

    def asked(*found, most=math.nan, refused=()):
        reached = assessed(*found)
        monkeypatch.setattr(requirements, "assess_sweep", lambda workdir: reached)
        requirements.check("w", most, requirements.verdicts(refused))
        return reached

    return asked


def test_the_upper_limit_of_what_is_recommended_is_held_to_the_most(check):
    (shown,) = check(PLAIN, NOISE, most=0.9).methods
    limit = float(shown.leak.limits[1])
    assert limit > shown.leak.mean
    check(PLAIN, NOISE, most=limit)
    with pytest.raises(UnmetError, match=re.escape(f"may be {limit:.3f}: more than --fail_above")):
        check(PLAIN, NOISE, most=(limit + shown.leak.mean) / 2)


def test_undefended_is_asked_where_nothing_is_recommended(check):
    with pytest.raises(UnmetError, match="with no defense, leak AUC may be 0.9"):
        check(PLAIN, most=0.9)
    check(PLAIN, most=1.0)
    with pytest.raises(UnmetError, match="no defense is recommended"):
        check(PLAIN, refused=("cannot_say",))


def test_verdicts_are_refused_by_name(check):
    (shown,) = check(PLAIN, NOISE, refused=("is_undefended",)).methods
    with pytest.raises(UnmetError, match=f"the verdict is '{shown.verdict}'"):
        check(PLAIN, NOISE, refused=("protects", shown.verdict.name.lower()))
    with pytest.raises(UserError, match="choose from is_undefended") as refused:
        check(PLAIN, NOISE, refused=("nothing",))
    assert (refused.value.status, UnmetError.status) == (2, 3)
    assert requirements.verdicts(("cannot_say",)) == {Verdict.CANNOT_SAY}
    check(refused=())  # asks nothing, not even whether there are figures
