"""Spreading over nodes (ours): labels propagate on a graph of rows whose paths through boosted trees are alike.

    x_i = [ paths_i / |paths_i|, columns_i ],   s = (1 - alpha) (I - alpha S)^-1 Y

S is the symmetric graph of the nearest neighbors by x, and the propagation is that of
``vfljax.attacks.neighbors``. A row's path holds sqrt(w_tl) for the node n_tl(i) of each tree t and level l that
the attacker is told, and 0 for all other nodes, with the weights of ``vfljax.attacks.cohabitation``,

    w_tl = first^r(t) deep^l,   r(t) the tree's round of boosting,

so that the squared distance of two paths is 2 less twice the share of their nodes, weighed by w, that they have
in common. Paths have length 1, because a row is not further from others if more of its nodes are told. The
attacker's own columns are joined on their own scale: each of the two blocks is centered and divided by one
number, which makes its total variance 1.

``cohabitation`` joins all rows of a node, whatever their other nodes and columns are; here a row is joined to
the few that are like it in all of them. Under randomized labels nothing else is to be known to read nodes:
which of two nodes has the larger share of a class is the same for labels and randomized labels.

Of labels that are numbers Y holds, at known rows, the label less the mean of the known ones and, in a second
column, 1. The score is the mean plus s_i1 / (s_i2 + the mean of s_2): a mean of the known labels that are near,
which tends to that of all where few are.

``first`` = .9 was chosen among .8, .9 and 1, and roots of w rather than w, on one seed of scikit-learn's
digits.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax import errors, keys
from vfljax.attacks import core, neighbors
from vfljax.attacks.cohabitation import told_nodes, weights_of
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.types import NO_SPLIT, Array, Known, Scores, View

NODE_WEIGHTS = {"first": 0.9, "deep": 2.0}
ALPHA = 0.97
BLOCKS = {"all": True, "exchange": False}
"""Whether the attacker's own columns are read beside the nodes."""
GRAPH_READS = ("nodes", "embeddings")
"""What the graph reads: of embeddings the width alone, which only attacks that read embeddings are given."""


def paths(nodes: Array, weights: Array, width: int) -> Array:
    """The paths [N, W] of rows through ``nodes`` [T, N, L], of length 1: roots of ``weights`` [T, L] at the
    row's nodes.

    Args:
      nodes: numbered 0, 1, ... in each level of each tree, negative where a node is not told.
      weights: w.
      width: W, at least the number of nodes of all trees and levels.
    """
    rows = nodes.shape[1]
    by_level = jnp.moveaxis(nodes, 2, 1).reshape(-1, rows)  # [T L, N]
    counts = jnp.max(by_level, axis=1) + 1
    places = (jnp.cumsum(counts) - counts)[:, None] + by_level
    places = jnp.where(by_level >= 0, places, width)  # which is dropped
    values = jnp.broadcast_to(jnp.sqrt(weights).reshape(-1, 1), places.shape)
    numbers = jnp.broadcast_to(jnp.arange(rows)[None], places.shape)
    return core.unit(jnp.zeros((rows, width)).at[numbers, places].set(values, mode="drop"))


def graph_of(
    key: Array, view: View, num_classes: int, knobs: Knobs, columns: bool
) -> neighbors.Graph:
    """The graph of the rows of which a node is told, by their paths and perhaps the attackers' ``columns``."""
    nodes = told_nodes(view)
    told = jnp.any(nodes >= 0, axis=(0, 2))
    weights = weights_of(nodes, len(view.features), num_classes, knobs["first"], knobs["deep"])
    # the embeddings of a federation of trees are paths too, of one column a node
    parts = [neighbors.block(paths(nodes, weights, view.embeddings.shape[2]), told)]
    if columns:
        parts.append(neighbors.block(core.columns_of(view.features), told))
    x = jnp.concatenate(parts, axis=1)
    return neighbors.graph(x, told, among=neighbors.drawn(keys.fold(key, "among"), len(x)))


def node_spreading(bottoms: Bottoms, num_classes: int, *, blocks: str = "all") -> Attack:
    """Propagate the known rows' labels on a graph of all rows, and score these.

    Knobs: how many labels are ``known``, ``alpha``, and the bases ``first`` and ``deep`` of the weights.

    Args:
      blocks: "all", or "exchange" for nodes without the attacker's own columns.

    Returns:
      An attack whose scores [N, C] are of either sign; NaN for rows of which no node is told.

    Raises:
      ValueError: where columns to be read are codes or token ids.
    """
    errors.check_choice("blocks", blocks, BLOCKS)
    if BLOCKS[blocks]:
        core.check_numeric(bottoms, "choose blocks='exchange'")

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        graph = graph_of(key, view, num_classes, knobs, BLOCKS[blocks])
        told = jnp.any(told_nodes(view) >= 0, axis=(0, 2))
        labels = core.labels_by_row(known, len(told))
        if num_classes == 1:
            real = (core.known_by_row(known, len(told)) & told)[:, None]
            mean = jnp.sum(real * labels[:, None]) / jnp.maximum(jnp.sum(real), 1)
            y = jnp.concatenate([real * (labels[:, None] - mean), real], axis=1)
            s = neighbors.propagate(graph, y, knobs["alpha"])
            usual = jnp.sum(s[:, 1] * told) / jnp.maximum(jnp.sum(told), 1)
            mass = jnp.maximum(s[:, 1], 0) + jnp.maximum(usual, 1e-12)
            return core.scored((mean + s[:, 0] / mass)[:, None], told)
        classes = jax.nn.one_hot(labels, num_classes) * told[:, None]
        return core.scored(neighbors.scores(graph, classes, knobs["alpha"]), told)

    return Attack(
        run,
        (NO_SPLIT,),
        {**core.KNOWN, **NODE_WEIGHTS, "alpha": ALPHA},
        ranges={"first": (0.0, 2.0), "alpha": (0.0, 0.99)},
        baselines=("logistic",),
        adaptive=True,
        reads=(*GRAPH_READS, "columns") if BLOCKS[blocks] else GRAPH_READS,
        epoch=None,
    )


ROW = AttackRow(node_spreading, cost=core.SOLVE, rule=3, full_effort=True, not_for_numbers="")
