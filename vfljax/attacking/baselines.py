"""What an attacker had without taking part: the baselines beside every passive figure."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from vfljax.attacking.view import CommonData
from vfljax.federation.protocol import make_embed
from vfljax.federation.training import Table, rows_of
from vfljax.models.rows import over_chunks
from vfljax.types import Array, HostArray, Input, Scores, Spec, Weights


class _Fitted(NamedTuple):
    """Logistic regression fitted to known rows, and the columns it reads."""

    model: LogisticRegression
    columns: Callable[[Any], Any]  # of raw rows
    known: HostArray  # [K] places among the training rows

    def scores(self, rows: HostArray, num_classes: int) -> HostArray:
        """Log odds [n, C] up to a constant a row, which rank rows where probabilities tie at 1."""
        odds = self.model.decision_function(self.columns(rows))
        odds = np.stack([-odds, odds], axis=1) if odds.ndim == 1 else odds
        out = np.tile(odds.min(axis=1, keepdims=True) - 1, num_classes)
        out[:, self.model.classes_] = odds
        return out.astype(np.float32)


def _fit(common: CommonData, inputs: tuple[Input, ...], seed: int, count: int) -> _Fitted:
    """Logistic regression (scikit-learn) of ``count`` known labels on the attackers' columns.

    ``common`` holds NumPy arrays; ``inputs`` describe the attackers' columns.
    """

    def columns(raw: Any) -> Any:
        parts = [np.asarray(part) for part in common.columns(seed, raw)]
        if not any(any(reads.vocabulary) for reads in inputs):
            return np.concatenate([part.reshape(len(raw), -1) for part in parts], axis=1)
        return hstack([numbers_of(*pair) for pair in zip(parts, inputs, strict=True)], "csr")

    known = common.known_order[seed][:count]
    rows = common.train[seed][known]
    with warnings.catch_warnings():  # an unconverged baseline is still a baseline
        warnings.simplefilter("ignore")
        model = LogisticRegression(max_iter=1000)
        model.fit(columns(rows), np.asarray(common.labels)[rows])
    return _Fitted(model, columns, np.asarray(known))


def logistic_scores(
    common: CommonData, inputs: tuple[Input, ...], num_classes: int, seed: int, count: int
) -> Scores:
    """Returns the scores of the local-only baseline for all training and test rows.

    Args:
      common: NumPy arrays of the attackers.
      inputs: the description of each attacker's columns.
      num_classes: C.
      seed: whose rows and scaling are used.
      count: number of known labels.
    """
    fitted = _fit(common, inputs, seed, count)
    train, test = (np.asarray(rows[seed]) for rows in (common.train, common.test))
    scores: Any = (fitted.scores(rows, num_classes) for rows in (train, test))
    return Scores(*scores)


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
