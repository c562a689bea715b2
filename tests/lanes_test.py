"""Mapping over lanes and devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from vfljax import lanes


def square(own, shared):
    return own["x"] ** 2 + shared


@pytest.mark.parametrize(("block", "width"), [(4, 1), (8, 2), (8, 4), (6, 2)])
def test_every_lane_gets_its_own_result_whatever_the_width(block, width):
    program = lanes.Program(square, block, width)
    own = program.pad({"x": np.arange(block, dtype=np.float32)})
    out = lanes.unpad(program(own, program.share(jnp.float32(1))), block)
    np.testing.assert_array_equal(out, np.arange(block) ** 2 + 1)


def test_short_blocks_are_padded_and_the_copies_dropped():
    program = lanes.Program(square, 8, 2)
    own = program.pad({"x": np.arange(3, dtype=np.float32)})
    assert lanes.leading(own) == 8
    out = lanes.unpad(program(own, program.share(jnp.float32(0))), 3)
    np.testing.assert_array_equal(out, [0, 1, 4])


def test_more_lanes_than_the_block_are_refused():
    with pytest.raises(ValueError, match="9 lanes given to a block of 8"):
        lanes.Program(square, 8, 2).pad({"x": np.zeros(9, np.float32)})


def test_a_block_is_a_multiple_of_the_devices():
    assert jax.device_count() == 2
    assert lanes.Program(square, 7, 1).block == 8


@pytest.mark.parametrize(
    ("settings", "width", "block"),
    [(50, 5, 50), (84, 6, 84), (18, 3, 18), (1000, 5, 1000), (2, 1, 2)],
)
def test_the_width_is_the_largest_that_pads_least(settings, width, block):
    program = lanes.Program(square, settings, 6)
    assert (program.width, program.block) == (width, block)


@pytest.mark.parametrize("block", [2, 6, 26, 30, 32, 106])
@pytest.mark.parametrize("limit", [None, 1, 4, 6, 100])
def test_a_dividing_width_pads_nothing(block, limit):
    width = lanes.dividing_width(block, limit)
    program = lanes.Program(square, block, width)
    assert (program.block, program.width) == (block, width)
    assert width <= (limit or lanes.default_width())


def test_a_second_trace_raises():
    program = lanes.Program(square, 4, 1)
    program(program.pad({"x": np.zeros(4, np.float32)}), program.share(jnp.float32(0)))
    program(program.pad({"x": np.ones(4, np.float32)}), program.share(jnp.float32(5)))
    assert program.traces == 1
    with pytest.raises(AssertionError, match="traced twice"):
        program(program.pad({"x": np.zeros((4, 2), np.float32)}), program.share(jnp.float32(0)))


def test_keys_can_be_lanes():
    program = lanes.Program(lambda own, _: jax.random.normal(own), 4, 2)
    keys = jax.random.split(jax.random.key(0), 3)
    out = lanes.unpad(program(program.pad(keys), ()), 3)
    np.testing.assert_array_equal(out, jax.vmap(jax.random.normal)(keys))
