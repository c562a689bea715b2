"""Cosine, inner product and n-hint: how alike a row's gradient is to those of known positives.

    cosine  cos(g_i, g+)      inner  <g_i, g+>      hint  -min over n known positives || g_i - g+ ||_2

where g+ is the gradient of one row known to be positive.

Reference: Li, Sun, Yang, Gao, Zhang, Xie, Smith, Wang. "Label Leakage and Protection in Two-party Split
Learning", ICLR 2022, section 3 (direction attack). The inner product and n = 1, 3, 5 are those of GAFM's
released code (Han and Guan 2023). All are published for two classes.

With more (ours) each class has a score. ``cosine`` and ``inner`` compare with the mean gradient of its known
rows, ``hint`` with the first n of them.

Of labels that are numbers (ours) ``cosine`` and ``inner`` compare with the covariance of known labels and
gradients, sum_k (y_k - mean y) g_k, which points to gradients of large labels.

The published hints are the clean gradients of the known rows, computed without the defense:
``oracle=True`` takes the gradient of the undefended loss at the final weights, in evaluation mode. An
attacker has only what it received, which is what is used by default.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax.numpy as jnp

from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.types import KINDS, Array, Known, Scores, View


def _first(known: Known, label: int, usable_rows: Array, count: int) -> Array:
    """The first ``count`` rows [count] that are known to be of class ``label`` and have a gradient.

    ``usable_rows`` [N] bool says which rows have one. If there are fewer such rows than ``count``, the first
    is repeated. If there are none, known rows without a gradient are taken.
    """
    members = known.labels == label
    usable = members & usable_rows[known.rows]
    usable = jnp.where(jnp.any(usable), usable, members)
    places = jnp.nonzero(usable, size=count, fill_value=-1)[0]
    return known.rows[jnp.where(places >= 0, places, places[0])]


def _mean(known: Known, label: int, usable_rows: Array, g: Array) -> Array:
    """The mean gradient [1, D] of the rows that are known to be of class ``label`` and have a gradient."""
    members = (known.labels == label) & usable_rows[known.rows]
    total = jnp.sum(jnp.where(members[:, None], g[known.rows], 0.0), axis=0, keepdims=True)
    return total / jnp.maximum(jnp.sum(members), 1)


def _covariance(known: Known, usable_rows: Array, g: Array) -> Array:
    """The covariance [1, D] of known labels and their rows' gradients, times the number of those that have one,
    ``usable_rows`` [N] bool."""
    taught = (jnp.arange(len(known.rows)) < known.count) & usable_rows[known.rows]
    mean = jnp.sum(jnp.where(taught, known.labels, 0.0)) / jnp.maximum(jnp.sum(taught), 1)
    away = jnp.where(taught, known.labels - mean, 0.0)[:, None]
    return jnp.sum(away * g[known.rows], axis=0, keepdims=True)


def _hints(
    likeness: Callable[[Array, Array], Array],
    num_classes: int,
    epoch: int | str,
    oracle: bool,
    count: int | None = None,
) -> Attack:
    """``likeness(g [N, D], hints [n, D]) -> [N]``, larger for rows of the hints' class. Hints are the
    first ``count`` known rows of a class; without ``count`` they are the first known positive, and of
    more than two classes the mean of all known rows of the class."""
    core.check_epoch(epoch)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, knobs
        g, sent = core.received(view, epoch)
        source = view.diagnostics[core.CLEAN] if oracle else g
        usable = jnp.ones_like(sent) if oracle else sent
        chex.assert_equal_shape([g, source])

        if num_classes == 1:
            toward = likeness(g, _covariance(known, usable, source))
            return Scores(core.from_one(toward, sent, num_classes))

        def like(label: int) -> Array:
            if num_classes > 2 and count is None:
                return likeness(g, _mean(known, label, usable, source))
            return likeness(g, source[_first(known, label, usable, count or 1)])

        if num_classes == 2:
            return Scores(core.two_sided(like(1), sent))
        scores = jnp.stack([like(label) for label in range(num_classes)], axis=-1)
        return core.scored(scores, sent)

    return Attack(
        run,
        KINDS,
        knobs={} if oracle else core.KNOWN,
        oracle=oracle,
        reads=("gradients",),
        diagnostic=core.CLEAN if oracle else "",
        **core.reads_epoch(epoch),
    )


def cosine(
    bottoms: Bottoms, num_classes: int, *, epoch: int | str = -1, oracle: bool = False
) -> Attack:
    """Score each row by the cosine of its gradient with that of one known positive (Li et al. 2022).

    ``epoch`` is that of the gradients that are read (``core.received``); ``oracle`` takes the clean gradient of
    the known row, as published. The scores [N, 2] are ``core.two_sided``: minus and plus the cosine
    less its median. A zero gradient has cosine 0. With more classes the scores [N, C] are the cosines
    with the means of the known rows of each, and of numbers [N, 1] those with the module's covariance.
    """
    del bottoms

    def likeness(g: Array, hints: Array) -> Array:
        return core.multiply(core.unit(g), core.unit(hints).T)[:, 0]

    return _hints(likeness, num_classes, epoch, oracle)


def inner(
    bottoms: Bottoms, num_classes: int, *, epoch: int | str = -1, oracle: bool = False
) -> Attack:
    """``cosine`` with the inner product in place of the cosine, in squared gradient units."""
    del bottoms
    return _hints(lambda g, hints: core.multiply(g, hints.T)[:, 0], num_classes, epoch, oracle)


def hint(
    bottoms: Bottoms,
    num_classes: int,
    *,
    count: int = 1,
    epoch: int | str = -1,
    oracle: bool = False,
) -> Attack:
    """Score each row by minus its gradient's distance to the nearest of ``count`` known positives.

    Published: 1, 3 and 5 hints. The other options, and the scores' form, are those of ``cosine``; the
    distances are in the gradients' units. With fewer known positives than ``count``, all are used. With more
    classes the scores [N, C] are minus the distances to the nearest of ``count`` known rows of each class.
    """
    del bottoms
    core.check_whole("count", count, 1)

    def likeness(g: Array, hints: Array) -> Array:
        apart = jnp.linalg.norm(g[:, None, :] - hints[None, :, :], axis=-1)
        return -jnp.min(apart, axis=-1)

    return _hints(likeness, num_classes, epoch, oracle, count)


COSINE = AttackRow(cosine, not_for_numbers="")
INNER = AttackRow(inner, not_for_numbers="")
HINT = AttackRow(hint, not_for_numbers="its hints are rows of one class")
