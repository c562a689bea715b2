"""Two-stage: the labels the direct attack reads are the known rows of a model completion."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

from tests.attacks import cases
from vfljax import keys
from vfljax.attacks.completion import passive, two_stage
from vfljax.attacks.core import NO_SPLIT
from vfljax.types import Known

ROWS, CLASSES = 60, 3
QUICK = {"steps": 12, "batch_size": 4}


@functools.cache
def run_with(count):
    """A run whose gradients give ``count`` labels away, the others have no negative entry; and which
    rows those are."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, ROWS)
    g = rng.dirichlet(np.ones(CLASSES), ROWS) - np.eye(CLASSES)[labels]
    told = rng.permutation(ROWS) < count
    g = np.where(told[:, None], g, 1.0)
    z = np.zeros((1, ROWS, CLASSES))
    return labels, told, cases.make_case(labels, CLASSES, gradients=g[None], embeddings=z, known=0)


def completion_fed(case, rows, labels, count, key):
    """The completion's scores, told these labels of these rows."""
    one = passive(cases.BOTTOMS, CLASSES, **QUICK)
    view, _ = cases.sight(case)
    known = Known(jnp.int32(rows), jnp.int32(labels), jnp.int32(count))
    knobs = {name: np.float32(value) for name, value in one.knobs.items()}
    return cases.jitted(one.run)(key, view, known, knobs)


@functools.cache
def made():
    return two_stage(cases.BOTTOMS, CLASSES, **QUICK)  # once: it is compiled once


def two(case, key):
    return cases.attack(made(), case, key)


def queue(told, key):
    """Rows with a guess first, in the attack's random order."""
    draw = jax.random.uniform(keys.fold(key, "rows"), told.shape)
    return np.argsort(np.where(told, draw, 2.0), kind="stable")


def test_with_every_label_found_it_is_the_completion_fed_those_labels():
    labels, told, case = run_with(ROWS)
    key = keys.run_key(3)
    rows = queue(told, key)
    np.testing.assert_array_equal(np.sort(rows), np.arange(ROWS))
    expected = completion_fed(case, rows, labels[rows], ROWS, key)
    found = two(case, key)
    np.testing.assert_allclose(found.train, expected.train, atol=1e-5)
    np.testing.assert_allclose(found.test, expected.test, atol=1e-5)


def test_rows_without_a_guess_are_unlabeled():
    labels, told, case = run_with(20)
    key = keys.run_key(4)
    rows = queue(told, key)
    assert set(rows[:20]) == set(np.flatnonzero(told))
    own = np.where(told, labels, -1)[rows]
    expected = completion_fed(case, rows, own, 20, key)
    found = two(case, key)
    np.testing.assert_allclose(found.train, expected.train, atol=1e-5)
    # their labels are read by nobody
    other = completion_fed(case, rows, np.where(own < 0, 2, own), 20, key)
    np.testing.assert_array_equal(other.train, expected.train)


def test_rows_never_sent_are_unlabeled_too():
    labels, _, case = run_with(ROWS)
    sent = np.arange(ROWS) < 50
    hidden = {**case.target.exchange, "sent": sent[None]}
    case = case._replace(target=case.target._replace(exchange=hidden))
    key = keys.run_key(5)
    rows = queue(sent, key)
    expected = completion_fed(case, rows, np.where(sent, labels, -1)[rows], 50, key)
    np.testing.assert_allclose(two(case, key).train, expected.train, atol=1e-5)


def test_without_any_guess_scores_are_finite():
    _, _, case = run_with(0)
    assert np.isfinite(two(case, keys.run_key(0)).train).all()


def test_it_needs_no_known_label_and_a_federation_without_a_top_model():
    one = two_stage(cases.BOTTOMS, CLASSES, epoch=4)
    assert one.structure == NO_SPLIT
    assert "known" not in one.knobs
    assert one.epoch == 4
    assert not one.oracle
