"""How well a trained federation predicts, with its final weights or with those of every step of an epoch.

The functions are pure and treat one member; ``vfljax.sweep.batch_layout`` maps them over trials and devices.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax

from vfljax import keys, tasks
from vfljax.federation.protocol import make_predict
from vfljax.federation.training import Margins, Member, Table, check_table, labels_of, rows_of
from vfljax.models.reading import over_chunks
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


def make_margins(spec: Spec) -> Margins:
    """Makes the margins of GAFM's released evaluation, a test AUC pooled over each epoch's steps.

    After every step, a batch of B random test rows is scored with the new weights. The AUC of all margins of an
    epoch together is its entry in ``Record.observed``. The released code leaves dropout on; here the model is
    in evaluation mode. It is defined for two classes only.
    """
    predict = make_predict(spec)

    def margins(state: State, member: Member, table: Table) -> tuple[Array, Array]:
        key = keys.fold(state.run_key, "test_batch", state.step)
        rows = jax.random.permutation(key, table.test[member.seed])[: spec.batch_size]
        logits = predict(state.weights, rows_of(table, member.seed, rows), state.defense)
        return logits[:, 1] - logits[:, 0], table.labels[rows]

    return margins
