"""Scores attacks with true labels. Nothing else compares the scores of attacks with them.

The programs of scoring do not depend on the attack, so all attacks of a sweep share them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import metrics
from vfljax.attacking.certainty import certainty
from vfljax.attacking.view import AttackInput, with_places
from vfljax.attacks.core import Attack
from vfljax.attacks.learners import MANY_ROWS
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.canaries import PREFIX, guess_figures
from vfljax.types import Array, HostArray, Scores

HOST_BATCH = 32  # outputs of attacks on the host that are scored in one call
NULL = 64  # permutations of the labels for the null band; for many rows fewer, but at least 8
NULL_LEVEL = 0.95  # quantile over the permutations
MARKED = 1024  # rows of the data set for which it is stored whether an attack names them rightly
OF_FIRST_DRAW = ("leak_null", "auc_batch_q95", "leak_batch_mean", PREFIX)  # not averaged over draws


class AttackOutput(NamedTuple):
    """The scores of one attack on one trial, and what is needed to judge them."""

    scores: Scores  # [N, C] and [M, C]; ``Scorer`` takes them with an axis of draws before these
    seed: Array  # [] int32
    known: Array  # [] number of labels that the attack knew
    order: Array  # [N] int32 place in the sending order of the epoch that the attack read
    sent: Array  # [N] bool: sent in that epoch; for an attack on all epochs, in any of them
    trained: Array  # [] bool: the attack trains, so it has a guess unless it diverged
    naming: Array | None = None  # [] number of labels that name its classes; None: ``known``
    draw: Array | int = 0  # [] number of the draw of the known rows


class TrueLabels(NamedTuple):
    """The labels, and arrays derived from them, that no attacker is given. The leading axis Q is seeds."""

    labels: Array  # [Q, N] of training rows
    test_labels: Array  # [Q, M]
    known_order: Array  # [draws Q, N] as of ``CommonData``
    selects: Array  # [Q, N] bool: the half that ``leak_select`` is scored on
    null: Array  # [Q, R, N] permutations of the training labels, of ``permuted_labels``
    candidates: Array | None = None  # [Q, N, 2] the labels a canary may have; None without any


def permuted_labels(labels: np.ndarray) -> HostArray:
    """Returns R permutations [Q, R, N] of each seed's training labels [Q, N], for the null band. R is NULL,
    or less for many rows. They depend on the seed alone, so that a resumed run scores alike."""
    count = max(8, min(NULL, NULL * MANY_ROWS // labels.shape[1]))
    draws = (np.random.default_rng([seed, 104729]) for seed in range(len(labels)))
    tiled = (np.tile(row_labels, (count, 1)) for row_labels in labels)
    return np.stack([draw.permuted(rows, axis=1) for draw, rows in zip(draws, tiled)])


def _turns(true: TrueLabels, seed: Array, draw: Array | int) -> Array:
    """Returns each row's place [N] in the order in which labels become known: with n known, 0 to n - 1."""
    order = true.known_order[draw * len(true.labels) + seed]
    return jnp.zeros(len(order), jnp.int32).at[order].set(jnp.arange(len(order), dtype=jnp.int32))


def _named_figures(
    output: AttackOutput, true: TrueLabels, sent: Array, half: Array, turn: Array
) -> dict[str, Array]:
    """Returns the figures that do not depend on the names that the attack gives its classes.

    An attack that knows labels names its classes by them. An attack that knows none, such as ``direct``, has
    names of its own, which a defense may permute. A secret permutation would stop this attack but protect no
    label, because an attacker with a few known labels undoes it. So ``metrics.names`` also names its classes
    by ``naming`` known rows, as many as other attackers know; without any, by the half of leak_select.

    leak_named, named_select and named_report are leak, leak_select and leak_report under those names, on
    rows that were not used to name. For two classes the names are the direction, so these figures are not
    turned. renamed is the share of classes whose name is not the attack's own. leak_matched, an oracle, is
    the leak of all unlabeled rows under the best names for their true labels; without any known label,
    leak_named equals it.

    ``report.strongest`` compares attacks by leak_crossed, and by leak_named for attacks that were renamed
    (``report.stored_rows.RENAMED``).
    """
    scores, i = output.scores.train, output.seed
    labels = true.labels[i]
    naming = output.known if output.naming is None else output.naming
    unlabeled = sent * (turn >= output.known)
    naming_rows = sent * (turn < naming)
    scored = unlabeled * (turn >= naming)
    choose, report = scored * half, scored * (1 - half)
    on = jnp.stack([naming_rows, choose, scored, unlabeled])
    by = jax.vmap(lambda weights: metrics.names(scores, labels, weights))(on)
    unnamed = jnp.sum(naming_rows) == 0
    names = jnp.where(unnamed, by[1], by[0])
    its_own = jnp.arange(scores.shape[1])

    def leak(names: Array, weights: Array) -> Array:
        value = metrics.leak_named(scores, names, labels, weights)
        return jnp.where(jnp.sum(weights) > 0, value, jnp.nan)

    out = {
        "leak_matched": leak(by[3], unlabeled),
        "leak_named": leak(jnp.where(unnamed, by[2], names), scored),
        "named_select": leak(names, choose),
        "named_report": leak(names, report),
        "renamed": jnp.mean((names != its_own).astype(jnp.float32)),
    }
    if scores.shape[1] > 2:
        better = out["named_select"] > leak(its_own, unlabeled * half)
        better = better & (out["renamed"] > 0) & (output.known == 0) & ~unnamed
        names, rows = jnp.where(better, names, its_own), jnp.where(better, scored, unlabeled)
        by_name = jnp.zeros_like(scores).at[:, names].set(scores)
        out |= certainty(by_name, labels, [(rows, False)])
    return out


