"""Embedding swapping: gradients received for another row's embedding show which rows share its class (VILLAIN).

Under the upload ``swap`` a row sends its own embedding in some epochs, and in others that of a fixed row, the
anchor. VILLAIN gives row i the anchor's class if r_i = l_i / b_i <= theta and b_i <= mu. Here l_i is the
length of what came back for the anchor in the ``epoch`` that is read, and b_i the mean for its own embedding
in the other recorded epochs, in units of the epochs' mean lengths. The grade of a row swapped in that epoch is

    t_i = theta / (theta + r_i) mu / (mu + b_i), less its mean over these rows;
          for signal="direction", a ridge regression of this on g_i / ||g_i||

A ridge regression on ranks of the attacker's columns extends t to all rows, as a classifier does in VILLAIN.
The anchor is of the class a whose known rows have the largest sum of it. With T_i = e_label - 1/C for known
rows and t_i (C e_a - 1) / (C - 1) for others, H is the regression of T on the ranks, in which a swapped row
weighs ``weight`` and a known one 1. Scores are H, and for swapped rows (H + weight T) / (1 + weight).

With weight = 0, or no row swapped, H is the regression of the known labels alone. One anchor separates its
class from the others, and not these from each other. A swapped row is one that sent the same bits as a row of
other columns. That rule misses the anchor, and rows swapped alone in a batch, in all epochs or by one of many
colluders.

Reference: VILLAIN (Bai et al., USENIX Security 2023), after a re-implementation, where the label of the anchor
is known. Grades, directions and known rows are ours.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.attacks import core, ranks
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.similarity import COSINE
from vfljax.types import MALICIOUS, Array, Known, Scores, View


def numbered(x: Array) -> Array:
    """A number [N] uint32 of each row of ``x`` [N, W]: rows of equal bits have the same one."""
    bits = jax.lax.bitcast_convert_type(x, jnp.uint32)
    factors = jax.random.bits(jax.random.key(0), (1, x.shape[1])) | 1
    mixed = (bits ^ (bits >> 16)) * factors  # whole numbers differ in leading bits alone
    return jnp.sum(mixed ^ (mixed >> 13), axis=1, dtype=jnp.uint32)


def swapped(z: Array, columns: Array) -> Array:
    """Whether a row [N] sent the same embedding ``z`` [N, D] as a row of other ``columns`` [N, W]."""
    group = jnp.unique(numbered(z), return_inverse=True, size=len(z))[1]
    number = numbered(columns)
    least = jax.ops.segment_min(number, group, num_segments=len(z))
    return (least < jax.ops.segment_max(number, group, num_segments=len(z)))[group]


def regressed(x: Array, targets: Array, weights: Array) -> Array:
    """The ridge regression [N, C] of ``targets`` on x [N, W], with ``weights`` [N] of rows."""
    weighed = x * weights[:, None]
    gram = core.multiply(weighed.T, x) + jnp.eye(x.shape[1])
    return core.multiply(x, ranks.solve(gram, core.multiply(weighed.T, targets)))


def swapping(
    bottoms: Bottoms, num_classes: int, *, signal: str = "direction", epoch: int = -1
) -> Attack:
    """Read from responses to a swapped embedding which rows are of its class, and score all rows.

    Knobs: how many labels are ``known``, ``theta``, ``mu`` and ``weight``. ``signal`` is "norm" or "direction",
    and ``epoch`` a recorded one. The scores [N, C] are NaN for rows not sent in it.
    """
    errors.check_choice("signal", signal, ("direction", "norm"))
    core.check_whole("epoch", epoch, -1)
    core.check_numeric(bottoms, "leave this attack out of config.attacks")

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key
        (g, sent), place = core.received(view, epoch), core.place_of(view, epoch)
        columns = core.columns_of(view.features)
        replaced = jax.vmap(swapped, (0, None))(view.embeddings, columns) & view.sent
        honest = view.sent & ~replaced
        usable = replaced[place] & jnp.any(honest, axis=0)
        lengths = jnp.linalg.norm(view.gradients, axis=-1) + 1e-12
        lengths = lengths / jnp.mean(lengths, axis=1, keepdims=True, where=view.sent)
        b = jnp.mean(lengths, axis=0, where=honest)
        t = knobs["theta"] / (knobs["theta"] + lengths[place] / b) * knobs["mu"] / (knobs["mu"] + b)
        t = jnp.where(usable, t - jnp.mean(t, where=usable), 0.0)[:, None]
        if signal == "direction":
            t = regressed(COSINE.prepare(g), t, usable)
        x, labels = ranks.features(view, "columns"), core.labels_by_row(known, len(columns))
        classes = jax.nn.one_hot(labels, num_classes)  # -1 is no class: a row of zeros
        sums = core.multiply(classes.T, regressed(x, t, usable))
        anchor = jax.nn.one_hot(jnp.argmax(sums), num_classes)[None]
        of_anchor = t * (num_classes * anchor - 1) / (num_classes - 1)
        targets = jnp.where(labels[:, None] >= 0, classes - 1 / num_classes, of_anchor)
        share = knobs["weight"] * usable[:, None]
        scores = regressed(x, targets, jnp.where(labels >= 0, 1.0, share[:, 0]))
        return core.scored((scores + share * targets) / (1 + share), sent)

    knobs = {**core.KNOWN, "theta": 1.5, "mu": 1.0, "weight": 0.3}
    return Attack(
        run,
        (MALICIOUS,),
        knobs,
        baselines=("logistic",),
        reads=("columns", "embeddings", "gradients"),
        **core.reads_epoch(epoch, adaptive=signal == "direction"),
    )


ROW = AttackRow(swapping, cost=core.SOLVE)
