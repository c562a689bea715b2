"""The probe (ours): a classifier trained on the known rows' embeddings and gradients.

It is the adaptive attacker that assumes nothing about the defense. Its input is x_i = [z_i, g_i], each
column standardized over all rows, which needs no label. Its model is linear, or an MLP with one hidden
layer, and is trained by AdamW on batches drawn from the known rows with replacement.

The known labels have a value without any federation too, which the attack's baselines show.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import errors, keys
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.models import MLP
from vfljax.models.parties import from_module
from vfljax.models.rows import over_chunks
from vfljax.types import KINDS, Array, Known, PyTree, Scores, View


def standardized(x: Array, sent: Array) -> Array:
    """Standardize the columns of x [N, W] to mean 0 and variance 1 over the rows sent [N] bool.

    Constant columns, and rows that were not sent, are 0.
    """
    chex.assert_rank([x, sent], [2, 1])
    chex.assert_equal_shape_prefix([x, sent], 1)
    chex.assert_type([x, sent], [float, bool])
    weights = sent[:, None].astype(jnp.float32)
    count = jnp.maximum(jnp.sum(weights), 1.0)
    x = jnp.where(sent[:, None], x, 0.0)
    largest = jnp.max(jnp.abs(x), axis=0, keepdims=True)
    x = x / jnp.where(largest > 0, largest, 1.0)
    x = (x - jnp.sum(x, axis=0, keepdims=True) / count) * weights
    spread = jnp.sqrt(jnp.sum(x * x, axis=0, keepdims=True) / count)
    return jnp.where(spread > 1e-6, x / jnp.maximum(spread, 1e-6), 0.0)


def probe(
    bottoms: Bottoms,
    num_classes: int,
    *,
    inputs: str = "both",
    hidden: int = 0,
    epoch: int | str = -1,
    steps: int = 500,
    batch_size: int = 32,
) -> Attack:
    """Train a classifier on the known rows, and score all rows sent.

    Args:
      inputs: what the classifier reads, "embeddings", "gradients" or "both", as they crossed the wire.
      hidden: units of its hidden layer, 0 for a linear model.
      epoch: which gradients are read, see ``core.received``; "mean" and "votes" are joined with the
        last epoch's embeddings.
      steps: optimizer steps.
      batch_size: known rows a step. Rows that were not sent in the epoch do not count in the loss.

    Returns:
      An attack whose scores are class probabilities [N, C], NaN for rows never sent.
    """
    del bottoms
    core.check_epoch(epoch)
    errors.check_choice("inputs", inputs, ("both", "embeddings", "gradients"))
    core.check_whole("hidden", hidden, 0)
    core.check_whole("steps", steps, 1)
    core.check_whole("batch_size", batch_size, 1)
    model = from_module(MLP((hidden,) if hidden else (), num_classes))

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        g, sent = core.received(view, epoch)
        place = core.place_of(view, epoch)
        z, sent = view.embeddings[place], sent & view.sent[place]
        parts = {"both": (z, g), "embeddings": (z,), "gradients": (g,)}[inputs]
        x = jnp.concatenate([standardized(part, sent) for part in parts], axis=-1)
        params = model.init(keys.fold(key, "model"), x[:1])["params"]

        def logits_of(params: PyTree, rows: Array) -> Array:
            return model.apply({"params": params}, x[rows], False, None)[0]

        def loss(params: PyTree, places: Array) -> Array:
            rows, labels = known.rows[places], known.labels[places]
            weights = sent[rows].astype(jnp.float32)  # other rows were not sent
            each = optax.softmax_cross_entropy_with_integer_labels(logits_of(params, rows), labels)
            return jnp.sum(weights * each) / jnp.maximum(jnp.sum(weights), 1.0)

        adamw = optax.adamw(knobs["learning_rate"], weight_decay=knobs["weight_decay"])
        drawn = jax.random.randint(
            keys.fold(key, "draws"), (steps, batch_size), 0, jnp.maximum(known.count, 1)
        )
        params = core.minimize(loss, params, adamw, steps, drawn)
        probabilities = over_chunks(
            lambda rows: jax.nn.softmax(logits_of(params, rows)), jnp.arange(len(x))
        )
        return core.scored(probabilities, sent)

    reads = ("embeddings", "gradients") if inputs == "both" else (inputs,)
    baselines = core.BASELINES if inputs == "embeddings" else ("logistic", "all_labels")
    return Attack(
        run,
        KINDS,
        {**core.KNOWN, **core.ADAMW},
        baselines=baselines,
        reads=reads,
        steps=steps,
        # gradients alone are read of the rows that the last epoch sent too
        one_epoch=not isinstance(epoch, str) or inputs == "both",
        **core.reads_epoch(epoch, adaptive=True),
    )


ROW = AttackRow(probe, cost=core.SOLVE)
