"""The residual attack (ours): the part of a gradient that its row's embedding does not predict.

Whatever the loss, a row's gradient is a function of its embedding and its label: g_i = h(z_i, y_i). Rows
of nearly equal embeddings share everything but the label, so that

    r_i = g_i / rms(batch) - mean over the k nearest neighbors j of z_i of g_j / rms(batch)

keeps the label's part. This undoes what GAFM (Han and Guan 2023) adds. Its GAN gradient is a smooth
function of the prediction f alone, hence nearly equal among neighbors; and dividing each batch's gradients
by the batch's own length undoes its whole-batch normalization. What is left is the cross entropy's part,
-(y~_i - E[y~ | f_i]) up to a positive factor. Where neighbors' labels are mixed its sign is the label's,
however small Delta is; where nearly all neighbors share a label it is that of the noise u. There the
embedding itself determines the label: ``spectral`` reads that, and ``probe`` weighs both.

The score is <r_i, v>, with v the top right singular vector of the residuals, turned so that the smaller of
two clusters is the positive class (``spectral``). For a cut of one number the sign of a gradient has a
meaning, and the score is -r_i: positives are pulled up. Of labels that are numbers the score is <r_i, v>, of
either sign, or -r_i. The attack is defined for these and for two classes. Neighbors are found within the batch,
whose rows were all computed by the same weights; a batch of one row scores 0.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.spectral import centered, directions, two_clusters
from vfljax.types import KINDS, Array, Known, Scores, View


def residuals(z: Array, g: Array, sent: Array, neighbors: int) -> Array:
    """The residuals [B, D] of one batch's embeddings z [B, D'] and gradients g [B, D].

    They are in units of the batch's root mean square gradient, so that a positive factor of g changes
    nothing; nor does one of z, or its origin. Rows that were not ``sent`` [B] bool are 0 and are neighbors of
    no row, and a row without neighbors is 0. With fewer than ``neighbors`` other rows, all are taken.
    """
    chex.assert_rank([z, g, sent], [2, 2, 1])
    chex.assert_equal_shape_prefix([z, g, sent], 1)
    chex.assert_type([z, g, sent], [float, float, bool])
    g = jnp.where(sent[:, None], g, 0.0)
    largest = jnp.max(jnp.abs(g))  # squares of very small or large numbers leave float32
    g = g / jnp.where(largest > 0, largest, 1.0)
    rms = jnp.sqrt(jnp.sum(g * g) / jnp.maximum(jnp.sum(sent) * g.shape[1], 1))
    g = g / jnp.where(rms > 0, rms, 1.0)
    # centered: the expanded square cancels where rows are nearer to each other than to 0
    z = centered(z, sent.astype(jnp.float32))
    squares = jnp.sum(z * z, axis=1)
    apart = squares[:, None] + squares[None, :] - 2 * core.multiply(z, z.T)
    itself = jnp.eye(len(z), dtype=bool)
    apart = jnp.where(itself | ~sent[None, :], jnp.inf, apart)
    near, neighbor = jax.lax.top_k(-apart, min(neighbors, len(z)))
    weights = jnp.isfinite(near).astype(jnp.float32)
    count = jnp.maximum(jnp.sum(weights, axis=1), 1.0)
    expected = jnp.sum(g[neighbor] * weights[:, :, None], axis=1) / count[:, None]
    alone = jnp.sum(weights, axis=1) == 0
    return jnp.where((sent & ~alone)[:, None], g - expected, 0.0)


def residual(bottoms: Bottoms, num_classes: int, *, neighbors: int = 16, epoch: int = -1) -> Attack:
    """Score each row by its residual among its k = ``neighbors`` nearest rows of the batch.

    ``epoch`` is a recorded one, -1 for the last. The scores [N, 2] are minus and plus the score of the
    module's docstring, [N, 1] of numbers; NaN for rows never sent.
    """
    del bottoms
    core.check_whole("neighbors", neighbors, 1)
    core.check_whole("epoch", epoch, -1)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known, knobs
        place = core.place_of(view, epoch)
        by_batch, sent = core.batches_at(view, place), view.sent[place]
        z, g = by_batch.gather(view.embeddings[place]), by_batch.gather(view.gradients[place])
        # a batch at a time: B x B distances of one batch are enough to hold
        parts = jax.lax.map(
            lambda part: residuals(*part, neighbors=neighbors), (z, g, by_batch.sent)
        )
        r = jnp.where(sent[:, None], by_batch.scatter(parts, len(sent)), 0.0)
        if r.shape[1] == 1:
            s = -r[:, 0]
        elif num_classes == 1:
            z = centered(r, sent.astype(jnp.float32))
            s = core.multiply(z, directions(z, 1))[:, 0]
        else:
            s = two_clusters(r, sent.astype(jnp.float32), absolute=False, minority=True)
        scores = s[:, None] if num_classes == 1 else jnp.stack([-s, s], axis=-1)
        return core.scored(scores, sent)

    reads = ("embeddings", "gradients", "order")
    return Attack(run, KINDS, binary=True, adaptive=True, epoch=epoch, reads=reads)


ROW = AttackRow(residual, widest=core.WIDEST, not_for_numbers="")
