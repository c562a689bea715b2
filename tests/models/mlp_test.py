"""Heads and tops beyond what flax promises: initial values, and the top that has no parameters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from vfljax.models import MLP, Generator, Head, Probability

F = jnp.asarray([[0.1], [0.5], [0.9], [0.3]])
LABELS = jnp.asarray([0, 1, 1, 1])


def loss(f, labels=LABELS):
    logits = Probability((), 2).apply({}, f)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], axis=1))


def test_the_embedding_itself_is_the_predicted_probability():
    logits = Probability((), 2).apply({}, F)
    np.testing.assert_allclose(jax.nn.softmax(logits)[:, 1], F[:, 0], rtol=1e-6)
    assert not Probability((), 2).init(jax.random.key(0), F)


def test_its_cut_gradient_is_that_of_the_binary_cross_entropy_of_f():
    f, y = np.asarray(F, np.float64)[:, 0], np.asarray(LABELS)
    expected = (f - y) / (f * (1 - f)) / len(y)
    np.testing.assert_allclose(jax.grad(loss)(F)[:, 0], expected, rtol=1e-5)


@pytest.mark.parametrize("saturated", [0.0, 1.0])
def test_a_saturated_probability_costs_a_finite_loss_and_gets_no_gradient(saturated):
    f = F.at[0, 0].set(saturated)
    assert np.isfinite(loss(f))
    assert float(jax.grad(loss)(f)[0, 0]) == 0


@pytest.mark.parametrize("module", [MLP((64,), 48, weights="torch"), Head((), 48, "torch")])
def test_torch_s_initial_values_are_uniform_within_one_over_the_root_of_the_inputs(module):
    params = module.init(jax.random.key(1), jnp.ones((2, 57)))["params"]
    for layer in (v for k, v in params.items() if k.startswith("Dense")):
        bound = layer["kernel"].shape[0] ** -0.5
        for values in (layer["kernel"], layer["bias"]):
            law = stats.uniform(-bound, 2 * bound)
            assert stats.kstest(np.asarray(values).ravel(), law.cdf).pvalue > 1e-3


def test_by_default_biases_start_at_zero_and_torch_s_do_not():
    for weights, zero in (("default", True), ("torch", False)):
        params = Generator((16,), 2, weights).init(jax.random.key(0), F)["params"]
        assert bool((params["Dense_0"]["bias"] == 0).all()) == zero
