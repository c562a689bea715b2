"""One setting, trained: epochs as scans over the protocol's step, recorded and evaluated.

What enters: a static ``Spec``, the data of every seed (``Table``, shared by all settings) and one
setting's ``Lane``. What leaves: pure functions of one lane (``run``, ``evaluate``), which
``vfljax.lanes`` maps over settings and devices. One call trains one epoch, so that the host may
report, record and save between calls; what every setting of a seed shares (the order of rows) is
made once, outside them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import keys, metrics
from vfljax.defenses.core import TrainingData
from vfljax.protocol import make_embed, make_init, make_predict, make_step, make_weights
from vfljax.rows import over_chunks, scaled
from vfljax.types import Array, Batch, HParams, Spec, State, Sums, Weights


class Table(NamedTuple):
    """The data on the device, once for all settings. Leading axis R: rows; Q: seeds."""

    features: tuple[Array, ...]  # one a bottom, [R, ...] raw
    labels: Array  # [R] int32
    train: Array  # [Q, N] int32, raw rows of each seed's training set
    validation: Array  # [Q, V]
    test: Array  # [Q, M]
    mean: tuple[Array, ...]  # one a bottom, [Q, ...], of the seed's training rows
    scale: tuple[Array, ...]  # likewise; features are (x - mean) / scale
    scores: Array | None  # [T, N, C] each teacher's probabilities, None without teachers


class Record(NamedTuple):
    """The last trained epoch's exchange in row order, and what accumulates over epochs."""

    embeddings: tuple[Array, ...]  # one a passive party, [N, D]
    gradients: tuple[Array, ...]
    order: Array  # [N] int32 place in the sending order
    sent: Array  # [N] bool
    sums: tuple[Sums, ...]
    loss: Array  # [epochs] mean over the epoch's rows of the descended loss
    accuracy: Array  # [epochs] training accuracy while training, on true labels
    pooled_auc: Array  # [epochs] test AUC as GAFM's released code has it; NaN unless asked for


class Lane(NamedTuple):
    """One setting: which seed (its value, and its place in ``Table``), teacher, and its numbers."""

    seed: Array  # [] uint32
    seed_index: Array  # [] int32
    teacher: Array  # [] int32, its place in ``Table.scores``; 0 where nothing reads it
    hparams: HParams


class Epoch(NamedTuple):
    """Which epoch it is, and the order in which each seed's rows are sent."""

    number: Array  # [] int32
    order: Array  # [Q, N] int32: order[j] is sent j-th
    place: Array  # [Q, N] int32, the inverse: row i is sent place[i]-th


class Progress(NamedTuple):
    """What an epoch starts from; zeros for a run that starts at epoch 0."""

    state: State
    record: Record


def rows_of(table: Table, seed_index: Array, rows: Array) -> tuple[Array, ...]:
    """Every bottom's scaled columns of raw ``rows``, [rows, ...]."""
    return tuple(
        scaled(x[rows], mean[seed_index], scale[seed_index])
        for x, mean, scale in zip(table.features, table.mean, table.scale, strict=True)
    )


def _empty_record(spec: Spec, cut: tuple[Any, ...]) -> Record:
    rows = spec.recorded_rows
    zeros = tuple(jnp.zeros((rows, z.shape[-1]), jnp.float32) for z in cut[: spec.passive])
    return Record(
        embeddings=zeros,
        gradients=zeros,
        order=jnp.zeros(rows, jnp.int32),
        sent=jnp.zeros(rows, bool),
        sums=tuple(Sums(z, z, z, jnp.zeros(rows, jnp.int32)) for z in zeros),
        loss=jnp.zeros(spec.epochs),
        accuracy=jnp.zeros(spec.epochs),
        pooled_auc=jnp.full(spec.epochs, jnp.nan),
    )


def make_start(spec: Spec) -> Callable[[Lane, Table, Weights], Progress]:
    """``start(lane, table, initial)``: optimizer and defense states, empty record."""
    init, embed = make_init(spec), make_embed(spec)

    def start(lane: Lane, table: Table, initial: Weights) -> Progress:
        weights = jax.tree.map(lambda a: a[lane.seed_index], initial)
        raw = table.train[lane.seed_index]
        scores = None if table.scores is None else table.scores[lane.teacher]
        data = TrainingData(table.labels[raw], scores, spec.num_classes, spec.federation)
        batch = raw[: spec.batch_size]
        cut = jax.eval_shape(lambda: embed(weights, rows_of(table, lane.seed_index, batch)))
        cut = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), cut)
        state = init(keys.run_key(lane.seed), weights, lane.hparams, data, cut)
        return Progress(state, _empty_record(spec, cut))

    return start


