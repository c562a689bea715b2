"""The line that a guarantee draws: exact channels, data whose M is known, and made sweeps."""

import math

import numpy as np
import pandas as pd
import pytest

from tests.reference import label_dp as twin
from tests.report.made import made
from vfljax import defenses
from vfljax.report import guarantees


@pytest.mark.parametrize("epsilon", [0.0, 0.1, 1.0, 4.0])
@pytest.mark.parametrize("without", [0.01, 0.1, 0.74, 1.0])
def test_the_bound_is_that_of_the_odds_and_never_further_from_m_than_tanh(epsilon, without):
    bound = guarantees._accuracy_bound(epsilon, without)
    assert bound == pytest.approx(twin.accuracy_at_most(epsilon, without))
    assert without - 1e-12 <= bound <= without + math.tanh(epsilon / 4) + 1e-12


def test_its_limits_are_m_certainty_and_randomized_response():
    assert guarantees._accuracy_bound(0.0, 0.3) == pytest.approx(0.3)
    assert guarantees._accuracy_bound(math.inf, 0.3) == 1
    assert guarantees._accuracy_bound(1000.0, 0.3) == pytest.approx(1)
    for classes in (2, 10):
        expected = twin.keep(classes, 1.3)
        assert guarantees._accuracy_bound(1.3, 1 / classes) == pytest.approx(expected)
    farthest = 1 / (1 + math.exp(1.3 / 2))
    reached = guarantees._accuracy_bound(1.3, farthest) - farthest
    assert reached == pytest.approx(math.tanh(1.3 / 4))
    assert guarantees._accuracy_bound(1.0, 0.74) == pytest.approx(0.886, abs=5e-4)


@pytest.mark.parametrize("values", [(-0.1, 0.5), (1.0, 0.0), (1.0, 1.1), (math.nan, 0.5)])
def test_values_without_a_meaning_are_refused(values):
    with pytest.raises(ValueError, match="epsilon="):
        guarantees._accuracy_bound(*values)


def test_no_channel_of_epsilon_crosses_the_line_and_some_of_twice_epsilon_do():
    random, epsilon, crossed = np.random.default_rng(0), 0.8, 0
    for _ in range(200):
        classes, answers = random.integers(2, 6), random.integers(2, 7)
        prior = random.dirichlet(np.ones(classes))
        # likelihoods of an answer differ by at most e^epsilon (e^(2 epsilon)) over classes
        for strength in (epsilon, 2 * epsilon):
            exponents = random.choice([0.0, strength / 2], (classes, answers))
            likelihood = np.exp(exponents)
            likelihood /= likelihood.sum(axis=1, keepdims=True)
            accuracy = twin.best_accuracy(prior, likelihood)
            bound = guarantees._accuracy_bound(epsilon, prior.max())
            if strength == epsilon:
                assert accuracy <= bound + 1e-12
        kept = twin.keep(classes, 2 * epsilon)  # plain randomized response of twice epsilon
        response = np.full((classes, classes), (1 - kept) / (classes - 1))
        np.fill_diagonal(response, kept)
        uniform = np.full(classes, 1 / classes)
        crossed += twin.best_accuracy(uniform, response) > guarantees._accuracy_bound(
            epsilon, 1 / classes
        )
    assert crossed == 200


@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_on_data_whose_m_is_known_only_more_than_epsilon_crosses_the_line(epsilon):
    """Two classes, p(1 | x) = sigmoid(2 x); the best guess weighs the noisy label by epsilon."""
    random, rows = np.random.default_rng(1), 200_000
    x = random.standard_normal(rows)
    log_odds = 2 * x
    p = 1 / (1 + np.exp(-log_odds))
    label = random.random(rows) < p
    m = np.maximum(p, 1 - p).mean()

    def reached(strength):
        noisy = label ^ (random.random(rows) > twin.keep(2, strength))
        return ((log_odds + np.where(noisy, strength, -strength) > 0) == label).mean()

    error = 3 * math.sqrt(0.25 / rows)
    bound = guarantees._accuracy_bound(epsilon, m)
    assert ((log_odds > 0) == label).mean() == pytest.approx(m, abs=error)
    assert reached(epsilon) < bound + error
    assert reached(3 * epsilon) > bound + error  # the code spends more than it promises
    too_low = guarantees._accuracy_bound(epsilon, 0.5)
    assert reached(epsilon) > too_low  # and so does the line of an M that is too low


