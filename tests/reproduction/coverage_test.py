"""Every printed number counts once, and claims are weighed by paired differences."""

import numpy as np
import pytest

from analysis.reproduction import claims, coverage, papers
from analysis.reproduction.agreement import Status
from analysis.reproduction.causes import Cause, Explained
from analysis.reproduction.comparisons import Compared
from analysis.reproduction.evidence import Evidence, Support, difference

LEAKS_LESS = claims.WEIGHED["gafm", "undefended"]
SPAMBASE = papers.numbers_of("gafm/2", "Spambase")
NUMBER = SPAMBASE[1]  # a leak AUC of .56 +- .04
BARE = next(n for n in SPAMBASE if n.defense == "none" and n.attack == NUMBER.attack)


def ran(value, number=NUMBER, scale="full", variant="", spread=0.01, point="gafm"):
    ours = tuple(value + spread * np.array([-1, 0, 1, 0.5, -0.5]))
    return Compared(number=number, variant=variant, scale=scale, point=point, ours=ours)


def test_without_any_run_every_number_counts_once():
    every = coverage.coverage([])
    assert len(every) == len({entry.number.id for entry in every}) == len(papers.numbers())
    count = coverage.counts(every)
    assert set(count) == {Status.NOT_RUN, Status.NOT_COMPARABLE}
    incomparable = [entry.number for entry in every if entry.status is Status.NOT_COMPARABLE]
    assert all(number.incomparable for number in incomparable)
    table = coverage.table(every)
    assert table["numbers"][:-1].astype(int).sum() == int(table["numbers"].iloc[-1]) == len(every)
    for name in Status:
        assert sum(int(cell or 0) for cell in table[name.value][:-1]) == count[name]


@pytest.mark.parametrize(
    ("stored", "status"),
    [
        ([ran(0.56)], Status.EQUIVALENT),
        ([ran(0.56, spread=0.05)], Status.COMPATIBLE),
        ([ran(0.56, scale="reduced")], Status.CLAIMS),
        ([ran(0.80), ran(0.56, scale="sample")], Status.DIFFERS),
        ([ran(0.56, variant="minmax")], Status.NOT_RUN),  # a variant alone is not the table's
        ([ran(0.80), ran(0.56, variant="minmax")], Status.DIFFERS),
        ([ran(0.56)._replace(ours=(0.56,))], Status.ONE_SEED),
    ],
)
def test_a_number_has_the_status_of_its_run_at_the_published_setting(stored, status):
    (entry,) = (s for s in coverage.coverage(stored) if s.number.id == NUMBER.id)
    assert entry.status is status
    assert len(entry.variants) == sum(bool(s.variant) for s in stored)


def test_what_differs_has_a_cause_judged_together_with_all_others():
    least = ran(0.598)  # its p-value is .03
    others = [ran(n.value, number=n) for n in SPAMBASE[2:4]]
    for stored, remains, cause in (([least], True, "open"), ([least, *others], False, "chance")):
        (entry,) = (e for e in coverage.coverage(stored) if e.explained)
        assert (entry.remains, entry.explained) == (remains, Explained(Cause(cause)))
    shown = ran(0.56, variant="released_top a", spread=0.001)._replace(run="released_top")
    found = coverage.differing(coverage.coverage([ran(0.8), shown]))
    assert found[["cause", "shown by"]].to_numpy().tolist() == [["released code", "released_top a"]]


def test_a_difference_is_paired_by_seed():
    a, b = np.array([0.5, 0.6, 0.7]), np.array([0.6, 0.7, 0.8])
    assert difference(a, b) == pytest.approx((-0.1, -0.1, -0.1))
    mean, low, high = difference(a, b[::-1])
    assert low < mean < high
    assert np.isnan(difference([0.5], [0.6]).lower)


@pytest.mark.parametrize(
    ("leak", "support"), [(0.80, Support.FOR), (0.951, Support.OPEN), (0.99, Support.AGAINST)]
)
def test_a_claim_is_for_against_or_open_by_the_interval_of_the_difference(leak, support):
    noisy = ran(0.95, number=BARE)
    ours = ran(leak)._replace(
        ours=tuple(np.array(noisy.ours) + leak - 0.95 + 0.002 * np.array([1, -1, 0, 1, -1]))
    )
    (line,) = LEAKS_LESS(Evidence(compared=[ours, noisy], leaks={}))
    assert line.support == support
