"""Epochs, records and the lane that equals the same setting run alone."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests.sweeps import tiny
from vfljax import grid, lab, lanes, sweep, training


@pytest.fixture(scope="module")
def made():
    config = tiny(
        **{
            "attacks": {},
            "seeds": 3,
            "data.train": 330,  # 5 batches of 64 and one of 10
            "grid": {"noise": {"noise": {"scale": (0.0, 0.01, 0.02)}}},
        }
    )
    return lab.prepare(config)


def run(made, own, spec=None, epochs=3, width=None):
    """Train settings ``own`` (places in the group) in one program; returns host progress."""
    group = made.groups[0]
    spec = spec or group.spec
    program = lanes.Program(training.make_run(spec), len(own), width)
    lane = program.pad(grid.lanes_of(group, [group.settings[i] for i in own], []))
    initial = lab.initial_weights(spec, made)
    table, initial = program.share((made.table, initial))
    state = program.pad(sweep.empty_progress(spec, lane, table, initial))
    for number in range(epochs):
        now = training.epoch_of(jnp.int32(number), jnp.asarray(made.seeds), spec.num_rows)
        state, _ = program((lane, state), (table, initial, program.share(now)))
    state = state._replace(state=state.state._replace(run_key=jnp.zeros(program.block)))
    return lanes.unpad(state, len(own))


def pick(tree, i):
    return jax.tree.map(lambda a: a[i], tree)


def close(a, b, tolerance):
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x, y, atol=tolerance, rtol=tolerance), a, b
    )


def test_a_lane_equals_the_same_setting_run_alone(made):
    together = run(made, list(range(9)), width=1)
    for place in (0, 4, 8):
        alone = run(made, [place], epochs=1)
        first = run(made, list(range(9)), epochs=1)
        close(pick(first.record.gradients, place), pick(alone.record.gradients, 0), 1e-5)
        close(pick(first.state.weights, place), pick(alone.state.weights, 0), 1e-5)
    wide = run(made, list(range(9)), width=4)
    close(together.record.loss, wide.record.loss, 1e-3)


def test_the_same_program_gives_the_same_bits_again(made):
    jax.tree.map(np.testing.assert_array_equal, run(made, [0, 1, 2, 3]), run(made, [0, 1, 2, 3]))


def test_every_epoch_and_seed_has_its_own_order(made):
    first, second = (training.epoch_of(jnp.int32(n), jnp.arange(2), 50) for n in (0, 1))
    assert (first.order[0] != first.order[1]).any()
    assert (first.order[0] != second.order[0]).any()
    np.testing.assert_array_equal(first.order[0][first.place[0]], np.arange(50))


def test_every_row_is_sent_once_an_epoch_also_those_left_over(made):
    record = run(made, [0]).record
    assert record.sent.all()
    np.testing.assert_array_equal(np.sort(record.order[0]), np.arange(330))
    assert (record.sums[0].count == 3).all()
    # the last, short batch carries 1/10 where full ones carry 1/64: longer gradients
    length = np.linalg.norm(record.gradients[0][0], axis=-1)
    short = record.order[0] >= 320
    assert length[short].mean() > 2 * length[~short].mean()


def test_drop_last_leaves_the_rest_unsent(made):
    spec = dataclasses.replace(made.groups[0].spec, drop_last=True)
    record = run(made, [0], spec=spec).record
    assert record.sent.sum() == 320
    assert (record.gradients[0][0][~record.sent[0]] == 0).all()


def test_sums_add_up_what_was_received(made):
    one = run(made, [4], epochs=1).record
    np.testing.assert_allclose(one.sums[0].gradient, one.gradients[0])
    np.testing.assert_array_equal(one.sums[0].sign, np.sign(one.gradients[0]))
    np.testing.assert_allclose(one.sums[0].square, one.gradients[0] ** 2)


def test_initial_weights_depend_on_the_seed_alone(made):
    initial = lab.initial_weights(made.groups[0].spec, made)
    leaf = jax.tree.leaves(initial.bottoms[0])[-1]
    assert leaf.shape[0] == 3
    assert (leaf[0] != leaf[1]).any()
    again = lab.initial_weights(dataclasses.replace(made.groups[0].spec, defenses=()), made)
    jax.tree.map(np.testing.assert_array_equal, initial, again)
