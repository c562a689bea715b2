"""Networks' variables without compiling ``init``, which takes longer than most tests of them."""

import jax
import jax.numpy as jnp
import numpy as np


def draw(init, *inputs, members=0, seed=1):
    """Random variables of ``init(key, *inputs)``'s shapes, or of ``init`` mapped over the keys of
    ``members``; scales and variances are near 1."""
    rng = np.random.default_rng(seed)

    def number(path, leaf):
        middle = 1.0 if getattr(path[-1], "key", "") in ("scale", "var") else 0.0
        return jnp.asarray(rng.normal(middle, 0.1, leaf.shape), leaf.dtype)

    def one(key):
        return init(key, *inputs)

    keys = jax.random.split(jax.random.key(0), max(members, 1))
    shapes = jax.eval_shape(jax.vmap(one), keys) if members else jax.eval_shape(one, keys[0])
    return jax.tree_util.tree_map_with_path(number, shapes)
