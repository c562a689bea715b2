"""Mean and median attacks: a row belongs to the class whose center is nearest to its gradient.

    y_i = argmin_c || g_i - m_c ||_2,   m_c the mean, or the median by coordinate, of class c

Reference: Han, Guan. "GAN-based Vertical Federated Learning for Label Protection in Binary
Classification", 2023, section 3.5, equations 8 and 9, for two classes. More classes need no change.

``oracle=True`` is the published form: the centers of the true classes, which no attacker has. By default
the centers are those of the rows whose labels the attacker knows. The published attacks assign a class
(``scores="nearest"``); the distances themselves leak more (``scores="distance"``). Gradients of two classes
without a top model lie on a line, where the two distances of a row beyond both centers differ by the same
number as those of every other such row. Rounding alone then orders these rows: under label DP on Spambase the
AUC was .67, .66 and .57 by three ways to compute the same distances.

``global_median`` is what GAFM's released code runs under the name of median: a row is called positive
where its gradient, summed over its entries, exceeds the median of its batch. It needs no label. It calls
half of a batch positive, so that for a positive rate p <= 1/2 its leak AUC is at most
1 - (1/2 - p) / (2 (1 - p)). It is not defined without model splitting, where every gradient sums to 0.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.types import KINDS, MALICIOUS, SPLIT, Array, Known, Scores, View


def _centers(
    statistic: Callable[[Array], Array],
    num_classes: int,
    epoch: int | str,
    oracle: bool,
    scores: str,
) -> Attack:
    core.check_epoch(epoch)
    errors.check_choice("scores", scores, ("nearest", "distance"))

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, knobs
        g, sent = core.received(view, epoch)
        labels = core.labels_by_row(known, len(g))

        def distance(c: Array) -> Array:
            members = (labels == c) & sent
            center = statistic(jnp.where(members[:, None], g, jnp.nan))
            return jnp.linalg.norm(g - center[None, :], axis=-1)

        near = -jnp.stack([distance(jnp.int32(c)) for c in range(num_classes)], axis=-1)
        if scores == "nearest":  # of two classes, ties go to class 1, as published
            best = num_classes - 1 - jnp.argmax(near[:, ::-1], axis=-1)
            near = jnp.where(jnp.isnan(near), jnp.nan, jax.nn.one_hot(best, num_classes))
        return core.scored(near, sent)

    return Attack(
        run,
        KINDS,
        knobs={} if oracle else core.KNOWN,
        oracle=oracle,
        reads=("gradients",),
        **core.reads_epoch(epoch, adaptive=scores == "distance"),
    )


def mean(
    bottoms: Bottoms,
    num_classes: int,
    *,
    epoch: int | str = -1,
    oracle: bool = False,
    scores: str = "nearest",
) -> Attack:
    """Assign each row to the class whose mean gradient is nearest (Han and Guan 2023, equation 8).

    Args:
      epoch: which gradients are read, see ``core.received``.
      oracle: whether the centers are those of all rows' labels (published) instead of the known ones.
      scores: "nearest" for 1 at the nearest class and 0 elsewhere; "distance" for minus the distances
        to all centers, in the gradients' units.

    Returns:
      An attack whose scores [N, C] are NaN for rows never sent.
    """
    del bottoms
    return _centers(lambda g: jnp.nanmean(g, axis=0), num_classes, epoch, oracle, scores)


def median(
    bottoms: Bottoms,
    num_classes: int,
    *,
    epoch: int | str = -1,
    oracle: bool = False,
    scores: str = "nearest",
) -> Attack:
    """``mean`` with medians by coordinate as the centers (Han and Guan 2023, equation 9)."""
    del bottoms
    return _centers(lambda g: jnp.nanmedian(g, axis=0), num_classes, epoch, oracle, scores)


def global_median(bottoms: Bottoms, num_classes: int, *, epoch: int = -1) -> Attack:
    """Call a row positive if its gradient's sum exceeds the median of its batch (Han and Guan 2023, released).

    This is GAFM's released median attack, for two classes. The scores [N, 2] are 1 for the class called
    and 0 for the other. Positives receive the smaller gradients where nothing defends them; the leak AUC
    takes max(a, 1 - a).
    """
    del bottoms, num_classes
    core.check_epoch(epoch)
    if isinstance(epoch, str):
        raise ValueError(f"epoch={epoch!r} has no batches: choose 0, 1, ..., or -1 (the last).")

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known, knobs
        place = core.place_of(view, epoch)
        by_batch = core.batches_at(view, place)
        total = jnp.sum(view.gradients[place], axis=-1)
        sums = jnp.where(by_batch.sent, by_batch.gather(total), jnp.nan)
        above = (sums > jnp.nanmedian(sums, axis=1, keepdims=True)).astype(jnp.float32)
        positive = by_batch.scatter(above, len(total))
        return Scores(jnp.stack([1 - positive, positive], axis=-1))

    reads = ("gradients", "order")
    return Attack(run, (SPLIT, MALICIOUS), binary=True, epoch=epoch, reads=reads)


MEAN = AttackRow(mean)
MEDIAN = AttackRow(median)
GLOBAL_MEDIAN = AttackRow(global_median)
