"""Federations of trees: what a passive party is told of trees that are written out by hand, and XGBoost's."""

import numpy as np
import pytest
from scipy import stats

from tests.reference import rr_on_bins as reference
from tests.reference import split_gain
from vfljax.defenses import rr_on_bins
from vfljax.federation import trees
from vfljax.federation.trees import Boosting, paths

HOLDER, PASSIVE = 1, 0
# node 0 is the root; 3 and 4 come from 1, 5 and 6 from 2
FULL = [-1, 0, 0, 1, 1, 2, 2]


def test_of_two_trees_a_party_is_told_all_inner_nodes_and_the_leaves_that_its_own_splits_make():
    # the label party splits the root and node 2, the passive party node 1
    told = paths(FULL, [-1, HOLDER, HOLDER, PASSIVE, PASSIVE, HOLDER, HOLDER], 2, PASSIVE)
    assert told[3:].tolist() == [[1, 3], [1, 4], [2, -1], [2, -1]]
    # node 2 is a leaf above the largest depth: its histogram was computed, and its rows stay there
    told = paths(FULL[:5], [-1, PASSIVE, PASSIVE, HOLDER, HOLDER], 2, PASSIVE)
    assert told[2:].tolist() == [[2, 2], [1, -1], [1, -1]]


@pytest.fixture(scope="module")
def table():
    """Columns of both parties, one each, and labels that both tell together."""
    random = np.random.default_rng(0)
    columns = np.float32(random.uniform(size=(400, 2)))
    return columns, np.int32(columns.sum(axis=1) + 0.2 * random.normal(size=400) > 1)


def grown(table, **options):
    pytest.importorskip("xgboost")
    boosting = Boosting(**{"rounds": 3, "depth": 2, **options})
    return trees.train(*table, 2, (PASSIVE, HOLDER), HOLDER, boosting, seed=0)


def test_nodes_part_rows_as_the_columns_of_their_owners_do(table):
    federation, (columns, labels) = grown(table), table
    of_passive, of_holder = (trees.nodes(federation, columns, p) for p in (PASSIVE, HOLDER))
    assert of_passive.shape == (3, 2, 400)
    np.testing.assert_array_equal(of_passive[:, 0], of_holder[:, 0])
    # a leaf at the largest depth is told to the owner of its parent's split alone
    assert ((of_passive[:, 1] >= 0) ^ (of_holder[:, 1] >= 0)).all()
    g = trees.gradients(federation, columns, labels)
    np.testing.assert_allclose(g[0], np.stack([0.5 - labels, np.full(400, 0.25)], 1))
    p = trees.probabilities(federation, columns, 2)[:, 1]
    np.testing.assert_allclose(g[2], np.stack([p - labels, p * (1 - p)], 1), atol=1e-6)


def test_while_the_label_party_trains_alone_nothing_is_told_and_its_own_columns_decide(table):
    columns, labels = table
    federation = grown(table, alone=2)
    told = trees.nodes(federation, columns, PASSIVE)
    assert (told[:2] == trees.UNTOLD).all()
    assert (told[2, 0] >= 0).all()
    assert not trees.gradients(federation, columns, labels)[:2].any()
    moved = np.stack([1 - columns[:, 0], columns[:, 1]], axis=1)
    before, after = (trees.probabilities(federation, x, 2) for x in (columns, moved))
    np.testing.assert_array_equal(before, after)


def test_who_is_told_all_nodes_knows_every_leaf_of_every_tree(table):
    columns, _ = table
    federation = grown(table, alone=2, told=trees.ALL)
    by_party = [trees.nodes(federation, columns, p) for p in (PASSIVE, HOLDER)]
    np.testing.assert_array_equal(*by_party)
    told = by_party[0]
    assert (told >= 0).all()
    own = trees.nodes(grown(table, alone=2), columns, PASSIVE)
    np.testing.assert_array_equal(told[own >= 0], own[own >= 0])
    # with the weight of each leaf, nodes at the last level add up to the federation's scores
    weights = federation.booster.trees_to_dataframe().set_index(["Tree", "Node"])["Gain"]
    scores = sum(weights.loc[tree].loc[of[-1]].to_numpy() for tree, of in enumerate(told))
    p = trees.probabilities(federation, columns)[:, 1]
    np.testing.assert_allclose(1 / (1 + np.exp(-scores)), p, atol=1e-5)


def test_fewer_levels_and_heavier_nodes_show_less(table):
    assert trees.nodes(grown(table, depth=1), table[0], PASSIVE).shape[1] == 1
    heavy = trees.nodes(grown(table, cover=0.3), table[0], HOLDER)
    assert min(np.unique(level, return_counts=True)[1].min() for level in heavy[:, 0]) >= 0.3 * 400


def test_randomized_response_keeps_the_share_that_epsilon_says():
    labels, random = np.zeros(20000, int), np.random.default_rng(0)
    kept = np.mean(trees.randomized(labels, 3, 1.0, random) == 0)
    assert kept == pytest.approx(np.e / (np.e + 2), abs=0.015)
    assert not trees.randomized(labels, 3, np.inf, random).any()


