"""The posterior of trees under randomized labels: against the twin, its limits, and what nodes add."""

import jax
import numpy as np
import pytest

from tests.attacks import cases
from tests.reference import cohabitation, label_dp, neighbors
from tests.reference import node_spreading as reference
from vfljax import keys
from vfljax.attacks import node_posterior as module
from vfljax.datasets.wire_trees import one_hot, renumbered

ROWS, CLASSES = 240, 3
FORMS = {smooth: cases.build(module.ROW, CLASSES, smooth=smooth) for smooth in module.SMOOTH}


def run_of(epsilon, nodes_tell=True):
    """Labels, flipped ones, columns, nodes [T, L, N] of two rounds, and the case."""
    random = np.random.default_rng(0)
    labels = random.permutation(np.arange(ROWS) % CLASSES)
    law = label_dp.response(CLASSES, epsilon)
    noisy = np.array([random.choice(CLASSES, p=law[y]) for y in labels])
    told = labels if nodes_tell else random.permutation(labels)
    nodes = [
        [(told == t % CLASSES) ^ (random.uniform(size=ROWS) < 0.15)] for t in range(2 * CLASSES)
    ]
    nodes = renumbered(np.int64(nodes))
    x = random.normal(size=(ROWS, cases.OWN_COLUMNS))
    softmax = random.dirichlet(np.ones(CLASSES), size=(4, ROWS))
    g = softmax - np.eye(CLASSES)[noisy]
    paths = np.pad(one_hot(nodes), ((0, 0), (0, 5)))
    case = cases.make_case(
        labels, CLASSES, gradients=g, features=x, nodes=np.moveaxis(nodes, 1, 2), known=0
    )
    wide = np.float32(np.tile(paths, (4, 1, 1)))
    exchange = case.run.exchange | {"embeddings": wide}
    return labels, noisy, x, nodes, case._replace(run=case.run._replace(exchange=exchange))


def scores(case, smooth="nodes", **knobs):
    return np.asarray(cases.attack(FORMS[smooth], case, **knobs).train)


def fold_of():
    key = keys.fold(jax.random.key(0), "folds")
    return np.asarray(jax.random.randint(key, (ROWS,), 0, module.FOLDS))


@pytest.mark.parametrize("smooth", module.SMOOTH)
def test_agrees_with_the_numpy_twin(smooth):
    _, noisy, x, nodes, case = run_of(1.0)
    joined = cohabitation.joined(nodes, 0.9, 2.0, a_round=CLASSES)
    s = reference.similarity([reference.paths(nodes, 0.9, 2.0, a_round=CLASSES), x])
    average = {"nodes": lambda y: joined @ y, "graph": lambda y: neighbors.propagate(s, y, 0.9)}[
        smooth
    ]
    one_hot = np.eye(CLASSES)[noisy]
    h = reference.evidence(average, one_hot, fold_of(), module.FOLDS)
    likelihoods = [reference.log_likelihood(a, h, one_hot, 1.0) for a in module.FACTORS]
    expected = module.FACTORS[np.argmax(likelihoods)] * h + one_hot
    np.testing.assert_allclose(scores(case, smooth, epsilon=1.0, alpha=0.9), expected, atol=2e-3)


def test_a_large_epsilon_names_the_noisy_labels_and_0_leaves_them_out():
    _, noisy, _, _, case = run_of(1.0)
    np.testing.assert_array_equal(scores(case, epsilon=1e3).argmax(axis=1), noisy)
    found = scores(case, epsilon=0.0)
    assert np.isfinite(found).all()
    assert np.mean(found.argmax(axis=1) == noisy) < 0.6  # others' noisy labels, not the row's own


def test_nodes_name_more_labels_than_the_noisy_ones_alone_and_nodes_of_no_label_hardly_fewer():
    labels, noisy, _, _, case = run_of(1.5)
    right = np.mean(noisy == labels)
    assert np.mean(scores(case, epsilon=1.5).argmax(axis=1) == labels) > right + 0.1
    labels, noisy, _, _, case = run_of(1.5, nodes_tell=False)
    found = scores(case, epsilon=1.5).argmax(axis=1)
    assert np.mean(found == labels) > np.mean(noisy == labels) - 0.03


def test_a_row_whose_gradients_name_no_class_is_scored_by_the_others():
    *_, case = run_of(1.0)
    g = case.run.exchange["gradients"].copy()
    g[:, 3] = 0
    case = case._replace(run=case.run._replace(exchange=case.run.exchange | {"gradients": g}))
    found = scores(case, epsilon=50.0)
    assert np.isfinite(found).all()
    assert np.abs(found[3]).max() < 50 <= np.abs(np.delete(found, 3, axis=0)).max(axis=1).min() + 40
