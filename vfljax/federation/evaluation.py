"""How well a trained federation predicts, with its final weights or with those of every step of an epoch.

The functions are pure and treat one member; ``vfljax.sweep.batch_layout`` maps them over trials and devices.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from vfljax import keys, metrics, tasks
from vfljax.federation.protocol import make_predict
from vfljax.federation.training import Member, Observer, Table, check_table, labels_of, rows_of
from vfljax.models.rows import over_chunks
from vfljax.types import Array, PyTree, Spec, State, Weights


def make_evaluate(spec: Spec) -> Callable[..., dict[str, Array]]:
    """Makes ``evaluate((seed, weights, states), table)``, which returns the figures of the joint model on
    validation and test rows (``Task.evaluate``). ``states`` are those of the defenses through which predictions
    are read, by name."""
    predict, task = make_predict(spec), tasks.of(spec.num_classes)

    def evaluate(
        trained: tuple[Array, Weights, dict[str, PyTree]], table: Table
    ) -> dict[str, Array]:
        seed, weights, states = trained
        chex.assert_rank(seed, 0)
        check_table(table)
        parts = {"train": table.train, "validation": table.validation, "test": table.test}

        def read(part: str) -> tuple[Array, Array]:
            rows = parts[part][seed]
            outputs = over_chunks(
                lambda r: predict(weights, rows_of(table, seed, r), states), rows, spec.chunk
            )
            return outputs, labels_of(table, seed, rows)

        unit = 1.0 if table.label_scale is None else table.label_scale[seed]
        return task.evaluate(read, spec.num_classes, unit)

    return evaluate


def pooled_auc(spec: Spec) -> Observer:
    """Returns the observer of GAFM's released evaluation: a test AUC pooled over each epoch's steps.

    After every step, a batch of B random test rows is scored with the new weights. At the end of an epoch,
    the AUC of all these margins together becomes the epoch's entry in ``Record.observed``. The released
    code leaves dropout on; here the model is in evaluation mode. It is defined for two classes only.
    """
    predict = make_predict(spec)

    def step(state: State, member: Member, table: Table) -> PyTree:
        """Returns (margins [B], labels [B]) of one random batch of test rows."""
        key = keys.fold(state.run_key, "test_batch", state.step)
        rows = jax.random.permutation(key, table.test[member.seed])[: spec.batch_size]
        logits = predict(state.weights, rows_of(table, member.seed, rows), state.defense)
        return logits[:, 1] - logits[:, 0], table.labels[rows]

    def end(observed: Array, number: Array, pieces: list[PyTree]) -> Array:
        margins, labels = (jnp.concatenate(parts) for parts in zip(*pieces, strict=True))
        return observed.at[number].set(metrics.auc(margins, labels))

    return Observer(step, end)
