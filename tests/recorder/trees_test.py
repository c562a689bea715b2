"""Nodes that a party is told, level by level or depth first, make one wire."""

import numpy as np
import pytest

import vfljax
from vfljax.datasets.wire import read_wire

N, DEPTH = 32, 3


def grown(random):
    """The node of each row at each level of a full tree [levels, N], numbered as a heap."""
    nodes = [np.zeros(N, int)]
    for _ in range(DEPTH):
        nodes.append(2 * nodes[-1] + 1 + random.integers(2, size=N))
    return np.stack(nodes)


def depth_first(nodes, node=0, level=0):
    here = np.flatnonzero(nodes[level] == node)
    if len(here):
        yield node, here
        for child in (2 * node + 1, 2 * node + 2) if level < DEPTH else ():
            yield from depth_first(nodes, child, level + 1)


def by_level(nodes):
    for level in nodes:
        for node in np.unique(level):
            yield node, np.flatnonzero(level == node)


@pytest.mark.parametrize("walk", [depth_first, by_level])
@pytest.mark.parametrize("root", [True, False])
def test_nodes_are_those_of_the_trees_that_were_grown(walk, root, tmp_path):
    random = np.random.default_rng(0)
    trees = [grown(random) for _ in range(3)]
    wire, ids = vfljax.Recorder(), random.permutation(N) + 100
    g = random.normal(size=(3, N, 2))
    for tree, nodes in enumerate(trees):
        for node, rows in walk(nodes):
            if root or node:
                half = len(rows) // 2 if walk is by_level else 0  # rows of a node may come in parts
                parts = (rows[:half], rows[half:]) if half else (rows,)
                for part in parts:
                    wire.told("bank", tree, node, ids[part], None if node > 2 else g[tree, part])
    wire.save(tmp_path / "trees.npz", labels=np.arange(N) % 2, row_ids=ids, say=lambda line: None)
    found = read_wire(str(tmp_path / "trees.npz"))
    assert found.trees == (3, DEPTH)
    told = found.parties[0].nodes
    for tree, nodes in enumerate(trees):
        for level in range(DEPTH):
            same = nodes[level + 1][:, None] == nodes[level + 1]
            np.testing.assert_array_equal(told[tree, level][:, None] == told[tree, level], same)
    np.testing.assert_array_equal(found.parties[0].gradients[..., 1], np.float32(g[..., 0]))


def test_a_party_is_told_of_some_rows_and_trees_alone(tmp_path):
    wire = vfljax.Recorder()
    for node in (0, 1):
        wire.told(0, 1, node, np.arange(node, N, 4))
    for node in (0, 1):
        wire.told(1, 0, node, np.arange(node, N, 2))
        wire.told(1, 0, (node, "left"), np.arange(node, N, 4))
    wire.save(tmp_path / "trees.npz", labels=np.arange(N) % 2, say=lambda line: None)
    found = read_wire(str(tmp_path / "trees.npz"))
    assert found.trees == (2, 2)
    first, second = (party.nodes for party in found.parties)
    assert (first[0] == -1).all()
    np.testing.assert_array_equal(first[1, 0] >= 0, np.arange(N) % 4 < 2)
    np.testing.assert_array_equal(second[0, 1] >= 0, np.arange(N) % 4 < 2)
    assert (second[1] == -1).all()
