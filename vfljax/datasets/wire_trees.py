"""The arrays of a federation of trees in the form of those of networks, so that attacks read both alike."""

from __future__ import annotations

import numpy as np


def renumbered(nodes: np.ndarray) -> np.ndarray:
    """Returns nodes [T, L, N] numbered 0, 1, ... in each level of each tree; -1 stays."""
    out = np.empty(nodes.shape, np.int32)
    for place in np.ndindex(*nodes.shape[:2]):
        found, number = np.unique(nodes[place], return_inverse=True)
        out[place] = number - (found[0] < 0)
    return out


def one_hot(nodes: np.ndarray) -> np.ndarray:
    """Returns the paths of all rows [N, W]: a column for each of the ``renumbered`` nodes, 1 for its rows."""
    columns = [level == node for tree in nodes for level in tree for node in range(level.max() + 1)]
    return np.stack(columns or [np.zeros(nodes.shape[2])], axis=1).astype(np.float32)


def by_round(gradients: np.ndarray, classes: int) -> np.ndarray:
    """Returns the gradients of the logits [R, N, C] of each of R rounds.

    With two classes a round is a tree, whose gradient is that of the second class less that of the first. With
    more classes it is a tree a class, in their order. Second orders say nothing more: they are |g| (1 - |g|).
    Of numbers a round is a tree, and its gradient f - y is brought to 2 (f - y) / N, that of a squared loss
    whose batch is all rows.

    Args:
      gradients: [T, N, K] of each tree, the first order first.
      classes: C, or 1 for numbers.
    """
    g = gradients[..., 0].astype(np.float32)
    if classes == 1:
        return 2 * g[..., None] / g.shape[1]
    if classes == 2:
        return np.stack([-g, g], axis=-1)
    return np.moveaxis(g.reshape(-1, classes, g.shape[1]), 1, 2)
