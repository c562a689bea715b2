"""DiscreteSGD: its levels, the moments of the first epoch, and when it starts."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.harness import tensor
from tests.reference import discrete_sgd as reference
from vfljax.defenses.discrete_sgd import discrete_sgd, fixed, measured, merge, start
from vfljax.types import Context

measured_fn, fixed_fn = harness.quick_jit(measured), harness.quick_jit(fixed)
merge_fn = harness.quick_jit(merge)
SHAPES = [(8, 4), (5, 1), (1, 3), (1, 1)]


@pytest.mark.parametrize("shape", SHAPES)
def test_measured_levels_agree_with_the_numpy_twin(shape):
    for intervals, scale in itertools.product((1, 2, 6, 18), (1e-30, 1e-3, 1.0, 1e30)):
        g = tensor(intervals, shape, scale)
        mean, deviation = np.float32(0.1 * scale), np.float32(0.6 * scale)
        ours = np.asarray(measured_fn(g, mean, deviation, float(intervals)), np.float64)
        twin = reference.measured(g, float(mean), float(deviation), intervals)
        np.testing.assert_allclose(ours / scale, twin / scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("shape", SHAPES)
def test_fixed_levels_agree_with_the_numpy_twin_and_nothing_is_clipped(shape):
    for intervals, bound in itertools.product((1, 2, 6, 18), (0.03, 1e-3)):
        g = tensor(intervals, shape, 0.05)
        twin = reference.fixed(g, bound, intervals)
        ours = np.asarray(fixed_fn(g, bound, float(intervals)))
        np.testing.assert_allclose(ours, twin, rtol=1e-5, atol=1e-9)
        if g.size > 4:
            assert np.max(np.abs(ours)) > bound


def test_entries_outside_the_interval_are_discarded_and_ends_are_levels():
    g = np.float32([[-2.01, -2.0, -1.1, 0.4, 1.6, 2.0, 2.01, 100.0]])
    sent = measured_fn(g, 0.0, 1.0, 4.0)
    np.testing.assert_array_equal(sent, [[0, -2, -1, 0, 2, 2, 0, 0]])


def test_zero_is_a_level_for_outliers_even_where_it_is_no_end_point():
    sent = measured_fn(np.float32([[0.1, 9.0, 1.2]]), 1.0, 0.25, 2.0)
    np.testing.assert_array_equal(sent, [[0, 0, 1.0]])


def test_a_deviation_of_zero_sends_the_mean_where_entries_equal_it_and_0_elsewhere():
    g = np.float32([[0.5, 0.25], [-0.5, 0.5]])
    np.testing.assert_array_equal(measured_fn(g, 0.5, 0.0, 6.0), [[0.5, 0], [0, 0.5]])
    np.testing.assert_array_equal(measured_fn(0 * g, 0.0, 0.0, 6.0), 0 * g)


@pytest.mark.parametrize("scale", [1e-30, 1e-15, 1.0, 1e15, 1e30])
@pytest.mark.parametrize(("mean", "shape"), [(0.0, (8, 4)), (3.0, (5, 1)), (100.0, (8, 4))])
def test_merged_moments_are_those_of_all_entries_seen(scale, mean, shape):
    tensors = [tensor(i, shape, scale * 3**i, mean) for i in range(4)]
    moments = start()
    for g in tensors:
        moments = merge_fn(moments, g)
    count, mean, deviation = reference.moments([g / np.float64(scale) for g in tensors])
    assert float(moments.count) == count
    np.testing.assert_allclose(np.float64(moments.mean) / scale, mean, rtol=1e-5)
    np.testing.assert_allclose(np.float64(moments.deviation) / scale, deviation, rtol=1e-5)


def test_moments_of_a_long_epoch_do_not_drift():
    steps = tensor(0, (2000, 64), 0.1, 5.0)
    run = harness.quick_jit(lambda g: jax.lax.scan(lambda m, x: (merge(m, x), None), start(), g))
    moments, _ = run(steps)
    np.testing.assert_allclose(moments.mean, steps.mean(dtype=np.float64), rtol=1e-5)
    np.testing.assert_allclose(moments.deviation, steps.std(dtype=np.float64), rtol=1e-4)


def test_moments_of_constant_and_of_zero_gradients_have_no_deviation():
    for value in (0.0, 0.7):
        g = np.full((5, 3), value, np.float32)
        moments = merge_fn(merge_fn(start(), g), g)
        np.testing.assert_allclose(moments.mean, value, rtol=1e-6)
        assert float(moments.deviation) <= 1e-6 * value


def context_of(epoch, step):
    return Context(
        *(jnp.arange(8), jnp.arange(8) % 2, None),
        *(jnp.int32(step), jnp.int32(epoch), jnp.int32(2)),
        *(jax.random.key(0), jax.random.key(1)),
        train=True,
    )


def run(steps_of, epochs, **options):
    """What two parties are sent at each of 2 steps an epoch."""
    transform = discrete_sgd(6, 0.03, **options).gradient

    @harness.quick_jit
    def update(g, state, epoch, step):
        context = context_of(epoch, step)
        return transform.update(g, state, None, embeddings=g, context=context)

    state, sent = transform.init(steps_of[0]), []
    for i, g in enumerate(steps_of[: 2 * epochs]):
        one, state = update(g, state, i // 2, i)
        sent.append(one)
    return sent


@pytest.fixture(scope="module")
def steps_of():
    return [(tensor(i, scale=0.01), tensor(90 + i, scale=3.0 + i, mean=0.5)) for i in range(6)]


def test_epoch_0_is_sent_raw_and_later_ones_in_the_levels_of_epoch_0_party_by_party(steps_of):
    sent = run(steps_of, epochs=3)
    harness.assert_same_bits(sent[:2], steps_of[:2])
    for party in range(2):
        _, mean, deviation = reference.moments([g[party] for g in steps_of[:2]])
        for one, g in zip(sent[2:], steps_of[2:]):
            twin = reference.measured(g[party], mean, deviation, 6)
            np.testing.assert_allclose(one[party], twin, rtol=1e-5, atol=1e-5 * deviation)


def test_the_fixed_interval_is_rounded_to_from_the_first_step_on(steps_of):
    sent = run(steps_of, epochs=1, interval="fixed")
    for one, g in zip(sent, steps_of):
        for party in range(2):
            twin = reference.fixed(g[party], 0.03, 6)
            np.testing.assert_allclose(one[party], twin, rtol=1e-5, atol=1e-8)
