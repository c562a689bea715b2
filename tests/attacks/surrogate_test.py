"""The surrogate top: its loss against the twin and finite differences, what it reads, and its limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import surrogate as reference
from tests.reference.common import differences
from vfljax.attacks.surrogate import Seen, make_loss, surrogate
from vfljax.tasks import regression
from vfljax.types import MALICIOUS, SPLIT

ROWS, CLASSES, CUT, HIDDEN, LOST, NAMED = 7, 3, 2, 4, 5, 2
WEIGHTS = {"cross_entropy": 0.3, "balance": 0.7, "anchor": 2.0}


def small():
    """Parameters, u, and what a tiny exchange looks like; one row is known, one is not sent."""
    rng = np.random.default_rng(0)
    shapes = ((HIDDEN, CUT), (HIDDEN,), (CLASSES, HIDDEN), (CLASSES,))
    parameters = [rng.normal(size=shape) for shape in shapes]
    u, z, g = (rng.normal(size=(ROWS, w)) for w in (CLASSES, CUT, CUT))
    sent, labels = np.arange(ROWS) != LOST, np.where(np.arange(ROWS) == NAMED, 1, -1)
    return parameters, u, (z * sent[:, None], g * sent[:, None], sent, labels)


def logits_of(parameters, z):
    w, b, v, c = parameters
    return jnp.tanh(z @ w.T + b[None]) @ v.T + c[None]


@harness.quick_jit
def loss_and_slopes(parameters, u, seen, weights):
    return jax.value_and_grad(make_loss(logits_of, seen, weights))((parameters, u))


@pytest.mark.parametrize("weights", [WEIGHTS, {**WEIGHTS, "anchor": 0.0}])
def test_the_loss_and_its_gradient_are_those_of_the_numpy_twin(weights):
    parameters, u, parts = small()
    z, g, sent, labels = parts
    seen = Seen(np.float32(z), np.float32(g), sent, np.int32(labels), labels >= 0)
    in_float32 = [np.float32(part) for part in parameters], np.float32(u)
    value, (by_parameters, by_u) = loss_and_slopes(*in_float32, seen, weights)
    np.testing.assert_allclose(value, reference.loss(parameters, u, *parts, **weights), rtol=1e-5)
    expected = differences(lambda u: reference.loss(parameters, u, *parts, **weights), u)
    np.testing.assert_allclose(by_u, expected, atol=1e-5)
    # a known row and one that was not sent have no label to learn
    np.testing.assert_array_equal(np.asarray(by_u)[[NAMED, LOST]], 0)
    for place, got in enumerate(by_parameters):

        def changed(part, place=place):
            other = [*parameters[:place], part, *parameters[place + 1 :]]
            return reference.loss(other, u, *parts, **weights)

        expected = differences(changed, parameters[place])
        np.testing.assert_allclose(got, expected, atol=1e-4)


def scores(case, classes, **options):
    one = cases.build(surrogate, classes, steps=200, **options)
    return np.asarray(cases.attack(one, case, learning_rate=0.1).train)


def tops(classes, known):
    """A run with the exact gradients of a top model, whose embeddings overlap; and the same in other units."""
    rng, rows = np.random.default_rng(7), 120
    labels = rng.permutation(rows) % classes
    arrays = cases.LEAKS["tops"](rng, labels, classes)
    z, g = (np.asarray(arrays[part]) for part in ("embeddings", "gradients"))
    moved = {"embeddings": 3 + 100 * z, "gradients": g / 100}
    return labels, *(cases.make_case(labels, classes, known=known, **a) for a in (arrays, moved))


def test_reads_labels_that_embeddings_do_not_give_away_in_any_units():
    labels, *both = tops(CLASSES, 12)
    embeddings = both[0].run.exchange["embeddings"][-1]
    assert np.mean(embeddings.argmax(axis=1) == labels) < 0.92
    for case in both:
        assert np.mean(scores(case, CLASSES, hidden=8).argmax(axis=1) == labels) > 0.97


def test_an_attacker_without_labels_tells_two_classes_apart_and_may_exchange_their_names():
    labels, blind, _ = tops(2, 0)
    found, beside = (scores(case, 2, names="none", hidden=0) for case in (blind, tops(2, 40)[1]))
    apart = np.mean(found.argmax(axis=1) == labels)
    assert max(apart, 1 - apart) > 0.97
    np.testing.assert_array_equal(found, beside)
    one, other = (surrogate(cases.ONE_BOTTOM, 2, names=name) for name in ("known", "none"))
    assert one.federations == other.federations == (SPLIT, MALICIOUS)
    assert set(one.knobs) - set(other.knobs) == {"known"}
    assert (one.baselines, other.baselines) == (("logistic",), ())


@pytest.mark.parametrize("huber", [0.0, 0.5])
def test_the_gradients_of_the_parties_loss_of_numbers_are_explained_by_the_true_labels(huber):
    """Huber's are clipped, which the squared error would take for smaller residuals."""
    rng = np.random.default_rng(1)
    y, z = np.float32(rng.normal(size=(40, 1))), np.float32(rng.normal(size=(40, CUT)))
    top = np.float32(rng.normal(size=(CUT, 1)))

    def outputs(w, z):
        return z @ w

    g = 40 * jax.grad(lambda z: regression.loss(outputs(top, z), y, (), huber))(z)
    every = np.ones(40, bool)
    seen = Seen(z, g, every, np.full(40, -1, np.float32), ~every)
    weights = {"cross_entropy": 0.0, "balance": 0.0, "anchor": 0.0}
    found = [float(make_loss(outputs, seen, weights, of)((top, y))) for of in (huber, 0.0)]
    assert found[0] < 1e-5
    assert (found[1] > 0.1) == (huber > 0)
