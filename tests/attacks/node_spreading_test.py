"""Spreading over nodes: against the twin, of colluders, and its limits."""

import numpy as np

from tests.attacks import cases
from tests.attacks.cohabitation_test import trees
from tests.reference import neighbors
from tests.reference import node_spreading as reference
from vfljax.attacks import node_spreading as module
from vfljax.datasets.wire_trees import one_hot, renumbered

ROWS, KNOWN, CLASSES = 60, 9, 3
KNOBS = {"first": 0.7, "deep": 3.0, "alpha": 0.9}
ATTACK = cases.build(module.ROW, CLASSES)


def run_of(untold=0.3):
    """Labels, columns, and nodes [T, L, N] of two rounds of three trees, one of them wrong in each."""
    labels = np.arange(ROWS) % CLASSES
    x = 0.3 * np.random.default_rng(0).normal(size=(ROWS, cases.OWN_COLUMNS))
    x[:, :CLASSES] += np.eye(CLASSES)[labels]
    nodes = [trees(np.int64(labels == c), 0.1, c, untold)[:2] for c in range(CLASSES)]
    return labels, x, renumbered(np.stack([tree for pair in zip(*nodes) for tree in pair]))


def case_of(labels, x, nodes):
    paths = one_hot(nodes)
    paths = np.pad(paths, ((0, 0), (0, 5)))  # as a sweep pads them to its widest trial
    rest = {"nodes": np.moveaxis(nodes, 1, 2), "known": KNOWN, "cut": paths.shape[1]}
    zeros = np.zeros((1, *paths.shape))
    return cases.make_case(labels, CLASSES, features=x, embeddings=[paths], gradients=zeros, **rest)


def test_agrees_with_the_numpy_twin():
    labels, x, nodes = run_of()
    case = case_of(labels, x, nodes)
    known = cases.known_of(case)
    paths = reference.paths(nodes, KNOBS["first"], KNOBS["deep"], a_round=CLASSES)
    y = neighbors.seeds(known, labels[known], ROWS, CLASSES)
    expected = neighbors.propagate(reference.similarity([paths, x]), y, KNOBS["alpha"])
    found = cases.attack(ATTACK, case, **KNOBS).train
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_numbers_are_a_mean_of_near_ones_that_tends_to_that_of_all():
    _, x, nodes = run_of()
    y = np.float32(np.random.default_rng(2).normal(size=ROWS))
    rest = {"nodes": np.moveaxis(nodes, 1, 2), "known": KNOWN, "cut": one_hot(nodes).shape[1]}
    paths = one_hot(nodes)
    case = cases.make_case(y, 1, features=x, embeddings=[paths], gradients=0 * paths[None], **rest)
    known = cases.known_of(case)
    paths = reference.paths(nodes, KNOBS["first"], KNOBS["deep"])
    given = np.zeros((ROWS, 2))
    given[known] = np.stack([y[known] - y[known].mean(), np.ones(KNOWN)], axis=1)
    s = neighbors.propagate(reference.similarity([paths, x]), given, KNOBS["alpha"])
    expected = y[known].mean() + s[:, 0] / (s[:, 1] + s[:, 1].mean())
    found = cases.attack(cases.build(module.ROW, 1), case, **KNOBS).train[:, 0]
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_paths_are_alike_as_the_shares_of_common_nodes_say():
    nodes = run_of()[2]
    of_levels = KNOBS["first"] ** (np.arange(6)[:, None] // CLASSES) * KNOBS["deep"] ** np.arange(2)
    found = module.paths(np.moveaxis(nodes, 1, 2), np.float32(of_levels), 64)
    expected = reference.paths(nodes, KNOBS["first"], KNOBS["deep"], a_round=CLASSES)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-5)


def test_a_row_of_which_no_node_is_told_has_no_score_and_joins_no_others():
    labels, x, nodes = run_of()
    nodes[:, :, 5] = -1
    found = [
        cases.attack(ATTACK, case_of(labels, columns, renumbered(nodes)), **KNOBS).train
        for columns in (x, np.where(np.arange(ROWS)[:, None] == 5, 9.0, x))
    ]
    np.testing.assert_array_equal(np.isnan(found[0]).all(axis=1), np.arange(ROWS) == 5)
    np.testing.assert_allclose(*found, atol=1e-5)


def test_at_first_zero_only_the_first_round_counts():
    labels, x, nodes = run_of()
    other = nodes.copy()
    other[CLASSES:] = nodes[CLASSES:][:, :, ::-1]
    first = [cases.attack(ATTACK, case_of(labels, x, of), first=0.0).train for of in (nodes, other)]
    np.testing.assert_allclose(*first, atol=1e-5)
