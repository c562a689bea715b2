"""GAFM's released way of evaluating: one random batch of test rows after every step, pooled by epoch.

Han and Guan's released code scores the changing parameters of a whole epoch together and leaves
dropout on; here the model is in evaluation mode. Training asks for it by an ``Observer``
(``config.training.evaluation="released"``), so that the shared epoch knows nothing of it.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax import keys, metrics
from vfljax.federation.protocol import make_predict
from vfljax.federation.training import Member, Observer, Table, rows_of
from vfljax.types import Array, PyTree, Spec, State


def pooled_auc(spec: Spec) -> Observer:
    """The observer of the test AUC pooled over each epoch's steps, for two classes.

    After every step a batch of B random test rows is scored under the step's new weights; at the
    end of an epoch the AUC of all those margins together is its entry of ``Record.observed``.
    """
    predict = make_predict(spec)

    def step(state: State, member: Member, table: Table) -> PyTree:
        """(margins [B], labels [B]) of one random batch of test rows."""
        key = keys.fold(state.run_key, "test_batch", state.step)
        rows = jax.random.permutation(key, table.test[member.seed])[: spec.batch_size]
        logits = predict(state.weights, rows_of(table, member.seed, rows), state.defense)
        return logits[:, 1] - logits[:, 0], table.labels[rows]

    def end(observed: Array, number: Array, pieces: list[PyTree]) -> Array:
        margins, labels = (jnp.concatenate(parts) for parts in zip(*pieces, strict=True))
        return observed.at[number].set(metrics.auc(margins, labels))

    return Observer(step, end)
