"""Probe (ours): a classifier trained on the known rows' embeddings and gradients. The adaptive attacker
who assumes nothing about the defense.

x_i = [z_i, g_i], each column standardized over all rows (their statistics need no label); a linear
model, or an MLP with ``hidden`` units, trained by AdamW on batches drawn from the known rows. With known
labels alone and x of no use it stands beside the same labels without any federation: its baselines.
"""

from __future__ import annotations

from collections.abc import Mapping

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from vfljax import keys
from vfljax.attacks.core import (
    BASELINES,
    SPLIT,
    Attack,
    check_epoch,
    number_of,
    place_of,
    received,
)
from vfljax.models import MLP
from vfljax.parties import from_module
from vfljax.rows import over_chunks
from vfljax.types import Array, Known, PyTree, Scores, View

INPUTS = ("both", "embeddings", "gradients")
KNOBS = {"known": 40.0, "learning_rate": 1e-2, "weight_decay": 1e-2}


def standardized(x: Array, sent: Array) -> Array:
    """Columns of mean 0 and variance 1 over the rows sent; constant columns and rows not sent are 0."""
    weights = sent[:, None].astype(jnp.float32)
    count = jnp.maximum(jnp.sum(weights), 1.0)
    x = jnp.where(sent[:, None], x, 0.0)
    largest = jnp.max(jnp.abs(x), axis=0, keepdims=True)
    x = x / jnp.where(largest > 0, largest, 1.0)
    x = (x - jnp.sum(x, axis=0, keepdims=True) / count) * weights
    spread = jnp.sqrt(jnp.sum(x * x, axis=0, keepdims=True) / count)
    return jnp.where(spread > 1e-6, x / jnp.maximum(spread, 1e-6), 0.0)


def probe(
    bottoms: tuple[nn.Module, ...],
    num_classes: int,
    *,
    inputs: str = "both",
    hidden: int = 0,
    epoch: int | str = -1,
    steps: int = 500,
    batch_size: int = 32,
) -> Attack:
    """A probe of embeddings, gradients or both, as they crossed the wire in ``epoch``; "mean" and
    "votes" read gradients over all epochs (``core.received``) beside the last epoch's embeddings."""
    del bottoms
    check_epoch(epoch)
    if inputs not in INPUTS:
        raise ValueError(f"inputs={inputs!r} is unknown: choose one of {', '.join(INPUTS)}.")
    for name, value, low in (
        ("hidden", hidden, 0),
        ("steps", steps, 1),
        ("batch_size", batch_size, 1),
    ):
        if not isinstance(value, int) or isinstance(value, bool) or value < low:
            raise ValueError(f"{name}={value!r} must be a whole number of at least {low}.")
    model = from_module(MLP((hidden,) if hidden else (), num_classes))

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        g, sent = received(view, epoch)
        z = view.embeddings[place_of(view, number_of(epoch))]
        sent &= view.sent[place_of(view, number_of(epoch))]
        parts = {"both": (z, g), "embeddings": (z,), "gradients": (g,)}[inputs]
        x = jnp.concatenate([standardized(part, sent) for part in parts], axis=-1)
        params = model.init(keys.fold(key, "model"), x[:1])["params"]

        def logits_of(params: PyTree, rows: Array) -> Array:
            return model.apply({"params": params}, x[rows], False, None)[0]

        optimizer = optax.adamw(knobs["learning_rate"], weight_decay=knobs["weight_decay"])
        drawn = jax.random.randint(
            keys.fold(key, "draws"), (steps, batch_size), 0, jnp.maximum(known.count, 1)
        )

        def step(carry: tuple[PyTree, PyTree], places: Array) -> tuple[tuple[PyTree, PyTree], None]:
            params, state = carry
            rows, labels = known.rows[places], known.labels[places]
            told = sent[rows].astype(jnp.float32)  # nothing crossed for the others

            def loss(params: PyTree) -> Array:
                logits = logits_of(params, rows)
                each = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
                return jnp.sum(told * each) / jnp.maximum(jnp.sum(told), 1.0)

            update, state = optimizer.update(jax.grad(loss)(params), state, params)
            return (optax.apply_updates(params, update), state), None

        (params, _), _ = jax.lax.scan(step, (params, optimizer.init(params)), drawn)
        found = over_chunks(
            lambda rows: jax.nn.softmax(logits_of(params, rows)), jnp.arange(len(x))
        )
        return Scores(jnp.where(sent[:, None], found, jnp.nan))

    baselines = BASELINES if inputs == "embeddings" else ("logistic", "all_labels")
    return Attack(
        run,
        SPLIT,
        KNOBS,
        baselines=baselines,
        adaptive=True,
        steps=steps,
        epoch=number_of(epoch),
        over_epochs=isinstance(epoch, str),
    )
