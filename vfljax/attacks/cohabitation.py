"""Cohabitation: rows that share nodes of boosted trees have alike labels (ours, after ID2Graph and ICA).

In a federation of trees (``vfljax.federation.trees``) encryption hides gradients, but not which rows share a
node. Splits part rows by their labels, so that rows that often share a node have alike labels. With n_tl(i) the
node of row i at level l of tree t, and m_tl(i) the number of rows in it, rows i and j are joined by

    A_ij = sum_tl w_tl [n_tl(i) = n_tl(j)] / m_tl(i) / sum_tl w_tl,   w_tl = first^r(t) deep^l,

both sums over the nodes of row i that the attacker is told. r(t) is the tree's round of boosting. Early rounds
count more if ``first`` is below 1: later ones correct what is left. Late rounds count more if it is above 1,
which an attacker wants who is told of first trees that only a weak party's columns made. The trees of a round,
one a class where there are more than two, are grown from the same predictions and count alike. Deep nodes count
more if ``deep`` is above 1. A s averages s over the rows of each node.

    known   s <- A s~, from s = 0, where s~ is s with y_i - mean_known(y) in the place of each known row i
    none    s <- A s less its mean, at length 1, from a random s: towards the second eigenvector of A. Its two
            sides are clusters, and the smaller one is called positive, as the class prior says of rare
            positives; of labels that are numbers s itself is the score, of either sign

References: ID2Graph (Takahashi et al., arXiv 2307.10318) finds communities in the graph of rows that share
nodes, and ICA, the instance clustering attack (arXiv 2404.04490), clusters rows by their nodes.
The iteration, the weights and the known labels are ours.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from vfljax import keys, tasks
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.spectral import two_clusters
from vfljax.types import NO_SPLIT, Array, Known, Scores, View

WEIGHTS = {"first": 0.8, "deep": 2.0}


class Levels(NamedTuple):
    """Which rows share a node, at each of the K = T L levels of all trees."""

    place: Array  # [K, N] int32 a row's node, N where it is not told
    size: Array  # [K, N + 1] the rows of each node, 1 for a node without any


@core.once
def levels_of(nodes: Array) -> Levels:
    """The levels of nodes [T, N, L] int32 below N, negative where a node is not told."""
    chex.assert_rank(nodes, 3)
    rows = nodes.shape[1]
    flat = jnp.moveaxis(nodes, 2, 1).reshape(-1, rows)
    # rows that are not told share a node that counts for none
    place = jnp.where(flat >= 0, flat, rows)
    # a loop, because sizes of all levels at once would be added to one after the other too
    sizes = jax.lax.map(lambda of: jax.ops.segment_sum(jnp.ones(rows), of, rows + 1), place)
    return Levels(place, jnp.maximum(sizes, 1.0))


def means(s: Array, levels: Levels, weights: Array) -> Array:
    """A s [N, C] of numbers s [N, C]; 0 for rows of which no node is told.

    Args:
      s: [N, C].
      levels: the nodes of all rows.
      weights: w [T, L].
    """
    chex.assert_rank([s, levels.place, weights], 2)
    rows = len(s)

    def add(
        total: tuple[Array, Array], of: tuple[Array, Array, Array]
    ) -> tuple[tuple[Array, Array], None]:
        place, size, weight = of
        mean = (jax.ops.segment_sum(s, place, rows + 1) / size[:, None])[place]
        factor = (weight * (place < rows))[:, None]
        return (total[0] + factor * mean, total[1] + factor), None

    nothing = jnp.zeros_like(s), jnp.zeros((rows, 1))
    of_levels = levels.place, levels.size, weights.reshape(-1)
    (total, weight), _ = jax.lax.scan(add, nothing, of_levels)
    return total / jnp.where(weight > 0, weight, 1.0)


@core.once
def told_nodes(view: View) -> Array:
    """The nodes [T, N, L] that the attackers are told; -1 where they are not, or the row was never sent."""
    assert view.nodes is not None
    return jnp.where((view.sums.count > 0)[None, :, None], view.nodes, -1)


def weights_of(nodes: Array, parties: int, num_classes: int, first: Array, deep: Array) -> Array:
    """w [T, L]: ``first`` to the power of a tree's round, times ``deep`` to that of the level; if ``first`` is
    above 1, divided by its power of the last round, as float32 does not hold powers of hundreds of rounds.

    Args:
      nodes: [T, N, L]; a round has one tree a class if there are more than two classes, and else one.
      parties: how many collude, whose levels follow each other.
      num_classes: C.
      first: [] the base of rounds.
      deep: [] the base of levels.
    """
    trees, _, levels = nodes.shape
    rounds = jnp.arange(trees) // (1 if num_classes <= 2 else num_classes)
    level = jnp.arange(levels) % (levels // parties)
    late = first > 1
    base, exponent = jnp.where(late, 1 / first, first), jnp.where(late, rounds[-1] - rounds, rounds)
    return base ** exponent[:, None] * deep ** level[None]


def cohabitation(
    bottoms: Bottoms, num_classes: int, *, names: str = "known", rounds: int = 20
) -> Attack:
    """Spread known labels among rows that share nodes, or find the two clusters of such rows.

    Knobs: how many labels are ``known``, and the bases ``first`` and ``deep`` of the weights.

    Args:
      names: "known" for labels that spread from the known rows, "none" for an attacker without any label,
        for two classes or numbers.
      rounds: steps of the iteration.

    Returns:
      An attack whose scores [N, C] are of either sign; NaN for rows of which no node is told.
    """
    del bottoms
    fields = core.named_by(names, WEIGHTS)
    core.check_whole("rounds", rounds, 1)
    if names == "none" and num_classes > 2:
        raise ValueError(
            f"names='none' is for two classes or numbers, and there are {num_classes}."
        )

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        nodes = told_nodes(view)
        levels, told = levels_of(nodes), jnp.any(nodes >= 0, axis=(0, 2))
        parties, rows = len(view.features), nodes.shape[1]
        weights = weights_of(nodes, parties, num_classes, knobs["first"], knobs["deep"])
        if names == "none":

            def turn(s: Array, _: None) -> tuple[Array, None]:
                s = means(s, levels, weights)
                s = (s - jnp.mean(s, where=told[:, None])) * told[:, None]
                length = jnp.linalg.norm(s)
                return s / jnp.where(length > 0, length, 1.0), None

            start = jax.random.normal(keys.fold(key, "start"), (rows, 1))
            s, _ = jax.lax.scan(turn, start, None, length=rounds)
            if num_classes == 1:
                return core.scored(s, told)
            s = two_clusters(s, told.astype(jnp.float32), absolute=False, minority=True)
            return core.scored(jnp.stack([-s, s], axis=-1), told)
        labels = core.labels_by_row(known, rows)
        real = (core.known_by_row(known, rows) & told)[:, None]
        y = tasks.of(num_classes).targets(labels, num_classes) * real
        y = (y - jnp.sum(y, axis=0, keepdims=True) / jnp.maximum(jnp.sum(real), 1)) * real

        def spread(s: Array, _: None) -> tuple[Array, None]:
            return means(jnp.where(real, y, s), levels, weights), None

        s, _ = jax.lax.scan(spread, jnp.zeros_like(y), None, length=rounds)
        return core.scored(s, told)

    return Attack(
        run,
        (NO_SPLIT,),
        **fields,
        ranges={"first": (0.0, 2.0)},
        adaptive=True,
        reads=("nodes",),
        epoch=None,
    )


ROW = AttackRow(cohabitation, cost=core.SOLVE, rule=2, not_for_numbers="")
