"""DiscreteSGD: its levels, the moments of the first epoch, and when it starts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.harness import tensor
from tests.reference import discrete_sgd as reference
from vfljax.defenses.discrete_sgd import discrete_sgd, fixed, measured, merge, start

measured_fn, fixed_fn = harness.quick_jit(measured), harness.quick_jit(fixed)
merge_fn = harness.quick_jit(merge)


@pytest.mark.parametrize("intervals", [1, 2, 6])
@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
def test_measured_levels_agree_with_the_numpy_twin(intervals, scale):
    g = tensor(intervals, scale=scale)
    mean, deviation = np.float32(0.1 * scale), np.float32(0.6 * scale)
    ours = np.asarray(measured_fn(g, mean, deviation, float(intervals)), np.float64)
    twin = reference.measured(g, float(mean), float(deviation), intervals)
    np.testing.assert_allclose(ours / scale, twin / scale, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("intervals", [1, 6])
def test_fixed_levels_agree_with_the_numpy_twin_and_nothing_is_clipped(intervals):
    g = tensor(intervals, scale=0.05)
    ours = np.asarray(fixed_fn(g, 0.03, float(intervals)))
    np.testing.assert_allclose(ours, reference.fixed(g, 0.03, intervals), rtol=1e-5, atol=1e-9)
    assert np.max(np.abs(ours)) > 0.03


def test_entries_outside_the_interval_are_discarded_and_ends_are_levels():
    g = np.float32([[-2.01, -2.0, -1.1, 0.4], [1.6, 2.0, 2.01, 100.0]])
    np.testing.assert_array_equal(measured_fn(g, 0.0, 1.0, 4.0), [[0, -2, -1, 0], [2, 2, 0, 0]])
    # also where 0 is no end point: .5, 1 and 1.5 are
    np.testing.assert_array_equal(measured_fn(-g, 1.0, 0.25, 2.0), [[0, 0, 1, 0], [0, 0, 0, 0]])


def test_a_deviation_of_zero_sends_the_mean_where_entries_equal_it_and_0_elsewhere():
    g = np.float32([[0.5, 0.25, 0.5, 0], [-0.5, 0.5, 1, 2]])
    np.testing.assert_array_equal(measured_fn(g, 0.5, 0.0, 6.0), np.where(g == 0.5, 0.5, 0))


@pytest.mark.parametrize("scale", [1e-30, 1.0, 1e30])
@pytest.mark.parametrize("mean", [0.0, 100.0])
def test_merged_moments_are_those_of_all_entries_seen(scale, mean):
    tensors = [tensor(i, (8, 4), scale * 3**i, mean) for i in range(4)]
    moments = start()
    for g in tensors:
        moments = merge_fn(moments, g)
    count, mean, deviation = reference.moments([g / np.float64(scale) for g in tensors])
    assert float(moments.count) == count
    np.testing.assert_allclose(np.float64(moments.mean) / scale, mean, rtol=1e-5)
    np.testing.assert_allclose(np.float64(moments.deviation) / scale, deviation, rtol=1e-5)


def test_epoch_0_is_sent_raw_and_later_ones_in_the_levels_of_epoch_0_party_by_party():
    steps = [(tensor(i, scale=0.01), tensor(90 + i, scale=3.0 + i, mean=0.5)) for i in range(6)]
    transform = discrete_sgd(6, 0.03).gradient

    @harness.quick_jit
    def update(g, state, epoch, step):
        context = harness.make_context(8)._replace(epoch=epoch, step=step)
        return transform.update(g, state, None, embeddings=g, context=context)

    state, sent = transform.init(steps[0]), []
    for i, g in enumerate(steps):
        one, state = update(g, state, jnp.int32(i // 2), jnp.int32(i))
        sent.append(jax.device_get(one))
    harness.assert_same_bits(sent[:2], steps[:2])
    for party in range(2):
        _, mean, deviation = reference.moments([g[party] for g in steps[:2]])
        for one, g in zip(sent[2:], steps[2:]):
            twin = reference.measured(g[party], mean, deviation, 6)
            np.testing.assert_allclose(one[party], twin, rtol=1e-5, atol=1e-5 * deviation)
