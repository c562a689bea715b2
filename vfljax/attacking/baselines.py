"""What an attacker had without taking part: the baselines beside every passive figure."""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_matrix, hstack

from vfljax.attacking.view import CommonData
from vfljax.attacks.learners import LEARNERS, OwnColumns
from vfljax.federation.protocol import make_embed
from vfljax.federation.training import Table, rows_of
from vfljax.models.rows import over_chunks
from vfljax.types import Array, HostArray, Input, Scores, Spec, Weights


def own_columns(
    common: CommonData, inputs: tuple[Input, ...], num_classes: int, seed: int, count: int
) -> OwnColumns:
    """Returns the attackers' columns of all training rows, and after these of all test rows.

    Args:
      common: NumPy arrays of the attackers.
      inputs: the description of each attacker's columns.
      num_classes: C.
      seed: whose rows and scaling are used.
      count: number of known labels.
    """
    train, test = (np.asarray(rows[seed]) for rows in (common.train, common.test))
    raw = np.concatenate([train, test])
    parts = [np.asarray(part) for part in common.columns(seed, raw)]
    if any(any(reads.vocabulary) for reads in inputs):
        numbers = hstack([numbers_of(*pair) for pair in zip(parts, inputs, strict=True)], "csr")
    else:
        numbers = np.concatenate([part.reshape(len(raw), -1) for part in parts], axis=1)
    known = np.asarray(common.known_order[seed][:count])
    labels = np.asarray(common.labels)[train[known]]
    return OwnColumns(numbers, known, labels, num_classes, seed)


def local_only_scores(own: OwnColumns, learner: str, train: int) -> Scores:
    """Returns a learner's scores of the first ``train`` rows, which train the federation, and of the others."""
    scores: Any = LEARNERS[learner](own)
    return Scores(scores[:train], scores[train:])


def numbers_of(x: np.ndarray, reads: Input) -> Any:
    """Returns a party's columns as numbers that a linear model can read, [n, W] sparse.

    Numbers stay as they are, codes become one-hot, and texts become bags of tokens (0 or 1).

    Args:
      x: [n, ...].
      reads: the description of the columns.
    """
    x = x.reshape(len(x), -1)
    if not any(reads.vocabulary):
        return csr_matrix(x)
    sizes = np.asarray(reads.vocabulary)
    if reads.kind == "text":  # one vocabulary for all places
        starts, coded = np.zeros(x.shape[1], int), np.ones(x.shape[1], bool)
    else:
        coded = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[coded]
    places = x[:, coded].astype(np.int64) + starts
    rows = np.repeat(np.arange(len(x)), places.shape[1])
    ones = np.ones(places.size, np.float32)
    codes = csr_matrix((ones, (rows, places.ravel())), shape=(len(x), int(sizes.sum())))
    codes.data[:] = 1.0  # a token that stands twice was summed
    return hstack([codes, x[:, ~coded]], "csr") if (~coded).any() else codes


def width_of(reads: Input) -> int:
    """Returns how many columns ``numbers_of`` gives."""
    if not any(reads.vocabulary):
        return math.prod(reads.shape)
    numbers = 0 if reads.kind == "text" else sum(size == 0 for size in reads.vocabulary)
    return sum(reads.vocabulary) + numbers


def untrained_cut(
    weights: Weights, table: Table, spec: Spec, attackers: tuple[int, ...]
) -> HostArray:
    """Returns the attackers' embeddings [Q, N, D] of all training rows from untrained bottoms.

    Args:
      weights: [Q, ...] each seed's initial ones.
      table: the data.
      spec: of the models.
      attackers: whose embeddings are concatenated.
    """
    embed = make_embed(spec)

    def one(weights: Weights, seed: Array, table: Table) -> Array:
        def of(rows: Array) -> Array:
            cut = embed(weights, rows_of(table, seed, rows))
            return jnp.concatenate([cut[p] for p in attackers], axis=-1)

        return over_chunks(of, table.train[seed], spec.chunk)

    by_seed = jax.jit(jax.vmap(one, in_axes=(0, 0, None)))  # the table as an argument, no constant
    return np.asarray(by_seed(weights, jnp.arange(len(table.train)), table._replace(scores=None)))
