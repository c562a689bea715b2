"""How well a trained federation predicts, with its final weights or with those of every step of an epoch.

The functions are pure and treat one member; ``vfljax.sweep.batch_layout`` maps them over trials and devices.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from vfljax import keys, metrics
from vfljax.federation.protocol import make_predict
from vfljax.federation.training import Member, Observer, Table, check_table, rows_of
from vfljax.models.rows import over_chunks
from vfljax.types import Array, PyTree, Spec, State, Weights


def make_evaluate(spec: Spec) -> Callable[..., dict[str, Array]]:
    """Makes ``evaluate((seed, weights, states), table)``, which returns accuracy, balanced accuracy and cross
    entropy of the joint model on validation and test rows. ``states`` are those of the defenses through which
    predictions are read, by name.

    For C = 2 it adds AUC, and whether the labels were learned inverted: a training AUC below 1/2, which the
    label party can see. The "oriented" figures undo an inversion; without one they equal the plain figures.
    For C > 10 it adds the top-5 accuracy on test rows.
    """
    predict = make_predict(spec)

    def evaluate(
        trained: tuple[Array, Weights, dict[str, PyTree]], table: Table
    ) -> dict[str, Array]:
        seed, weights, states = trained
        chex.assert_rank(seed, 0)
        check_table(table)
        out = {}

        def read(rows: Array) -> tuple[Array, Array]:
            logits = over_chunks(
                lambda r: predict(weights, rows_of(table, seed, r), states), rows, spec.chunk
            )
            return logits, table.labels[rows]

        inverted = jnp.asarray(False)
        if spec.num_classes == 2:
            logits, labels = read(table.train[seed])
            out["train_auc"] = metrics.auc(logits[:, 1] - logits[:, 0], labels)
            inverted = out["train_auc"] < 0.5
            out["inverted"] = inverted.astype(jnp.float32)
        for part, rows in (("validation", table.validation[seed]), ("test", table.test[seed])):
            logits, labels = read(rows)
            out[f"{part}_accuracy"] = metrics.accuracy(logits, labels)
            out[f"{part}_balanced_accuracy"] = metrics.balanced_accuracy(logits, labels)
            out[f"{part}_loss"] = metrics.cross_entropy(logits, labels)
            if spec.num_classes == 2:
                auc = metrics.auc(logits[:, 1] - logits[:, 0], labels)
                turned = jnp.where(inverted, logits[:, ::-1], logits)
                out[f"{part}_auc"] = auc
                out[f"{part}_oriented_auc"] = jnp.where(inverted, 1 - auc, auc)
                out[f"{part}_oriented_accuracy"] = metrics.accuracy(turned, labels)
            if spec.num_classes > 10 and part == "test":  # as CIFAR-100 is reported
                out["test_top5_accuracy"] = metrics.topk(logits, labels, 5)
        return out

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