@pytest.fixture(scope="module")
def numbers():
    """Columns of both parties and a label that both tell, all rounded, so that every threshold is tried."""
    random = np.random.default_rng(1)
    columns = np.float32(np.round(random.uniform(size=(300, 2)), 1))
    return columns, np.float32(50 + 9 * (columns.sum(axis=1) + 0.1 * random.normal(size=300)))


def grown_numbers(numbers, label_range=(), **options):
    pytest.importorskip("xgboost")
    boosting = Boosting(**{"rounds": 3, "depth": 2, **options})
    return trees.train(*numbers, 1, (PASSIVE, HOLDER), HOLDER, boosting, 0, label_range)


def test_trees_of_numbers_are_split_where_the_squared_error_gains_most(numbers):
    columns, labels = numbers
    federation = grown_numbers(numbers)
    y = (labels - labels.mean()) / labels.std()
    np.testing.assert_allclose(federation.labels, y, atol=1e-5)
    g = trees.gradients(federation, columns, federation.labels)
    np.testing.assert_allclose(g[0], np.stack([-y, np.ones(300)], axis=1), atol=1e-5)
    f = trees.probabilities(federation, columns, 1)[:, 0]
    np.testing.assert_allclose(g[1, :, 0], f - y, atol=1e-5)
    root = federation.booster.trees_to_dataframe().query("Tree == 1 and Node == 0").iloc[0]
    value, column, left = split_gain.best(columns, np.float64(g[1, :, 0]))
    assert root["Feature"] == f"f{column}"
    assert root["Gain"] == pytest.approx(value, rel=1e-3)
    told = trees.nodes(federation, columns, PASSIVE)[1, 0]
    assert len({*zip(told, left)}) == 2  # rows are divided alike


def test_a_leaf_of_numbers_has_the_shrunken_mean_of_its_residuals(numbers):
    """XGBoost's weight -G / (H + 1), times the learning rate: the mean with one row of 0 beside."""
    columns, _ = numbers
    federation = grown_numbers(numbers, rounds=2, depth=2, learning_rate=0.3)
    frame = federation.booster.trees_to_dataframe()
    f = np.zeros(len(columns))
    for tree in range(2):
        leaf = frame.query(f"Tree == {tree} and Feature == 'Leaf'")
        assert len(leaf) == 4
        residual, start = federation.labels - f, f
        after = trees.probabilities(federation, columns, tree + 1)[:, 0]
        added = np.round(after - start, 5)
        for value in np.unique(added):
            rows = added == value
            expected = 0.3 * residual[rows].sum() / (rows.sum() + 1)
            assert value == pytest.approx(expected, abs=2e-5)
        assert len(np.unique(added)) == 4
        f = np.float64(after)


def test_predictions_of_numbers_are_in_their_unit_and_approach_them(numbers):
    columns, labels = numbers
    away = [
        np.abs(trees.predictions(grown_numbers(numbers, rounds=rounds), columns) - labels).mean()
        for rounds in (1, 20)
    ]
    assert away[1] < 1.5 < away[0]


def test_numbers_are_randomized_on_bins_of_their_range(numbers):
    bounds, epsilon = (40.0, 70.0), 2.0
    z, (mean, spread) = trees.noisy_numbers(
        np.full(20000, 61.0), epsilon, bounds, np.random.default_rng(0)
    )
    assert abs(z.mean()) < 1e-6
    assert z.std() == pytest.approx(1)
    values, counts = np.unique((mean + spread * z - 40).round(3), return_counts=True)
    bins = rr_on_bins.optimal_bins(rr_on_bins.prior_of(""), epsilon)
    np.testing.assert_allclose(values, 30 * np.asarray(bins.values)[: int(bins.count)], atol=2e-3)
    own = int(bins.bin_of[int(64 * 21 / 30)])
    law = reference.law(np.asarray(bins.bin_of), epsilon)[int(64 * 21 / 30)]
    assert law.argmax() == own
    assert stats.chisquare(counts, law * 20000).pvalue > 1e-3
    # labels beyond the bounds count as these, and the moments that they move take no part
    low, high = np.quantile(numbers[1], [0.2, 0.8])
    clipped = np.clip(numbers[1], low, high)
    moved = np.where(numbers[1] > high, 1e4, clipped)
    assert clipped.std() < moved.std() / 10
    found, other = (
        trees.noisy_numbers(of, epsilon, (low, high), np.random.default_rng(0))
        for of in (clipped, moved)
    )
    assert len(np.unique(found[0])) > 1
    np.testing.assert_array_equal(found[0], other[0])
    assert found[1] == other[1]
    nothing, _ = trees.noisy_numbers(numbers[1], 0.0, bounds, np.random.default_rng(0))
    assert not nothing.any()  # one value for all
    exact, _ = trees.noisy_numbers(numbers[1], np.inf, (), np.random.default_rng(0))
    np.testing.assert_allclose(
        exact, (numbers[1] - numbers[1].mean()) / numbers[1].std(), atol=1e-5
    )
    labels = grown_numbers(numbers, bounds, epsilon=5.0).labels
    assert labels.std() == pytest.approx(1, abs=1e-5)
