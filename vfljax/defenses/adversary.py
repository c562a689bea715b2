"""Adversarial training: embeddings are trained against a network that reads labels (Ganin, Lempitsky 2015).

For every passive party the label party keeps an adversary a, a network of one hidden layer that reads
labels from the party's embedding z alone. On each batch

    (1) a descends CE(a(z), y) with Adam, while z is held constant
    (2) the loss becomes CE - lambda * CE(a(z), y), with the new a held constant

so that embeddings are pushed towards what the adversary reads wrongly.

Reference: the minimax game is that of Ganin and Lempitsky 2015 (gradient reversal). Its label form is
ours: benchmarks play it against a reader of private attributes.

Guarantee: none. The embeddings mislead this adversary; a reader that is fitted afterwards usually
recovers. Gradients still carry the label.

Scale: lambda weighs a mean cross entropy in nats against another. The term is not bounded from
below: a large lambda drives embeddings away without end.

Edge cases: lambda = 0 is exactly the undefended loss and gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.rows import READING, DefenseRow, Knower, Strengths
from vfljax.types import Array, PyTree


class AdversaryState(NamedTuple):
    """What the label party keeps between batches, one entry a party."""

    networks: tuple[PyTree, ...]  # as ``init_network`` returns them
    optimizers: tuple[PyTree, ...]  # Adam's


def init_network(key: Array, width: int, hidden: int, num_classes: int) -> PyTree:
    """(kernel [in, out], bias [out]) of each layer of ``width`` -> ``hidden`` -> C. Kernels are
    normal with variance 1/in, biases 0."""
    layers = []
    for i, (fan_in, out) in enumerate(((width, hidden), (hidden, num_classes))):
        kernel = jax.random.normal(keys.fold(key, i), (fan_in, out)) * fan_in**-0.5
        layers.append((kernel, jnp.zeros(out)))
    return tuple(layers)


def entropy(network: PyTree, z: Array, labels: Array) -> Array:
    """The mean cross entropy [] of a ``network``'s reading of ``z`` [B, D] to ``labels`` [B]."""
    chex.assert_rank([z, labels], [2, 1])
    (kernel, bias), (last, last_bias) = network
    logits = jax.nn.relu(z @ kernel + bias[None]) @ last + last_bias[None]
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))


def adversary(
    lambda_adv: Array | float, learning_rate: Array | float = 1e-2, *, hidden: int = 32
) -> core.Defense:
    """Adversarial training with lambda = ``lambda_adv`` >= 0.

    ``learning_rate`` >= 0 is that of the adversaries' Adam, and ``hidden`` their width. Labels are
    those that later slots may see: after label DP the randomized ones. Reduces to no defense at
    lambda = 0. Raises ``ValueError`` for a knob or option out of range.
    """
    errors.check("lambda_adv", lambda_adv, 0.0, jnp.inf)
    errors.check("learning_rate", learning_rate, 0.0, jnp.inf)
    if isinstance(hidden, bool) or not isinstance(hidden, int) or not 1 <= hidden <= 4096:
        raise ValueError(f"hidden={hidden!r} is out of range: choose an integer in [1, 4096].")
    adam = optax.adam(learning_rate)

    def init(key: Array, data: core.TrainingData) -> AdversaryState:
        networks = tuple(
            init_network(keys.fold(key, p), width, hidden, data.num_classes)
            for p, width in enumerate(data.cut_layer.widths)
        )
        return AdversaryState(networks, tuple(map(adam.init, networks)))

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, scoped):
            value, (logits, variables, scoped) = loss_fn(
                active, f, embeddings, targets, context, scoped
            )
            networks, states = map(list, scoped.state)
            for p, z in enumerate(embeddings):
                slope = jax.grad(entropy)(networks[p], jax.lax.stop_gradient(z), context.labels)
                update, states[p] = adam.update(slope, states[p], networks[p])
                networks[p] = optax.apply_updates(networks[p], update)
                value -= lambda_adv * entropy(networks[p], z, context.labels)
            state = AdversaryState(tuple(networks), tuple(states))
            return value, (logits, variables, scoped._replace(state=state))

        return defended

    return core.Defense(init=init, loss=loss)


ROW = DefenseRow(
    factory=adversary,
    example={"lambda_adv": 0.5, "learning_rate": 1e-2},
    known_by={
        # gradients still carry the label
        "no_split": (Knower("direct", "most_negative"), *READING),
        # readers that are fitted after training, and that read the gradients too
        "split": (Knower("probe"), Knower("joint"), Knower("similarity")),
    },
    neutral={"lambda_adv": 0.0, "learning_rate": 1e-2},
    strengths=Strengths("lambda_adv", (0.01, 0.03, 0.1, 0.3, 1.0)),
)
