"""The spectral attack: singular vectors, clusters on the line, batches, k-means; against the NumPy twin."""

import functools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from tests.attacks import cases
from tests.reference import spectral as reference
from vfljax.attacks.spectral import directions, spectral, threshold, two_clusters

few = settings(deadline=None, max_examples=15, database=None, derandomize=True)
jitted_directions = harness.quick_jit(directions, static_argnums=1)
jitted_threshold = harness.quick_jit(threshold)
jitted_clusters = harness.quick_jit(two_clusters, static_argnums=(2, 3))

FORMS = [(False, "minority"), (False, "larger"), (True, "minority"), (True, "larger")]
every_form = pytest.mark.parametrize(("absolute", "heuristic"), FORMS)


def blobs(seed, rows=20, width=4):
    """Rows around two points, one in four around the second."""
    rng = np.random.default_rng(seed)
    rare = np.arange(rows) % 4 == 0
    z = rng.normal(size=(rows, width)) + 3.0 * rare[:, None] * rng.normal(size=(1, width))
    return np.float32(z)


def ours(z, absolute=False, heuristic="minority", weights=None):
    weights = np.ones(len(z), np.float32) if weights is None else np.float32(weights)
    return np.asarray(jitted_clusters(np.float32(z), weights, absolute, heuristic == "minority"))


def in_units(s):
    """Scores without their origin and scale."""
    s = np.asarray(s, np.float64)
    s = s - s.mean()
    return s / np.abs(s).max()


@every_form
@given(seed=st.integers(0, 2**16), width=st.sampled_from([1, 4]))
@few
def test_a_batch_agrees_with_the_twin_up_to_units(absolute, heuristic, seed, width):
    z = blobs(seed, width=width)
    expected, positive = reference.positives(z, absolute, heuristic)
    scores = ours(z, absolute, heuristic)
    if 2 * np.sum(positive) == len(z) and (scores > 0)[0] != positive[0]:
        scores = -scores  # of clusters of equal size either may be called positive
    np.testing.assert_array_equal(scores > 0, positive)
    np.testing.assert_allclose(in_units(scores), in_units(expected), atol=1e-4)


def test_a_direction_of_rows_of_rank_one_is_theirs_and_no_rows_have_none():
    direction = np.array([3.0, 0.0, -4.0]) / 5
    x = np.outer([1.0, -2.0, 1.0], direction)
    scores = np.asarray(jitted_directions(np.float32(x), 1))[:, 0]
    np.testing.assert_allclose(np.abs(scores @ direction), 1, atol=1e-6)
    np.testing.assert_array_equal(jitted_directions(np.zeros((5, 3), np.float32), 2), 0)


@given(seed=st.integers(0, 2**16), levels=st.sampled_from([3, 1000]), spare=st.integers(0, 4))
@few
def test_the_cut_is_the_best_of_all_cuts_also_with_ties_and_rows_left_out(seed, levels, spare):
    rng = np.random.default_rng(seed)
    s = np.float32(rng.integers(levels, size=12) + 5.0 * (rng.random(12) < 0.3))
    weights = np.arange(12) < 12 - spare
    values = np.where(weights, s, 1e6)  # what is left out may be anything
    cut = jitted_threshold(np.float32(values), np.float32(weights))
    counted = s[weights]

    def within(upper):
        parts = [counted[upper], counted[~upper]]
        return sum(((part - part.mean()) ** 2).sum() for part in parts if len(part))

    best = within(reference.two_means(counted))
    np.testing.assert_allclose(within(counted > float(cut)), best, rtol=1e-5, atol=1e-5)


@every_form
def test_equal_rows_a_single_row_and_a_constant_column_are_finite(absolute, heuristic):
    equal = np.tile(np.float32([0.1, 1 / 3, -7.0, 5.0]), (20, 1))
    np.testing.assert_allclose(ours(equal, absolute, heuristic), 0, atol=1e-6)
    np.testing.assert_array_equal(ours(equal[:1], absolute, heuristic), 0)
    constant = blobs(1)
    constant[:, 2] = 5.0
    expected, positive = reference.positives(constant, absolute, heuristic)
    scores = ours(constant, absolute, heuristic)
    np.testing.assert_array_equal(scores > 0, positive)
    np.testing.assert_allclose(in_units(scores), in_units(expected), atol=1e-4)


