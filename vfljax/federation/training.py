"""One trial, trained: epochs as scans over the protocol's step, recorded and evaluated.

``make_run`` turns a static ``Spec`` into a pure function of one trial's ``Member`` and the data of every seed
(``Table``), which ``vfljax.sweep.batch_layout`` maps over trials and devices. One call trains one epoch, so
that the host may report, record and save between calls. The order of rows, which all trials of a seed share,
is computed once, outside this function (``epoch_of``).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import keys, machine, metrics
from vfljax.defenses.core import TrainingData
from vfljax.federation import hoisting
from vfljax.federation.protocol import make_embed, make_init, make_step, make_weights
from vfljax.models import last_layer
from vfljax.models.reading import scaled_rows
from vfljax.types import Array, Batch, HostArray, HParams, PyTree, Spec, State, Sums, Weights


class Table(NamedTuple):
    """The data on the device, shared by all trials. The leading axis R is of rows, and Q of seeds."""

    features: tuple[Array, ...]  # one per bottom, [R, ...] raw
    labels: Array  # [R] int32, or float32 numbers in their own unit
    train: Array  # [Q, N] int32, raw rows of each seed's training set
    validation: Array  # [Q, V]
    test: Array  # [Q, M]
    mean: tuple[Array, ...]  # one per bottom, [Q, ...], of the seed's training rows
    scale: tuple[Array, ...]  # likewise; features are (x - mean) / scale
    scores: Array | None  # [T, N, C] each teacher's probabilities, None without teachers
    # [Q] moments of numbers among the seed's training rows; None of classes
    label_mean: Array | None = None
    label_scale: Array | None = None
    label_range: Array | None = (
        None  # [2] the bounds that the user gave of numbers, in their own unit
    )
    # [draws Q, N] places in ``train`` of rows whose labels become known, classes in turn: the first n of row
    # r Q + s are draw r of seed s; None in training
    known_order: Array | None = None


class Record(NamedTuple):
    """The last trained epoch's exchange in row order, and what accumulates over epochs."""

    embeddings: tuple[Array, ...]  # one per passive party, [N, D]
    gradients: tuple[Array, ...]
    order: Array  # [N] int32 place in the sending order (``Epoch.place``, not ``Epoch.order``)
    sent: Array  # [N] bool
    sums: tuple[Sums, ...]
    loss: Array  # [epochs] mean of the defended loss over the epoch's rows
    accuracy: (
        Array  # [epochs] mean training accuracy, or R² of numbers, during the epoch, on true labels
    )
    observed: Array  # [epochs] the AUC of all ``Margins`` of each epoch; NaN if none are computed
    inputs: tuple[Array, ...] = ()  # [N, H] of last layers, one per passive party, if recorded


class Member(NamedTuple):
    """One trial: its seed, its teacher, its numbers and its codebooks."""

    seed: Array  # [] int32; ``Table`` has seeds 0, ..., Q - 1, so it is also the seed's place there
    teacher: Array  # [] int32, its place in ``Table.scores``; 0 if nothing reads it
    hparams: HParams
    codebooks: PyTree = ()  # of the defenses that train one (``Defense.codebook``), by name


class Epoch(NamedTuple):
    """Which epoch it is, and the order in which each seed's rows are sent."""

    number: Array  # [] int32
    order: Array  # [Q, N] int32: order[j] is sent j-th
    place: Array  # [Q, N] int32, the inverse: row i is sent place[i]-th


class Turn(NamedTuple):
    """What is known of a step before its epoch begins."""

    index: Array  # [B] int32, the rows of its batch among the training rows
    step: Array  # [] int32, ``State.step``
    run_key: Array  # [] key


class Snapshot(NamedTuple):
    """What an epoch starts from; zeros for a run that starts at epoch 0."""

    state: State
    record: Record


Margins = Callable[[State, Member, Table], tuple[Array, Array]]
"""Returns margins [B] and labels [B] of some test rows, with the state after a step."""