def make_epoch(spec: Spec) -> Callable[[Progress, Lane, Table, Epoch], Progress]:
    """One epoch: a scan over full batches, then one step of the N mod B rows left (never padded:
    padding corrupts batch statistics and norms). The exchange is recorded of the first
    ``spec.recorded_rows`` training rows: of all at once after the epoch, of fewer as it goes, so that
    memory does not grow with the rows that are only trained on."""
    step, test_batch = make_step(spec), _make_test_batch(spec)
    full = spec.num_rows // spec.batch_size
    rest = 0 if spec.drop_last else spec.num_rows - full * spec.batch_size
    kept = spec.recorded_rows
    few = kept < spec.num_rows

    def epoch(progress: Progress, lane: Lane, table: Table, now: Epoch) -> Progress:
        order, place = now.order[lane.seed_index], now.place[lane.seed_index]

        def one(carry: tuple[State, Any], index: Array) -> tuple[tuple[State, Any], Any]:
            state, records = carry
            raw = table.train[lane.seed_index, index]
            scores = None if table.scores is None else table.scores[lane.teacher, index]
            features = rows_of(table, lane.seed_index, raw)
            batch = Batch(features, table.labels[raw], index, scores)
            state, exchange, seen = step(state, batch, lane.hparams)
            pooled = test_batch(state, lane, table)
            crossed = (exchange.embeddings, exchange.gradients)
            if few:
                slot = jnp.where(index < kept, index, kept)  # past the end: dropped
                records = jax.tree.map(
                    lambda buffer, a: buffer.at[slot].set(a, mode="drop"), records, crossed
                )
                crossed = ()
            return (state, records), (crossed, seen, pooled)

        record, parts, tested = progress.record, [], []
        empty = jax.tree.map(jnp.zeros_like, (record.embeddings, record.gradients))
        carry: Any = (progress.state, empty if few else ())
        if full:
            batches = order[: full * spec.batch_size].reshape(full, spec.batch_size)
            carry, (crossed, seen, pooled) = jax.lax.scan(one, carry, batches)
            tested.append(jax.tree.map(jnp.ravel, pooled))
            flat = jax.tree.map(lambda a: a.reshape(-1, a.shape[-1]), crossed)
            parts.append((flat, seen.loss.sum() * spec.batch_size, seen.correct.sum()))
        if rest:
            carry, (crossed, seen, pooled) = one(carry, order[spec.num_rows - rest :])
            tested.append(pooled)
            parts.append((crossed, seen.loss * rest, seen.correct))
        state, records = carry

        sent_rows = full * spec.batch_size + rest
        place = place[:kept]
        was_sent = place < sent_rows
        where = jnp.minimum(place, sent_rows - 1)
        if few:  # places among the recorded: B of them, of consecutive batches, pass for a batch
            place = jnp.argsort(jnp.argsort(place)).astype(jnp.int32)

        def by_row(*pieces: Array) -> Array:
            sequence = jnp.concatenate(pieces)[where]
            return jnp.where(was_sent[:, None], sequence, 0.0)

        crossed = records if few else jax.tree.map(by_row, *(part[0] for part in parts))
        embeddings, gradients = crossed
        sums = tuple(
            Sums(s.gradient + g, s.sign + jnp.sign(g), s.square + g * g, s.count + was_sent)
            for s, g in zip(record.sums, gradients, strict=True)
        )
        loss = sum(part[1] for part in parts) / sent_rows
        correct = sum(part[2] for part in parts) / sent_rows
        pooled_auc = record.pooled_auc
        if spec.evaluation == "released":
            margins, labels = (jnp.concatenate(own) for own in zip(*tested, strict=True))
            pooled_auc = pooled_auc.at[now.number].set(metrics.auc(margins, labels))
        record = Record(
            embeddings,
            gradients,
            place,
            was_sent,
            sums,
            record.loss.at[now.number].set(loss),
            record.accuracy.at[now.number].set(correct),
            pooled_auc,
        )
        return Progress(state, record)

    return epoch


def _make_test_batch(spec: Spec) -> Callable[[State, Lane, Table], tuple[Array, ...]]:
    """``(margins [T], labels [T])`` of one random batch of test rows under a step's new weights, in
    evaluation mode (GAFM's released code leaves dropout on); nothing unless asked for."""
    if spec.evaluation != "released":
        return lambda state, lane, table: ()
    predict = make_predict(spec)

    def test_batch(state: State, lane: Lane, table: Table) -> tuple[Array, ...]:
        test = table.test[lane.seed_index]
        key = keys.fold(state.run_key, "test_batch", state.step)
        rows = jax.random.permutation(key, test)[: spec.batch_size]
        logits = predict(state.weights, rows_of(table, lane.seed_index, rows))
        return logits[:, 1] - logits[:, 0], table.labels[rows]

    return test_batch


