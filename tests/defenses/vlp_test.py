"""VLP: its law and a step against the twin, what it hides, and its limits."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import vlp as reference
from vfljax.defenses import TABLE
from vfljax.defenses.vlp import best_guess, named, network, vectors
from vfljax.models import MLP, Generator, Head
from vfljax.testing import of_defenses

CLASSES, EPSILON, ROWS = 3, 1.5, 60_000
KEY = jax.random.key(3)
draw = harness.quick_jit(vectors, static_argnums=2)


def federation(epsilon, **changes):
    spec = harness.make_spec(CLASSES, ("vlp",), **changes)
    return spec, harness.make_hparams(spec, {"vlp": {"epsilon": epsilon}})


def test_vectors_have_the_law_of_the_twin_and_not_that_of_half_as_much_epsilon_again():
    labels = jnp.arange(ROWS, dtype=jnp.int32) % CLASSES
    z = np.asarray(draw(KEY, labels, CLASSES, EPSILON))
    every = reference.every_vector(CLASSES)
    place = np.argmax(np.all(z[:, None] == every, axis=2), axis=1)
    seen = [np.bincount(place[c::CLASSES], minlength=len(every)) for c in range(CLASSES)]
    seen = np.array(seen).T / (ROWS / CLASSES)
    np.testing.assert_allclose(seen, reference.law(every, EPSILON), atol=0.015)
    assert np.max(np.abs(seen - reference.law(every, 1.5 * EPSILON))) > 0.03


def test_a_class_is_named_among_the_bits_that_are_1_and_among_all_where_none_is():
    z = jnp.float32([[0, 1, 1], [0, 0, 0]])
    labels = np.asarray(named(KEY, jnp.tile(z, (3000, 1)))).reshape(-1, 2)
    np.testing.assert_allclose(
        np.bincount(labels[:, 0], minlength=3) / 3000, [0, 0.5, 0.5], atol=0.04
    )
    np.testing.assert_allclose(np.bincount(labels[:, 1]) / 3000, 1 / 3, atol=0.04)


def test_a_step_without_a_top_model_sends_the_twin_s_gradient_whose_signs_are_the_vectors():
    spec, hparams = federation(EPSILON, split=False)
    batch, before = harness.make_batch(spec, 0), harness.make_state(spec, hparams)
    _, (exchange,), (metrics,) = harness.run_steps(spec, hparams, [batch])
    logits = sum(
        np.asarray(x, np.float64) @ np.asarray(v["params"]["Dense_0"]["kernel"], np.float64)
        + np.asarray(v["params"]["Dense_0"]["bias"], np.float64)
        for x, v in zip(batch.features, before.weights.bottoms, strict=True)
    )
    z = np.asarray(before.defense["vlp"].vectors)[np.asarray(batch.index)]
    np.testing.assert_allclose(metrics.loss, reference.loss(logits, z), rtol=1e-5)
    for g in exchange.gradients:
        np.testing.assert_allclose(g, reference.logit_gradient(logits, z), atol=1e-6)
        np.testing.assert_array_equal(np.asarray(g) < 0, z == 1)


def test_nothing_depends_on_the_labels_of_batches_and_at_infinity_vectors_are_the_labels():
    spec, hparams = federation(EPSILON)
    true = of_defenses.random_batches(spec)
    false = true._replace(labels=(true.labels + 1) % CLASSES)
    state, (exchange, _) = of_defenses.run_members(spec, [hparams, hparams], [true, false])
    one, other = (of_defenses.member((state.weights, exchange), i) for i in range(2))
    harness.assert_same_bits(one, other)
    labels = jnp.arange(6, dtype=jnp.int32) % CLASSES
    np.testing.assert_array_equal(draw(KEY, labels, CLASSES, np.inf), np.eye(CLASSES)[labels])


def test_a_top_model_of_one_free_logit_gets_one_of_each_class_unless_it_is_extended_already():
    spec = harness.make_spec(2)
    one = dataclasses.replace(spec, top=Generator((5,), 2, weights="torch"))
    assert network(one).top == MLP((5,), 2, "leaky_relu", weights="torch")
    head = dataclasses.replace(spec, top=Head((5,), 2))
    assert network(head) is head
    with pytest.raises(ValueError, match="list vlp before"):
        network(TABLE["mid"].network(one))


@pytest.mark.parametrize("prior", [(0.5, 0.5), (0.9, 0.1), (0.5, 0.3, 0.15, 0.05)])
def test_the_best_guess_is_that_of_the_twin_s_enumeration(prior):
    for epsilon in (0.0, 0.3, 2.0, 30.0):
        expected = reference.best_guess(np.array(prior), epsilon)
        np.testing.assert_allclose(best_guess(epsilon, np.array(prior)), expected, rtol=1e-9)
    assert best_guess(np.inf, np.array(prior)) == 1.0