def check_table(table: Table) -> None:
    """Asserts the ranks and leading axes of ``Table``."""
    parts = [table.train, table.validation, table.test]
    chex.assert_rank([table.labels, *parts], [1, 2, 2, 2])
    chex.assert_equal_shape_prefix([table.labels, *table.features], 1)
    chex.assert_equal_shape_prefix([*parts, *table.mean, *table.scale], 1)
    if table.scores is not None:
        chex.assert_rank(table.scores, 3)
        chex.assert_axis_dimension(table.scores, 1, table.train.shape[1])


def rows_of(table: Table, seed: Array, rows: Array) -> tuple[Array, ...]:
    """Returns every bottom's scaled columns [n, ...] of some raw rows.

    Args:
      table: the data.
      seed: [] the seed whose training rows give mean and scale.
      rows: [n] int32 places in ``Table.features``.
    """
    chex.assert_rank([seed, rows], [0, 1])
    return tuple(
        scaled_rows(features, mean, scale, seed, rows)
        for features, mean, scale in zip(table.features, table.mean, table.scale, strict=True)
    )


def of_parties(table: Table, parties: Sequence[int]) -> Table:
    """Returns the data with the columns of some bottoms alone.

    Args:
      table: the data.
      parties: numbers of the bottoms.
    """
    features, mean, scale = (
        tuple(parts[p] for p in parties) for parts in (table.features, table.mean, table.scale)
    )
    return table._replace(features=features, mean=mean, scale=scale)


def labels_of(table: Table, seed: Array, rows: Array) -> Array:
    """Returns the labels [n] of some raw rows as networks learn them: classes, or numbers standardized by the
    seed's training rows.

    Args:
      table: the data.
      seed: [] the seed whose training rows give mean and scale.
      rows: [n] int32 places in ``Table.labels``.
    """
    return standardized_labels(table, seed, table.labels[rows])


def standardized_labels(table: Table, seed: Array, labels: Array) -> Array:
    """Returns labels in the unit in which networks learn them, as ``labels_of``."""
    if table.label_mean is None or table.label_scale is None:
        return labels
    return (labels - table.label_mean[seed]) / table.label_scale[seed]


def _empty_record(spec: Spec, cut: tuple[Any, ...]) -> Record:
    """Returns the record of a run that has not begun. ``cut`` has all parties' embeddings [..., D]."""
    rows = spec.recorded_rows
    zeros = tuple(jnp.zeros((rows, z.shape[-1]), jnp.float32) for z in cut[: spec.passive])
    widths = map(last_layer.width, spec.bottoms[: spec.passive]) if spec.record_inputs else ()
    return Record(
        embeddings=zeros,
        gradients=zeros,
        order=jnp.zeros(rows, jnp.int32),
        sent=jnp.zeros(rows, bool),
        sums=tuple(Sums(z, z, z, jnp.zeros(rows, jnp.int32)) for z in zeros),
        loss=jnp.zeros(spec.epochs),
        accuracy=jnp.zeros(spec.epochs),
        observed=jnp.full(spec.epochs, jnp.nan),
        inputs=tuple(jnp.zeros((rows, width), jnp.float32) for width in widths),
    )