def score(output: AttackOutput, true: TrueLabels, batch_size: int) -> dict[str, Array]:
    """Returns the figures of an attack. Rows that were never sent to it count in none of them.

    success is top-1 accuracy on all training rows (as published, known rows included); success_unlabeled, f1
    and leak (``metrics.leak``) are of the rows without a known label. leak_select is the leak of one half of
    these. leak_report is that of the other half; for two classes, the first half gives the direction.
    leak_crossed scores both halves, each in the direction of the other. leak_error is the standard deviation
    of leak over draws of the rows. leak_null is the .95 quantile, over permuted labels, of the leak (an AUC
    is not flipped) of the same scores on the half of leak_report. A figure is NaN if no row is left. All are
    NaN if a trained attack has no guess at any row: it diverged, which says nothing about the defense.

    For two classes, auc_batch_q95 is the .95 quantile over batches of the AUC a, not flipped (Marvell's
    reduction); leak_batch_mean is the mean over batches of max(a, 1 - a), which small batches raise.

    Further figures are those of ``_named_figures``, of canaries (``guess_figures``) and of the most certain
    rows (``certainty``): for two classes each half in the direction of the other, for more classes under the
    names by which an attack that knows no label reads better.

    Args:
      output: of the attack.
      true: the labels of all seeds.
      batch_size: on which the parties agreed.
    """
    _check(output, true)
    scores, i = output.scores, output.seed
    labels, sent = true.labels[i], output.sent.astype(jnp.float32)
    turn = _turns(true, i, output.draw)
    unlabeled = sent * (turn >= output.known)
    half = true.selects[i].astype(jnp.float32)
    choose, report = unlabeled * half, unlabeled * (1 - half)
    two, its_own = scores.train.shape[1] == 2, jnp.arange(scores.train.shape[1])
    # for two classes names are the direction, which is never chosen on the rows that are scored
    by_choose, by_report = (
        metrics.names(scores.train, labels, part) if two else its_own for part in (choose, report)
    )
    null = metrics.leak_under(scores.train, true.null[i], report)
    out = {
        "success": metrics.accuracy(scores.train, labels, sent),
        "success_unlabeled": metrics.accuracy(scores.train, labels, unlabeled),
        "f1": metrics.f1(scores.train, labels, unlabeled),
        "leak": metrics.leak(scores.train, labels, unlabeled),
        "leak_select": metrics.leak(scores.train, labels, choose),
        "leak_report": metrics.leak_named(scores.train, by_choose, labels, report),
        "leak_error": metrics.leak_error(scores.train, labels, unlabeled),
        "leak_null": jnp.quantile(null, NULL_LEVEL),
        **_named_figures(output, true, sent, half, turn),
    }
    turned = metrics.leak_named(scores.train, by_report, labels, choose)
    out["leak_crossed"] = (out["leak_report"] + turned) / 2 if two else out["leak"]
    if two:
        batch, count = output.order // batch_size, -(-len(labels) // batch_size)
        difference = metrics.difference(scores.train)
        by_batch = metrics.auc_by_batch(difference, labels, batch, count, unlabeled)
        out["auc_batch_q95"] = jnp.nanquantile(by_batch, 0.95)
        out["leak_batch_mean"] = jnp.nanmean(jnp.maximum(by_batch, 1 - by_batch))
        halves = [(choose, by_report[0] != 0), (report, by_choose[0] != 0)]
        out |= certainty(scores.train, labels, halves)
    if true.candidates is not None:
        out |= guess_figures(scores.train, labels, true.candidates[i], half)
    if scores.train.shape[1] > 5:
        out["success_top5"] = metrics.topk(scores.train, labels, 5, sent)
        out["success_top5_unlabeled"] = metrics.topk(scores.train, labels, 5, unlabeled)
    any_left = jnp.sum(unlabeled) > 0  # an attacker that knows every label leaves nothing to score
    counted = ("success", "success_top5")
    out = {k: v if k in counted else jnp.where(any_left, v, jnp.nan) for k, v in out.items()}
    if scores.test is not None:
        labels = true.test_labels[i]
        out["test_success"] = metrics.accuracy(scores.test, labels)
        out["test_leak"] = metrics.leak(scores.test, labels)
        if scores.test.shape[1] == 2:
            out["test_f1"] = metrics.f1(scores.test, labels)
        if scores.test.shape[1] > 5:
            out["test_success_top5"] = metrics.topk(scores.test, labels, 5)
    guessed = jnp.any(jnp.all(jnp.isfinite(scores.train), axis=-1) & output.sent)
    diverged = output.trained & ~guessed & jnp.any(output.sent)
    return {k: jnp.where(diverged, jnp.nan, v) for k, v in out.items()}


