"""The charge attack (ours): PELoss's forces, computed under either label and compared with what was received.

PELoss (Zheng et al. 2024, ``vfljax.defenses.pe_loss``) adds to the gradient of z_i the force of the rows of
its class in the batch. With p_cj the probability that row j is of class c, and n_c their sum, that force is

    M_ci = -2 alpha sum_j U_ij p_cj / n_c,    U_ij = (z_i - z_j) / (|z_i - z_j|^2 + s^2)^1.5

on average, with the variance V_ci = 4 alpha^2 sum_j |U_ij|^2 p_j (1 - p_j) / n_c^2 in all entries together.
Whoever holds the embeddings of a batch knows all of it but the labels and alpha. The rest of the gradient,
the cross entropy's, is taken for noise of a share r of its square. With s_c = V_c + r |g_i|^2, a class has the
log likelihood

    l_c = -D |g_i - M_ci|^2 / (2 s_c) - D / 2 log s_c.

The log odds L start at a guess L0 and are refined in rounds over every recorded epoch and batch:

    L <- .7 L + .3 clip(.3 L0 + sum over batches of clip(l_1 - l_0, -8, 8), -8, 8)

r falls from 1 to .25 and .05, with ``rounds`` of each. alpha starts where the squares of gradients and forces
agree under L0, as the median over rows of sqrt(|g|^2 / (|M|^2 + V)) for alpha = 1. After the rounds of each r
it is the median of <g, M> / |M|^2 under the likelier classes. L0 is a ridge regression of the known labels on
the embeddings, and known rows stay at -8 and 8. Without known labels L0 is drawn: the two classes are then
found, and either may be called positive.

The attack is defined for two classes and Euclidean distances. It needs the batch mates: where few rows are
recorded (``config.training.record_rows``) most forces come from rows that are not there. Where no force was
added it compares nothing, and its scores are near those of L0.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow
from vfljax.attacks.probe import standardized
from vfljax.types import KINDS, Array, Known, Scores, View

MOST = 8.0  # of log odds, either way
KEPT, PRIOR = 0.7, 0.3  # shares of the earlier log odds in a round, and of L0 beside the batches
KNOBS = {"softening": 1e-3}
NAMES = ("known", "none")
NOISES = (1.0, 0.25, 0.05)  # r: the share of |g|^2 that is no force


class PartyBatches(NamedTuple):
    """All recorded batches of one party: rows [T, B], whether sent, embeddings and gradients [T, B, D]."""

    rows: Array
    sent: Array
    embeddings: Array
    gradients: Array


class BatchEvidence(NamedTuple):
    """What a batch tells of its rows, each [B]; NaN slopes and sizes where a row tells nothing."""

    odds: Array  # log odds of class 1
    slope: Array  # alpha by the force of the row's likelier class
    size: Array  # alpha by the squares of gradient and force


def forces(z: Array, p: Array, softening: Array) -> tuple[Array, Array]:
    """The mean force [B, D] of a class on each row and its variance [B], for alpha = 1.

    Args:
      z: [B, D] the embeddings of a batch.
      p: [B] each row's probability of being of the class; 0 for rows that were not sent.
      softening: [] s, in the units of z.
    """
    chex.assert_rank([z, p, softening], [2, 1, 0])
    # differences and not products of matrices, which lose those of near rows, whose forces are the largest
    apart = z[:, None] - z[None]
    squared = jnp.sum(apart * apart, axis=-1)
    push = apart * jax.lax.rsqrt(squared + softening**2)[:, :, None] ** 3
    count = jnp.maximum(jnp.sum(p), 1.0)
    mean = jnp.sum(push * p[None, :, None], axis=1)
    spread = jnp.sum(push * push * (p * (1 - p))[None, :, None], axis=(1, 2))
    return -2 * mean / count, 4 * spread / count**2


def evidence(
    z: Array, g: Array, p: Array, sent: Array, alpha: Array, noise: Array, softening: Array
) -> BatchEvidence:
    """What one batch tells of its rows' labels and of alpha.

    Args:
      z, g: [B, D] the embeddings and gradients of a batch.
      p: [B] each row's probability of class 1.
      sent: [B] bool.
      alpha, softening: [] of the defense; alpha in the units of g times those of z squared.
      noise: [] r.
    """
    square = jnp.sum(g * g, axis=-1)

    def of_class(p: Array) -> tuple[Array, Array, Array]:
        mean, spread = forces(z, jnp.where(sent, p, 0.0), softening)
        left = jnp.sum((g - alpha * mean) ** 2, axis=-1)
        variance = alpha**2 * spread + noise * square + 1e-12
        half = g.shape[-1] / 2
        return mean, spread, -half * left / variance - half * jnp.log(variance)

    of_classes = [of_class(p), of_class(1 - p)]
    (mean_1, spread_1, log_1), (mean_0, spread_0, log_0) = of_classes
    mean = jnp.where((p > 0.5)[:, None], mean_1, mean_0)
    spread, force = jnp.where(p > 0.5, spread_1, spread_0), jnp.sum(mean * mean, axis=-1)
    counts = sent & (square > 0) & (force > 0)
    odds = jnp.clip(jnp.nan_to_num(log_1 - log_0), -MOST, MOST)
    return BatchEvidence(
        odds=jnp.where(counts, odds, 0.0),
        slope=jnp.where(counts, jnp.sum(mean * g, axis=-1) / force, jnp.nan),
        size=jnp.where(counts, jnp.sqrt(square / (force + spread)), jnp.nan),
    )


def guess(z: Array, sent: Array, known: Known, key: Array) -> Array:
    """L0 [N]: a ridge regression of the known labels on the embeddings z [N, D] that were sent; draws where
    none is known."""
    x = standardized(z, sent)
    weight = jnp.zeros(len(x)).at[known.rows].set(jnp.arange(len(x)) < known.count)
    signs = jnp.zeros(len(x)).at[known.rows].set(jnp.where(known.labels == 1, 1.0, -1.0)) * weight
    gram = core.multiply(x.T, x * weight[:, None]) + jnp.eye(x.shape[1])
    scores = core.multiply(x, jnp.linalg.solve(gram, core.multiply(x.T, signs)))
    scores = scores / jnp.maximum(jnp.std(scores), 1e-6)
    return jnp.where(known.count > 0, scores, jax.random.normal(key, scores.shape))


def log_odds(
    parties: Sequence[PartyBatches], start: Array, fixed: Array, softening: Array, rounds: int
) -> Array:
    """The log odds [N] of class 1 that the batches of all parties give.

    Args:
      parties: what each attacker sent and received.
      start: [N] L0.
      fixed: [N] the log odds of known rows, 0 of all others.
      softening: [] of the defense, in the units of the embeddings.
      rounds: of each of ``NOISES``.
    """

    def pass_over(odds: Array, alpha: Array, noise: Array) -> tuple[Array, Array, Array]:
        """The evidence [N] of all batches, and alpha by slopes and by sizes."""
        p = jnp.append(jax.nn.sigmoid(odds), 0.5)
        total, slopes, sizes = jnp.zeros(len(p)), [], []
        for party in parties:
            found = jax.lax.map(
                lambda b: evidence(
                    b.embeddings, b.gradients, p[b.rows], b.sent, alpha, noise, softening
                ),
                party,
            )
            total = total.at[party.rows].add(found.odds)
            slopes.append(found.slope.ravel())
            sizes.append(found.size.ravel())
        by_slope = jnp.nan_to_num(jnp.nanmedian(jnp.concatenate(slopes)))
        by_size = jnp.nan_to_num(jnp.nanmedian(jnp.concatenate(sizes)))
        return total[:-1], by_slope, by_size

    def phase(carry: tuple[Array, Array], noise: Array) -> tuple[tuple[Array, Array], None]:
        odds, alpha = carry

        def again(_: Array, odds: Array) -> Array:
            found = pass_over(odds, alpha, noise)[0]
            new = jnp.clip(PRIOR * start + found, -MOST, MOST)
            return jnp.where(fixed != 0, fixed, KEPT * odds + (1 - KEPT) * new)

        odds = jax.lax.fori_loop(0, rounds, again, odds)
        hard = jnp.where(odds > 0, 1e3, -1e3)
        return (odds, pass_over(hard, alpha, noise)[1]), None

    unit = jnp.float32(1)
    alpha = pass_over(start, unit, unit)[2]
    (odds, _), _ = jax.lax.scan(phase, (start, alpha), jnp.array(NOISES))
    return odds


def charge(
    bottoms: tuple[nn.Module, ...], num_classes: int, *, names: str = "known", rounds: int = 8
) -> Attack:
    """Score each row by the log odds that its class's forces explain the gradient it received.

    Knobs: ``known`` where ``names`` is "known", and the defense's ``softening`` s (public; 1e-3 by default).

    Args:
      bottoms: the attackers' bottom models, whose widths part the cut.
      num_classes: 2.
      names: whether the classes are named by "known" labels, or by "none".
      rounds: how often the log odds are refined under each of ``NOISES``.

    Returns:
      An attack whose scores [N, 2] are half the log odds, of either sign; NaN for rows never sent.

    Raises:
      ValueError: for a bad option.
    """
    del num_classes
    core.check_choice("names", names, NAMES)
    core.check_whole("rounds", rounds, 1)
    places = list(itertools.accumulate((bottom.out for bottom in bottoms), initial=0))

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        rows = len(view.order[0])
        # in units of the largest gradient: alpha is not asked for in any
        largest = jnp.max(jnp.abs(jnp.where(view.sent[:, :, None], view.gradients, 0.0)))
        scale = jnp.where(largest > 0, largest, 1.0)
        signs = jnp.where(known.labels == 1, MOST, -MOST)
        given = jnp.where(jnp.arange(rows) < known.count, signs, 0.0)
        odds = log_odds(
            [_exchange(view, *ends, scale) for ends in itertools.pairwise(places)],
            guess(view.embeddings[-1], view.sent[-1], known, key),
            jnp.zeros(rows).at[known.rows].set(given),
            knobs["softening"],
            rounds,
        )
        scores = jnp.stack([-odds, odds], axis=-1) / 2
        return Scores(jnp.where((view.sums.count > 0)[:, None], scores, jnp.nan))

    return Attack(
        run,
        KINDS,
        {"known": 40.0, **KNOBS} if names == "known" else KNOBS,
        baselines=("logistic",) if names == "known" else (),
        binary=True,
        adaptive=True,
        over_epochs=True,
    )


def _exchange(view: View, first: int, last: int, scale: Array) -> PartyBatches:
    """One party's columns ``first`` to ``last`` of the cut by batch, gradients in units of ``scale``."""
    of_epochs = [core.batches_at(view, place) for place in range(len(view.order))]

    def gathered(by_epoch: Array) -> Array:
        pairs = zip(of_epochs, by_epoch, strict=True)
        return jnp.concatenate([batches.gather(x[:, first:last]) for batches, x in pairs])

    return PartyBatches(
        rows=jnp.concatenate([batches.rows for batches in of_epochs]),
        sent=jnp.concatenate([batches.sent for batches in of_epochs]),
        embeddings=gathered(view.embeddings),
        gradients=gathered(view.gradients / scale),
    )


ROW = AttackRow(charge)