def make_start(spec: Spec) -> Callable[[Member, Table, Weights], Snapshot]:
    """Makes ``start(member, table, initial)``, which returns the initial state and an empty record.
    ``initial`` has the initial weights of every seed [Q, ...]."""
    init, embed = make_init(spec), make_embed(spec)

    def start(member: Member, table: Table, initial: Weights) -> Snapshot:
        chex.assert_rank([member.seed, member.teacher], 0)
        check_table(table)
        chex.assert_equal_shape_prefix([table.train, *jax.tree.leaves(initial)], 1)
        weights = jax.tree.map(lambda a: a[member.seed], initial)
        raw = table.train[member.seed]
        scores = None if table.scores is None else table.scores[member.teacher]
        data = TrainingData(
            labels_of(table, member.seed, raw),
            scores,
            spec.num_classes,
            spec.cut_layer,
            member.codebooks,
        )
        if table.label_range is not None:
            low, high = table.label_range
            data = data._replace(
                label_range=standardized_labels(table, member.seed, table.label_range),
                shares_of_range=(jnp.clip(table.labels[raw], low, high) - low) / (high - low),
            )
        batch = raw[: spec.batch_size]
        cut = jax.eval_shape(lambda: embed(weights, rows_of(table, member.seed, batch)))
        cut = jax.tree.map(lambda a: jnp.zeros(a.shape, a.dtype), cut)
        state = init(keys.run_key(member.seed), weights, member.hparams, data, cut)
        return Snapshot(state, _empty_record(spec, cut))

    return start


def _make_train_batch(
    spec: Spec, margins: Margins | None
) -> Callable[..., tuple[tuple[State, Any], Any]]:
    """Makes ``train_batch((member, table, anchor), carry, turn) -> (carry, (crossed, metrics, watched))``.

    ``anchor`` has the columns of one row that is the same for the whole run. The carry is the state and what is
    recorded of the first ``spec.recorded_rows`` rows, if these are not all. If they are, ``crossed`` has the
    exchange of the batch. ``watched`` are the ``margins`` after the step.
    """
    step, inputs_of = make_step(spec), last_layer.make_inputs(spec)
    kept = spec.recorded_rows

    def train_batch(
        trial: tuple[Member, Table, tuple[Array, ...]], carry: tuple[State, Any], turn: Turn
    ) -> tuple[tuple[State, Any], Any]:
        (member, table, anchor), (state, records), index = trial, carry, turn.index
        # equal to what the state holds, and known before the scan: draws depend on nothing else
        state = state._replace(step=turn.step, run_key=turn.run_key)
        raw = table.train[member.seed, index]
        scores = None if table.scores is None else table.scores[member.teacher, index]
        features = rows_of(table, member.seed, raw)
        labels = labels_of(table, member.seed, raw)
        batch = Batch(features, anchor, labels, index, scores)
        inputs = inputs_of(state, batch)
        state, exchange, batch_metrics = step(state, batch, member.hparams)
        watched = margins(state, member, table) if margins else ()
        crossed = (exchange.embeddings, exchange.gradients, inputs)
        if kept < spec.num_rows:
            slot = jnp.where(index < kept, index, kept)  # ``kept`` is past the end: dropped
            records = jax.tree.map(
                lambda buffer, a: buffer.at[slot].set(a, mode="drop"), records, crossed
            )
            crossed = ()
        return (state, records), (crossed, batch_metrics, watched)

    return train_batch