def _check(output: AttackOutput, true: TrueLabels) -> None:
    """Asserts the shapes that ``AttackOutput`` and ``TrueLabels`` document, with scores [N, C] and [M, C]."""
    chex.assert_rank(true.labels, 2)
    seeds, rows = true.labels.shape
    chex.assert_shape(true.known_order, (None, rows))
    chex.assert_shape(true.selects, (seeds, rows))
    chex.assert_shape(true.null, (seeds, None, rows))
    chex.assert_shape(true.test_labels, (seeds, None))
    if true.candidates is not None:
        chex.assert_shape(true.candidates, (seeds, rows, 2))
    chex.assert_rank([output.seed, output.known, output.trained], 0)
    chex.assert_shape([output.order, output.sent], (rows,))
    chex.assert_shape(output.scores.train, (rows, None))
    if output.scores.test is not None:
        classes = output.scores.train.shape[1]
        chex.assert_shape(output.scores.test, (true.test_labels.shape[1], classes))


def _make_scorer(batch_size: int, first: bool) -> Callable[..., dict[str, Array]]:
    """``score`` for a batch size: its figures of the first draw alone (``OF_FIRST_DRAW``), or the others."""

    def score_member(output: AttackOutput, true: TrueLabels) -> dict[str, Array]:
        figures = score(output, true, batch_size)
        return {k: v for k, v in figures.items() if k.startswith(OF_FIRST_DRAW) == first}

    return score_member


@jax.jit
def _of_draw(scores: Scores, draw: int) -> Scores:
    """Returns the scores [members, N, C] of one draw of [members, draws, N, C]. All draws share a program."""
    return jax.tree.map(lambda x: jax.lax.dynamic_index_in_dim(x, draw, 1, keepdims=False), scores)


def _mean(*draws: HostArray) -> HostArray:
    """Returns the mean over draws of known labels, without those in which the attack diverged."""
    return np.nansum(draws, axis=0) / np.float32(np.sum(~np.isnan(draws), axis=0))


