"""Adversarial training: its steps against the twin, its limits, and who it acts on."""

import types

import jax
import jax.numpy as jnp
import numpy as np

from tests import harness
from tests.reference import adversary as reference
from vfljax.defenses.adversary import adversary
from vfljax.defenses.core import Scoped, TrainingData
from vfljax.types import CutLayer

ROWS, CLASSES = 10, 3
RNG = np.random.default_rng(0)
Z = [RNG.normal(size=(ROWS, 4)).astype(np.float32) for _ in range(2)]
LABELS = RNG.integers(CLASSES, size=ROWS)
CONTEXT = types.SimpleNamespace(labels=jnp.asarray(LABELS))
LAYER = CutLayer(widths=(4, 4, 4))


def bare_loss(active, f, embeddings, targets, context, scoped):
    value = sum(jnp.sum(z**2) for z in embeddings)
    return value, ("logits", "variables", scoped._replace(others=scoped.others + 1))


@harness.quick_jit
def start():
    data = TrainingData(jnp.asarray(LABELS), None, CLASSES, LAYER)
    return adversary(1.0, hidden=5).init(jax.random.key(0), data)


@harness.quick_jit
def step(strength, rate, state, embeddings):
    """(loss, gradients of the embeddings, the new state, the rest of the chain's)"""
    loss_fn = adversary(strength, rate, hidden=5).loss(bare_loss)

    def loss(embeddings):
        value, (_, _, scoped) = loss_fn(
            {}, None, embeddings, None, CONTEXT, Scoped(state, jnp.int32(7))
        )
        return value, scoped

    (value, scoped), gradients = jax.value_and_grad(loss, has_aux=True)(embeddings)
    return value, gradients, scoped.state, scoped.others


def test_three_steps_are_the_twins_of_a_network_for_each_party():
    state = before = start()
    assert np.any(before.networks[0][0][0] != before.networks[1][0][0])
    twins = [[tuple(np.float64(x) for x in layer) for layer in n] for n in state.networks[:2]]
    adams = [None, None]
    for i in range(3):
        embeddings = [z + np.float32(0.1 * i) for z in Z]
        value, gradients, state, others = step(0.7, 0.05, state, embeddings)
        expected = 0.0
        for p, z in enumerate(np.float64(embeddings)):
            twins[p], adams[p] = reference.descend(twins[p], adams[p], z, LABELS, 0.05)
            expected += np.sum(z**2) - 0.7 * reference.entropy(twins[p], z, LABELS)
            by_z = 2 * z - 0.7 * reference.gradients(twins[p], z, LABELS)[1]
            np.testing.assert_allclose(gradients[p], by_z, rtol=1e-4, atol=1e-5)
            harness.assert_close(state.networks[p], twins[p], 1e-4)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        assert others == 8  # what the chain's other members keep is handed on
    # the label party's adversary is not trained
    harness.assert_same_bits(state.networks[2], before.networks[2])
