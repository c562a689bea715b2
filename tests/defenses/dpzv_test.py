"""DPZV: a step against the twin, the law of its answer, its sensitivity, and what epsilon it has."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests import harness
from tests.reference import dpzv as twin
from tests.reference import protocol as reference
from vfljax import defenses, keys
from vfljax.defenses import TABLE, dpzv
from vfljax.types import DefenseSpec

KEY, ROWS = jax.random.key(0), 8
FREE = {"epsilon": np.inf, "clip": 1e3, "smoothing": 0.3, "delta": 1e-5}
directions = harness.quick_jit(dpzv.direction)
answers = harness.quick_jit(
    jax.vmap(dpzv.answer, in_axes=(0, None, None, None, None)), static_argnums=4
)


def federation(knobs):
    spec = harness.make_spec(defenses=("dpzv",), hidden=(5,), top_hidden=(6,))
    numbers = {"momentum": 0.0, "weight_decay": 0.0, "learning_rate": 0.01}
    return spec, harness.make_hparams(spec, {"dpzv": knobs}, **numbers)


def layers_of(tree):
    params = tree.get("params", tree)
    linear = [params[f"Dense_{i}"] for i in range(len(params))]
    return [reference.Dense(*map(np.float64, (of["kernel"], of["bias"]))) for of in linear]


def drawn(state, p):
    """The direction of a bottom, or of the top for None, in the step that the state is about to take."""
    key = keys.fold(state.run_key, "step", state.step)
    if p is None:
        key = keys.fold(key, "dpzv", "direction")
        return layers_of(directions(key, state.weights.active["params"]))
    return layers_of(directions(keys.fold(key, "direction", p), state.weights.bottoms[p]["params"]))


@pytest.mark.parametrize("clip", [1e3, 0.05])
def test_a_step_without_noise_is_that_of_the_numpy_twin(clip):
    spec, hparams = federation({**FREE, "clip": clip})
    batch, state = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    after, exchange, _ = harness.jitted_step(spec)(state, batch, hparams)
    before = [layers_of(v) for v in state.weights.bottoms]
    bottoms, top, embeddings, gradients, delta = twin.step(
        before,
        layers_of(state.weights.active),
        [drawn(state, p) for p in range(len(before))],
        drawn(state, None),
        [np.float64(x) for x in batch.features],
        np.eye(spec.num_classes)[batch.labels],
        FREE["smoothing"],
        clip,
        rate=0.01,
    )
    assert abs(delta) > 1e-3
    assert len(exchange.gradients) == spec.passive
    for p in range(spec.passive):
        np.testing.assert_allclose(exchange.embeddings[p], embeddings[p], atol=1e-5)
        np.testing.assert_allclose(exchange.gradients[p], gradients[p], atol=1e-5)
    for variables, net in zip((*after.weights.bottoms, after.weights.active), (*bottoms, top)):
        for found, expected in zip(layers_of(variables), net, strict=True):
            np.testing.assert_allclose(found.weight, expected.weight, atol=1e-5)
            np.testing.assert_allclose(found.bias, expected.bias, atol=1e-5)


def test_without_clipping_a_short_move_gives_the_slope_along_all_directions():
    """Delta is twice the sum over networks of the inner product of gradient and direction."""
    spec, hparams = federation({**FREE, "smoothing": 0.02})
    batch, state = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    after, *_ = harness.jitted_step(spec)(state, batch, hparams)
    plain = harness.make_spec(hidden=(5,), top_hidden=(6,))
    first = harness.make_hparams(plain, momentum=0.0, weight_decay=0.0, learning_rate=1.0)
    start = harness.make_state(plain, first)  # of the same weights
    moved, *_ = harness.jitted_step(plain)(start, batch, first)
    slope, deltas = 0.0, []
    for p in (*range(len(state.weights.bottoms)), None):
        old, new, estimated = (
            layers_of(w.active if p is None else w.bottoms[p])
            for w in (state.weights, moved.weights, after.weights)
        )
        u, half = drawn(state, p), sum(a.weight.size + a.bias.size for a in old) / 2
        slope += sum(
            np.sum((a - b) * c) for o, n, v in zip(old, new, u) for a, b, c in zip(o, n, v)
        )
        deltas.append(
            (old[0].weight - estimated[0].weight)[0, 0] / (0.01 * half * u[0].weight[0, 0])
        )
    np.testing.assert_allclose(deltas, 2 * slope, rtol=0.02)


def test_directions_are_uniform_on_the_unit_sphere():
    """Of three numbers in two arrays each is uniform between -1 and 1 (Archimedes)."""
    params = {"a": jnp.zeros((2, 1)), "b": jnp.zeros(1)}
    u = harness.quick_jit(jax.vmap(lambda k: dpzv.direction(k, params)))(
        jax.random.split(KEY, 4000)
    )
    flat = np.concatenate([u["a"][..., 0], u["b"]], axis=1)
    np.testing.assert_allclose(np.sum(flat**2, axis=1), 1, rtol=1e-5)
    for coordinate in flat.T:
        assert stats.kstest(coordinate, stats.uniform(-1, 2).cdf).pvalue > 1e-3


def test_one_label_moves_the_answer_by_at_most_2_c_over_b_and_by_as_much():
    rng, clip = np.random.default_rng(0), 0.5
    alone = jax.random.split(KEY, 1)
    for size in (0.1, 1e3):
        differences = np.float32(rng.normal(size=ROWS) * size)
        other = differences.copy()
        differences[0], other[0] = size, -size
        one, two = (
            answers(alone, jnp.asarray(d), clip, np.inf, 3)[0] for d in (differences, other)
        )
        np.testing.assert_allclose(one - two, 2 * min(clip, size) / ROWS, rtol=1e-4)
        np.testing.assert_allclose(
            one, twin.answer(differences.astype(float), 0, 1, clip), rtol=1e-4, atol=1e-6
        )


def test_a_row_whose_losses_are_not_finite_moves_the_answer_no_more_than_the_clip():
    for broken in (np.nan, np.inf, -np.inf):
        differences = jnp.full(ROWS, 0.1).at[0].set(broken)
        one = answers(jax.random.split(KEY, 1), differences, 0.5, np.inf, 3)[0]
        assert abs(one - 0.1) <= (0.5 + 0.1) / ROWS + 1e-6  # False for NaN


def test_the_noise_is_gaussian_of_the_deviation_that_the_epochs_need():
    clip, mu, epochs = 0.5, 1.3, 7
    noise = answers(jax.random.split(KEY, 5000), jnp.zeros(ROWS), clip, mu, epochs)
    law = stats.norm(scale=twin.deviation(clip, epochs, ROWS, mu))
    assert stats.kstest(noise, law.cdf).pvalue > 1e-3
    assert stats.kstest(noise, stats.norm(scale=law.std() * 1.15).cdf).pvalue < 1e-6


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0, 100.0])
def test_the_answers_of_a_run_are_together_epsilon_delta_private(epsilon):
    delta, epochs, clip = 1e-5, 12, 0.5
    mu = float(dpzv.gaussian_mu(epsilon, delta))
    # E answers, each of sensitivity 2 C / B, are mu-GDP together
    each = 2 * clip / ROWS / twin.deviation(clip, epochs, ROWS, mu)
    np.testing.assert_allclose(np.sqrt(epochs) * each, mu)
    assert twin.delta_of(epsilon, mu) <= delta
    assert twin.delta_of(epsilon, 2 * mu) > delta  # not far from what would do
    np.testing.assert_allclose(mu**2 / 2 + mu * np.sqrt(2 * np.log(1 / delta)), epsilon, rtol=1e-4)


def test_an_infinite_epsilon_has_no_noise():
    assert dpzv.gaussian_mu(np.inf, 1e-5) == np.inf
    assert np.all(answers(jax.random.split(KEY, 5), jnp.zeros(ROWS), 1.0, np.inf, 3) == 0)


def test_no_other_defense_is_trained_beside_it():
    specs = tuple(map(DefenseSpec, ("dpzv", "noise")))
    with pytest.raises(ValueError, match=r"dpzv answers by one number.*drop noise"):
        defenses.build(specs, {spec.name: TABLE[spec.name].example for spec in specs})


EVEN = np.full(2, 0.5)


def test_the_guarantee_names_delta_and_claims_no_pure_epsilon():
    at_one, without = (
        TABLE["dpzv"].remarks({"epsilon": epsilon, "delta": 1e-5}, {}) for epsilon in (1.0, np.inf)
    )
    assert at_one.bound(EVEN)[0] == "2.72, but for δ = 1e-05"
    assert without.bound(EVEN)[0] == "no bound"
    assert (at_one.epsilon, without.epsilon) == (None, None)
    assert (at_one.approximate, without.approximate) == ((1.0, 1e-5), None)
