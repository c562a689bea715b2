"""What parties deviate in what they send: against NumPy, and at 0."""

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
from vfljax.sweep.grid import parse
from vfljax.types import MALICIOUS

DEVIATIONS = {"scale": 2.0, "constant": 0.6, "repeat": 0.5, "swap": 0.5}
STEPS = 2


@pytest.mark.parametrize("upload", uploads.TABLE)
def test_what_is_sent_and_what_comes_back_agree_with_the_twin_and_0_changes_no_bit(upload):
    z, gradient = jax.random.normal(jax.random.key(1), (2, 8, 4))
    key, anchor = jax.random.key(0), jnp.arange(4.0)
    uniform = np.asarray(jax.random.uniform(key, (8, 1)))[:, 0]

    @jax.jit
    def sent(strength):
        send = uploads.TABLE[upload].send
        out, pullback = jax.vjp(lambda z: send(key, z, anchor[None], strength), z)
        return out, pullback(gradient)[0]

    for ours, unchanged in zip(sent(jnp.float32(0)), (z, gradient)):
        np.testing.assert_array_equal(ours, unchanged)
    for strength in {upload: DEVIATIONS.get(upload, 0.0), "constant": 1.0, "swap": 1.0}.values():
        if upload == "honest":
            continue
        out, factor = twin.sent(upload, np.float64(z), np.float64(anchor), strength, uniform)
        ours = sent(jnp.float32(strength))
        np.testing.assert_allclose(ours[0], out, atol=1e-6)
        np.testing.assert_allclose(ours[1], factor * np.asarray(gradient), atol=1e-6)


def trained(upload, strength, absent=0.0):
    """(initial state, batches, final state, exchanges) of a federation whose first party deviates."""
    spec = dataclasses.replace(harness.make_spec(), upload=upload)
    hparams = harness.make_hparams(spec, strength=[strength, 0.0, 0.0], absent=[absent, 0.0, 0.0])
    batches = harness.make_batches(spec, STEPS)
    initial = harness.make_state(spec, hparams, seed=1)
    final, exchanges, _ = harness.run_steps(spec, hparams, batches, seed=1)
    return initial, batches, final, exchanges


def test_steps_in_which_one_party_swaps_agree_with_the_numpy_twin():
    """The other parties are honest, and the anchor is embedded by the party's own current weights."""
    initial, batches, final, exchanges = trained("swap", 0.5)
    bottoms, top = nets_of(initial.weights)
    state = reference.start([*bottoms, top or []])
    for number, (batch, exchange) in enumerate(zip(batches, exchanges)):
        key = keys.fold(initial.run_key, "step", number)
        uniform = np.asarray(jax.random.uniform(keys.fold(key, "upload", 0), (8, 1)))[:, 0]

        def deviate(net, z, batch=batch, uniform=uniform):
            anchor = reference.forward(net, np.float64(batch.anchor[0]))[0][0]
            return twin.sent("swap", z, anchor, 0.5, uniform)

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


def test_a_party_that_takes_no_part_sends_and_does_not_learn():
    initial, _, final, exchanges = trained("honest", 0.0, absent=1.0)
    *_, honest = trained("honest", 0.0)
    after, before = (harness.numbers(state.weights.bottoms[0]) for state in (final, initial))
    for one, other in zip(after, before, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-3)  # weight decay
    np.testing.assert_array_equal(exchanges[0].embeddings[0], honest[0].embeddings[0])
    np.testing.assert_array_equal(exchanges[0].gradients[0], honest[0].gradients[0])


@pytest.mark.parametrize(
    ("malicious", "message"),
    [
        ({"upload": "lie"}, "upload"),
        ({"upload": "swap", "strength": 1.5}, "from 0 to 1.*upload='swap'"),
        ({"strength": 0.5}, "from 0 to 0.*upload='honest'"),
        ({"upload": "scale", "strength": -1.0}, "from 0 to"),
    ],
)
def test_what_no_party_can_send_is_refused(malicious, message):
    with pytest.raises(UserError, match=message):
        parse({"malicious": malicious, "federations": ("split", MALICIOUS)})
