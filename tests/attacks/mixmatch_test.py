"""Model completion's formulas, sharpening, mixing and the loss, against the NumPy twin."""

import jax
import numpy as np
import pytest

from tests import harness
from tests.reference import completion as reference
from vfljax.attacks.mixmatch import mixmatch_loss, mixup, permutations, sharpen

ROWS, CLASSES = 8, 10
jitted_sharpen = harness.quick_jit(sharpen)
rng = np.random.default_rng(0)
TARGETS = rng.dirichlet(np.ones(CLASSES), ROWS).astype(np.float32)


@pytest.mark.parametrize("temperature", [0.001, 0.05, 0.2, 0.8])
def test_sharpening_agrees_with_the_twin_and_is_exact_where_powers_underflow(temperature):
    logits = np.log(TARGETS)
    if temperature > 0.1:
        expected = reference.sharpen(np.float64(TARGETS), temperature)
        np.testing.assert_allclose(jitted_sharpen(logits, temperature), expected, 1e-4, 1e-6)
    p = np.full((ROWS, CLASSES), 1 / CLASSES, np.float32)
    p[0] = [0.25, 0.75, *[1e-30] * (CLASSES - 2)]
    q = np.asarray(jitted_sharpen(np.log(p), temperature))
    np.testing.assert_allclose(q[1:], p[1:], rtol=1e-5)
    np.testing.assert_allclose(q[0].sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(q[0, 1], 1 / (1 + (1 / 3) ** (1 / temperature)), rtol=1e-4)


@pytest.mark.parametrize("count", [1, 8, 512, 600])
def test_permutations_are_the_stable_order_of_numbers(count):
    """Numbers of the grid of uniform ones, the least and the largest among them, many of them equal."""
    u = np.float32(rng.integers(0, 50, (3, count)) / 64)
    u[0, 0], u[1, 0] = 0, 1 - 2.0**-23
    order = np.argsort(u, axis=-1, kind="stable")
    assert np.array_equal(harness.quick_jit(permutations)(u), order)


def test_mixing_agrees_with_the_twin():
    x, order = rng.normal(size=(ROWS, 2, 3)), rng.permutation(ROWS)
    mixed = harness.quick_jit(mixup)((np.float32(x), TARGETS), 0.7, order)
    expected = reference.mixup(x, TARGETS.astype(np.float64), 0.7, order)
    for ours, twin in zip(mixed, expected, strict=True):
        np.testing.assert_allclose(ours, twin, rtol=1e-5, atol=1e-6)


def test_the_loss_and_its_gradient_agree_with_the_twin():
    logits = rng.normal(size=(ROWS, CLASSES)).astype(np.float32)
    given = np.float64(logits), np.float64(TARGETS), 3
    loss = harness.quick_jit(jax.value_and_grad(mixmatch_loss), static_argnums=2)
    for weight in (0.0, 50.0):
        ours, gradient = loss(logits, TARGETS, 3, weight)
        np.testing.assert_allclose(ours, reference.mixmatch_loss(*given, weight), rtol=1e-5)
        expected = reference.logits_gradient(*given, weight)
        np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-6)
