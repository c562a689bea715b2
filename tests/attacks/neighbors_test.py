"""The graph of nearest neighbors and propagation on it: restatements, scikit-learn's neighbors, limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.neighbors import NearestNeighbors

from tests import harness
from tests.attacks import cases
from tests.reference import neighbors as reference
from vfljax import attacks
from vfljax.attacks import neighbors

ROWS, CLASSES = 300, 3  # more rows than ``AT_ONCE``, and no multiple of it
KNOWN, LABELS = np.arange(0, 60, 4), np.arange(15) % CLASSES
ALL = np.ones(ROWS, bool)
SOME = np.arange(ROWS) % 5 != 2  # usable
T = np.polynomial.Chebyshev.basis(neighbors.PRODUCTS)
graph_of = harness.quick_jit(neighbors.graph)
propagate = harness.quick_jit(neighbors.propagate)
scores_of = harness.quick_jit(neighbors.scores)


@pytest.fixture(scope="module")
def x():
    """Three classes in turn, around corners of a cube."""
    noise = np.random.default_rng(0).normal(size=(ROWS, 4))
    return np.float32(2 * np.eye(CLASSES, 4)[np.arange(ROWS) % CLASSES] + noise)


def test_the_nearest_rows_are_those_of_scikit_learn(x):
    ends, squared = harness.quick_jit(neighbors.nearest)(x, SOME)
    distances, expected = NearestNeighbors(n_neighbors=8).fit(x[SOME]).kneighbors(x[SOME])
    np.testing.assert_allclose(np.sqrt(squared[SOME]), distances[:, 1:], atol=1e-4)
    assert np.isinf(squared[~SOME]).all()
    expected = np.flatnonzero(SOME)[expected[:, 1:]]
    np.testing.assert_array_equal(np.sort(ends[SOME]), np.sort(expected))


def test_propagation_agrees_with_a_dense_solve_on_rows_of_which_some_are_not_usable(x):
    graph = graph_of(x, SOME)
    known = KNOWN[SOME[KNOWN]]
    labels = known % CLASSES
    y = np.zeros((ROWS, CLASSES))
    places = np.searchsorted(np.flatnonzero(SOME), known)
    y[SOME] = reference.seeds(places, labels, SOME.sum(), CLASSES)
    s = reference.similarity(np.float64(x[SOME]), neighbors.NEAREST)
    identity = harness.quick_jit(neighbors.multiply)(graph, np.eye(ROWS, dtype=np.float32))
    np.testing.assert_allclose(np.asarray(identity)[np.ix_(SOME, SOME)], s, atol=1e-6)
    assert not identity[~SOME].any()
    assert not identity[:, ~SOME].any()
    for alpha in (0.0, 0.9, 0.97):
        found = propagate(graph, np.float32(y), alpha)
        expected = np.zeros_like(y)
        expected[SOME] = reference.propagate(s, y[SOME], alpha)
        left = np.linalg.norm((1 - alpha) * y - expected) / T(1 / alpha) if alpha else 0.0
        assert np.linalg.norm(found - expected) < left + 1e-6 * np.linalg.norm(expected)


@pytest.mark.parametrize("name", ["spreading", "node_spreading", "node_posterior"])
def test_products_leave_little_at_the_largest_alpha_that_is_allowed(name):
    options = {"smooth": "graph"} if name == "node_posterior" else {}
    _, largest = attacks.TABLE[name](cases.ONE_BOTTOM, 2, **options).ranges["alpha"]
    assert 1 / T(1 / largest) < 0.07


def test_several_draws_are_propagated_at_once_as_columns_or_mapped(x):
    graph = graph_of(x, ALL)
    y = np.random.default_rng(1).normal(size=(2, ROWS, CLASSES)).astype(np.float32)
    alone = np.stack([propagate(graph, draw, 0.9) for draw in y])
    columns = propagate(graph, np.concatenate(y, axis=1), 0.9)
    np.testing.assert_allclose(np.concatenate(alone, axis=1), columns, atol=1e-6)
    mapped = harness.quick_jit(jax.vmap(neighbors.propagate, (None, 0, None)))(graph, y, 0.9)
    np.testing.assert_allclose(mapped, alone, atol=1e-6)
    graphs = jax.tree.map(lambda a: jnp.stack([a, a]), graph)
    each = harness.quick_jit(
        jax.vmap(jax.vmap(neighbors.propagate, (None, 0, None)), (0, None, None))
    )
    np.testing.assert_allclose(each(graphs, y, 0.9), np.stack([alone, alone]), atol=1e-6)


def test_a_class_without_a_known_row_scores_least_and_without_known_rows_all_score_alike(x):
    graph = graph_of(x, ALL)
    classes = np.zeros((ROWS, CLASSES), np.float32)
    classes[KNOWN, LABELS % 2] = 1
    scores = np.asarray(scores_of(graph, classes, 0.9))
    assert np.all(scores[:, 2] < scores[:, :2].min(axis=1))
    nothing = np.asarray(scores_of(graph, np.zeros_like(classes), 0.9))
    assert np.ptp(nothing) == 0


def test_a_component_without_a_known_row_and_isolated_rows_score_all_classes_alike(x):
    apart = np.concatenate([x[:200], x[200:299] + 100, [[1e3] * 4]]).astype(np.float32)
    classes = np.zeros((ROWS, CLASSES), np.float32)
    classes[KNOWN, LABELS] = 1
    scores = np.asarray(scores_of(graph_of(apart, np.arange(ROWS) < 299), classes, 0.97))
    assert not scores[200:].any()
    assert np.mean(scores[:200].argmax(axis=1) == np.arange(200) % CLASSES) > 0.8


def test_equal_rows_are_neighbors_and_few_rows_have_fewer():
    same = np.zeros((5, 2), np.float32)
    ends, squared = harness.quick_jit(neighbors.nearest)(same, np.ones(5, bool))
    real = np.isfinite(squared)
    assert real.sum(axis=1).tolist() == [4] * 5
    assert all(i not in ends[i][real[i]] for i in range(5))
    product = harness.quick_jit(neighbors.multiply)(graph_of(same, np.ones(5, bool)), np.eye(5))
    np.testing.assert_allclose(product, (1 - np.eye(5)) / 4, atol=1e-6)


def test_of_equally_near_rows_those_of_least_number_are_taken_across_groups():
    """Against a stable sort, on a grid whose distances float32 has exactly; ties are in far more groups of
    rows than neighbors are taken."""
    grid = np.random.default_rng(0).integers(0, 3, size=(ROWS, 4)).astype(np.float32)
    ends, squared = harness.quick_jit(neighbors.nearest)(grid, SOME)
    expected = ((grid[:, None] - grid) ** 2).sum(axis=2)
    expected[:, ~SOME] = np.inf
    np.fill_diagonal(expected, np.inf)
    order = np.argsort(expected, axis=1, kind="stable")[:, : neighbors.NEAREST]
    tied = np.sort(expected, axis=1)
    assert np.mean(tied[:, neighbors.NEAREST - 1] == tied[:, neighbors.NEAREST]) > 0.8
    np.testing.assert_array_equal(ends[SOME], order[SOME])
    np.testing.assert_array_equal(squared[SOME], np.take_along_axis(expected, order, 1)[SOME])


def test_a_row_far_from_all_others_still_reads_its_neighbors(x):
    far = np.float32(x[:1] + 100)
    classes = np.zeros((ROWS + 1, CLASSES), np.float32)
    classes[1 + KNOWN, LABELS] = 1
    scores = scores_of(graph_of(np.concatenate([far, x]), np.ones(ROWS + 1, bool)), classes, 0.97)
    assert np.ptp(scores[0]) > 0


def test_of_more_rows_neighbors_are_drawn_ones(x, monkeypatch):
    key = jax.random.key(0)
    assert neighbors.drawn(key, ROWS) is None
    monkeypatch.setattr(neighbors, "MOST_ROWS", 100)
    among = np.asarray(neighbors.drawn(key, ROWS))
    assert len(np.unique(among)) == 100
    ends, squared = harness.quick_jit(lambda *of: neighbors.nearest(*of[:2], among=of[2]))(
        x, ALL, among
    )
    assert np.isfinite(squared).all()
    assert np.isin(ends, among).all()


def test_a_block_has_total_variance_1_over_the_usable_rows(x):
    block_of = harness.quick_jit(neighbors.block)
    block = np.asarray(block_of(1e6 + 1e5 * x, SOME))
    np.testing.assert_allclose(block[SOME], reference.block(np.float64(x[SOME])), atol=1e-4)
    assert not block[~SOME].any()
    assert not block_of(np.full_like(x, 7.0), ALL).any()
