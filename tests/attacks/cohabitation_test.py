"""Cohabitation: against the twin, on clusters that are known, and its limits."""

import numpy as np
import pytest

from tests.attacks import cases
from tests.reference import cohabitation as reference
from vfljax.attacks import cohabitation as module

ROWS, KNOWN = 60, 6
SPREAD = cases.build(module.ROW, 2, rounds=4)
SIDES = cases.build(module.ROW, 2, names="none", rounds=60)


def trees(labels, wrong, seed=0, untold=0.0):
    """Nodes [T, L, N] of three trees. Level 1 parts the classes but for some rows ``wrong``, level 2 divides
    each child at random."""
    random = np.random.default_rng(seed)
    out = np.empty((3, 2, len(labels)), int)
    for tree in out:
        tree[0] = 1 + (labels ^ (random.uniform(size=len(labels)) < wrong))
        tree[1] = 2 * tree[0] + 1 + random.integers(2, size=len(labels))
        tree[1][random.uniform(size=len(labels)) < untold] = -1
    return out


def case_of(labels, nodes):
    return cases.make_case(labels, 2, known=KNOWN, nodes=np.moveaxis(nodes, 1, 2))


@pytest.fixture(scope="module")
def labels():
    return np.int64(np.arange(ROWS) % 3 == 0)


def test_agrees_with_the_numpy_twin(labels):
    nodes = trees(labels, wrong=0.2, untold=0.5)
    case = case_of(labels, nodes)
    known, knobs = cases.known_of(case), {"first": 0.7, "deep": 3.0}
    expected = reference.spread(reference.joined(nodes, **knobs), known, labels[known], 2, 4)
    np.testing.assert_allclose(cases.attack(SPREAD, case, **knobs).train, expected, atol=1e-6)


def test_above_one_late_trees_count_more_and_hundreds_of_rounds_are_finite(labels):
    nodes = trees(labels, wrong=0.2)
    case = case_of(labels, nodes)
    known, knobs = cases.known_of(case), {"first": 1.5, "deep": 2.0}
    expected = reference.spread(reference.joined(nodes, **knobs), known, labels[known], 2, 4)
    np.testing.assert_allclose(cases.attack(SPREAD, case, **knobs).train, expected, atol=1e-6)
    weights = module.weights_of(np.zeros((400, 1, 2)), 1, 2, np.float32(1.5), np.float32(2))
    assert weights.max() == 2
    assert weights[398, 0] == pytest.approx(1 / 1.5)


def test_of_three_classes_the_three_trees_of_a_round_count_alike(labels):
    nodes = np.concatenate([trees(labels, 0.2, seed) for seed in range(2)])  # two rounds of three
    three = labels + (np.arange(ROWS) % 5 == 1)
    case = cases.make_case(three, 3, known=KNOWN, nodes=np.moveaxis(nodes, 1, 2))
    known, knobs = cases.known_of(case), {"first": 0.5, "deep": 2.0}
    joined = reference.joined(nodes, **knobs, a_round=3)
    expected = reference.spread(joined, known, three[known], 3, 4)
    attack = cases.build(module.ROW, 3, rounds=4)
    found = cases.attack(attack, case, **knobs).train
    np.testing.assert_allclose(found, expected, atol=1e-6)
    turned = cases.make_case(
        three, 3, known=KNOWN, nodes=np.moveaxis(nodes[[2, 0, 1, 4, 5, 3]], 1, 2)
    )
    np.testing.assert_allclose(cases.attack(attack, turned, **knobs).train, found, atol=1e-6)


def test_numbers_spread_as_the_twin_says_and_without_labels_are_the_second_eigenvector(labels):
    nodes = trees(labels, wrong=0.2)
    y = np.float32(np.random.default_rng(1).normal(size=ROWS) - labels)  # also below 0
    case = cases.make_case(y, 1, known=KNOWN, nodes=np.moveaxis(nodes, 1, 2))
    known, knobs = cases.known_of(case), {"first": 0.7, "deep": 3.0}
    joined = reference.joined(nodes, **knobs)
    expected = reference.spread(joined, known, y[known], 1, 4)
    found = cases.attack(cases.build(module.ROW, 1, rounds=4), case, **knobs).train
    np.testing.assert_allclose(found, expected, atol=1e-6)
    sides = cases.attack(cases.build(module.ROW, 1, names="none", rounds=60), case, **knobs).train
    assert abs(np.corrcoef(sides[:, 0], reference.second(joined))[0, 1]) > 0.999


def test_without_labels_it_finds_the_sides_of_the_second_eigenvector(labels):
    nodes = trees(labels, wrong=0.2)
    found = cases.attack(SIDES, case_of(labels, nodes)).train[:, 1]
    vector = reference.second(reference.joined(nodes, **module.WEIGHTS))
    assert abs(np.corrcoef(found, vector)[0, 1]) > 0.999


def test_clusters_of_rows_that_always_share_a_node_are_read_and_the_smaller_one_is_positive(labels):
    case = case_of(labels, trees(labels, wrong=0.0))
    for attack in (SPREAD, SIDES):
        np.testing.assert_array_equal(cases.attack(attack, case).train.argmax(axis=1), labels)


def test_only_first_trees_count_at_weight_zero_and_rows_that_are_never_told_have_no_score(labels):
    nodes = trees(labels, wrong=0.2)
    nodes[:, :, 5] = -1
    other = nodes.copy()
    other[1:] = trees(1 - labels, wrong=0.4, seed=1)[1:]
    other[:, :, 5] = -1
    found = [cases.attack(SPREAD, case_of(labels, of), first=0.0).train for of in (nodes, other)]
    np.testing.assert_array_equal(*found)
    np.testing.assert_array_equal(np.isnan(found[0]).all(axis=1), np.arange(ROWS) == 5)


def test_more_than_two_clusters_need_known_labels():
    with pytest.raises(ValueError, match="names='none'"):
        module.cohabitation((), 3, names="none")
