"""The direct attack reads labels off gradient signs; what KDk leaves of that; rows without a guess."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import direct as reference
from tests.reference import kdk as kdk_reference
from vfljax.attacks.batch_inversion import batch_inversion
from vfljax.attacks.direct import RULES, direct
from vfljax.defenses.max_norm import perturb

CLASSES, ROWS = 5, 600
every_rule = harness.quick_jit(lambda g: {name: rule(g) for name, rule in RULES.items()})


def guesses(g):
    """Class guesses of every rule, None for a row without one."""
    scores = {rule: np.asarray(s) for rule, s in every_rule(np.float32(g)).items()}
    return {
        rule: [None if np.any(np.isnan(row)) else int(np.argmax(row)) for row in s]
        for rule, s in scores.items()
    }


def success(g, labels):
    """The share of rows whose label each rule guesses."""
    found = guesses(g).items()
    return {rule: np.mean([a == b for a, b in zip(of_rows, labels)]) for rule, of_rows in found}


def test_agrees_with_the_numpy_twin_on_any_gradients():
    g = np.random.default_rng(0).integers(-2, 3, size=(ROWS, CLASSES))  # with ties and zeros
    g[:2] = [[0, 0, 0, 0, 0], [2, 1, 0, 1, 0]]
    g = np.where(g == 0, -0.0, g)  # which is not negative
    for rule, found in guesses(g).items():
        assert found == getattr(reference, rule)(g)


def kdk_gradients(epsilon, k):
    """Gradients of epoch 0: predictions near uniform, targets softened."""
    rng = np.random.default_rng(1)
    labels, scores = rng.integers(CLASSES, size=ROWS), rng.dirichlet(np.ones(CLASSES), ROWS)
    targets = kdk_reference.kdk_targets(scores, labels, k, epsilon)
    return (np.full((ROWS, CLASSES), 1 / CLASSES) - targets) / ROWS, labels


def test_under_kdk_rules_guess_among_k_classes_or_read_labels_that_weigh_most_or_least():
    for epsilon, label_is_heaviest in ((0.6, True), (0.75, False)):  # k = 3: 2/3
        found = success(*kdk_gradients(epsilon, 3))
        assert abs(found["first_negative"] - 1 / 3) < 4 * np.sqrt(2 / 9 / ROWS)
        assert found["most_negative"] == label_is_heaviest
        assert found["least_negative"] == (not label_is_heaviest)


def test_under_max_norm_the_largest_entry_names_every_label_and_no_sign_does():
    rng = np.random.default_rng(5)
    labels = rng.integers(CLASSES, size=ROWS)
    g = (rng.dirichlet(0.3 * np.ones(CLASSES), ROWS) - np.eye(CLASSES)[labels]) / 32
    found = success(perturb(jax.random.key(0), jnp.float32(g)), labels)
    assert found["largest"] == 1
    assert found["most_negative"] < 0.9
    for attack in (direct, batch_inversion):
        with pytest.raises(ValueError, match=r"rule='largest' is for more than two classes"):
            attack(cases.ONE_BOTTOM, 2, rule="largest")


def test_an_epoch_is_found_by_its_number_and_minus_one_is_the_last():
    labels = np.arange(12) % CLASSES
    named = [(labels + place) % CLASSES for place in range(3)]
    g = np.float32([1 / CLASSES - np.eye(CLASSES)[labels] for labels in named])
    case = cases.make_case(labels, CLASSES, gradients=g)
    numbers = {**case.run.exchange, "epochs": np.int32([5, 0, 3])}
    case = case._replace(run=case.run._replace(exchange=numbers))
    forms = [cases.build(direct, CLASSES, epoch=epoch) for epoch in (5, 0, -1)]
    for scores, expected in zip(cases.attack_all(forms, case), named):
        np.testing.assert_array_equal(np.argmax(scores, axis=1), expected)