class Scorer:
    """Scores batches of attacks while their scores are still on the devices. All attacks on arrays of equal
    shapes share programs."""

    def __init__(
        self, arrays: Mapping[str, np.ndarray], width: int | None, naming: int, level: int | None
    ) -> None:
        """``arrays`` are the plan's splits (``plan.split_arrays``), ``naming`` is the number of known labels
        that name the classes of an attack that knows none, and ``level`` that of ``compiler_options``."""
        labels = arrays["labels"].astype(np.int32)
        train = labels[arrays["train"]]
        on_host: Any = {
            "labels": train,
            "test_labels": labels[arrays["test"]],
            "known_order": arrays["known_order"],
            "selects": arrays["selects"],
            "null": permuted_labels(train),
            "candidates": arrays.get("candidates"),
        }
        true = TrueLabels(**jax.tree.map(jnp.asarray, on_host))
        self._true = batch_layout.share(with_places(true, len(train)))
        self._width, self._naming, self._level = width, naming, level
        number = len(arrays["labels"])
        marked = np.random.default_rng(number).choice(number, min(number, MARKED), replace=False)
        # the place of each marked row among a seed's training rows, -1 if it is none of them
        self._marked = np.full((len(train), len(marked)), -1)
        for places, rows in zip(self._marked, arrays["train"], strict=True):
            _, among_rows, among_marked = np.intersect1d(rows, marked, True, True)
            places[among_marked] = among_rows

    def figures(
        self, scores: Scores, inputs: AttackInput, attack: Attack, batch_size: int, capacity: int
    ) -> dict[str, np.ndarray]:
        """Returns each figure [members] by name.

        Args:
          scores: of all members of the batch, copies included.
          inputs: of the members without copies, on the host.
          attack: what was run.
          batch_size: on which the parties agreed.
          capacity: members of the batch, copies included.
        """
        count, epochs = len(inputs.seed), inputs.exchange["epochs"][0]
        place = -1 if attack.epoch == -1 else int(np.argmax(epochs == attack.epoch))
        known = inputs.knobs.get("known", np.zeros(count)) * (not attack.oracle)
        naming = np.where(known > 0, known, 0 if attack.oracle else self._naming)
        sent = inputs.exchange["sent"][:, place]
        on_host: Any = {
            "seed": inputs.seed,
            "known": np.asarray(known, np.int32),
            "order": inputs.exchange["order"][:, place],
            "sent": inputs.exchange["sum_count"] > 0 if attack.over_epochs else sent,
            "trained": np.full(count, attack.steps > 0),
            "naming": np.asarray(naming, np.int32),
        }
        figures = self._figures(AttackOutput(scores, **on_host), batch_size, capacity)
        # the number of labels that name the classes, and of draws over which figures are averaged
        numbers = {"naming": naming, "draws": np.full(count, scores.train.shape[1])}
        return figures | {name: np.asarray(of, np.float32) for name, of in numbers.items()}

    def figures_on_host(
        self, outputs: Sequence[AttackOutput], batch_size: int
    ) -> list[dict[str, Any]]:
        """Returns the figures of each output of attacks that were run on the host.

        Args:
          outputs: of equal shapes.
          batch_size: on which the parties agreed.
        """
        rows: list[dict[str, Any]] = []
        many = self._true.labels.shape[1] > MANY_ROWS
        most = jax.device_count() if many else HOST_BATCH
        for first in range(0, len(outputs), most):
            batch = outputs[first : first + most]
            together = jax.tree.map(lambda *leaves: np.stack(leaves), *batch)
            layout = batch_layout.layout_of(most, 1)
            padded = together._replace(scores=layout.pad(together.scores))
            figures = self._figures(padded, batch_size, layout.capacity)
            rows += [{k: v[i].tolist() for k, v in figures.items()} for i in range(len(batch))]
        return rows

    def _figures(
        self, output: AttackOutput, batch_size: int, capacity: int
    ) -> dict[str, HostArray]:
        """Returns each figure [members]. The scores are on the devices, with copies that fill the batch; all
        else is on the host, without copies."""
        # the capacity is that of the attack's batch, whose width was chosen by other limits
        layout = batch_layout.Layout(capacity, batch_layout.dividing_width(capacity, self._width))
        count, by_draw = len(output.seed), []
        padded = layout.pad(output._replace(scores=(), draw=())._asdict())
        places = self._marked[np.asarray(output.seed)]

        def scored(draw: int, first: bool) -> dict[str, HostArray]:
            draws = layout.pad(np.full(count, draw, np.int32))
            of_draw = {**padded, "draw": draws, "scores": _of_draw(output.scores, draw)}
            static, arguments = (batch_size, first), (AttackOutput(**of_draw), self._true)
            program = programs.program(
                _make_scorer, static, layout, *arguments, level=self._level, fitting=True
            )
            return batch_layout.unpad(program(*arguments), count)

        for draw in range(output.scores.train.shape[1]):  # one program for any number of draws
            figures = scored(draw, first=False)
            figures["right"] = np.take_along_axis(figures["right"], places, axis=1)
            by_draw.append(figures)
        with np.errstate(invalid="ignore"):  # NaN where the attack diverged in every draw
            figures = jax.tree.map(_mean, *by_draw)
        right = figures["right"]
        marks = np.select([(places < 0) | np.isnan(right), right == 1], ["-", "1"], "0")
        marks = np.array(["".join(row) for row in marks])
        return {**figures, **scored(0, first=True), "right": marks}
