"""Exchanges and columns in which the labels are given away, drawn so that an attack can read them.

``LEAKS`` are by what tells the labels; ``SHARES`` are those of the same names without a top model, where
gradients are of logits and another leak would be read in place of the one named.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from vfljax.contract.exchanges import BATCH, WIDTH
from vfljax.types import HostArray

Leak = dict[str, Any]  # arguments of ``make_case``
Draw = Callable[
    [np.random.Generator, HostArray, int], Leak
]  # of labels [N] and the number of classes


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
    # classes apart a little, so that batches agree on what they call positive
    z, epochs = points(rng, labels, classes) + rng.normal(size=(2, len(labels), classes)), []
    for x in z:
        apart = x[:, None] - x[None]
        near = np.sum(apart**2, axis=-1) + 1e-6
        batch = np.arange(len(labels)) // BATCH
        same = (batch[:, None] == batch) & (labels[:, None] == labels)
        weights = same / same.sum(1) / near**1.5
        epochs.append(-2 * alpha * np.sum(weights[:, :, None] * apart, axis=1))
    return {"embeddings": z, "gradients": epochs}


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
        *(lengths, centers, drops, clusters, pulls, tops, sums, charges),
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
    "charges": charges,
}
