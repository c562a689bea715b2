"""The operations and the live memory of programs, of constructed ones and beside XLA's own estimate."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from analysis.benchmark import grid_speed, jaxprs, measuring
from vfljax.federation import training
from vfljax.machine import needed_bytes

N = 100
LINE = 4 * N  # bytes of a float32 [N]


def lines_of(function, *shape, platform="cuda"):
    """The most that is live beside a float32 argument of this shape, in lines of N numbers."""
    x = jax.ShapeDtypeStruct((*shape, N), jnp.float32)
    live = jaxprs.live_bytes(jax.make_jaxpr(function)(x).jaxpr, platform)
    return (live - 4 * x.size) / LINE


def keep_two(x):
    first = jnp.sin(x)
    return jnp.cos(jnp.tan(jnp.exp(x))) + first


@pytest.mark.parametrize(
    ("function", "lines"),
    [
        (lambda x: x, 0),  # an argument is the caller's
        (lambda x: jnp.sin(jnp.cos(jnp.tan(x))), 2),  # each is freed once the next is made
        (jax.jit(keep_two), 3),
        (lambda x: jnp.sin(x).reshape(10, -1) * 2, 2),  # a view takes nothing
        (lambda x: jnp.broadcast_to(x, (7, N)), 7),  # is returned: an array of its own
        (lambda x: jax.lax.cond(x[0] > 0, keep_two, jnp.sin, x), 3),
        # a loop: its results in full, and what one turn takes
        (lambda x: jax.lax.while_loop(lambda c: c[0] < 1, lambda c: jnp.sin(jnp.cos(c)), x), 1 + 2),
    ],
)
def test_live_arrays_of_a_line(function, lines):
    scalars = 0.03  # x[0], its comparison and the like
    assert lines_of(function) == pytest.approx(lines, abs=scalars)


def test_a_scan_takes_its_results_in_full_and_one_turn():
    def turns(x):
        return jax.lax.scan(lambda c, y: (c + y, jnp.tan(jnp.cos(y))), x[0], x)

    # x[0]; the carry and 5 results; of a turn: y, c + y, cos y, tan cos y
    assert lines_of(turns, 5) == 1 + (1 + 5) + 4
    jaxpr = jax.make_jaxpr(lambda key: key)(jax.random.key(0)).jaxpr
    assert jaxprs.live_bytes(jaxpr) == 2 * 4  # a key counts its two words


@pytest.mark.slow
def test_it_is_about_what_xla_needs():
    spec = dataclasses.replace(grid_speed.GRID, num_rows=512, batch_size=64)
    run = jax.vmap(training.make_run(spec), in_axes=(0, None))
    arguments = measuring.epoch_shapes(spec, 16, 8, {})
    live = jaxprs.live_bytes(jax.make_jaxpr(run)(*arguments).jaxpr)
    needed = needed_bytes(jax.jit(run).lower(*arguments).compile())
    assert live / needed == pytest.approx(1, abs=0.3)
