"""Closed-form learners on the ranks of what crossed the wire (ours).

    x_i = ranks of [mean g, z_e and g_e of each recorded epoch e, |mean g|, |g_e|, sum of all g^2, columns]

A few rows of large gradients outweigh all others in a standardized column. Ranks do not: no increasing map of a
column moves them. Each column of x is its midrank among the rows sent, divided by their number, centered,
times ``WIDTH``, so that its variance is 1. The lengths of gradients are columns of their own, because a linear
learner cannot make them of coordinates. The attacker's own columns are divided by sqrt(W / 8) where they are
W > 8.

Learners, of targets t_kc = 1 for the class of known row k and -1 for the others:

    ridge   x_i . (X_k^T X_k + 10 I)^-1 X_k^T t
    kernel  k_i^T (K_kk + I)^-1 t,   K_ij = exp(-|x_i - x_j|^2 / median of those between known rows)
    lda     m_c^T S^-1 (x_i - m_c / 2),   S = Cov(x) + .2 I over all rows sent, m_c the mean of known rows of c
    both    the mean of the midranks of the scores of kernel and lda

Of labels that are numbers the targets t are these less their mean over the known rows, and learners are ridge
and kernel.

The covariance of ``lda`` needs no label, so it is that of thousands of rows when few labels are known.
Each learner is one linear solve, and nothing is drawn.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax.scipy.sparse.linalg import cg

from vfljax import errors, metrics, tasks
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.joint import BLOCKS, check_blocks, reads_of
from vfljax.types import KINDS, Array, Known, Scores, View

WIDTH = 12**0.5  # a uniform variable of this width has variance 1
FEW = 8  # all own columns together weigh at most as much as so many columns of the exchange
RIDGE, KERNEL_RIDGE, SHRINKAGE = 10.0, 1.0, 0.2


def midranks(x: Array, sent: Array) -> Array:
    """The midranks of each column of x [N, W] among the rows sent, of mean 0 and width ``WIDTH``.

    ``sent`` is bool, [N] for all columns or [N, W]. Equal entries share the mean of their ranks, so that a
    constant column is 0. Rows not sent are 0.
    """
    chex.assert_rank([x, sent], [2, {1, 2}])
    sent = jnp.broadcast_to(sent.reshape(len(x), -1), x.shape)
    count = jnp.maximum(jnp.sum(sent, axis=0, keepdims=True), 1)
    # rows that were not sent lie after all others
    columns = metrics.sortable(jnp.where(sent, x, jnp.inf)).T
    ordered, rows = jnp.sort(columns, axis=1), len(x)
    # a loop, which compiles in half the time
    less = jax.vmap(jnp.searchsorted)(ordered, columns)
    # where the equal numbers after each place end: a second search takes longer
    last = jnp.pad(ordered[:, 1:] != ordered[:, :-1], ((0, 0), (0, 1)), constant_values=True)
    ends = jnp.where(last, jnp.arange(1, rows + 1)[None], rows)
    ends = jax.lax.cummin(ends, axis=1, reverse=True)
    up_to = jnp.take_along_axis(ends, less, axis=1)
    centered = less.T + jnp.minimum(up_to.T, count) - count  # twice, in integers
    return jnp.where(sent, WIDTH / 2 * centered / count, 0.0)


@core.once
def ever_sent(view: View) -> Array:
    """Which rows [N] bool were sent in any epoch."""
    return view.sums.count > 0


@core.once
def features(view: View, blocks: str) -> Array:
    """x [N, W], in units of standard deviations; 0 where a row was not sent.

    Args:
      view: what the attacker sees.
      blocks: what is read of it, a name in ``BLOCKS``.
    """
    with_columns, with_exchange = BLOCKS[blocks]
    parts, sent, weights = [], [], []

    def add(x: Array, rows: Array, weight: float = 1.0) -> None:
        parts.append(x)
        sent.append(jnp.broadcast_to(rows[:, None], x.shape))
        weights.append(jnp.full((1, x.shape[1]), weight))

    if with_exchange:
        mean, ever = core.received(view, "mean")
        total = jnp.sum(view.sums.square, axis=-1, keepdims=True)
        add(jnp.concatenate([mean, jnp.linalg.norm(mean, axis=-1, keepdims=True), total], -1), ever)
        lengths = jnp.linalg.norm(view.gradients, axis=-1, keepdims=True)
        of_epochs = jnp.concatenate([view.embeddings, view.gradients, lengths], axis=-1)
        for x, rows in zip(of_epochs, view.sent, strict=True):
            add(x, rows)
    if with_columns:
        columns = core.columns_of(view.features)
        weight = (FEW / max(columns.shape[1], FEW)) ** 0.5
        add(columns, jnp.ones(len(columns), bool), weight)
    # all columns at once: each sort compiles for about a second
    joined = midranks(jnp.concatenate(parts, axis=-1), jnp.concatenate(sent, axis=-1))
    return jnp.concatenate(weights, axis=-1) * joined


class Taught(NamedTuple):
    """The known rows that were sent, in the first places of arrays of a fixed length M."""

    rows: Array  # [M] int32
    real: Array  # [M] bool: False at padding
    targets: Array  # [M, C] 1 and -1, 0 at padding; numbers less their mean
    classes: Array  # [M, C] 1 at the row's class, else 0; numbers


@core.once
def taught(known: Known, sent: Array, num_classes: int, most: int) -> Taught:
    """Returns the first ``most`` known rows."""
    rows = known.rows[:most]
    real = (jnp.arange(len(rows)) < known.count) & sent[rows]
    classes = tasks.of(num_classes).targets(known.labels[:most], num_classes) * real[:, None]
    if num_classes == 1:
        away = classes - jnp.sum(classes, keepdims=True) / jnp.maximum(jnp.sum(real), 1)
        return Taught(rows, real, away * real[:, None], classes)
    return Taught(rows, real, (2 * classes - 1) * real[:, None], classes)


def solve(matrix: Array, right: Array) -> Array:
    """matrix^-1 right, of a positive definite matrix [n, n] and [n, C].

    Conjugate gradients: LAPACK, which ``jnp.linalg`` calls, hangs in programs over several CPU devices.
    """
    return cg(functools.partial(core.multiply, matrix), right, tol=1e-6, maxiter=200)[0]


def ridge(x: Array, sent: Array, known: Taught) -> Array:
    """The scores [N, C] of a ridge regression of the targets on x [N, W]."""
    del sent
    near = jnp.where(known.real[:, None], x[known.rows], 0.0)
    gram = core.multiply(near, near.T) + RIDGE * jnp.eye(len(near))
    return core.multiply(x, core.multiply(near.T, solve(gram, known.targets)))


@core.once
def kernel(x: Array, sent: Array, known: Taught) -> Array:
    """The scores [N, C] of a kernel ridge regression of the targets, with a Gaussian kernel."""
    del sent
    near = x[known.rows]
    squares = jnp.sum(near * near, axis=-1)[None]
    distances = jnp.sum(x * x, axis=-1)[:, None] + squares - 2 * core.multiply(x, near.T)
    first, second = jnp.triu_indices(len(near), 1)
    pairs = known.real[first] & known.real[second]
    between = distances[known.rows[first], second]
    median = median_of(jnp.where(pairs, between, jnp.inf), jnp.sum(pairs))
    similar = jnp.exp(-jnp.maximum(distances, 0.0) / jnp.maximum(median, 1e-6)) * known.real[None]
    system = similar[known.rows] * known.real[:, None] + KERNEL_RIDGE * jnp.eye(len(near))
    return core.multiply(similar, solve(system, known.targets))


def median_of(values: Array, count: Array) -> Array:
    """The median of the ``count`` smallest values [n], 0 if there are none."""
    middle = jnp.sort(metrics.sortable(values))[jnp.stack([(count - 1) // 2, count // 2])]
    return jnp.where(count > 0, jnp.mean(metrics.from_sortable(middle)), 0.0)


@core.once
def lda(x: Array, sent: Array, known: Taught) -> Array:
    """The scores [N, C] of linear discriminants whose covariance is that of all rows sent [N] bool; a class
    of which no row is known is the least likely."""
    weights = sent[:, None] / jnp.maximum(jnp.sum(sent), 1)
    centered = (x - jnp.sum(weights * x, axis=0, keepdims=True)) * sent[:, None]
    covariance = core.multiply(centered.T, weights * centered) + SHRINKAGE * jnp.eye(x.shape[1])
    counts = jnp.sum(known.classes, axis=0)
    means = core.multiply(known.classes.T, centered[known.rows])
    means = means / jnp.maximum(counts, 1.0)[:, None]
    directions = solve(covariance, means.T)
    offsets = jnp.sum(means.T * directions, axis=0, keepdims=True) / 2
    scores = core.multiply(centered, directions) - offsets
    return jnp.where(counts[None] > 0, scores, jnp.min(scores) - 1.0)


def both(x: Array, sent: Array, known: Taught) -> Array:
    """The mean [N, C] of the midranks of the scores of ``kernel`` and ``lda``; a class of which no row is known
    is the least likely."""
    of_kernel, of_lda = (midranks(learner(x, sent, known), sent) for learner in (kernel, lda))
    present = jnp.sum(known.classes, axis=0, keepdims=True) > 0
    return jnp.where(present, (of_kernel + of_lda) / 2, -WIDTH)


LEARNERS = {"ridge": ridge, "kernel": kernel, "lda": lda, "both": both}


def ranks(
    bottoms: Bottoms,
    num_classes: int,
    *,
    learner: str = "kernel",
    blocks: str = "all",
    most: int = 256,
) -> Attack:
    """Learn the known rows' classes from ranks, and score all rows sent.

    Knobs: how many labels are ``known``.

    Args:
      learner: "ridge", "kernel", "lda" or "both" of the last two, which need classes.
      blocks: what is read: "all", the attacker's own "columns" or the "exchange".
      most: known labels that are learned from; further ones are left out, so that the solve stays small.

    Returns:
      An attack whose scores [N, C] are of either sign, NaN for rows never sent. Those rows teach nothing.

    Raises:
      ValueError: where columns to be read are codes or token ids.
    """
    choices = ("ridge", "kernel") if num_classes == 1 else LEARNERS
    errors.check_choice("learner", learner, choices)
    core.check_whole("most", most, 2)
    check_blocks(bottoms, blocks)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, knobs
        sent = ever_sent(view)
        scores = LEARNERS[learner](
            features(view, blocks), sent, taught(known, sent, num_classes, most)
        )
        return core.scored(scores, sent)

    return Attack(
        run,
        KINDS,
        core.KNOWN,
        baselines=("logistic",),
        adaptive=True,
        reads=reads_of(blocks),
        epoch=None,
    )


ROW = AttackRow(ranks, widest=core.WIDEST, cost=core.SOLVE, not_for_numbers="")
