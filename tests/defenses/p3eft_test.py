"""P3EFT: its fit, loss and mixture against the twin, its widths, and its place."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tests import harness
from tests.reference import p3eft as reference
from vfljax.defenses import p3eft
from vfljax.models.mixing import Mixed
from vfljax.models.mlp import MLP
from vfljax.types import DefenseSpec

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(60, 4))
LABELS = (Z @ RNG.normal(size=(4, 3)) + RNG.normal(size=(60, 3))).argmax(axis=1)
TARGETS = np.eye(3)[LABELS]
X = jnp.asarray(Z, jnp.float32)


@pytest.mark.parametrize("classes", [2, 3])
def test_the_fit_is_the_twin_s_and_close_to_the_optimum(classes):
    labels = np.minimum(LABELS, classes - 1)
    targets = np.eye(classes)[labels]
    fit = harness.quick_jit(p3eft.logistic_regression)
    weights = fit(jnp.pad(X, ((0, 0), (0, 1)), constant_values=1.0), jnp.asarray(targets))
    np.testing.assert_allclose(weights, np.vstack(reference.fit(Z, targets)), atol=2e-4)
    optimum = LogisticRegression(C=1.0, tol=1e-8, max_iter=1000).fit(Z, labels).coef_
    coefficients = np.asarray(weights[:-1]).T
    if classes == 2:
        coefficients = coefficients[1:] - coefficients[:1]
    assert np.abs(coefficients - optimum).max() < 0.05 * np.abs(optimum).max()


def test_what_is_added_and_its_gradient_are_the_twin_s_with_soft_targets_too():
    term = harness.quick_jit(jax.value_and_grad(p3eft.regularizer))
    for targets in (TARGETS, 0.7 * TARGETS + 0.1):
        value, gradient = term(X, jnp.asarray(targets, jnp.float32))
        expected, slope = reference.regularizer(Z, targets)
        assert value == pytest.approx(expected, abs=1e-4)
        np.testing.assert_allclose(gradient, slope, atol=1e-5)


def test_the_top_model_reads_the_twin_s_mixture_of_each_party():
    parties = 2
    z = jnp.asarray(RNG.normal(size=(5, 8 * parties)), jnp.float32)
    module = Mixed(MLP((), 4 * parties), width=8, deviation=0.7)
    variables = module.init(jax.random.key(1), z)
    eye = {"kernel": jnp.eye(4 * parties), "bias": jnp.zeros(4 * parties)}
    read = module.apply({**variables, "params": {"Dense_0": eye}}, z)
    xi = 0.7 * np.asarray(variables["mixing"]["unit"])
    assert xi.shape == (parties, 4)
    blocks = np.split(np.float64(z), parties, axis=1)
    expected = [reference.mixed(block, x) for block, x in zip(blocks, xi, strict=True)]
    np.testing.assert_allclose(read, np.concatenate(expected, axis=1), atol=1e-5)


def test_xi_has_the_stated_law():
    z = jnp.zeros((1, 10_000))
    module = Mixed(MLP((), 1), width=10_000)
    unit = np.asarray(module.init(jax.random.key(0), z)["mixing"]["unit"])
    assert float(unit.mean()) == pytest.approx(0, abs=0.05)
    assert float(unit.std()) == pytest.approx(1, abs=0.04)


def test_what_crosses_the_wire_is_twice_as_wide_and_its_halves_sum_to_the_gradient():
    spec = harness.make_spec(3, (DefenseSpec("p3eft"),))
    assert [b.out for b in spec.bottoms] == [2 * b.out for b in harness.make_spec(3).bottoms]
    hparams = harness.make_hparams(spec, {"p3eft": {"alpha": 0.0}})
    before = harness.make_state(spec, hparams)
    batch = harness.make_batch(spec, 0)
    after, (exchange,), _ = harness.run_steps(spec, hparams, [batch])
    unit = np.asarray(before.weights.active["mixing"]["unit"])
    assert unit.shape[0] == len(spec.bottoms)
    np.testing.assert_array_equal(unit, after.weights.active["mixing"]["unit"])
    for p, (g, z) in enumerate(zip(exchange.gradients, exchange.embeddings, strict=True)):
        assert g.shape == z.shape == (len(batch.labels), spec.bottoms[p].out)
        first, second = np.split(np.asarray(g), 2, axis=1)
        np.testing.assert_allclose(first, (first + second) * (0.5 + unit[p]), atol=1e-6)
