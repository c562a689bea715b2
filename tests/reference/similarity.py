"""The similarity attack: Liu et al. 2024, arXiv 2203.05222.

Gradients are alike by their cosine, embeddings by their Euclidean distance. A row gets the class of the
most alike known row, or that of its cluster.
"""

import itertools

import numpy as np


def unit(x):
    x = np.asarray(x, np.float64)
    length = np.linalg.norm(x, axis=-1, keepdims=True)
    return np.where(length > 0, x / np.where(length > 0, length, 1), 0)


def likeness(a, b, cosine):
    return float(unit(a) @ unit(b)) if cosine else -float(np.linalg.norm(a - b))


def nearest(x, known, labels, classes, cosine):
    """[N, C] likeness to the most alike of the known rows (places in x) of each class."""
    return np.array(
        [
            [
                max(likeness(row, x[k], cosine) for k in known if labels[k] == c)
                for c in range(classes)
            ]
            for row in x
        ]
    )


def clusters(x, known, labels, classes, cosine, rounds):
    """[N, C] likeness to the center of the cluster of each class."""
    x = unit(x) if cosine else np.asarray(x, np.float64)
    rows_of = [[k for k in known if labels[k] == c] for c in range(classes)]
    centers = [x[rows].mean(axis=0) for rows in rows_of]
    for _ in range(rounds):
        members = assign(x, centers, cosine)
        centers = [
            x[members == c].mean(axis=0) if np.any(members == c) else centers[c]
            for c in range(classes)
        ]
    members = assign(x, centers, cosine)
    # the best of all ways to name clusters
    cluster_of = max(
        itertools.permutations(range(classes)),
        key=lambda names: sum(members[k] == names[labels[k]] for k in known),
    )
    return np.array([[likeness(row, centers[j], cosine) for j in cluster_of] for row in x])


def assign(x, centers, cosine):
    return np.array([np.argmax([likeness(row, c, cosine) for c in centers]) for row in x])
