"""The label party's teacher: trained on its own columns alone, before the federation starts.

What leaves: class probabilities of the training rows, ``[Q, N, C]``, a data column computed once
per data set and seed and read by every (epsilon, k). KDk (Arazzi et al. 2024) trains ResNet-50,
BERT or FCNN-4 with Adam for 20 epochs, the rate times 0.1 at 50 % and 80 %; for tables and small
images this is an MLP on the same schedule.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax

from vfljax import keys
from vfljax.models import MLP
from vfljax.rows import over_chunks, scaled
from vfljax.training import Table
from vfljax.types import Array, PyTree


class TeacherConfig(NamedTuple):
    """Static: what the teacher is and how it is trained."""

    hidden: tuple[int, ...]
    epochs: int
    batch_size: int
    learning_rate: float
    temperature: float  # scores are softmax(logits / temperature); ranks do not depend on it


def teacher_scores(table: Table, seeds: Array, num_classes: int, config: TeacherConfig) -> Array:
    """Probabilities [Q, N, C] of every seed's training rows, from the last party's columns."""
    model = MLP(config.hidden, num_classes)
    x, mean, scale = table.features[-1], table.mean[-1], table.scale[-1]
    rows = table.train.shape[1]
    batch = min(config.batch_size, rows)
    steps = rows // batch

    def one(seed: Array, index: Array) -> Array:
        key = keys.fold(keys.run_key(seed), "teacher")

        def features(places: Array) -> Array:
            return scaled(x[table.train[index, places]], mean[index], scale[index])

        rate = optax.piecewise_constant_schedule(
            config.learning_rate,
            {int(config.epochs * steps * share): 0.1 for share in (0.5, 0.8)},
        )
        optimizer = optax.adam(rate)
        params = model.init(keys.fold(key, "init"), features(jnp.arange(1)))["params"]

        def loss(params: PyTree, places: Array) -> Array:
            logits: Any = model.apply({"params": params}, features(places), train=True)
            labels = table.labels[table.train[index, places]]
            return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, labels))

        def step(carry: PyTree, places: Array) -> tuple[PyTree, None]:
            params, state = carry
            updates, state = optimizer.update(jax.grad(loss)(params, places), state, params)
            return (optax.apply_updates(params, updates), state), None

        def epoch(carry: PyTree, number: Array) -> tuple[PyTree, None]:
            order = jax.random.permutation(keys.fold(key, "order", number), rows)
            return jax.lax.scan(step, carry, order[: steps * batch].reshape(steps, batch))

        carry = (params, optimizer.init(params))
        (params, _), _ = jax.lax.scan(epoch, carry, jnp.arange(config.epochs))
        logits = over_chunks(
            lambda places: model.apply({"params": params}, features(places)), jnp.arange(rows)
        )
        return jax.nn.softmax(logits / config.temperature)

    return jax.jit(jax.vmap(one))(seeds, jnp.arange(len(seeds)))
