"""The scan that draws before its loop is ``jax.lax.scan``, and no draw is left in its loop."""

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import keys
from vfljax.federation import hoisting

NUMBERS = jnp.arange(5)
NOISE = 4 * 5 * 4 * 3  # bytes of all steps' noise


def walk(scan, scale):
    """The end and the path of a walk whose steps draw from a key of their number."""

    def step(place, number):
        key = keys.fold(keys.run_key(0), "step", number)
        moved = place + scale * jax.random.laplace(key, (4, 3))
        kept = jax.random.bernoulli(keys.fold(key, "kept"), 0.5, (4, 1))
        return jnp.where(kept, moved, place), number * jnp.sum(moved)

    return scan(step, jnp.zeros((4, 3)), NUMBERS)


def in_loop(scan) -> str:
    """The operations of the loop's body."""
    traced = jax.make_jaxpr(lambda scale: walk(scan, scale))(1.0)
    (loop,) = [eqn for eqn in traced.eqns if eqn.primitive.name == "scan"]
    return str(loop.params["jaxpr"])


def test_it_is_a_scan():
    many = jax.vmap(lambda scale: [walk(scan, scale) for scan in (hoisting.scan, jax.lax.scan)])
    ours, plain = jax.jit(many)(jnp.array([0.5, 2.0]))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), ours, plain)


def test_draws_are_made_before_the_loop(monkeypatch):
    assert "random_bits" in in_loop(jax.lax.scan)
    assert "random_bits" not in in_loop(hoisting.scan)
    monkeypatch.setattr(hoisting, "LARGEST", NOISE - 1)
    assert "random_bits" in in_loop(hoisting.scan)
