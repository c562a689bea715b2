"""What an attacker had without taking part: the baselines beside every passive figure."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csr_matrix, hstack
from sklearn.linear_model import LogisticRegression

from vfljax import metrics
from vfljax.datasets.core import Input
from vfljax.lab import Lab, initial_weights
from vfljax.protocol import make_embed
from vfljax.rows import over_chunks, scaled
from vfljax.sight import ground_of
from vfljax.suite import Form, label_of
from vfljax.training import Table, rows_of
from vfljax.types import Array, HostArray, Spec, Weights


def logistic_rows(
    form: Form, sights: list[Any], lab: Lab, arrays: Mapping[str, np.ndarray]
) -> list[dict[str, Any]]:
    """The baseline without any federation: logistic regression (scikit-learn) on the same few
    labels and the attackers' own columns, one row a seed, attackers and number of known labels."""
    out = []
    who = dict.fromkeys((sight.structure, sight.number, sight.attackers) for sight in sights)
    for (structure, view, attackers), (number, point), seed in itertools.product(
        who, enumerate(form.knobs), range(lab.config["seeds"])
    ):
        ground = jax.device_get(ground_of(lab.table, arrays, attackers))

        inputs = [lab.blocks[p].input for p in attackers]

        def columns(
            raw: np.ndarray, seed: int = seed, ground: Any = ground, inputs: Any = inputs
        ) -> Any:
            own = zip(ground.features, ground.mean, ground.scale, strict=True)
            parts = [np.asarray(scaled(x[raw], mean[seed], scale[seed])) for x, mean, scale in own]
            if not any(any(reads.vocabulary) for reads in inputs):
                return np.concatenate([part.reshape(len(raw), -1) for part in parts], axis=1)
            return hstack([numbers_of(*pair) for pair in zip(parts, inputs, strict=True)], "csr")

        known = ground.known_order[seed][: int(point["known"])]
        train, test = ground.train[seed], ground.test[seed]
        with warnings.catch_warnings():  # an unconverged baseline is still a baseline
            warnings.simplefilter("ignore")
            model = LogisticRegression(max_iter=1000)
            model.fit(columns(train[known]), ground.labels[train[known]])
        scores = np.zeros((len(train), lab.dataset.num_classes), np.float32)
        scores[:, model.classes_] = model.predict_proba(columns(train))
        unlabeled = np.ones(len(train), np.float32)
        unlabeled[known] = 0
        leak = metrics.leak(
            jnp.asarray(scores), jnp.asarray(ground.labels[train]), jnp.asarray(unlabeled)
        )
        out.append(
            {
                "attack": label_of(form, attackers),
                "seed": seed,
                "structure": structure,
                "view": view,
                "what": "logistic",
                "point": number,
                "success": float(model.score(columns(train), ground.labels[train])),
                "test_success": float(model.score(columns(test), ground.labels[test])),
                "leak": float(leak),
            }
        )
    return out


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


def initial_bottoms(spec: Spec, lab: Lab) -> Any:
    return jax.device_get(initial_weights(spec, lab).bottoms)


def untrained_cut(lab: Lab, spec: Spec, attackers: tuple[int, ...]) -> HostArray:
    """The attackers' embeddings [Q, N, D] of all training rows from untrained bottoms."""
    embed = make_embed(spec)

    def one(weights: Weights, seed_index: Array, table: Table) -> Array:
        def of(rows: Array) -> Array:
            cut = embed(weights, rows_of(table, seed_index, rows))
            return jnp.concatenate([cut[p] for p in attackers], axis=-1)

        return over_chunks(of, table.train[seed_index], spec.chunk)

    initial = initial_weights(spec, lab)
    every = jax.jit(jax.vmap(one, in_axes=(0, 0, None)))  # the table as an argument, not a constant
    table = lab.table._replace(scores=None)
    return np.asarray(every(initial, jnp.arange(lab.config["seeds"]), table))
