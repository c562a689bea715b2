"""Cosine, inner product and n-hint: how alike a row's gradient is to known positives' (Li et al. 2022).

    cosine  cos(g_i, g+)      inner  <g_i, g+>      hint  -min over n known positives |g_i - g+|

with g+ the gradient of one row known to be positive.

Reference: Li, Sun, Yang, Gao, Zhang, Xie, Wang. "Label Leakage and Protection in Two-party Split
Learning", ICLR 2022, section 3 (direction attack); GAFM's code for inner product and n = 1, 3, 5.
Two classes. Published with the CLEAN gradient of the known row, computed without the defense
(oracle=True: the gradient of the undefended loss at the final weights, in evaluation mode); an attacker
only has what it received, which is what is used by default.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import flax.linen as nn
import jax.numpy as jnp

from vfljax.attacks.core import CLEAN, SPLIT, Attack, check_epoch, number_of, received, two_sided
from vfljax.types import Array, Known, Scores, View

# the default product keeps only some ten bits of each factor on accelerators
_multiply = functools.partial(jnp.matmul, precision="highest")


def _positives(known: Known, told: Array, count: int) -> Array:
    """The first ``count`` rows known to be positive [count] of which there is a gradient (``told`` [N]);
    the first again where there are fewer, and any known to be positive where there is none."""
    positive = known.labels == 1
    usable = positive & told[known.rows]
    usable = jnp.where(jnp.any(usable), usable, positive)
    places = jnp.nonzero(usable, size=count, fill_value=-1)[0]
    return known.rows[jnp.where(places >= 0, places, places[0])]


def _unit(g: Array) -> Array:
    length = jnp.linalg.norm(g, axis=-1, keepdims=True)
    return g / jnp.where(length > 0, length, 1.0)


def _hints(
    alike: Callable[[Array, Array], Array], count: int, epoch: int | str, oracle: bool
) -> Attack:
    check_epoch(epoch)

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        del key, knobs
        g, sent = received(view, epoch)
        source, told = (view.inside[CLEAN], jnp.ones_like(sent)) if oracle else (g, sent)
        return Scores(two_sided(alike(g, source[_positives(known, told, count)]), sent))

    return Attack(
        run,
        SPLIT,
        knobs={} if oracle else {"known": 40.0},
        binary=True,
        oracle=oracle,
        adaptive=isinstance(epoch, str),
        epoch=number_of(epoch),
        over_epochs=isinstance(epoch, str),
        inside=CLEAN if oracle else "",
    )


def cosine(
    bottoms: tuple[nn.Module, ...], num_classes: int, *, epoch: int | str = -1, oracle: bool = False
) -> Attack:
    """Cosine with one known positive."""
    del bottoms, num_classes
    return _hints(lambda g, hints: _multiply(_unit(g), _unit(hints).T)[:, 0], 1, epoch, oracle)


def inner(
    bottoms: tuple[nn.Module, ...], num_classes: int, *, epoch: int | str = -1, oracle: bool = False
) -> Attack:
    """Inner product with one known positive."""
    del bottoms, num_classes
    return _hints(lambda g, hints: _multiply(g, hints.T)[:, 0], 1, epoch, oracle)


def hint(
    bottoms: tuple[nn.Module, ...],
    num_classes: int,
    *,
    count: int = 1,
    epoch: int | str = -1,
    oracle: bool = False,
) -> Attack:
    """Minus the distance to the nearest of ``count`` known positives (published: 1, 3, 5)."""
    del bottoms, num_classes
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise ValueError(f"count={count!r} hints: choose a whole number of at least 1.")

    def alike(g: Array, hints: Array) -> Array:
        apart = jnp.linalg.norm(g[:, None, :] - hints[None, :, :], axis=-1)
        return -jnp.min(apart, axis=-1)

    return _hints(alike, count, epoch, oracle)
