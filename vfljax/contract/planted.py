"""Exchanges and columns in which the labels are given away, drawn so that an attack can read them.

``LEAKS`` are by what tells the labels; ``SHARES`` are those of the same names without a top model, where
gradients are of logits and another leak would be read in place of the one named.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from vfljax.contract.exchanges import BATCH, WIDTH
from vfljax.types import HostArray

Leak = dict[str, Any]  # arguments of ``make_case``
# of labels [N] and the number of classes
Draw = Callable[[np.random.Generator, HostArray, int], Leak]


def features(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    def columns(labels: HostArray) -> HostArray:
        centers = 4 * (np.arange(WIDTH) % classes == labels[:, None])
        return centers + 0.3 * rng.normal(size=(len(labels), WIDTH))

    return {"features": columns(labels), "test_features": columns(np.arange(10) % classes)}


def twice(gradients: HostArray) -> Leak:
    """Received alike in both recorded epochs."""
    return {"gradients": [gradients, gradients]}


def signs(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    return twice(rng.dirichlet(np.ones(classes), len(labels)) - np.eye(classes)[labels])


def signs_and_features(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    return {**signs(rng, labels, classes), **features(rng, labels, classes)}


def logits_and_signs(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """A party's own logits, and the gradients of logits that are the label party's alone."""
    z = points(rng, labels, classes)
    return {"embeddings": [z, z], **signs(rng, labels, classes)}


def lengths(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    direction = rng.normal(size=(len(labels), 3))
    return twice(direction / np.linalg.norm(direction, axis=1)[:, None] * (1 + labels)[:, None])


def points(rng: np.random.Generator, labels: HostArray, classes: int) -> HostArray:
    """Around a point of its own for each class, whose sign differs too."""
    return (2 * np.eye(classes) - 1)[labels] + 0.1 * rng.normal(size=(len(labels), classes))


def centers(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    return twice(points(rng, labels, classes))


def drops(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """Positives receive the larger sums."""
    return twice(labels[:, None] + 0.1 * rng.uniform(size=(len(labels), 3)))


def clusters(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """Embeddings and gradients around points."""
    z = points(rng, labels, classes)
    return {"embeddings": [z, z], **centers(rng, labels, classes)}


def pulls(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """Gradients that are a function of the embedding, and a little of the label."""
    z = rng.uniform(-1, 1, size=(len(labels), 1))
    g = 0.05 * np.sin(z) - 0.5 * labels[:, None]
    return {"embeddings": [z, z], **twice(g)}


def charges(rng: np.random.Generator, labels: HostArray, classes: int, alpha: float = 0.5) -> Leak:
    """PELoss's forces between the rows of a batch, in the units of another loss."""
    return _forces(
        rng, labels, classes, lambda y: -2 * alpha * (y / np.maximum(y.sum(0), 1)) @ y.T, 1.5
    )


def correlations(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """dCor's pulls between the rows of a batch, those that labels decide."""
    return _forces(rng, labels, classes, lambda y: (y.mean(0) - y) @ (y - y.mean(0)).T, 0.5)


def _forces(
    rng: np.random.Generator, labels: HostArray, classes: int, weigh: Any, power: float
) -> Leak:
    """Sums over a batch of z_i - z_j, weighed by one-hot labels [B, C] and a power of squared distances."""
    # classes apart a little, so that batches agree on what they call positive
    z = points(rng, labels, classes) + rng.normal(size=(2, len(labels), classes))
    g = np.zeros_like(z)
    for epoch, first in itertools.product(range(2), range(0, len(labels), BATCH)):
        batch = slice(first, first + BATCH)
        apart = z[epoch, batch, None] - z[epoch, None, batch]
        near = np.sum(apart**2, axis=-1, keepdims=True) + 1e-6
        weights = weigh(np.eye(classes)[labels[batch]])[:, :, None]
        g[epoch, batch] = np.sum(weights * apart / near**power, axis=1)
    return {"embeddings": z, "gradients": g}


def sums(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """What ``signs`` adds up to in a last layer that reads more numbers than a batch has rows."""
    inputs = rng.normal(size=(2, len(labels), BATCH + 10))
    return {**signs(rng, labels, classes), "inputs": inputs}


def tops(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """Embeddings that overlap, and the exact gradients of the top model h(z) = z."""
    z = 0.7 * points(rng, labels, classes) + 0.7 * rng.normal(size=(len(labels), classes))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return {"embeddings": [z, z], **twice((p - np.eye(classes)[labels]) / BATCH)}


LEAKS: dict[str, Draw] = {
    draw.__name__: draw
    for draw in (
        *(features, signs, signs_and_features, logits_and_signs),
        *(lengths, centers, drops, clusters, pulls, tops, sums, charges, correlations),
    )
}


def shares(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """Gradients without model splitting, softmax less target, of models that find class 0 likely."""
    shares = np.where(np.arange(classes) == 0, 45, 15 / (classes - 1))
    return twice(rng.dirichlet(shares, len(labels)) - np.eye(classes)[labels])


def shares_and_embeddings(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    z = points(rng, labels, classes)
    return {"embeddings": [z, z], **shares(rng, labels, classes)}


def shares_and_noise(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    z = rng.uniform(-1, 1, size=(len(labels), classes))
    return {"embeddings": [z, z], **shares(rng, labels, classes)}


SHARES: dict[str, Draw] = {
    "features": features,
    "clusters": shares_and_embeddings,
    "pulls": shares_and_noise,
    **{"charges": charges, "correlations": correlations},
}
