"""The posterior under label DP: against the twin, at its limits, and what the columns add."""

import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.attacks.probe_test import twin as standardized
from tests.reference import posterior as reference
from vfljax import testing
from vfljax.attacks.posterior import posterior
from vfljax.models import WideDeep

ROWS = 400


def run(epsilon=1.0, classes=3, seed=0, shift=1.5, sent=None, later=1):
    """Columns around a point of each class, labels flipped by randomized response, and what the
    federation sends back of them."""
    rng = np.random.default_rng(seed)
    labels = np.arange(ROWS) % classes
    x = rng.normal(size=(ROWS, cases.WIDTH))
    x[:, :classes] += shift * np.eye(classes)[labels]
    law = reference.response(epsilon, classes)
    noisy = np.array([rng.choice(classes, p=law[y]) for y in labels])
    softmax = rng.dirichlet(np.ones(classes), size=(2, ROWS))
    g = (softmax - np.eye(classes)[noisy]) / 50
    g[1:] *= later
    case = cases.make_case(labels, classes, gradients=g, features=x, sent=sent, known=0)
    return labels, noisy, x, case


def scores(case, classes=3, steps=200, epoch="mean", signal="entries", columns="values", **knobs):
    options = {"steps": steps, "epoch": epoch, "signal": signal, "columns": columns}
    one = cases.build(posterior, classes, **options)
    return np.asarray(cases.attack(one, case, **knobs).train)


def hits(scores, labels):
    return np.mean(scores.argmax(axis=1) == labels)


# where later gradients say the opposite, the first epoch's still name the noisy labels
@pytest.mark.parametrize(("epsilon", "epoch", "later"), [(0.5, "mean", 1), (3.0, 0, -2)])
def test_agrees_with_the_numpy_twin(epsilon, epoch, later):
    _, noisy, x, case = run(epsilon, later=later)
    columns = standardized(x, np.ones(ROWS, bool))
    expected = reference.scores(columns, noisy, 3, epsilon, steps=200)
    found = scores(case, epoch=epoch, epsilon=epsilon)
    np.testing.assert_allclose(found, expected, rtol=1e-3, atol=2e-3)


def test_the_columns_correct_noisy_labels_and_noisy_labels_the_columns():
    labels, noisy, _, case = run(1.0)
    together = scores(case, epsilon=1.0)
    columns = together - np.eye(3)[noisy]
    assert hits(together, labels) > max(np.mean(noisy == labels), hits(columns, labels)) + 0.02


def test_a_large_epsilon_is_the_direct_attack_and_0_says_nothing():
    _, noisy, _, case = run(1.0)
    np.testing.assert_array_equal(scores(case, epsilon=1e4).argmax(axis=1), noisy)
    assert np.all(np.isfinite(scores(case, epsilon=1e4)))
    np.testing.assert_allclose(scores(case, epsilon=0.0), -np.log(3), rtol=1e-5)


def test_the_columns_probabilities_are_those_of_the_label_and_not_of_the_noisy_one():
    """The mechanism is undone: they are calibrated, where those of noisy labels would stay below .6."""
    labels, noisy, _, case = run(2.0)
    p = np.exp(scores(case, epsilon=2.0, steps=500) - 2 * np.eye(3)[noisy])
    confidence = np.mean(p.max(axis=1))
    assert abs(confidence - hits(p, labels)) < 0.05
    assert confidence > 0.68


def test_a_row_whose_gradients_name_no_class_is_scored_by_its_columns_and_one_never_sent_not():
    sent = np.ones((2, ROWS), bool)
    sent[:, 0] = False
    *_, case = run(1.0, sent=sent)
    empty = {name: case.run.exchange[name].copy() for name in ("gradients", "sum_gradient")}
    empty["gradients"][:, 1], empty["sum_gradient"][1] = 0, 0
    case = case._replace(run=case.run._replace(exchange={**case.run.exchange, **empty}))
    s = scores(case, epsilon=2.0)
    assert np.isnan(s[0]).all()
    assert np.isfinite(s[1:]).all()
    np.testing.assert_allclose(np.exp(s[1]).sum(), 1, rtol=1e-5)


def run_with_a_top_model(epsilon, skewed=False):
    """``run`` of two classes, and gradients (p - y~) times a slope of each row."""
    labels, noisy, x, _ = run(epsilon, classes=2)
    rng = np.random.default_rng(1)
    slopes = np.array([2.0, -1, 0.5, 0]) + 0.4 * rng.normal(size=(ROWS, 4))
    g = (rng.uniform(0.1, 0.9, size=ROWS) - noisy)[:, None] * slopes / 50
    x = np.exp(3 * x) if skewed else x
    case = cases.make_case(labels, 2, gradients=[g, g], features=x, known=0, cut=4)
    return labels, noisy, x, g, case


def test_with_a_top_model_the_direction_names_the_noisy_labels_as_in_the_numpy_twin():
    labels, noisy, x, g, case = run_with_a_top_model(1.0)
    named = reference.noisy_by_direction(g)
    assert np.mean(named == noisy) in (0, 1)
    found = scores(case, 2, epsilon=1.0, signal="direction")
    columns = standardized(x, np.ones(ROWS, bool))
    expected = [reference.scores(columns, y, 2, 1.0, steps=200) for y in (named, 1 - named)]
    assert min(np.abs(found - e).max() for e in expected) < 2e-3
    # the sign is nobody's: a leak is read in either
    beside = [harness.leak(s, labels) for s in (found, np.eye(2)[noisy])]
    assert max(beside[0], 1 - beside[0]) > beside[1] + 0.1


def test_with_a_top_model_it_keeps_the_rules_of_attacks():
    options = {"signal": "direction", "columns": "ranks", "steps": 50}
    testing.check("posterior", options=options, classes=(2,))
    with pytest.raises(ValueError, match=r"signal='direction' is for two classes"):
        posterior(cases.BOTTOMS, 3, signal="direction")


def test_ranks_read_skewed_columns_that_values_do_not():
    labels, _, _, _, case = run_with_a_top_model(1.0, skewed=True)
    by_values, by_ranks = (
        harness.leak(scores(case, 2, epsilon=1.0, signal="direction", columns=c), labels)
        for c in ("values", "ranks")
    )
    assert abs(by_ranks - 0.5) > abs(by_values - 0.5) + 0.02


def test_columns_of_codes_are_refused_with_the_remedy():
    with pytest.raises(ValueError, match=r"WideDeep reads are codes.*leave this attack out"):
        posterior((WideDeep(4, (3, 0)),), 2)
