"""Two-class gradient attacks: Li et al. 2022, section 3; Han and Guan 2023, equations 8 and 9."""

import numpy as np


def nearest_center(g, known_rows, known_labels, statistic, num_classes):
    """Distances [N, C] to the class centers of the known rows."""
    centers = [
        statistic(g[[i for i, y in zip(known_rows, known_labels) if y == c]], axis=0)
        for c in range(num_classes)
    ]
    return np.array([[np.linalg.norm(row - m) for m in centers] for row in g])


def cosine(g, positive):
    return np.array([a @ positive / np.linalg.norm(a) / np.linalg.norm(positive) for a in g])


def inner(g, positive):
    return np.array([a @ positive for a in g])


def hint(g, positives):
    return np.array([-min(np.linalg.norm(a - b) for b in positives) for a in g])