def test_rows_left_out_play_no_part():
    z, weights = blobs(5), np.arange(20) % 4 > 0
    garbage = np.where(weights[:, None], z, np.float32(1e6))
    scores = ours(garbage, weights=weights)[weights]
    np.testing.assert_allclose(scores, ours(z[weights]), atol=1e-5)


# The attack as a whole.


def run(case, **options):
    one = cases.build(spectral, 2, **options)
    return np.asarray(cases.attack(one, case, **one.knobs).train)


def stored(rows, sent=None, epochs=1):
    z = np.stack([blobs(10 + e, rows) for e in range(epochs)])
    labels = np.arange(rows) % 2
    return z, cases.make_case(labels, 2, embeddings=z, gradients=2 * z, sent=sent)


@pytest.mark.parametrize("rows", [60, 50, 7], ids=["whole batches", "a short last one", "B > N"])
def test_every_batch_is_clustered_alone(rows):
    z, case = stored(rows)
    scores = run(case)
    np.testing.assert_array_equal(scores[:, 0], -scores[:, 1])
    for first in range(0, rows, cases.BATCH):
        in_batch = slice(first, first + cases.BATCH)
        expected, positive = reference.positives(z[0, in_batch])
        np.testing.assert_array_equal(scores[in_batch, 1] > 0, positive)
        np.testing.assert_allclose(in_units(scores[in_batch, 1]), in_units(expected), atol=1e-4)


def test_whole_clusters_the_epoch_at_once():
    z, case = stored(50)
    expected, positive = reference.positives(z[0])
    scores = run(case, whole=True)[:, 1]
    np.testing.assert_array_equal(scores > 0, positive)
    np.testing.assert_allclose(in_units(scores), in_units(expected), atol=1e-4)


def test_signal_and_epoch_say_what_is_read():
    z, case = stored(20, epochs=2)
    first, _ = reference.positives(z[0])
    last, _ = reference.positives(z[1])
    both, _ = reference.positives(z[0] + z[1])
    votes, _ = reference.positives(np.sign(z[0]) + np.sign(z[1]))
    forms = (
        ({"epoch": 0}, first),
        ({}, last),
        ({"signal": "gradients"}, last),
        ({"signal": cases.LAYER}, last),
        ({"signal": "gradients", "whole": True, "epoch": "mean"}, both),
        ({"signal": "gradients", "whole": True, "epoch": "votes"}, votes),
    )
    results = cases.attack_all([cases.build(spectral, 2, **options) for options, _ in forms], case)
    for scores, (_, expected) in zip(results, forms):
        np.testing.assert_allclose(in_units(scores.train[:, 1]), in_units(expected), atol=1e-4)


# More than two classes.


@functools.cache
def many(classes, apart):
    rng = np.random.default_rng(classes)
    labels = np.arange(40 * classes) % classes
    centers = apart * np.eye(classes, 6)
    return labels, np.float32(rng.normal(size=(len(labels), 6)) + centers[labels])


@pytest.mark.parametrize("oracle", [False, True])
@pytest.mark.parametrize(("classes", "apart"), [(3, 12.0), (5, 12.0), (3, 0.0), (5, 0.0)])
def test_more_classes_are_found_where_they_stand_apart_and_not_in_noise(classes, apart, oracle):
    labels, z = many(classes, apart)
    sent = (np.arange(len(labels)) < len(labels) - 7)[None]
    case = cases.make_case(labels, classes, embeddings=z[None], gradients=z[None], sent=sent)
    one = cases.build(spectral, classes, oracle=oracle)
    # whoever runs the oracle form hands it all labels
    knobs = {"known": np.float32(len(labels) if oracle else 40)}
    case = case._replace(run=case.run._replace(knobs=knobs))
    scores = np.asarray(cases.attack(one, case).train)
    np.testing.assert_array_equal(np.isnan(scores).any(axis=1), ~sent[0])
    hit = np.mean(scores[sent[0]].argmax(axis=1) == labels[sent[0]])
    if apart:
        assert hit == 1
    else:  # names by all labels fit the noise a little
        assert hit < 1 / classes + (0.2 if oracle else 0.12)