def test_only_label_dp_with_a_guarantee_has_an_epsilon():
    promised = {
        name
        for name, row in defenses.TABLE.items()
        if row.remarks.epsilon(row.example, {}) is not None
    }
    assert "label_dp" in promised
    for name in promised:
        row = defenses.TABLE[name]
        prior = np.full(2, 0.5)
        assert row.remarks.bound(row.example, {}, prior) is not None
    given_up = {"mechanism": "rr_with_prior", "guarantee": "none"}
    assert defenses.TABLE["label_dp"].remarks.epsilon({"epsilon": 1.0}, given_up) is None


NAN = math.nan
ACCURACY = "test_oriented_accuracy"


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

    assert measured() == (0.8, "undefended federation with model splitting, test rows")
    few = claiming((1.0,), balance=(10, 90))
    assert guarantees._measured_without(few) == (0.9, "majority guess")
    learned = measured(success_unlabeled=0.85)
    assert learned.whose == "logistic with 40 labels and columns of 0 without the federation"
    told = measured(success_unlabeled=0.5, all_labels_test_success=0.99)
    assert told == (0.99, "probe/mean with all labels, test rows")


def test_the_report_draws_the_line_at_the_best_measured_m():
    judged = claiming((1.0, 3.0))
    lines = guarantees.lines(judged)
    assert [*lines["epsilon"]] == [1.0, 3.0]
    assert [*lines["allowed"]] == [guarantees._accuracy_bound(x, 0.8) for x in (1.0, 3.0)]
    assert lines["reached"].to_numpy() == pytest.approx(0.75)
    assert {*lines["whose"]} == {"probe/mean"}
    assert not lines["crossed"].any()
    assert guarantees.warnings(judged) == []
    assert "M = .800" in guarantees.caption(judged)
    table = guarantees.bound_table(judged)
    assert [*table["ε claimed"]] == ["1", "3"]
    assert [*table["posterior odds at most (times prior odds)"]] == ["2.72", "20.1"]
    assert {*table["crosses the line"]} == {"no"}
    other = judged.verdicts.assign(
        panel="no_split", leader="", leak=NAN
    )  # nothing was attacked there
    both = judged._replace(verdicts=pd.concat([judged.verdicts, other]))
    assert {*guarantees.bound_table(both)["most accurate attack, without model splitting"]} == {"-"}
    assert {*guarantees.bound_table(both)["strongest attack, without model splitting"]} == {"-"}


def test_without_a_guarantee_there_is_no_table_and_no_warning():
    judged = made({"probe/mean": 0.9}, {"probe/mean": 0.6})
    assert not len(guarantees.bound_table(judged))
    assert guarantees.warnings(judged) == []
    assert guarantees.caption(judged) == ""


def test_a_figure_beyond_the_line_is_a_warning_that_says_what_to_do(monkeypatch):
    low = guarantees.Measured(0.5, "majority guess")
    monkeypatch.setattr(guarantees, "_measured_without", lambda _: low)
    # the noisy label alone is right in .731 (.953) of rows, which is the line at M = 1/2
    judged = claiming((1.0, 3.0), success_unlabeled=0.99)
    lines = guarantees.warnings(judged)
    assert len(lines) == 2
    assert "epsilon=1, with model splitting: probe/mean names .990 of the labels" in lines[0]
    assert "more than the .731 that ε = 1 allows" in lines[0]
    assert "Do not rely on the guarantee before you know which" in lines[0]
    crossing = guarantees.bound_table(judged)["crosses the line"]
    assert [*crossing] == 2 * ["WARNING: with model splitting"]


def test_a_warning_shows_digits_by_which_the_figure_is_above_the_line(monkeypatch):
    nearly = guarantees.Measured(0.9999, "undefended")
    monkeypatch.setattr(guarantees, "_measured_without", lambda _: nearly)
    allowed = guarantees._accuracy_bound(8.0, 0.9999)
    assert not guarantees.warnings(claiming((8.0,), success_unlabeled=allowed))
    (line,) = guarantees.warnings(claiming((8.0,), success_unlabeled=1.0))
    names, bound = line.split("names ")[1].split()[0], line.split("more than the ")[1].split()[0]
    assert float(names) > float(bound)
