"""What parties deviate in what they send: against NumPy, at 0, and as one traced number."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.federation.protocol_test import assert_same_nets, nets_of
from tests.reference import protocol as reference
from tests.reference import uploads as twin
from vfljax import keys
from vfljax.errors import UserError
from vfljax.federation import uploads
from vfljax.federation.protocol import make_step
from vfljax.sweep.grid import parse
from vfljax.types import MALICIOUS

DEVIATIONS = {"scale": 2.0, "constant": 0.6, "repeat": 0.5, "swap": 0.5}
STEPS = 3


def test_every_deviation_is_tested():
    assert {"honest", *DEVIATIONS} == set(uploads.TABLE)


def trained(upload, strength, **changes):
    """(initial state, batches, final state, exchanges) of a federation whose first party deviates."""
    spec = dataclasses.replace(harness.make_spec(**changes), upload=upload)
    hparams = harness.make_hparams(spec, strength=[strength, 0.0, 0.0])
    batches = [harness.make_batch(spec, i) for i in range(STEPS)]
    initial = harness.make_state(spec, hparams, seed=1)
    final, exchanges, _ = harness.run_steps(spec, hparams, batches, seed=1)
    return initial, batches, final, exchanges


def uniform(initial, step):
    key = keys.fold(initial.run_key, "step", step)
    return np.asarray(jax.random.uniform(keys.fold(key, "upload", 0), (8, 1)))[:, 0]


@pytest.mark.parametrize("changes", [{}, {"split": False}], ids=["split", "no split"])
@pytest.mark.parametrize(("upload", "strength"), DEVIATIONS.items())
def test_steps_agree_with_the_numpy_twin(upload, strength, changes):
    initial, batches, final, exchanges = trained(upload, strength, **changes)
    bottoms, top = nets_of(initial.weights)
    state = reference.start([*bottoms, top or []])
    for number, (batch, exchange) in enumerate(zip(batches, exchanges)):

        def deviate(net, z, batch=batch, number=number):
            anchor = reference.forward(net, np.float64(batch.anchor[0]))[0][0]
            return twin.sent(upload, z, anchor, strength, uniform(initial, number))

        bottoms, top, state, expected = reference.step(
            bottoms,
            top,
            state,
            [np.float64(x) for x in batch.features],
            np.eye(5)[np.asarray(batch.labels)],
            lr=0.1,
            mu=0.9,
            wd=5e-4,
            uploads=[deviate, *[lambda net, z: (z, 1.0)] * 2],
        )
        for p in range(2):
            np.testing.assert_allclose(exchange.embeddings[p], expected.embeddings[p], atol=1e-5)
            np.testing.assert_allclose(exchange.gradients[p], expected.gradients[p], atol=1e-6)
    for variables, net in zip(final.weights.bottoms, bottoms):
        assert_same_nets(variables, net, 1e-5)


@pytest.mark.parametrize("upload", [*DEVIATIONS, "honest"])
def test_a_strength_of_zero_changes_no_bit_of_what_is_sent_and_comes_back(upload):
    z, gradient = jax.random.normal(jax.random.key(1), (2, 8, 4))

    def sent(z):
        return uploads.TABLE[upload].send(jax.random.key(0), z, jnp.ones((1, 4)), jnp.float32(0))

    out, pullback = jax.vjp(sent, z)
    np.testing.assert_array_equal(out, z)
    np.testing.assert_array_equal(pullback(gradient)[0], gradient)


@pytest.mark.parametrize("upload", DEVIATIONS)
def test_a_step_at_a_strength_of_zero_is_the_honest_one(upload):
    """Up to rounding: it is another program, whose products may be fused otherwise."""
    honest, neutral = (trained(name, 0.0)[2].weights for name in ("honest", upload))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-6), honest, neutral)


def test_a_party_that_takes_no_part_sends_and_does_not_learn():
    initial, _, final, exchanges = trained("honest", -1.0)
    _, _, _, honest = trained("honest", 0.0)
    for after, before in zip(
        jax.tree.leaves(final.weights.bottoms[0]), jax.tree.leaves(initial.weights.bottoms[0])
    ):
        np.testing.assert_allclose(after, before, rtol=1e-3)  # weight decay
    np.testing.assert_array_equal(exchanges[0].embeddings[0], honest[0].embeddings[0])
    np.testing.assert_array_equal(exchanges[0].gradients[0], honest[0].gradients[0])
    assert not np.allclose(exchanges[1].embeddings[1], exchanges[0].embeddings[1])


def test_at_strength_one_all_rows_of_a_batch_are_sent_as_one():
    for upload in ("constant", "swap"):
        for exchange in trained(upload, 1.0)[-1]:
            sent = np.asarray(exchange.embeddings[0])
            np.testing.assert_allclose(sent, sent[:1].repeat(len(sent), axis=0), atol=1e-6)


@pytest.mark.parametrize(("upload", "strength"), DEVIATIONS.items())
def test_one_program_serves_all_strengths(upload, strength):
    spec = dataclasses.replace(harness.make_spec(), upload=upload)
    hparams = harness.make_hparams(spec)
    initial, batch = harness.make_state(spec, hparams, seed=1), harness.make_batch(spec, 0)
    strengths = jnp.float32([0.0, strength])[:, None] * jnp.float32([1, 0, 0])[None]

    def sent(strengths):
        return make_step(spec)(initial, batch, hparams._replace(strength=strengths))[1]

    both = jax.jit(jax.vmap(sent))(strengths)
    for place, alone in enumerate((0.0, strength)):
        expected = trained(upload, alone)[-1][0].embeddings[0]
        np.testing.assert_allclose(both.embeddings[0][place], expected, atol=1e-6)
    assert not np.array_equal(both.embeddings[0][0], both.embeddings[0][1])


@pytest.mark.parametrize(
    ("malicious", "message"),
    [
        ({"upload": "lie"}, "upload"),
        (
            {"upload": "swap", "strength": 1.5},
            "from 0 to 1. It is that of config.malicious.upload='swap'",
        ),
        ({"strength": 0.5}, "from 0 to 0. It is that of config.malicious.upload='honest'"),
        ({"upload": "scale", "strength": -1.0}, "from 0 to"),
    ],
)
def test_what_no_party_can_send_is_refused(malicious, message):
    with pytest.raises(UserError, match=message):
        parse({"malicious": malicious, "federations": ("split", MALICIOUS)})
