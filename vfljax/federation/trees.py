"""Gradient-boosted trees over several parties, and what a passive party learns while they grow.

The trees are XGBoost's, trained on the joined columns: secure protocols compute the same histograms, and
encryption changes no number. The label party sends first- and second-order gradients of all rows, encrypted or
not, and a passive party sums them by bins of its columns for every node that might be split. Which rows are in
which node a passive party is told in one of two ways:

own  as in SecureBoost (Cheng et al. 2021, IEEE Intelligent Systems 36(6), arXiv 1901.08755, algorithms 1
     and 2). A party is told the rows of each node whose histogram it computes: these are the nodes above the
     largest depth, whoever owns the splits that lead there. The party whose column makes a split divides the
     node's rows. It therefore also knows both children at the largest depth, for which no histogram is
     computed. Nothing is told of trees that the label party trains alone.
all  as in XGBoost's own federated mode and in NVFlare, which runs it. Every worker applies every split: the
     worker that owns the column decides for each row, the decisions are combined by OR over all workers, and
     everyone divides the rows by them (XGBoost's tutorial "Federated Learning with XGBoost", section "Threat
     Model and Solutions"). A party is told the nodes of all trees and levels, also those of trees whose
     splits are all the label party's. Encryption hides gradients and histograms, not this.

Of a split that is not its own, a party is further told this, which no attack reads here: under ``all`` the
feature's number, and not the threshold, which is NaN (the same tutorial); with XGBoost on a GPU the threshold
too (NVFlare's guide to secure XGBoost, "Security Implementation Matrix"; NVFlare issue 3687). In FATE all
parties get the trees' structure with the owner of each node, and a split's feature and threshold stay with him
(FATE issue 4164).

Who is told the weights of leaves: in FATE the label party alone (issue 4164; before 1.4.3 it sent weights and
sums of gradients to the others, issue 1660). Of XGBoost and NVFlare it is not known: their guides name
thresholds as all that is hidden of a tree. No attack here reads weights.

A row that rests in a leaf above the largest depth keeps that node at all further levels. A node has XGBoost's
number. The root, which holds all rows, is left out.

Labels that are numbers are learned by the squared error, from the score 0 for all rows. The gradients of a row
of score f are f - y and 1, half of those of the squared error, so that a split gains

    G_l^2 / (n_l + 1) + G_r^2 / (n_r + 1) - (G_l + G_r)^2 / (n_l + n_r + 1)

with the sums G and the counts n of the rows on its two sides.

Symbols: T trees, of which C a round if there are C > 2 classes and else one; L levels, the depth; N rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.defenses import rr_on_bins
from vfljax.errors import imported
from vfljax.types import HostArray

__all__ = [
    "ALL",
    "OWN",
    "TOLD",
    "UNTOLD",
    "Boosting",
    "Trees",
    "gradients",
    "nodes",
    "noisy_numbers",
    "paths",
    "predictions",
    "probabilities",
    "randomized",
    "train",
]

UNTOLD = -1  # in place of a node that a party is not told
OWN, ALL = TOLD = ("own", "all")
"""Which nodes passive parties are told: those of their own part in the protocol, or all."""


class Boosting(NamedTuple):
    """How trees are boosted, the defenses, and which nodes passive parties are told; the defaults have no
    defense."""

    rounds: int = 20
    depth: int = 3  # a smaller one shows fewer levels
    learning_rate: float = 0.3
    # the first rounds, which the label party trains alone, as RL-SecureBoost's first one
    alone: int = 0
    # least share of all rows in a node, each weighed by 4 p (1 - p): rows of a pure node weigh little. With
    # numbers all rows weigh alike
    cover: float = 0.0
    # of randomized response on the labels before training, on bins if they are numbers
    epsilon: float = np.inf
    told: str = OWN  # one of TOLD


class Trees(NamedTuple):
    """Boosted trees, and the columns that they were grown on."""

    booster: Any  # xgboost.Booster
    owners: HostArray  # [F] int32 the party of each column
    classes: int  # C, or 1 for numbers
    boosting: Boosting
    labels: (
        HostArray  # [N] as the trees saw them, after randomized response; numbers are standardized
    )
    # (mean, standard deviation) of randomized numbers, by which they are standardized; (0, 1) of classes
    unit: tuple[float, float] = (0.0, 1.0)

    @property
    def a_round(self) -> int:
        """The number of trees of a round: one a class if there are more than two."""
        return 1 if self.classes <= 2 else self.classes


def train(
    columns: HostArray,
    labels: HostArray,
    classes: int,
    owners: Sequence[int] | HostArray,
    holder: int,
    boosting: Boosting,
    seed: int,
    label_range: Sequence[float] = (),
) -> Trees:
    """Trains a federation of boosted trees.

    Args:
      columns: [N, F] of all parties, NaN where a value is missing.
      labels: [N] 0..C-1, or numbers.
      classes: C, or 1 for numbers.
      owners: [F] the party of each column.
      holder: the party that has the labels.
      boosting: how.
      seed: of randomized response; nothing else is drawn.
      label_range: (low, high) of numbers, which a finite epsilon needs.

    Raises:
      UserError: if XGBoost is not installed.
    """
    xgboost = _xgboost()
    owned = np.asarray(owners, np.int32)
    random, unit = np.random.default_rng(seed), (0.0, 1.0)
    if classes == 1:
        noisy, unit = noisy_numbers(labels, boosting.epsilon, label_range, random)
    else:
        noisy = randomized(labels, classes, boosting.epsilon, random)
    objective = {1: "reg:squarederror", 2: "binary:logistic"}.get(classes, "multi:softprob")
    options = {
        "objective": objective,
        # so that all rows have the score 0 before the first round
        "base_score": 0.0 if classes == 1 else 0.5,
        "max_depth": boosting.depth,
        "learning_rate": boosting.learning_rate,
        "min_child_weight": max(1.0, boosting.cover * len(labels) / (1 if classes == 1 else 4)),
        "tree_method": "hist",
        "nthread": 1,
        **({} if classes <= 2 else {"num_class": classes}),
    }
    # on a busy machine threads of OpenMP that wait for each other take several times as long as one (measured)
    alone = min(boosting.alone, boosting.rounds)
    booster = None
    if alone:
        mine = np.where(owned[None] == holder, columns, np.nan)
        booster = xgboost.train(options, xgboost.DMatrix(mine, noisy, nthread=1), alone)
    if boosting.rounds > alone:
        every = xgboost.DMatrix(columns, noisy, nthread=1)
        booster = xgboost.train(options, every, boosting.rounds - alone, xgb_model=booster)
    return Trees(booster, owned, classes, boosting, noisy, unit)


def randomized(
    labels: HostArray, classes: int, epsilon: float, random: np.random.Generator
) -> HostArray:
    """Returns labels after randomized response: each is kept with probability e^eps / (e^eps + C - 1), and is
    one of the others else (Ghazi et al. 2021, section 2)."""
    kept = random.uniform(size=len(labels)) < 1 / (1 + (classes - 1) * np.exp(-epsilon))
    others = (labels + random.integers(1, classes, size=len(labels))) % classes
    return np.where(kept, labels, others).astype(np.int32)


def noisy_numbers(
    labels: HostArray, epsilon: float, label_range: Sequence[float], random: np.random.Generator
) -> tuple[HostArray, tuple[float, float]]:
    """Returns labels [N] after randomized response on bins (``vfljax.defenses.rr_on_bins``) with a uniform
    prior, standardized, and the mean and the standard deviation by which they are: functions of randomized
    labels alone (``vfljax.defenses.label_dp``).

    Args:
      labels: [N] numbers.
      epsilon: at least 0; labels stay as they are if it is infinite.
      label_range: (low, high), to which labels are clipped.
      random: of the draws.
    """
    y = np.asarray(labels, np.float64)
    if np.isfinite(epsilon):
        low, high = label_range
        u = (np.clip(y, low, high) - low) / (high - low)
        bins = rr_on_bins.optimal_bins(rr_on_bins.prior_of(""), epsilon)
        own = np.asarray(bins.bin_of)[np.asarray(rr_on_bins.cell_of(u))]
        count = int(bins.count)
        place = randomized(own, count, epsilon, random) if count > 1 else own
        y = low + (high - low) * np.asarray(bins.values, np.float64)[place]
    mean, spread = float(y.mean()), float(y.std()) or 1.0
    return ((y - mean) / spread).astype(np.float32), (mean, spread)


def predictions(trees: Trees, columns: HostArray) -> HostArray:
    """Returns the predicted numbers [N], in the unit of the labels."""
    mean, spread = trees.unit
    return mean + spread * probabilities(trees, columns)[:, 0]


def probabilities(trees: Trees, columns: HostArray, rounds: int | None = None) -> HostArray:
    """Returns the probability of each class [N, C] after some rounds, all by default; of numbers the score
    [N, 1], standardized."""
    xgboost = _xgboost()
    if rounds == 0:
        return np.full((len(columns), trees.classes), 1 / trees.classes * (trees.classes > 1))
    p = trees.booster.predict(xgboost.DMatrix(columns, nthread=1), iteration_range=(0, rounds or 0))
    if trees.classes == 1:
        return p[:, None]
    return np.stack([1 - p, p], axis=1) if p.ndim == 1 else p


def nodes(trees: Trees, columns: HostArray, party: int) -> HostArray:
    """Returns the node of each row at each level as a party is told it, [T, L, N] int32; ``UNTOLD`` where it is
    not.

    Args:
      trees: the federation.
      columns: [N, F] of rows of which the nodes are wanted.
      party: a passive party.
    """
    leaves = trees.booster.predict(_xgboost().DMatrix(columns, nthread=1), pred_leaf=True)
    leaves = leaves.reshape(len(columns), -1).astype(np.int32)
    grown = trees.booster.trees_to_dataframe()
    boosting = trees.boosting
    out = np.full((leaves.shape[1], boosting.depth, len(columns)), UNTOLD, np.int32)
    own = boosting.told == OWN
    first = boosting.alone * trees.a_round if own else 0
    for tree in range(first, len(out)):
        parents, makers = _parents(grown[grown["Tree"] == tree], trees.owners)
        # who is told all nodes might as well have made all splits
        makers = makers if own else [party] * len(makers)
        out[tree] = paths(parents, makers, boosting.depth, party)[leaves[:, tree]].T
    return out


def paths(parents: Sequence[int], makers: Sequence[int], levels: int, party: int) -> HostArray:
    """Returns the nodes [nodes, L] that lead to each node of a tree, as a party is told them.

    Args:
      parents: of each node, -1 of the root, which is node 0.
      makers: the party that made each node, by a split on a column of its own; -1 of the root.
      levels: L.
      party: a passive party.
    """
    out = np.full((len(parents), levels), UNTOLD, np.int32)
    for node in range(1, len(parents)):
        path = [node]
        while parents[path[0]] > 0:
            path.insert(0, parents[path[0]])
        at_bottom = len(path) == levels
        path += path[-1:] * (levels - len(path))
        out[node] = path
        if at_bottom and makers[node] != party:
            out[node, -1] = UNTOLD
    out[0] = 0  # a tree that was never split
    return out


def _parents(tree: Any, owners: HostArray) -> tuple[list[int], list[int]]:
    """Returns each node's parent and maker, as ``paths`` reads them, from XGBoost's frame of one tree."""
    count = int(tree["Node"].max()) + 1
    parents, makers = [-1] * count, [-1] * count
    for row in tree[tree["Feature"] != "Leaf"].itertuples():
        for child in (row.Yes, row.No):
            number = int(child.split("-")[1])
            parents[number] = int(row.Node)
            makers[number] = int(owners[int(row.Feature.removeprefix("f"))])
    return parents, makers


def gradients(trees: Trees, columns: HostArray, labels: HostArray) -> HostArray:
    """Returns first- and second-order gradients of each tree [T, N, 2] as an unencrypted system sends them:
    p - y and p (1 - p) of the probability p before the tree's round, or f - y and 1 of numbers, f being the
    score; 0 while the label party trains alone.

    Args:
      trees: the federation.
      columns: [N, F] of some rows.
      labels: [N] of them, as the trees saw them.
    """
    boosting = trees.boosting
    out = []
    for done in range(boosting.rounds):
        p = probabilities(trees, columns, done)
        if trees.classes == 1:
            g, h = p - labels[:, None], np.ones_like(p)
        else:
            g, h = p - np.eye(p.shape[1])[labels], p * (1 - p)
        both = np.stack([g, h], axis=-1) * (done >= boosting.alone)
        out += [*np.moveaxis(both, 1, 0)[-trees.a_round :]]
    return np.asarray(out, np.float32)


def _xgboost() -> Any:
    return imported("xgboost", extra="trees", needed_by="a federation of trees")