def make_epoch(
    spec: Spec, make_margins: Callable[[Spec], Margins] | None = None
) -> Callable[[Snapshot, Member, Table, Epoch], Snapshot]:
    """Makes the function of one epoch: a scan over full batches, then a step on the N mod B remaining rows.
    These are never padded, because padding corrupts batch statistics and norms.

    The exchange of the first ``spec.recorded_rows`` training rows is recorded: at the end of the epoch if
    these are all rows, else step by step, so that memory does not grow with the rows that are not recorded.

    Args:
      spec: structure of the program.
      make_margins: makes the ``Margins`` that are computed after each step; None: none are.
    """
    margins = make_margins and make_margins(spec)
    train_batch = _make_train_batch(spec, margins)
    full = spec.num_rows // spec.batch_size
    rest = 0 if spec.drop_last else spec.num_rows - full * spec.batch_size
    few = spec.recorded_rows < spec.num_rows

    def epoch(snapshot: Snapshot, member: Member, table: Table, now: Epoch) -> Snapshot:
        check_table(table)
        chex.assert_rank([member.seed, member.teacher, now.number], 0)
        chex.assert_shape([now.order, now.place], (len(table.train), spec.num_rows))
        chex.assert_axis_dimension(table.train, 1, spec.num_rows)
        order, place = now.order[member.seed], now.place[member.seed]
        anchor = rows_of(table, member.seed, table.train[member.seed, :1])
        train = functools.partial(train_batch, (member, table, anchor))

        record, parts, pieces = snapshot.record, [], []
        empty = jax.tree.map(jnp.zeros_like, (record.embeddings, record.gradients, record.inputs))
        carry: Any = (snapshot.state, empty if few else ())
        if full:
            batches = order[: full * spec.batch_size].reshape(full, spec.batch_size)
            turns = Turn(
                batches,
                snapshot.state.step + jnp.arange(full, dtype=jnp.int32),
                jnp.broadcast_to(snapshot.state.run_key, (full,)),
            )
            carry, (crossed, batch_metrics, watched) = hoisting.scan(train, carry, turns)
            pieces.append(jax.tree.map(jnp.ravel, watched))
            flat = jax.tree.map(lambda a: a.reshape(-1, a.shape[-1]), crossed)
            parts.append(
                (flat, batch_metrics.loss.sum() * spec.batch_size, batch_metrics.correct.sum())
            )
        if rest:
            last = order[spec.num_rows - rest :]
            turn = Turn(last, carry[0].step, carry[0].run_key)
            carry, (crossed, batch_metrics, watched) = train(carry, turn)
            pieces.append(watched)
            parts.append((crossed, batch_metrics.loss * rest, batch_metrics.correct))
        state, records = carry

        sent_rows = full * spec.batch_size + rest
        place = place[: spec.recorded_rows]
        was_sent = place < sent_rows
        where = jnp.minimum(place, sent_rows - 1)
        # The place of a recorded row is counted among the recorded rows alone, so that what an attack takes
        # for a batch may mix rows of neighboring batches.
        if few:
            place = jnp.argsort(jnp.argsort(place)).astype(jnp.int32)

        def by_row(*pieces: Array) -> Array:
            sequence = jnp.concatenate(pieces)[where]
            return jnp.where(was_sent[:, None], sequence, 0.0)

        crossed = records if few else jax.tree.map(by_row, *(part[0] for part in parts))
        embeddings, gradients, inputs = crossed
        sums = tuple(
            Sums(s.gradient + g, s.sign + jnp.sign(g), s.square + g * g, s.count + was_sent)
            for s, g in zip(record.sums, gradients, strict=True)
        )
        observed = record.observed
        if margins:
            pooled = (jnp.concatenate(of_steps) for of_steps in zip(*pieces, strict=True))
            observed = observed.at[now.number].set(metrics.auc(*pooled))
        loss = sum(part[1] for part in parts) / sent_rows
        correct = sum(part[2] for part in parts) / sent_rows
        record = Record(
            embeddings,
            gradients,
            place,
            was_sent,
            sums,
            record.loss.at[now.number].set(loss),
            record.accuracy.at[now.number].set(correct),
            observed,
            inputs,
        )
        return Snapshot(state, record)

    return epoch


def make_run(
    spec: Spec, make_margins: Callable[[Spec], Margins] | None = None
) -> Callable[..., tuple[Snapshot, Array]]:
    """Makes ``run((member, snapshot), (table, initial, now)) -> (snapshot, finite)``, which trains one epoch.

    At epoch 0 the snapshot is ignored, and the run starts from its seed's ``initial`` weights [Q, ...].
    ``finite`` is False once a loss or a weight is not finite.

    Args:
      spec: structure of the program.
      make_margins: as in ``make_epoch``.
    """
    start, epoch = make_start(spec), make_epoch(spec, make_margins)

    def train_epoch(
        run: tuple[Member, Snapshot], shared: tuple[Table, Weights, Epoch]
    ) -> tuple[Snapshot, Array]:
        (member, snapshot), (table, initial, now) = run, shared
        # `now` is shared by all members, so `cond` stays a branch, and later epochs skip `start`
        snapshot = jax.lax.cond(
            now.number == 0, lambda: start(member, table, initial), lambda: snapshot
        )
        snapshot = epoch(snapshot, member, table, now)
        finite = [jnp.all(jnp.isfinite(w)) for w in jax.tree.leaves(snapshot.state.weights)]
        return snapshot, jnp.all(jnp.isfinite(snapshot.record.loss)) & jnp.all(jnp.stack(finite))

    return train_epoch


