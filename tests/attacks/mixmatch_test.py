"""Model completion's formulas, sharpening, mixing and the loss, against the NumPy twin."""

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from tests.reference import completion as reference
from vfljax.attacks.mixmatch import mixmatch_loss, mixup, sharpen

CLASSES = 3
jitted_sharpen, jitted_mixup = harness.quick_jit(sharpen), harness.quick_jit(mixup)
value_and_gradient = harness.quick_jit(jax.value_and_grad(mixmatch_loss), static_argnums=2)
few = settings(deadline=None, max_examples=20, database=None, derandomize=True)


def probabilities(seed, rows=8):
    return np.random.default_rng(seed).dirichlet(np.ones(CLASSES), rows).astype(np.float32)


@given(seed=st.integers(0, 2**16), temperature=st.sampled_from([0.1, 0.5, 0.8, 1.0, 2.0]))
@few
def test_sharpening_agrees_with_the_twin_and_keeps_rows_at_one(seed, temperature):
    p = probabilities(seed)
    q = jitted_sharpen(p, temperature)
    np.testing.assert_allclose(q, reference.sharpen(p, temperature), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.sum(q, axis=1), 1, rtol=1e-5)


@pytest.mark.parametrize("classes", [2, 10, 100])
@pytest.mark.parametrize("temperature", [0.001, 0.02, 0.05, 0.2])
def test_sharpening_is_exact_where_powers_underflow(classes, temperature):
    even = np.full((1, classes), 1 / classes, np.float32)
    np.testing.assert_allclose(jitted_sharpen(even, temperature), even, rtol=1e-5)
    p = np.float32([[0.25, 0.75, *[0.0] * (classes - 2)]])
    q = np.asarray(jitted_sharpen(p, temperature))
    assert np.isfinite(q).all()
    np.testing.assert_allclose(q.sum(), 1, rtol=1e-5)
    np.testing.assert_allclose(q[0, 1], 1 / (1 + (1 / 3) ** (1 / temperature)), rtol=1e-4)


@given(seed=st.integers(0, 2**16), lam=st.floats(0.5, 1, width=32))
@few
def test_mixing_agrees_with_the_twin(seed, lam):
    rng = np.random.default_rng(seed)
    x, targets, order = rng.normal(size=(8, 2, 3)), probabilities(seed), rng.permutation(8)
    mixed = jitted_mixup((np.float32(x), targets), lam, order)
    expected = reference.mixup(x, targets.astype(np.float64), lam, order)
    np.testing.assert_allclose(mixed[0], expected[0], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(mixed[1], expected[1], rtol=1e-5, atol=1e-6)


@given(seed=st.integers(0, 2**16), weight=st.sampled_from([0.0, 1.0, 50.0]))
@few
def test_the_loss_and_its_gradient_agree_with_the_twin(seed, weight):
    logits = np.random.default_rng(seed).normal(size=(8, CLASSES)).astype(np.float32)
    targets = probabilities(seed)
    ours, gradient = value_and_gradient(logits, targets, 3, weight)
    expected = reference.mixmatch_loss(np.float64(logits), np.float64(targets), 3, weight)
    np.testing.assert_allclose(ours, expected, rtol=1e-5)
    expected = reference.logits_gradient(np.float64(logits), np.float64(targets), 3, weight)
    np.testing.assert_allclose(gradient, expected, rtol=1e-3, atol=1e-6)
