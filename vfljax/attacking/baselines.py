"""What an attacker had without taking part: the baselines beside every passive figure."""

from __future__ import annotations

import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from vfljax import metrics
from vfljax.attacking.view import CommonData
from vfljax.protocol import make_embed
from vfljax.rows import over_chunks
from vfljax.training import Table, rows_of
from vfljax.types import Array, HostArray, Input, Spec, Weights


def logistic_figures(
    common: CommonData, inputs: tuple[Input, ...], num_classes: int, seed: int, count: int
) -> dict[str, float]:
    """Logistic regression (scikit-learn) on ``count`` known labels and the attackers' own columns, on
    the host: success and test success of top-1, leak on the rows whose label is not known.

    ``common`` holds NumPy arrays; ``inputs`` describe the attackers' columns.
    """

    def columns(raw: Any) -> Any:
        parts = [np.asarray(part) for part in common.columns(seed, raw)]
        if not any(any(reads.vocabulary) for reads in inputs):
            return np.concatenate([part.reshape(len(raw), -1) for part in parts], axis=1)
        return hstack([numbers_of(*pair) for pair in zip(parts, inputs, strict=True)], "csr")

    labels = np.asarray(common.labels)
    known = common.known_order[seed][:count]
    train, test = common.train[seed], common.test[seed]
    with warnings.catch_warnings():  # an unconverged baseline is still a baseline
        warnings.simplefilter("ignore")
        model = LogisticRegression(max_iter=1000)
        model.fit(columns(train[known]), labels[train[known]])
    scores = np.zeros((len(train), num_classes), np.float32)
    scores[:, model.classes_] = model.predict_proba(columns(train))
    unlabeled = np.ones(len(train), np.float32)
    unlabeled[known] = 0
    leak = metrics.leak(jnp.asarray(scores), jnp.asarray(labels[train]), jnp.asarray(unlabeled))
    return {
        "success": float(model.score(columns(train), labels[train])),
        "test_success": float(model.score(columns(test), labels[test])),
        "leak": float(leak),
    }


def numbers_of(x: np.ndarray, reads: Input) -> Any:
    """One party's columns [n, ...] as numbers a linear model can read, [n, W] sparse: numbers as they
    are, codes one-hot, texts as bags of tokens (0 or 1)."""
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
    """The attackers' embeddings [Q, N, D] of all training rows from untrained bottoms; ``weights``
    [Q, ...] are each seed's initial ones."""
    embed = make_embed(spec)

    def one(weights: Weights, seed: Array, table: Table) -> Array:
        def of(rows: Array) -> Array:
            cut = embed(weights, rows_of(table, seed, rows))
            return jnp.concatenate([cut[p] for p in attackers], axis=-1)

        return over_chunks(of, table.train[seed], spec.chunk)

    by_seed = jax.jit(jax.vmap(one, in_axes=(0, 0, None)))  # the table as an argument, no constant
    return np.asarray(by_seed(weights, jnp.arange(len(table.train)), table._replace(scores=None)))