def epoch_of(number: int, seeds: HostArray, rows: int) -> Epoch:
    """Returns the order of each seed's training rows in an epoch, which all trials of a seed share.

    It equals ``jax.random.permutation``. On a CPU NumPy sorts, four times as fast as XLA there (measured).

    Args:
      number: of the epoch.
      seeds: [Q] seeds of the sweep.
      rows: N, the number of training rows.
    """
    chex.assert_rank(seeds, 1)
    if not machine.offered().cpu:
        return _permuted(np.int32(number), seeds, rows)
    # as many rounds as JAX makes, so that ties of 32 random bits do not matter
    rounds = max(1, math.ceil(3 * math.log(rows) / math.log(2**32 - 1)))
    places = np.arange(rows, dtype=np.uint64)
    order: Any = np.empty((len(seeds), rows), np.int32)
    place = np.empty_like(order)
    for seed, drawn in enumerate(np.asarray(_order_bits(np.int32(number), seeds, rounds, rows))):
        sent = places
        for bits in drawn:
            # the place in the lower half makes every number unique, so that any sort is stable
            ordered = np.sort(bits.astype(np.uint64) << np.uint64(32) | places)
            sent = sent[ordered & np.uint64(2**32 - 1)]
        order[seed], place[seed, sent] = sent, places
    return Epoch(np.int32(number), order, place)  # pyright: ignore[reportArgumentType]


def _order_key(seed: Array, number: Array) -> Array:
    return keys.fold(keys.run_key(seed), "order", number)


@functools.partial(jax.jit, static_argnames="rows")
def _permuted(number: Array, seeds: Array, rows: int) -> Epoch:
    """Computes ``epoch_of`` on the devices, without waiting for what they compute now."""

    def draw(seed: Array) -> tuple[Array, Array]:
        order = jax.random.permutation(_order_key(seed, number), rows)
        # a scatter inverts a permutation without a third sort
        places = jnp.arange(rows, dtype=jnp.int32)
        return order, jnp.zeros_like(places).at[order].set(places, unique_indices=True)

    return Epoch(number, *jax.vmap(draw)(seeds))


@functools.partial(jax.jit, static_argnames=("rounds", "rows"))
def _order_bits(number: Array, seeds: Array, rounds: int, rows: int) -> Array:
    """Returns the bits [Q, rounds, N] by which ``jax.random.permutation`` sorts each seed's rows."""

    def of_seed(seed: Array) -> Array:
        key, bits = _order_key(seed, number), []
        for _ in range(rounds):
            key, drawn = jax.random.split(key)
            bits.append(jax.random.bits(drawn, (rows,), "uint32"))
        return jnp.stack(bits)

    return jax.vmap(of_seed)(seeds)


def make_initial(spec: Spec) -> Callable[[Array, Table], Weights]:
    """Makes ``initial(seeds [Q], table) -> Weights``, initial weights with a leading seed axis."""
    weights = make_weights(spec)

    def initial(seeds: Array, table: Table) -> Weights:
        check_table(table)
        chex.assert_shape(seeds, (len(table.train),))

        def draw(seed: Array, index: Array) -> Weights:
            example = rows_of(table, index, table.train[index, :2])
            return weights(keys.run_key(seed), example)

        return jax.vmap(draw)(seeds, jnp.arange(len(seeds)))

    return initial