def make_run(spec: Spec) -> Callable[..., tuple[Progress, Array]]:
    """``run((lane, progress), (table, initial, now)) -> (progress, finite)``: trains one epoch.

    At epoch 0 the progress given is ignored and the run starts from its seed's ``initial`` weights
    [Q, ...]. ``finite`` is False once a loss or a weight is not finite.
    """
    start, epoch = make_start(spec), make_epoch(spec)

    def run(
        own: tuple[Lane, Progress], shared: tuple[Table, Weights, Epoch]
    ) -> tuple[Progress, Array]:
        (lane, progress), (table, initial, now) = own, shared
        # `now` is shared by all lanes, so this stays a branch: later epochs do not start again
        progress = jax.lax.cond(
            now.number == 0, lambda: start(lane, table, initial), lambda: progress
        )
        progress = epoch(progress, lane, table, now)
        finite = [jnp.all(jnp.isfinite(w)) for w in jax.tree.leaves(progress.state.weights)]
        return progress, jnp.all(jnp.isfinite(progress.record.loss)) & jnp.all(jnp.stack(finite))

    return run


@functools.partial(jax.jit, static_argnames="rows")
def epoch_of(number: Array, seeds: Array, rows: int) -> Epoch:
    """Every seed's order of rows in one epoch; from the seed alone, once for all settings."""

    def one(seed: Array) -> tuple[Array, Array]:
        order = jax.random.permutation(keys.fold(keys.run_key(seed), "order", number), rows)
        # a scatter inverts a permutation without a third sort
        places = jnp.arange(rows, dtype=jnp.int32)
        return order, jnp.zeros_like(places).at[order].set(places, unique_indices=True)

    return Epoch(number, *jax.vmap(one)(seeds))


def make_evaluate(spec: Spec) -> Callable[..., dict[str, Array]]:
    """``evaluate((seed_index, weights), table)``: accuracy, balanced accuracy and cross entropy of the
    joint model on validation and test rows. Defenses play no part in it.

    For C = 2 also AUC, and whether the labels were learned inverted (training AUC below 1/2, which
    the label party can see) with the "oriented" figures after undoing that; equal where it was not.
    """
    predict = make_predict(spec)

    def evaluate(own: tuple[Array, Weights], table: Table) -> dict[str, Array]:
        seed_index, weights = own
        out = {}

        def of(rows: Array) -> tuple[Array, Array]:
            logits = over_chunks(
                lambda r: predict(weights, rows_of(table, seed_index, r)), rows, spec.chunk
            )
            return logits, table.labels[rows]

        inverted = jnp.asarray(False)
        if spec.num_classes == 2:
            logits, labels = of(table.train[seed_index])
            out["train_auc"] = metrics.auc(logits[:, 1] - logits[:, 0], labels)
            inverted = out["train_auc"] < 0.5
            out["inverted"] = inverted.astype(jnp.float32)
        for part, rows in (
            ("validation", table.validation[seed_index]),
            ("test", table.test[seed_index]),
        ):
            logits, labels = of(rows)
            out[f"{part}_accuracy"] = metrics.accuracy(logits, labels)
            out[f"{part}_balanced_accuracy"] = metrics.balanced_accuracy(logits, labels)
            out[f"{part}_loss"] = metrics.cross_entropy(logits, labels)
            if spec.num_classes == 2:
                auc = metrics.auc(logits[:, 1] - logits[:, 0], labels)
                turned = jnp.where(inverted, logits[:, ::-1], logits)
                out[f"{part}_auc"] = auc
                out[f"{part}_oriented_auc"] = jnp.where(inverted, 1 - auc, auc)
                out[f"{part}_oriented_accuracy"] = metrics.accuracy(turned, labels)
        return out

    return evaluate


def make_initial(spec: Spec) -> Callable[[Array, Table], Weights]:
    """``initial(seeds [Q], table) -> Weights`` with a leading seed axis."""
    weights = make_weights(spec)

    def initial(seeds: Array, table: Table) -> Weights:
        def one(seed: Array, index: Array) -> Weights:
            example = rows_of(table, index, table.train[index, :2])
            return weights(keys.run_key(seed), example)

        return jax.vmap(one)(seeds, jnp.arange(len(seeds)))

    return initial
