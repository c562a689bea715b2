"""Chunks and scaling of rows."""

import jax.numpy as jnp
import numpy as np
import pytest

from vfljax.models import reading


@pytest.mark.parametrize("rows", [1, 2049])
def test_chunks_cover_every_row_once(rows):
    out = reading.over_chunks(lambda r: {"twice": 2 * r}, jnp.arange(rows))
    np.testing.assert_array_equal(out["twice"], 2 * np.arange(rows))


def test_scaling_is_per_column_or_one_number_for_the_whole_block():
    x, rows, seed = jnp.arange(12.0).reshape(2, 2, 3), jnp.arange(2), jnp.int32(1)
    whole = reading.scaled_rows(x, jnp.ones(2), jnp.full(2, 2.0), seed, rows)
    np.testing.assert_array_equal(whole, (np.asarray(x) - 1) / 2)
    means = jnp.stack([jnp.zeros(3), jnp.arange(3.0)])
    column = reading.scaled_rows(x, means, jnp.ones((2, 3)), seed, rows)
    np.testing.assert_array_equal(column, np.asarray(x) - np.arange(3.0))


def test_rows_are_one_axis_and_a_seed_is_one():
    x, statistics, rows = jnp.zeros((4, 3)), jnp.ones((2, 3)), jnp.arange(4)
    for seed, places in ((jnp.arange(2), rows), (jnp.int32(0), rows[None])):
        with pytest.raises(AssertionError):
            reading.scaled_rows(x, statistics, statistics, seed, places)
    with pytest.raises(AssertionError):
        reading.over_chunks(lambda r: r, rows[None])
