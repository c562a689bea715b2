"""Heads and tops beyond what flax promises: initial values, and the top that has no parameters."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests.harness import quick_jit
from tests.models.drawing import draw
from tests.sweeps import plan_of, tiny
from vfljax.errors import UserError
from vfljax.models import MLP, Generator, Head, Probability
from vfljax.models.parties import from_module


def start(module, x, seed=0):
    return quick_jit(module.init)(jax.random.key(seed), x)


F = jnp.asarray([[0.1], [0.5], [0.9], [0.3]])
LABELS = jnp.asarray([0, 1, 1, 1])


@jax.jit
@jax.value_and_grad
def loss(f):
    logits = Probability((), 2).apply({}, f)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), LABELS[:, None], axis=1))


def test_the_embedding_itself_is_the_predicted_probability():
    logits = Probability((), 2).apply({}, F)
    np.testing.assert_allclose(jax.nn.softmax(logits)[:, 1], F[:, 0], rtol=1e-6)
    assert not Probability((), 2).init(jax.random.key(0), F)
    # its cut gradient is that of the binary cross entropy of f
    f, y = np.asarray(F, np.float64)[:, 0], np.asarray(LABELS)
    expected = (f - y) / (f * (1 - f)) / len(y)
    np.testing.assert_allclose(loss(F)[1][:, 0], expected, rtol=1e-5)
    for saturated in (0.0, 1.0):
        value, gradient = loss(F.at[0, 0].set(saturated))
        assert np.isfinite(value)
        assert float(gradient[0, 0]) == 0


@pytest.mark.parametrize("module", [MLP((64,), 48, weights="torch"), Head((), 48, "torch")])
def test_torch_s_initial_values_are_uniform_within_one_over_the_root_of_the_inputs(module):
    params = start(module, jnp.ones((2, 57)), seed=1)["params"]
    for layer in (v for k, v in params.items() if k.startswith("Dense")):
        bound = layer["kernel"].shape[0] ** -0.5
        for values in (layer["kernel"], layer["bias"]):
            law = stats.uniform(-bound, 2 * bound)
            assert stats.kstest(np.asarray(values).ravel(), law.cdf).pvalue > 1e-3


X = jnp.asarray(np.random.default_rng(0).normal(size=(16, 14)), jnp.float32)


def test_batches_far_from_0_are_normalized_to_variance_1():
    x = X[:, :5]
    module = MLP((5,), 2, activation="identity", batch_norm=True)
    variables = start(from_module(module), x)
    variables["params"]["Dense_0"] = {"kernel": jnp.eye(5), "bias": jnp.full(5, 1e4)}
    _, moved = quick_jit(lambda v: module.apply(v, x, True, mutable=["layers", "batch_stats"]))(
        variables
    )
    hidden, variance = moved["layers"]["hidden"][0], np.var(np.asarray(x, np.float64), axis=0)
    np.testing.assert_allclose(np.std(hidden, axis=0), 1, rtol=1e-2)
    after = np.asarray(moved["batch_stats"]["BatchNorm_0"]["var"])
    np.testing.assert_allclose((after - 0.9) / 0.1, variance, rtol=2e-2)


def test_dropout_drops_its_rate_keeps_the_mean_and_follows_its_key():
    module = MLP((2000,), 1, dropout=0.25)
    variables = {"params": draw(module.init, X)["params"]}

    @functools.partial(quick_jit, static_argnums=1)
    def hidden_layer(key, train):
        _, moved = module.apply(variables, X, train, rngs={"dropout": key}, mutable=["layers"])
        return moved["layers"]["hidden"][0]

    def hidden(key, train=True):
        return np.asarray(hidden_layer(key, train))

    full, first = hidden(jax.random.key(1), train=False), hidden(jax.random.key(1))
    active = full > 0
    kept = first[active] != 0
    assert abs(1 - kept.mean() - 0.25) < 4 * np.sqrt(0.25 * 0.75 / active.sum())
    np.testing.assert_allclose(first[active][kept], full[active][kept] / 0.75, rtol=1e-5)
    np.testing.assert_array_equal(first, hidden(jax.random.key(1)))
    assert not np.array_equal(first, hidden(jax.random.key(2)))


def test_a_plain_head_has_no_batch_norm():
    plain, small = Head((9,), 3, batch_norm=False), np.array(X) * 0.01
    params = draw(plain.init, X)["params"]
    h = np.maximum(small, 0) @ np.asarray(params["Dense_0"]["kernel"])
    h = np.maximum(h + np.asarray(params["Dense_0"]["bias"]), 0)
    expected = h @ np.asarray(params["Dense_1"]["kernel"]) + np.asarray(params["Dense_1"]["bias"])
    np.testing.assert_allclose(plain.apply({"params": params}, small), expected, atol=1e-5)


def test_the_generator_s_logits_are_0_and_h_through_leaky_relus():
    module = Generator((5,), 2)
    params = draw(module.init, X)["params"]
    h = X @ params["Dense_0"]["kernel"] + params["Dense_0"]["bias"][None]
    h = jnp.where(h > 0, h, 0.01 * h)
    h = h @ params["Dense_1"]["kernel"] + params["Dense_1"]["bias"][None]
    logits = quick_jit(module.apply)({"params": params}, X)
    np.testing.assert_array_equal(logits[:, 0], 0)
    np.testing.assert_allclose(logits[:, 1:], h, rtol=1e-5, atol=1e-6)


def test_a_config_names_it_and_batches_of_one_row_are_nothing_to_it():
    own = {"model.top_hidden": (8, 4), "training.batch_size": 319, "attacks": {}}  # 320 rows
    made = plan_of(tiny(**own, **{"model.top": "head_plain"}))
    assert made.groups[0].spec.top == Head((8, 4), 10, batch_norm=False)
    with pytest.raises(UserError, match="batch of 1 row .* model.top='head_plain'"):
        plan_of(tiny(**own))
