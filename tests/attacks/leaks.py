"""What gives labels away: arrays of an exchange, or columns, drawn so that an attack can read them.

``LEAKS`` are by what leaks, with model splitting unless the attack knows none; ``SHARES`` those of
the same names without it, where gradients are of logits.
"""

import numpy as np

from tests.attacks import cases


def features(rng, labels, classes):
    def columns(labels):
        centers = 4 * (np.arange(cases.WIDTH) % classes == labels[:, None])
        return centers + 0.3 * rng.normal(size=(len(labels), cases.WIDTH))

    return {"features": columns(labels), "test_features": columns(np.arange(10) % classes)}


def twice(gradients):
    """Received alike in both recorded epochs."""
    return {"gradients": [gradients, gradients]}


def signs(rng, labels, classes):
    return twice(rng.dirichlet(np.ones(classes), len(labels)) - np.eye(classes)[labels])


def signs_and_features(rng, labels, classes):
    return {**signs(rng, labels, classes), **features(rng, labels, classes)}


def logits_and_signs(rng, labels, classes):
    """A party's own logits, and the gradients of logits that are the label party's alone."""
    z = points(rng, labels, classes)
    return {"embeddings": [z, z], **signs(rng, labels, classes)}


def lengths(rng, labels, classes):
    direction = rng.normal(size=(len(labels), 3))
    return twice(direction / np.linalg.norm(direction, axis=1)[:, None] * (1 + labels)[:, None])


def points(rng, labels, classes):
    """Around a point of its own for each class, whose sign differs too."""
    return (2 * np.eye(classes) - 1)[labels] + 0.1 * rng.normal(size=(len(labels), classes))


def centers(rng, labels, classes):
    return twice(points(rng, labels, classes))


def drops(rng, labels, classes):
    """Positives receive the larger sums."""
    return twice(labels[:, None] + 0.1 * rng.uniform(size=(len(labels), 3)))


def clusters(rng, labels, classes):
    """Embeddings and gradients around points."""
    z = points(rng, labels, classes)
    return {"embeddings": [z, z], **centers(rng, labels, classes)}


def pulls(rng, labels, classes):
    """Gradients that are a function of the embedding, and a little of the label."""
    z = rng.uniform(-1, 1, size=(len(labels), 1))
    g = 0.05 * np.sin(z) - 0.5 * labels[:, None]
    return {"embeddings": [z, z], **twice(g)}


def charges(rng, labels, classes, alpha=0.5):
    """PELoss's forces between the rows of a batch, in the units of another loss."""
    # classes apart a little, so that batches agree on what they call positive
    z, epochs = points(rng, labels, classes) + rng.normal(size=(2, len(labels), classes)), []
    for x in z:
        apart = x[:, None] - x[None]
        near = np.sum(apart**2, axis=-1) + 1e-6
        batch = np.arange(len(labels)) // cases.BATCH
        same = (batch[:, None] == batch) & (labels[:, None] == labels)
        weights = same / same.sum(1) / near**1.5
        epochs.append(-2 * alpha * np.sum(weights[:, :, None] * apart, axis=1))
    return {"embeddings": z, "gradients": epochs}


def sums(rng, labels, classes):
    """What ``signs`` adds up to in a last layer that reads more numbers than a batch has rows."""
    inputs = rng.normal(size=(2, len(labels), cases.BATCH + 10))
    return {**signs(rng, labels, classes), "inputs": inputs}


def tops(rng, labels, classes):
    """Embeddings that overlap, and the exact gradients of the top model h(z) = z."""
    z = 0.7 * points(rng, labels, classes) + 0.7 * rng.normal(size=(len(labels), classes))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return {"embeddings": [z, z], **twice((p - np.eye(classes)[labels]) / cases.BATCH)}


LEAKS = {
    one.__name__: one
    for one in (
        *(features, signs, signs_and_features, logits_and_signs),
        *(lengths, centers, drops, clusters, pulls, tops, sums, charges),
    )
}


def shares(rng, labels, classes):
    """Gradients without model splitting, softmax less target, of models that find class 0 likely."""
    shares = np.where(np.arange(classes) == 0, 45, 15 / (classes - 1))
    return twice(rng.dirichlet(shares, len(labels)) - np.eye(classes)[labels])


def shares_and_embeddings(rng, labels, classes):
    z = points(rng, labels, classes)
    return {"embeddings": [z, z], **shares(rng, labels, classes)}


def shares_and_noise(rng, labels, classes):
    z = rng.uniform(-1, 1, size=(len(labels), classes))
    return {"embeddings": [z, z], **shares(rng, labels, classes)}


SHARES = {
    "features": features,
    "clusters": shares_and_embeddings,
    "pulls": shares_and_noise,
    "charges": charges,
}
