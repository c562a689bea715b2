"""Cosine, inner product and n-hint: how alike a row's gradient is to those of known positives.

    cosine  cos(g_i, g+)      inner  <g_i, g+>      hint  -min over n known positives || g_i - g+ ||_2

where g+ is the gradient of one row known to be positive.

Reference: Li, Sun, Yang, Gao, Zhang, Xie, Smith, Wang. "Label Leakage and Protection in Two-party Split
Learning", ICLR 2022, section 3 (direction attack). The inner product and n = 1, 3, 5 are those of GAFM's
released code (Han and Guan 2023). All are defined for two classes.

The published hints are the clean gradients of the known rows, computed without the defense:
``oracle=True`` takes the gradient of the undefended loss at the final weights, in evaluation mode. An
attacker has only what it received, which is what is used by default.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

import chex
import flax.linen as nn
import jax.numpy as jnp

from vfljax.attacks.core import (
    CLEAN,
    Attack,
    AttackRow,
    check_epoch,
    check_whole,
    number_of,
    received,
    two_sided,
)
from vfljax.types import SPLIT, Array, Known, Scores, View

# the default product keeps only some ten bits of each factor on accelerators
_multiply = functools.partial(jnp.matmul, precision="highest")


def _positives(known: Known, usable_rows: Array, count: int) -> Array:
    """The first ``count`` known positive rows [count] of which there is a gradient.

    ``usable_rows`` [N] bool says of which rows there is one. The first such row fills up the rest
    where there are fewer; where there are none, known positives without a gradient are taken.
    """
    positive = known.labels == 1
    usable = positive & usable_rows[known.rows]
    usable = jnp.where(jnp.any(usable), usable, positive)
    places = jnp.nonzero(usable, size=count, fill_value=-1)[0]
    return known.rows[jnp.where(places >= 0, places, places[0])]


def _unit(g: Array) -> Array:
    length = jnp.linalg.norm(g, axis=-1, keepdims=True)
    return g / jnp.where(length > 0, length, 1.0)


def _hints(
    likeness: Callable[[Array, Array], Array], count: int, epoch: int | str, oracle: bool
) -> Attack:
    """``likeness(g [N, D], hints [count, D]) -> [N]``, larger for positives."""
    check_epoch(epoch)

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        del key, knobs
        g, sent = received(view, epoch)
        if oracle:
            source, usable = view.diagnostics[CLEAN], jnp.ones_like(sent)
            chex.assert_shape(source, g.shape)
        else:
            source, usable = g, sent
        return Scores(two_sided(likeness(g, source[_positives(known, usable, count)]), sent))

    return Attack(
        run,
        SPLIT,
        knobs={} if oracle else {"known": 40.0},
        binary=True,
        oracle=oracle,
        adaptive=isinstance(epoch, str),
        diagnostic=CLEAN if oracle else "",
        epoch=number_of(epoch),
        over_epochs=isinstance(epoch, str),
    )


def cosine(
    bottoms: tuple[nn.Module, ...], num_classes: int, *, epoch: int | str = -1, oracle: bool = False
) -> Attack:
    """Score each row by the cosine of its gradient with that of one known positive.

    ``epoch`` says which gradients are read (``core.received``); ``oracle`` takes the clean gradient of
    the known row, as published. The scores [N, 2] are ``core.two_sided``: minus and plus the cosine
    less its median. A zero gradient has cosine 0.
    """
    del bottoms, num_classes
    return _hints(lambda g, hints: _multiply(_unit(g), _unit(hints).T)[:, 0], 1, epoch, oracle)


def inner(
    bottoms: tuple[nn.Module, ...], num_classes: int, *, epoch: int | str = -1, oracle: bool = False
) -> Attack:
    """``cosine`` with the inner product in place of the cosine, in squared gradient units."""
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
    """Score each row by minus the distance to the nearest of ``count`` known positives.

    Published: 1, 3 and 5 hints. The other options, and the scores' form, are those of ``cosine``; the
    distances are in the gradients' units. With fewer known positives than ``count``, all are used.
    """
    del bottoms, num_classes
    check_whole("count", count, 1)

    def likeness(g: Array, hints: Array) -> Array:
        apart = jnp.linalg.norm(g[:, None, :] - hints[None, :, :], axis=-1)
        return -jnp.min(apart, axis=-1)

    return _hints(likeness, count, epoch, oracle)


COSINE = AttackRow(cosine)
INNER = AttackRow(inner)
HINT = AttackRow(hint)
