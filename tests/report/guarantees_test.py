"""The line that a guarantee draws: exact channels, and made sweeps."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from tests.reference import label_dp as twin
from tests.report.made import BARE, CONFIG, NAN, PROTECTS, made
from vfljax import defenses
from vfljax.report import guarantees
from vfljax.report.epsilon_lower_bounds import Guesses
from vfljax.sweep.grid import parse

ACCURACY = "test_oriented_accuracy"


def test_the_bound_is_that_of_the_odds_and_never_further_from_m_than_tanh():
    for epsilon in (0.0, 0.1, 1.0, 4.0):
        for without in (0.01, 0.74, 1.0):
            bound = guarantees._accuracy_bound(epsilon, without)
            assert bound == pytest.approx(twin.accuracy_at_most(epsilon, without))
            assert without - 1e-12 <= bound <= without + math.tanh(epsilon / 4) + 1e-12
    assert guarantees._accuracy_bound(math.inf, 0.3) == 1
    for classes in (2, 10):  # without anything else randomized response reaches it
        bound = guarantees._accuracy_bound(0.8, 1 / classes)
        assert bound == pytest.approx(twin.keep(classes, 0.8))
    for values in ((-0.1, 0.5), (1.0, 0.0), (1.0, 1.1), (math.nan, 0.5)):
        with pytest.raises(ValueError, match="epsilon="):
            guarantees._accuracy_bound(*values)


def test_only_defenses_with_a_guarantee_have_an_epsilon():
    prior = np.full(2, 0.5)
    promised = {
        name: row
        for name, row in defenses.TABLE.items()
        if row.remarks(row.example, {}).epsilon is not None
    }
    assert "label_dp" in promised
    said = [row.remarks(row.example, {}).bound for row in promised.values()]
    assert all(bound is not None and bound(prior) for bound in said)
    given_up = {"mechanism": "rr_with_prior", "guarantee": "none"}
    assert defenses.TABLE["label_dp"].remarks({"epsilon": 1.0}, given_up).epsilon is None


def claiming(epsilons, balance=(300, 700), **rows):
    """Undefended, and a method of label DP at each of these epsilons, which leak what undefended does."""
    points = [{"probe/mean": 0.9, "test_utility": 0.8} for _ in (0, *epsilons)]
    of = rows or {"success_unlabeled": 0.75}
    return made(
        *points,
        defenses=("label_dp",) * len(epsilons),
        knobs={"label_dp.epsilon": [NAN, *epsilons], ACCURACY: [0.8] * len(points)},
        balance=balance,
        rows=of,
    )


def test_m_is_the_best_that_was_measured_without_the_rows_own_label():
    def measured(**rows):
        return guarantees._measured_without(claiming((1.0,), **rows))

    assert measured() == (0.8, "undefended federation with model splitting, test rows", False)
    few = claiming((1.0,), balance=(10, 90))
    assert guarantees._measured_without(few) == (0.9, "majority guess", False)
    learned = measured(success_unlabeled=0.85)
    assert learned.whose == "logistic with 40 labels and columns of 0 without the federation"
    told = measured(success_unlabeled=0.5, all_labels_test_success=0.99)
    assert told == (0.99, "probe/mean with all labels, test rows", False)


def test_the_report_draws_the_line_at_the_best_measured_m():
    judged = claiming((1.0, 3.0))
    lines = guarantees.lines(judged)
    assert [*lines["epsilon"]] == [1.0, 3.0]
    assert [*lines["allowed"]] == [guarantees._accuracy_bound(x, 0.8) for x in (1.0, 3.0)]
    assert lines["reached"].to_numpy() == pytest.approx(0.75)
    assert {*lines["whose"]} == {"probe/mean"}
    assert guarantees.warnings(judged) == []
    assert "M = .800" in guarantees.caption(judged)
    table = guarantees.bound_table(judged)
    assert [*table["ε claimed"]] == ["1", "3"]
    assert [*table["posterior odds at most (times prior odds)"]] == ["2.72", "20.1"]
    assert {*table["crosses the line"]} == {"no"}
    other = judged.verdicts.assign(panel="no_split", leader="", leak=NAN)  # nothing attacked there
    both = judged._replace(verdicts=pd.concat([judged.verdicts, other]))
    assert {*guarantees.bound_table(both)["strongest attack, without model splitting"]} == {"-"}
    unclaimed = made(BARE, PROTECTS)
    assert not len(guarantees.bound_table(unclaimed))
    assert (guarantees.warnings(unclaimed), guarantees.caption(unclaimed)) == ([], "")


def test_a_figure_beyond_the_line_is_a_warning_with_digits_that_show_it(monkeypatch):
    exact = guarantees.Measured(0.5, "permuted labels", exact=True)
    monkeypatch.setattr(guarantees, "_measured_without", lambda _: exact)
    # the noisy label alone is right in .731 (.953) of rows, which is the line at M = 1/2
    judged = claiming((1.0, 3.0), success_unlabeled=0.99)
    first, _ = guarantees.warnings(judged)
    assert "epsilon=1, with model splitting: probe/mean names .990 of the labels" in first
    assert "more than the .731 that ε = 1 allows" in first
    crossing = guarantees.bound_table(judged)["crosses the line"]
    assert [*crossing] == 2 * ["WARNING: with model splitting"]
    nearly = guarantees.Measured(0.9999, "undefended", exact=True)
    monkeypatch.setattr(guarantees, "_measured_without", lambda _: nearly)
    allowed = guarantees._accuracy_bound(8.0, 0.9999)
    assert not guarantees.warnings(claiming((8.0,), success_unlabeled=allowed))
    names, bound = first.split("names ")[1].split()[0], first.split("more than the ")[1].split()[0]
    assert float(names) > float(bound)
    # of 960 rows of a run .0001 are allowed to be wrong: no error at all is what is expected
    nearly = guarantees.Measured(0.99999, "undefended", exact=True)
    assert not guarantees.warnings(claiming((8.0,), success_unlabeled=1.0))


def test_a_line_that_may_be_too_low_is_no_alarm_and_is_said_in_the_table(monkeypatch):
    low = guarantees.Measured(0.5, "majority guess")
    judged = claiming((1.0,), success_unlabeled=0.99)
    with monkeypatch.context() as patched:
        patched.setattr(guarantees, "_measured_without", lambda _: low)
        assert guarantees.lines(judged)["crossed"].item()
        assert guarantees.warnings(judged) == []
        (cell,) = guarantees.bound_table(judged)["crosses the line"]
        assert cell == "above the line of this M: with model splitting"
    permuted = parse({**CONFIG, "data": {"permute_labels": 1.0}})
    judged = judged._replace(experiment=permuted)
    assert guarantees._measured_without(judged) == (0.7, "permuted labels", True)
    assert len(guarantees.warnings(judged)) == 1


def test_a_line_is_crossed_if_a_binomial_of_one_runs_rows_rules_it_out(monkeypatch):
    low = guarantees.Measured(0.5, "majority guess")
    monkeypatch.setattr(guarantees, "_measured_without", lambda _: low)
    judged = claiming((1.0,))
    allowed, rows = guarantees._accuracy_bound(1.0, 0.5), guarantees.attacked_rows(judged)
    assert rows == 1000 - 40
    # five seeds and draws of the same rows are no more evidence than one
    worst = stats.binom.isf(guarantees.CROSSING, rows, allowed) + 1
    for right, crossed in ((worst - 1, False), (worst, True)):
        of = claiming((1.0,), success_unlabeled=right / rows)
        assert bool(guarantees.lines(of)["crossed"].item()) == crossed, right
    # .02 above the line is chance among so many rows
    assert not guarantees.warnings(claiming((1.0,), success_unlabeled=allowed + 0.02))


@pytest.mark.parametrize(("right", "text", "warned"), [(250, "0.00", 0), (450, "1.95", 1)])
def test_guesses_of_canaries_are_beside_what_is_claimed(right, text, warned, monkeypatch):
    found = {1: Guesses("split", "direct/votes", 500, right)}
    monkeypatch.setattr(guarantees, "epsilon_lower_bounds", lambda _: found)
    judged = claiming((1.0,))
    (cell,) = guarantees.bound_table(judged)["ε at least (95 %), from canaries"]
    assert cell == f"{text} (direct/votes: {right} of 500)"
    warnings = guarantees.warnings(judged)
    assert ["more than the 1 that label_dp claims" in line for line in warnings] == [True] * warned
