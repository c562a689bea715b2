"""The similarity attack: rows of one class have similar embeddings and gradients (Liu et al. 2024).

    nearest   y_i = y_k of the known row k whose signal is most like row i's
    clusters  k-means with C clusters of all rows' signals; a cluster is named by the known rows in it

The signal is a row's gradient, compared by cosines, or its embedding, compared by Euclidean distances.

Reference: Liu et al. "Similarity-based Label Inference Attack against Training and Inference of Split
Learning", IEEE TIFS 2024, arXiv 2203.05222, for any number of classes and one known row of each. The rules
are those of SecretFlow's port; of the paper only the abstract was read.

The clusters' centers start at the means of the classes' known rows. For cosines, rows and centers have unit
length (spherical k-means). Clusters are named one to one, such that as many known rows as possible are in
the cluster of their class.

A class without a known row cannot be named. A class whose rows stand around two points is split by
``clusters``, but not by ``nearest``.

Deviations:

* Scores are likenesses, so that rows can be ranked (published: the class).
* ``epoch="mean"`` reads gradients averaged over epochs (published: of one epoch).
* The port names gradient clusters by their rows' true majority, which no attacker has, and scores the known
  rows too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import errors
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.types import KINDS, Array, Known, Scores, View

ROUNDS = 30  # of k-means


class Metric(NamedTuple):
    """How signals are compared."""

    prepare: Callable[[Array], Array]  # rows or centers [n, D]
    likeness: Callable[[Array, Array], Array]  # (x [n, D], one center [D]) -> [n]


def unit(x: Array) -> Array:
    """Rows x [n, D] at length 1, in whatever units; rows of zeros stay."""
    chex.assert_rank(x, 2)
    chex.assert_type(x, float)
    largest = jnp.max(jnp.abs(x), axis=-1, keepdims=True)
    return core.unit(x / jnp.where(largest > 0, largest, 1.0))


COSINE = Metric(unit, core.multiply)
EUCLID = Metric(lambda x: x, lambda x, center: -jnp.linalg.norm(x - center[None, :], axis=-1))


def nearest(metric: Metric, x: Array, known: Known, sent: Array, num_classes: int) -> Array:
    """Scores [N, C]: a row's likeness to the most alike known row of each class.

    ``x`` [N, D] is prepared, and only known rows ``sent`` [N] bool count. A class without one scores
    less than all others.
    """

    def compare(place: Array, best: Array) -> Array:
        row, label = known.rows[place], known.labels[place]
        likeness = jnp.where(sent[row], metric.likeness(x, x[row]), -jnp.inf)
        return best.at[:, label].max(likeness)

    best = jax.lax.fori_loop(0, known.count, compare, jnp.full((len(x), num_classes), -jnp.inf))
    least = jnp.min(jnp.where(jnp.isfinite(best), best, jnp.inf), axis=1, keepdims=True)
    return jnp.where(jnp.isfinite(best), best, jnp.where(jnp.isfinite(least), least - 1, 0.0))


def clusters(metric: Metric, x: Array, known: Known, sent: Array, num_classes: int) -> Array:
    """Scores [N, C]: a row's likeness to the center of the cluster that bears each class's name.

    ``x`` [N, D] is prepared. Rows not ``sent`` [N] bool move no center and name none.
    """
    labels = core.labels_by_row(known, len(x))
    of_class = jax.nn.one_hot(labels, num_classes) * sent[:, None]  # -1 is no class: a row of zeros

    def means(members: Array, otherwise: Array) -> Array:
        size = jnp.sum(members, axis=0)[:, None]
        centers = core.multiply(members.T, x) / jnp.maximum(size, 1.0)
        return jnp.where(size > 0, metric.prepare(centers), otherwise)

    def likenesses(centers: Array) -> Array:
        return jax.lax.map(lambda center: metric.likeness(x, center), centers).T

    def members_of(centers: Array) -> Array:
        return jax.nn.one_hot(jnp.argmax(likenesses(centers), axis=1), num_classes)

    def lloyd(_: Array, centers: Array) -> Array:
        return means(members_of(centers) * sent[:, None], centers)

    # a class of which no known row was sent starts at the mean of all
    mean = jnp.sum(x * sent[:, None], axis=0, keepdims=True) / jnp.maximum(jnp.sum(sent), 1)
    middle = jnp.broadcast_to(metric.prepare(mean), (num_classes, x.shape[1]))
    centers = jax.lax.fori_loop(0, ROUNDS, lloyd, means(of_class, middle))
    shared = core.multiply(of_class.T, members_of(centers))  # [class, cluster] known rows in both
    classes, named = optax.assignment.hungarian_algorithm(-shared)
    cluster_of = jnp.zeros(num_classes, jnp.int32).at[classes].set(named.astype(jnp.int32))
    return likenesses(centers)[:, cluster_of]


RULES = {"nearest": nearest, "clusters": clusters}


def similarity(
    bottoms: Bottoms,
    num_classes: int,
    *,
    signal: str = "gradients",
    rule: str = "nearest",
    epoch: int | str = -1,
) -> Attack:
    """Give each row the class of the known rows whose signal is most like its own.

    Args:
      signal: what is compared, "gradients" by cosine or "embeddings" by distance.
      rule: "nearest" for the most alike known row, "clusters" for k-means.
      epoch: which signals are read; "mean" and "votes" for gradients only, see ``core.received``.

    Returns:
      An attack whose scores [N, C] are NaN for rows never sent: cosines, or minus distances in the
      embeddings' units.
    """
    del bottoms
    core.check_epoch(epoch)
    errors.check_choice("signal", signal, ("gradients", "embeddings"))
    errors.check_choice("rule", rule, RULES)
    if isinstance(epoch, str) and signal == "embeddings":
        raise ValueError(
            f"epoch={epoch!r} has no embeddings: choose a number, or signal='gradients'."
        )
    metric = COSINE if signal == "gradients" else EUCLID

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, knobs
        x, sent = core.received(view, epoch)
        if signal == "embeddings":
            x = view.embeddings[core.place_of(view, epoch)]
        x = metric.prepare(jnp.where(sent[:, None], x, 0.0))
        return core.scored(RULES[rule](metric, x, known, sent, num_classes), sent)

    return Attack(
        run,
        KINDS,
        core.KNOWN,
        baselines=("untrained", "logistic") if signal == "embeddings" else ("logistic",),
        reads=(signal,),
        **core.reads_epoch(epoch),
    )


ROW = AttackRow(similarity)
