"""What tests of networks share: images, compiled functions, and variables without compiling ``init``, which
takes longer than most tests."""

import functools

import jax
import numpy as np

from tests.harness import quick_jit
from vfljax.models.parties import from_module


def pixels(*shape, seed=0):
    return jax.device_put(np.float32(np.random.default_rng(seed).uniform(size=shape)))


@functools.cache
def applied(module):
    return quick_jit(module.apply)


@functools.cache
def run(module):
    """A party's outputs and layers: of (variables, x, train, key)."""
    return quick_jit(from_module(module).apply, static_argnums=2)


def draw(init, *inputs):
    """Random variables of ``init(key, *inputs)``'s shapes; scales and variances are near 1."""
    rng = np.random.default_rng(1)

    def number(path, leaf):
        middle = 1.0 if getattr(path[-1], "key", "") in ("scale", "var") else 0.0
        return rng.normal(middle, 0.1, leaf.shape).astype(leaf.dtype)

    shapes = jax.eval_shape(lambda key: init(key, *inputs), jax.random.key(0))
    return jax.device_put(jax.tree_util.tree_map_with_path(number, shapes))
