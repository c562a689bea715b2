"""The line that a guarantee draws: exact channels, data whose M is known, and a stored sweep."""

import math

import numpy as np
import pytest

from tests.reference import label_dp as twin
from vfljax import defenses
from vfljax.report import findings, guarantees
from vfljax.report.assessment import assess
from vfljax.report.configurations import undefended
from vfljax.report.stored_rows import read


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


def test_the_report_draws_the_line_at_the_best_measured_m(defended):
    found = assess(read(defended))
    without = guarantees._measured_without(found)
    plain = undefended(found.configurations)
    assert without.accuracy >= max(accuracy.mean for accuracy in plain.accuracy.values())
    lines = guarantees.lines(found)
    assert {line.configuration.method for line in lines} == {"plain"}
    assert {line.epsilon for line in lines} == {1.0, 3.0}
    for line in lines:
        assert line.allowed == guarantees._accuracy_bound(line.epsilon, without.accuracy)
        assert not line.crossed
    assert guarantees.warnings(found) == []
    assert f"M = {without.accuracy:.3f}" in guarantees.caption(found)


def test_a_figure_beyond_the_line_is_a_warning_that_convicts_m_or_the_code(defended, monkeypatch):
    low = guarantees.Measured(0.5, "majority guess")
    monkeypatch.setattr(guarantees, "_measured_without", lambda *_: low)
    found = assess(read(defended))
    # the noisy label alone is right in .731 (.953) of rows, which is the line at M = 1/2
    reached = guarantees.Measured(0.99, "direct")
    place = {(point.number, "no_split"): reached for point in found.configurations}
    monkeypatch.setattr(guarantees, "_most_accurate", lambda _: place)
    lines = guarantees.warnings(found)
    assert len(lines) == 2
    assert lines[0].startswith(
        "WARNING: plain epsilon=1, without model splitting: direct names 0.990"
    )
    assert "more than the 0.731 that ε = 1 allows" in lines[0]
    assert "A measured M is a lower bound" in lines[0]
    assert set(lines) <= set(findings.findings(found))
    header, rows = guarantees.bound_table(found)
    crossing = [row[header.index("crosses the line")] for row in rows]
    assert crossing == 2 * ["WARNING: without model splitting"]
