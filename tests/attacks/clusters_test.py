"""Clusters of columns: against the twin, what they read, and their limits."""

import itertools

import jax
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import clusters as reference
from vfljax import keys
from vfljax.attacks import clusters as module
from vfljax.attacks import enumeration, spectral
from vfljax.attacks.surrogate import seen_of
from vfljax.testing.exchanges import LEAKS


def clustered(classes=2, rows=60, known=10, noise=2.5):
    """Columns whose clusters overlap, and the exact gradients of a top model."""
    rng, labels = np.random.default_rng(4), np.arange(rows) % classes
    arrays = LEAKS["tops_and_features"](rng, labels, classes)
    features = arrays.pop("features") + noise * rng.normal(size=(rows, cases.WIDTH))
    case = cases.make_case(labels, classes, known=known, cut=classes, features=features, **arrays)
    return labels, case


def scores(case, classes=2, key=None, gradient=1.0, **options):
    attack = cases.build_without_splitting(module.ROW, classes, **options)
    return np.asarray(cases.attack(attack, case, key, gradient=gradient).train)


@pytest.mark.parametrize(("classes", "count"), [(2, 0), (2, 4), (3, 0)])
def test_the_scores_are_the_twin_s(classes, count):
    _, case = clustered(classes)
    view, known = cases.seen_of(case)
    key, seen, number = jax.random.key(1), seen_of(view, known, 0), count or classes
    z, g, x = (np.asarray(a, np.float64) for a in (seen.z, seen.g, view.features[0]))
    found = np.asarray(
        spectral.k_means(keys.fold(key, "clusters"), view.features[0], seen.sent * 1.0, number)
    )
    best = (-1, None, None)
    for draw in jax.random.split(keys.fold(key, "top"), module.DRAWS):
        w = np.float64(enumeration.drawn(draw, classes, classes)[0])
        classes_of, value = reference.best_map(w, z, g, found, number)
        best = max(best, (value, classes_of, w.tolist()))
    for weight in (0.0, 1.0):
        expected = reference.scores(np.array(best[2]), z, g, x, found, best[1], weight * best[0])
        got = scores(case, classes, key, weight, names="none", count=count)
        np.testing.assert_allclose(got, expected, atol=1e-3)


def test_beyond_the_most_maps_it_is_the_best_one_to_one_map():
    along = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    found, _ = harness.quick_jit(module.best_map)(along, np.ones((6, 6), np.float32))
    every = itertools.permutations(range(6))
    assert tuple(found) == max(every, key=lambda m: sum(along[k, c] for k, c in enumerate(m)))


def test_reads_more_than_clusters_tell():
    labels, case = clustered(rows=200, noise=6)
    alone, both = (np.mean(scores(case, gradient=w).argmax(axis=1) == labels) for w in (0.0, 1.0))
    assert both > 0.95 > alone + 0.05


def test_too_many_maps_are_refused_but_as_many_clusters_as_classes_are_not():
    assert all(module.ROW(cases.BOTTOMS, c, count=count) for c, count in ((4, 6), (10, 10)))
    with pytest.raises(ValueError, match="count=7 has over 4096 maps"):
        module.ROW(cases.BOTTOMS, 4, count=7)
