"""The spectral attack: singular vectors, clusters on the line, batches, k-means; against the NumPy twin."""

import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import spectral as reference
from vfljax.attacks.spectral import spectral, two_clusters

ROWS = 20
FORMS = [(False, "minority"), (False, "larger"), (True, "minority"), (True, "larger")]
clusters_by_form = harness.quick_jit(
    lambda z, weights: [two_clusters(z, weights, a, h == "minority") for a, h in FORMS]
)


def blobs(seed, rows=ROWS):
    """Rows around two points, one in four around the second."""
    rng = np.random.default_rng(seed)
    rare = np.arange(rows) % 4 == 0
    z = rng.normal(size=(rows, 4)) + 3.0 * rare[:, None] * rng.normal(size=(1, 4))
    return np.float32(z)


def constant_column(seed):
    z = blobs(seed)
    z[:, 2] = 5.0
    return z


def ours(z, weights=None):
    """The scores by each of ``FORMS``."""
    weights = np.ones(len(z)) if weights is None else weights
    return [np.asarray(scores) for scores in clusters_by_form(z, np.float32(weights))]


def in_units(s):
    """Scores without their origin and scale."""
    s = np.asarray(s, np.float64)
    s = s - s.mean()
    return s / np.abs(s).max()


def assert_clustered(scores, z, *form):
    """As by the twin, up to units."""
    expected, positive = reference.positives(z, *form)
    if 2 * np.sum(positive) == len(z) and (scores > 0)[0] != positive[0]:
        scores = -scores  # of clusters of equal size either may be called positive
    np.testing.assert_array_equal(scores > 0, positive)
    np.testing.assert_allclose(in_units(scores), in_units(expected), atol=1e-4)


@pytest.mark.parametrize("z", [*map(blobs, range(6)), constant_column(1)])
def test_a_batch_agrees_with_the_twin_up_to_units(z):
    for form, scores in zip(FORMS, ours(z)):
        assert_clustered(scores, z, *form)


def test_equal_rows_and_a_single_row_are_0_and_rows_left_out_play_no_part():
    equal = np.tile(np.float32([0.1, 1 / 3, -7.0, 5.0]), (ROWS, 1))
    for weights in (np.ones(ROWS), np.arange(ROWS) == 3):
        np.testing.assert_allclose(ours(equal, weights), 0, atol=1e-6)
    z, weights = blobs(5), np.arange(ROWS) % 4 > 0
    garbage = np.where(weights[:, None], z, np.float32(1e6))
    for form, scores in zip(FORMS, ours(garbage, weights)):
        assert_clustered(scores[weights], z[weights], *form)


def test_batches_are_clustered_alone_or_a_whole_epoch_of_the_signal_that_is_asked_for():
    rows = 50  # the last batch is shorter
    z = np.stack([blobs(10, rows), blobs(11, rows)])
    case = cases.make_case(np.arange(rows) % 2, 2, embeddings=z, gradients=z[::-1])
    whole = {"whole": True}
    forms = (
        ({}, z[1]),
        ({"epoch": 0, "signal": "gradients"}, z[1]),
        ({"epoch": 0, **whole}, z[0]),
        ({"signal": cases.LAYER, **whole}, z[1]),
        ({"signal": "gradients", "epoch": "votes", **whole}, np.sign(z[0]) + np.sign(z[1])),
    )
    results = cases.attack_all([cases.build(spectral, 2, **options) for options, _ in forms], case)
    for scores, (options, signal) in zip(results, forms):
        np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])
        size = rows if "whole" in options else cases.BATCH
        for first in range(0, rows, size):
            batch = slice(first, first + size)
            assert_clustered(scores[batch, 1], signal[batch])


def test_more_classes_are_found_by_k_means_and_named_by_known_rows_that_were_sent():
    classes = 5
    rng, labels = np.random.default_rng(classes), np.arange(40 * classes) % classes
    z = np.float32(rng.normal(size=(len(labels), 6)) + 12 * np.eye(classes, 6)[labels])
    sent = (np.arange(len(labels)) < len(labels) - 7)[None]
    case = cases.make_case(labels, classes, embeddings=z[None], gradients=z[None], sent=sent)
    scores = np.asarray(cases.attack(cases.build(spectral, classes), case).train)
    np.testing.assert_array_equal(np.isnan(scores).any(axis=1), ~sent[0])
    np.testing.assert_array_equal(scores[sent[0]].argmax(axis=1), labels[sent[0]])


@pytest.mark.parametrize(("classes", "options"), [(3, {"whole": True}), (2, {"oracle": True})])
def test_options_of_another_number_of_classes_are_refused(classes, options):
    with pytest.raises(ValueError, match="=True"):
        spectral(cases.ONE_BOTTOM, classes, **options)
