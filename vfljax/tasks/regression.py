"""Labels that are numbers, and the squared error or Huber's loss.

The leak is the concordance (``metrics.concordance``): the share of pairs of rows with different labels whose
order the scores name. For two label values it is the AUC. It does not depend on the labels' unit, and a guess
has 1/2. Beside it are figures in the labels' unit, which need a map from scores to labels. The map is fitted to
one half of the scored rows and judged on the other, and the other way round (``sure``).

Utility is R² on test rows. A guess, the mean label, has 0. Reports judge an R² below 0 as 0, because a single
run of -40 would rule every limit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import metrics
from vfljax.tasks.core import Read, Task, Utility
from vfljax.types import Array

TENTH = 0.1  # of the labels' interquartile range: a row named so nearly is named rightly


def loss(
    outputs: Array, targets: Array, class_weights: tuple[float, ...] = (), delta: float = 0.0
) -> Array:
    """Returns the mean squared error over the batch, [], or twice ``optax.huber_loss``.

    Twice, so that residuals up to ``delta`` cost their square, and a large ``delta`` is the squared error.

    Args:
      outputs, targets: [B, 1] each.
      class_weights: of classes; not read.
      delta: of Huber's loss, in standard deviations of the label; 0 for the squared error.
    """
    del class_weights
    if delta:
        return jnp.mean(jnp.sum(2 * optax.huber_loss(outputs, targets, delta=delta), axis=-1))
    return jnp.mean(jnp.sum((outputs - targets) ** 2, axis=-1))


def credit(outputs: Array, labels: Array) -> Array:
    """Returns the sum [] of 1 - (f - y)^2, which over all standardized training rows adds up to R² of them."""
    return jnp.sum(1 - (outputs[:, 0] - labels) ** 2)


def evaluate(read: Read, num_classes: int, unit: Array | float) -> dict[str, Array]:
    """Returns R², the mean absolute error and the root mean square error, in units of the label, and the
    standardized squared error as "loss", on validation and test rows. R² is NaN if all labels are equal."""
    del num_classes
    out = {}
    for part in ("validation", "test"):
        outputs, labels = read(part)
        away = outputs[:, 0] - labels
        squared = jnp.mean(away**2)
        out[f"{part}_r2"] = 1 - squared / jnp.mean((labels - jnp.mean(labels)) ** 2)
        out[f"{part}_mae"] = jnp.mean(jnp.abs(away)) * unit
        out[f"{part}_rmse"] = jnp.sqrt(squared) * unit
        out[f"{part}_loss"] = squared
    return out


def _filled(scores: Array) -> Array:
    """Returns scores [n] of [n, 1]; a row without a guess has the mean of the others."""
    finite = jnp.isfinite(scores[:, 0])
    total = jnp.sum(jnp.where(finite, scores[:, 0], 0.0))
    return jnp.where(finite, scores[:, 0], total / jnp.maximum(jnp.sum(finite), 1))


def names(scores: Array, labels: Array, weights: Array) -> Array:
    """Returns [1] int32: 0, or 1 if the scores order these rows better when they are negated."""
    found = metrics.concordance(_filled(scores), labels, weights)
    return (found < 0.5).astype(jnp.int32)[None]


def named(scores: Array, names: Array) -> Array:
    """Returns the scores [n, 1], negated if ``names`` says so."""
    return jnp.where(names[0] != 0, -scores, scores)


def leak(scores: Array, names: Array, labels: Array, weights: Array | None = None) -> Array:
    """Returns the concordance [] in the direction that ``names`` gives."""
    return metrics.concordance(_filled(scores), labels, weights, names[0] != 0)


def sure(
    scores: Array, labels: Array, weights: Array, positive: Array | int = 1
) -> dict[str, Array]:
    """Returns how near the scores come to the labels, once they are mapped to the labels' unit.

    ``r2_monotone`` and ``r2_linear`` are R² of the best increasing and of the best linear map of the scores.
    Each half of the rows, every other one, is predicted by the map that fits the other half best.
    ``within_tenth`` is the share of rows whose increasing map is within a tenth of the labels' interquartile
    range of the label, or of their standard deviation where half of the labels or more are equal and that range
    is 0. ``right`` [n] marks them.

    Args:
      scores: [n, 1], in the direction of the labels.
      labels, weights: [n] each.
      positive: of classes; not read.
    """
    del positive
    chex.assert_rank([scores, labels, weights], [2, 1, 1])
    s = _filled(scores)
    half = jnp.cumsum(weights).astype(jnp.int32) % 2
    # in units of the largest, because sums of squares of large numbers leave float32
    count = jnp.maximum(jnp.sum(weights), 1.0)
    y = (labels - jnp.sum(weights * labels / count)) * weights
    largest = jnp.max(jnp.abs(y))
    y = y / jnp.where(largest > 0, largest, 1.0)
    spread = jnp.sqrt(jnp.sum(y**2) / count)
    y = y / jnp.where(spread > 0, spread, 1.0)
    residual = {}
    for name, fit in (("monotone", increasing), ("linear", linear)):
        first, second = (fit(s, y, weights * (half == part)) for part in (0, 1))
        residual[name] = y - jnp.where(half == 0, second, first)
    low, high = jnp.nanquantile(jnp.where(weights > 0, y, jnp.nan), jnp.array([0.25, 0.75]))
    width = jnp.where(high > low, high - low, 1.0)  # y has the standard deviation 1
    right = weights * (jnp.abs(residual["monotone"]) <= TENTH * width)
    within = jnp.sum(weights)
    r2 = {f"r2_{k}": 1 - jnp.sum(weights * r**2) / jnp.sum(y**2) for k, r in residual.items()}
    return {**r2, "within_tenth": jnp.sum(right) / within, "right": right / weights}


def linear(s: Array, y: Array, weights: Array) -> Array:
    """Returns the values [n] of the line through (s, y), [n] each, of least squared distance to the rows of
    weight 1."""
    count = jnp.maximum(jnp.sum(weights), 1.0)
    away, mean = s - jnp.sum(weights * s) / count, jnp.sum(weights * y) / count
    largest = jnp.max(jnp.abs(away))
    away = away / jnp.where(largest > 0, largest, 1.0)
    square = jnp.sum(weights * away**2)
    slope = jnp.sum(weights * away * y) / jnp.where(square > 0, square, 1.0)
    return mean + slope * away


def increasing(s: Array, y: Array, weights: Array) -> Array:
    """Returns the values [n] of the increasing function of s [n] of least squared distance to y [n] at the rows
    of weight 1.

    It is a step function. At a score between two of these rows it has the value of the lower one. Neighboring
    steps that fall are pooled until none does (pool adjacent violators), all at once in a round: pooling a
    falling pair leaves a step that falls to whatever lies lower still.
    """
    order = jnp.lexsort((1 - weights, s))  # of equal scores, rows of weight 1 come first
    s, y, kept = s[order], y[order], weights[order]
    begins = (kept > 0) & jnp.concatenate([jnp.ones(1, bool), s[1:] != s[:-1]])

    def steps(begins: Array) -> tuple[Array, Array]:
        step = jnp.maximum(jnp.cumsum(begins) - 1, 0)
        total = jax.ops.segment_sum(kept * y, step, len(y))
        count = jax.ops.segment_sum(kept, step, len(y))
        return step, total / jnp.maximum(count, 1.0)

    def falling(begins: Array) -> Array:
        step, height = steps(begins)
        return begins & (step > 0) & (height[jnp.maximum(step - 1, 0)] > height[step])

    def pool(carry: tuple[Array, Array]) -> tuple[Array, Array]:
        begins, falls = carry
        begins = begins & ~falls
        return begins, falling(begins)

    begins, _ = jax.lax.while_loop(lambda carry: jnp.any(carry[1]), pool, (begins, falling(begins)))
    step, height = steps(begins)
    return jnp.zeros_like(y).at[order].set(height[step])


def utility(balance: Sequence[int]) -> Utility:
    """Returns R²."""
    del balance
    return Utility("R²", "r2", "r2", 0.0)


def counted_rows(balance: Sequence[int], rows: int, tied: int = 1) -> int:
    """Returns the rows whose label is not the most frequent one.

    Each row has a share of the other rows that it is ordered rightly with, and a leak is the mean of these.
    Rows of equal labels are not compared. If half of the labels or more are one value, which ``tied`` of all
    rows have, nearly every pair has a row of the others, as with two classes a row of the rarer one.
    """
    return (
        max(1, int(rows * (1 - max(tied, 1) / sum(balance)))) if 2 * tied >= sum(balance) else rows
    )


def null_spread(num_classes: int, rows: int) -> float:
    """Returns the standard deviation of the concordance of random scores with ``rows`` different labels: half
    of that of Kendall's tau."""
    del num_classes
    return math.sqrt((2 * rows + 5) / (18 * rows * max(rows - 1, 1)))


REGRESSION = Task(
    name="regression",
    credited="r2",
    label_type=jnp.float32,
    targets=lambda labels, num_classes: labels[:, None],
    loss=loss,
    credit=credit,
    evaluate=evaluate,
    names=names,
    named=named,
    leak=leak,
    figures=lambda scores, labels, sent, unlabeled: {},
    test_figures=lambda scores, labels: {},
    sure=sure,
    least_known=lambda num_classes: 2,
    most_known=lambda num_classes, rarest, rows: rows,
    scale=lambda num_classes: "concordance",
    chance=lambda num_classes: 0.5,
    utility=utility,
    counted_rows=counted_rows,
    null_spread=null_spread,
)
