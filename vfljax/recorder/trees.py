"""Nodes of boosted trees, in the order in which a party is told of them, in the form of a wire."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

UNTOLD = -1
"""Stands for a node that the party is not told."""


class NodeRows(NamedTuple):
    """That a party is told the rows of a node."""

    party: Hashable
    tree: int
    node: Any
    rows: np.ndarray  # [m] ids
    gradients: np.ndarray | None  # [m, 1 or 2] of first and second order


def arrays(
    number: int, told: Sequence[NodeRows], ids: np.ndarray, trees: int
) -> dict[str, np.ndarray]:
    """Returns a party's nodes [T, L, N], and its gradients [T, N, 1 or 2] if it was told any.

    The level of a node is the number of nodes that one of its rows was in before. A first node of a tree that
    has all rows of the tree is its root, and is left out.

    Args:
      number: of the party.
      told: what the party was told, in the order in which it was told.
      ids: of all rows [N].
      trees: T.
    """
    by_tree: list[list[tuple[np.ndarray, NodeRows]]] = [[] for _ in range(trees)]
    order = np.argsort(ids, kind="stable")
    for each in told:
        rows = order[np.searchsorted(ids, each.rows, sorter=order)]
        by_tree[each.tree].append((rows, each))
    levels: list[np.ndarray] = []
    orders = max((t.gradients.shape[1] for t in told if t.gradients is not None), default=0)
    g = np.zeros((trees, len(ids), orders), np.float32)
    for tree, of_tree in enumerate(by_tree):
        for rows, each in of_tree:
            if each.gradients is not None:
                g[tree, rows, : each.gradients.shape[1]] = each.gradients
        levels.append(_levels(_merged(of_tree), len(ids)))
    nodes = np.stack([_deep(tree, max(map(len, levels))) for tree in levels])
    found = {f"party{number}_nodes": nodes}
    return found | ({f"party{number}_gradients": g} if orders else {})


def padded(arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Returns the arrays of all parties with equally many levels, and gradients of every party if of one."""
    deepest = max(a.shape[1] for name, a in arrays.items() if name.endswith("_nodes"))
    out = dict(arrays)
    for name, array in arrays.items():
        if name.endswith("_nodes"):
            out[name] = np.stack([_deep(tree, deepest) for tree in array])
    received = [a for name, a in arrays.items() if name.endswith("_gradients")]
    if received:
        widest = max(a.shape[2] for a in received)
        for name in [name for name in arrays if name.endswith("_nodes")]:
            of = name.replace("_nodes", "_gradients")
            g = arrays.get(of, np.zeros((*received[0].shape[:2], 0), np.float32))
            out[of] = np.pad(g, ((0, 0), (0, 0), (0, widest - g.shape[2])))
    return out


def _merged(of_tree: Sequence[tuple[np.ndarray, NodeRows]]) -> list[np.ndarray]:
    """Returns the rows of each node of a tree, in the order in which the nodes were first told. Rows of a node
    may come in several parts."""
    nodes: dict[Any, list[np.ndarray]] = {}
    for rows, each in of_tree:
        nodes.setdefault(each.node, []).append(rows)
    return [np.unique(np.concatenate(parts)) for parts in nodes.values()]


def _levels(nodes: Sequence[np.ndarray], rows: int) -> np.ndarray:
    """Returns the nodes of a tree [L, N], numbered in the order in which they were told."""
    every = np.unique(np.concatenate([*nodes, np.zeros(0, int)]))
    below = nodes[1:] if nodes and len(nodes[0]) == len(every) else nodes
    depth, out = np.zeros(rows, int), np.full((1, rows), UNTOLD, np.int32)
    for number, node in enumerate(below):
        level = int(depth[node].max(initial=0))
        out = _deep(out, level + 1)
        out[level, node] = number
        depth[node] = level + 1
    return out


def _deep(levels: np.ndarray, count: int) -> np.ndarray:
    """Returns levels [L, N] with as many levels, of which the added ones are not told."""
    more = max(0, count - len(levels))
    return np.pad(levels, ((0, more), (0, 0)), constant_values=UNTOLD)
