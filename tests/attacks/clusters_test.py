"""Clusters of columns: against the twin, and at its limits."""

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

CLASSES, ROWS, COUNT, DRAWS = 3, 40, 4, 3


def test_the_scores_are_the_twin_s(monkeypatch):
    monkeypatch.setattr(module, "DRAWS", DRAWS)
    rng, labels = np.random.default_rng(4), np.arange(ROWS) % CLASSES
    arrays = cases.LEAKS["tops_and_features"](rng, labels, CLASSES)
    arrays["features"] = arrays["features"] + 2.5 * rng.normal(size=(ROWS, cases.OWN_COLUMNS))
    case = cases.make_case(labels, CLASSES, known=10, cut=CLASSES, **arrays)
    view, known = cases.seen_of(case)
    key, seen = jax.random.key(1), seen_of(view, known, 0)
    z, g, x = (np.asarray(a, np.float64) for a in (seen.z, seen.g, view.features[0]))
    k_means = harness.quick_jit(spectral.k_means, static_argnums=3)
    found = k_means(keys.fold(key, "clusters"), view.features[0], seen.sent * 1.0, COUNT)
    best = (-1, None, None)
    for draw in jax.random.split(keys.fold(key, "top"), DRAWS):
        w = np.float64(enumeration.drawn(draw, CLASSES, CLASSES)[0])
        classes_of, value = reference.best_map(w, z, g, np.asarray(found), COUNT)
        best = max(best, (value, classes_of, w.tolist()))
    value, classes_of, w = best
    attack = cases.build(module.ROW, CLASSES, CLASSES, names="none", count=COUNT)
    for weight in (0.0, 1.0):
        args = np.array(w), z, g, x, np.asarray(found), classes_of
        expected = reference.scores(*args, weight * value)
        got = cases.attack(attack, case, key, gradient=weight).train
        np.testing.assert_allclose(got, expected, atol=1e-3)


def test_beyond_the_most_maps_it_is_the_best_one_to_one_map():
    along = np.random.default_rng(0).normal(size=(6, 6)).astype(np.float32)
    found, _ = harness.quick_jit(module.best_map)(along, np.ones((6, 6), np.float32))
    every = itertools.permutations(range(6))
    assert tuple(found) == max(every, key=lambda m: sum(along[k, c] for k, c in enumerate(m)))


def test_too_many_maps_are_refused_but_as_many_clusters_as_classes_are_not():
    assert all(module.ROW(cases.ONE_BOTTOM, c, count=count) for c, count in ((4, 6), (10, 10)))
    with pytest.raises(ValueError, match="count=7 has over 4096 maps"):
        module.ROW(cases.ONE_BOTTOM, 4, count=7)
