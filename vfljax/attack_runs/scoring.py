"""Scores attacks with true labels. Nothing else compares the scores of attacks with them.

The programs of scoring do not depend on the attack, so all attacks of a sweep share them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import tasks
from vfljax.attack_runs.view import AttackInput, with_places
from vfljax.attacks.core import Attack
from vfljax.attacks.learners import MANY_ROWS
from vfljax.store.attack_rows import marked_rows, numbers_of_rows
from vfljax.sweep import batch_layout, programs
from vfljax.sweep.canaries import PREFIX, guess_figures
from vfljax.types import Array, HostArray, Scores

HOST_BATCH = 32  # outputs of attacks on the host that are scored in one call
FEW_TEST = 10_000  # test rows that are scored in about a millisecond of a member


class AttackOutput(NamedTuple):
    """The scores of one attack on one trial, and what is needed to judge them."""

    scores: Scores  # [N, C] and [M, C]; ``Scorer`` takes them with an axis of draws before these
    seed: Array  # [] int32
    known: Array  # [] number of labels that the attack knew
    sent: Array  # [N] bool: sent in the epoch that the attack read; if it reads all epochs, in any of them
    trained: Array  # [] bool: the attack trains, so it has a guess unless it diverged
    naming: Array  # [] number of labels that name its classes
    draw: Array | int = 0  # [] number of the draw of the known rows


class TrueLabels(NamedTuple):
    """The labels, and arrays derived from them, that no attacker is given. The leading axis Q is seeds."""

    labels: Array  # [Q, N] of training rows
    test_labels: Array  # [Q, M]
    known_order: Array  # [draws Q, N] as of ``Table``
    positive: Array  # [Q] int32, of two classes the one that an ROC is of, equal for all seeds
    candidates: Array | None = None  # [Q, N, 2] the labels a canary may have; None without any
    selects: Array | None = None  # [Q, N] bool: the half of canaries on which attacks are chosen
    # [Q, N] numbers from 0 of groups of one label each, such as copies of a row; None without any
    groups: Array | None = None


def _turns(true: TrueLabels, seed: Array, draw: Array | int) -> Array:
    """Returns each row's place [N] in the order in which labels become known: with n known, 0 to n - 1."""
    order = true.known_order[draw * len(true.labels) + seed]
    return jnp.zeros(len(order), jnp.int32).at[order].set(jnp.arange(len(order), dtype=jnp.int32))


def _revealed(true: TrueLabels, seed: Array, turn: Array) -> Array:
    """Returns the place [N] at which a label is known or follows from those that are: the first place of
    the row's group, all rows of which have one label. Without groups it is the row's own place."""
    if true.groups is None:
        return turn
    groups = true.groups[seed]
    return jnp.full(len(turn), len(turn), jnp.int32).at[groups].min(turn)[groups]


def _names(output: AttackOutput, true: TrueLabels, sent: Array, turn: Array) -> tuple[Array, Array]:
    """Returns the class [C] that each column of the scores stands for, and the rows [N] that are scored.

    An attack that knows labels names its classes by them, and for two classes is never turned. An attack that
    knows none, such as ``direct``, has names of its own, which a defense may permute. A secret permutation
    would stop this attack but protect no label, because an attacker with a few known labels undoes it. So
    ``Task.names`` names its classes by ``naming`` known rows, as many as other attackers know. These rows
    are then not scored. Without any, all rows name them. For two classes and for numbers the names are the
    direction, so that all rows grant one bit.

    Args:
      output: of the attack.
      true: the labels of all seeds.
      sent: [N] 1 for a row that was sent to the attack, else 0.
      turn: of ``_turns``.
    """
    scores, labels = output.scores.train, true.labels[output.seed]
    revealed, naming = _revealed(true, output.seed, turn), output.naming
    scored = sent * (revealed >= output.known) * (revealed >= naming)
    naming_rows = sent * (turn < naming)
    naming_rows = jnp.where(jnp.sum(naming_rows) > 0, naming_rows, scored)
    its_own = jnp.arange(scores.shape[1], dtype=jnp.int32)
    names = tasks.of(scores.shape[1]).names(scores, labels, naming_rows)
    return jnp.where(output.known > 0, its_own, names), scored


def score(output: AttackOutput, true: TrueLabels) -> dict[str, Array]:
    """Returns the figures of an attack. Rows that were never sent to it count in none of them.

    leak is ``Task.leak`` under the names of ``_names``, on the rows that these leave; renamed is the share of
    columns whose name is not the attack's own, and test_leak is the leak of test rows under the same names. So
    are the figures of the rows of which the attack is sure (``Task.sure``). Of classes, success is top-1
    accuracy on all training rows (as published, known rows included); success_unlabeled and f1 are of the rows
    whose label is neither known nor follows, as that of a known row's copy. Further figures are those of
    canaries (``guess_figures``).

    A figure is NaN if no row is left. All are NaN if a trained attack has no guess at any row: it diverged,
    which says nothing about the defense.

    Args:
      output: of the attack.
      true: the labels of all seeds.
    """
    _check(output, true)
    scores, i = output.scores, output.seed
    task = tasks.of(scores.train.shape[1])
    labels, sent = true.labels[i], output.sent.astype(jnp.float32)
    turn = _turns(true, i, output.draw)
    unlabeled = sent * (_revealed(true, i, turn) >= output.known)
    names, scored = _names(output, true, sent, turn)
    leak = task.leak(scores.train, names, labels, scored)
    its_own = jnp.arange(len(names))
    out = {
        **task.figures(scores.train, labels, sent, unlabeled),
        "leak": jnp.where(jnp.sum(scored) > 0, leak, jnp.nan),
        "renamed": jnp.mean((names != its_own).astype(jnp.float32)),
        **task.sure(task.named(scores.train, names), labels, scored, true.positive[i]),
    }
    if true.candidates is not None:
        assert true.selects is not None
        half = true.selects[i].astype(jnp.float32)
        out |= guess_figures(scores.train, labels, true.candidates[i], half)
    any_left = jnp.sum(unlabeled) > 0  # an attacker that knows every label leaves nothing to score
    counted = ("success", "success_top5")
    out = {k: v if k in counted else jnp.where(any_left, v, jnp.nan) for k, v in out.items()}
    if scores.test is not None:
        labels = true.test_labels[i]
        out |= task.test_figures(scores.test, labels)
        out["test_leak"] = task.leak(scores.test, names, labels, None)
    guessed = jnp.any(jnp.all(jnp.isfinite(scores.train), axis=-1) & output.sent)
    diverged = output.trained & ~guessed & jnp.any(output.sent)
    return {k: jnp.where(diverged, jnp.nan, v) for k, v in out.items()}


def _check(output: AttackOutput, true: TrueLabels) -> None:
    """Asserts the shapes that ``AttackOutput`` and ``TrueLabels`` document, with scores [N, C] and [M, C]."""
    chex.assert_rank(true.labels, 2)
    seeds, rows = true.labels.shape
    chex.assert_shape(true.known_order, (None, rows))
    chex.assert_shape(true.positive, (seeds,))
    chex.assert_shape(true.test_labels, (seeds, None))
    if true.candidates is not None:
        chex.assert_shape(true.candidates, (seeds, rows, 2))
        chex.assert_shape(true.selects, (seeds, rows))
    if true.groups is not None:
        chex.assert_shape(true.groups, (seeds, rows))
    chex.assert_rank([output.seed, output.known, output.trained], 0)
    chex.assert_shape(output.sent, (rows,))
    chex.assert_shape(output.scores.train, (rows, None))
    if output.scores.test is not None:
        classes = output.scores.train.shape[1]
        chex.assert_shape(output.scores.test, (true.test_labels.shape[1], classes))


def _make_scorer(canaries: bool) -> Callable[..., dict[str, Array]]:
    """``score``: the figures of canaries alone, which are not averaged over draws, or the others."""

    def score_member(output: AttackOutput, true: TrueLabels) -> dict[str, Array]:
        figures = score(output, true)
        return {k: v for k, v in figures.items() if k.startswith(PREFIX) == canaries}

    return score_member


@jax.jit
def _of_draw(scores: Scores, point: int, draw: int) -> Scores:
    """Returns the scores [members, N, C] of one point and draw of [members, points, draws, N, C]. All points
    and draws share a program."""

    def of(x: Array) -> Array:
        x = jax.lax.dynamic_index_in_dim(x, point, 1, keepdims=False)
        return jax.lax.dynamic_index_in_dim(x, draw, 1, keepdims=False)

    return jax.tree.map(of, scores)


def _mean(*draws: HostArray) -> HostArray:
    """Returns the mean over draws of known labels, without those in which the attack diverged."""
    return np.nansum(draws, axis=0) / np.float32(np.sum(~np.isnan(draws), axis=0))


class Scorer:
    """Scores batches of attacks while their scores are still on the devices. All attacks on arrays of equal
    shapes share programs."""

    def __init__(
        self,
        arrays: Mapping[str, np.ndarray],
        width: int | None,
        naming: int,
        level: int | None,
        positive: int = 1,
    ) -> None:
        """``arrays`` are the plan's splits (``known.split_arrays``), ``naming`` is the number of known labels
        that name the classes of an attack that knows none, ``level`` that of ``compiler_options``, and
        ``positive`` the class that an ROC is of (``Plan.positive``)."""
        labels = arrays["labels"]
        train = labels[arrays["train"]]
        on_host: Any = {
            "labels": train,
            "test_labels": labels[arrays["test"]],
            "known_order": arrays["known_order"],
            "positive": np.full(len(train), positive, np.int32),
            "candidates": arrays.get("candidates"),
            "selects": arrays.get("selects"),
            "groups": arrays.get("groups"),
        }
        true = TrueLabels(**jax.device_put(on_host))
        self._true = batch_layout.share(with_places(true, len(train)))
        self._width, self._naming, self._level = width, naming, level
        numbers = numbers_of_rows(arrays)
        marked = marked_rows(numbers)
        # the place of each marked row among a seed's training rows, -1 if it is none of them
        self._marked = np.full((len(train), len(marked)), -1)
        for places, rows in zip(self._marked, arrays["train"], strict=True):
            _, among_rows, among_marked = np.intersect1d(numbers[rows], marked, True, True)
            places[among_marked] = among_rows

    def figures(
        self, scores: Scores, inputs: AttackInput, attack: Attack, capacity: int, point: int
    ) -> dict[str, np.ndarray]:
        """Returns each figure [members] by name.

        Args:
          scores: [capacity, points, draws, N, C] of all members of the batch, copies included, in the places
            of a layout that deals them.
          inputs: of the members without copies, on the host, with the knobs [members] of the point.
          attack: what was run.
          capacity: members of the batch, copies included.
          point: which of the points is scored.
        """
        count, epochs = len(inputs.seed), inputs.exchange["epochs"][0]
        place = -1 if attack.epoch in (-1, None) else int(np.argmax(epochs == attack.epoch))
        known = inputs.knobs.get("known", np.zeros(count)) * (not attack.oracle)
        naming = np.where(known > 0, known, 0 if attack.oracle else self._naming)
        sent = inputs.exchange["sent"][:, place]
        on_host: Any = {
            "seed": inputs.seed,
            "known": np.asarray(known, np.int32),
            "sent": inputs.exchange["sum_count"] > 0 if attack.epoch is None else sent,
            "trained": np.full(count, attack.steps > 0),
            "naming": np.asarray(naming, np.int32),
        }
        figures = self._figures(AttackOutput(scores, **on_host), capacity, point)
        # the number of labels that name the classes, and of draws over which figures are averaged
        numbers = {"naming": naming, "draws": np.full(count, scores.train.shape[2])}
        return figures | {name: np.asarray(of, np.float32) for name, of in numbers.items()}

    def figures_on_host(self, outputs: Sequence[AttackOutput]) -> list[dict[str, Any]]:
        """Returns the figures of each output of attacks that were run on the host.

        Args:
          outputs: of equal shapes.
        """
        rows: list[dict[str, Any]] = []
        many = self._true.labels.shape[1] > MANY_ROWS
        most = jax.device_count() if many else HOST_BATCH
        for first in range(0, len(outputs), most):
            batch = outputs[first : first + most]
            together = jax.tree.map(lambda *leaves: np.stack(leaves), *batch)
            layout = dataclasses.replace(batch_layout.layout_of(most, 1), dealt=True)
            scores = jax.tree.map(lambda x: x[:, None], together.scores)  # of one point
            padded = together._replace(scores=layout.pad(scores))
            figures = self._figures(padded, layout.capacity, 0)
            rows += [{k: v[i].tolist() for k, v in figures.items()} for i in range(len(batch))]
        return rows

    def _no_test(self, members: int, classes: int, layout: batch_layout.Layout) -> Array | None:
        """Returns zeros [members, M, C] in place of an attack's scores of test rows that it does not have, so
        that all attacks share a program; None where another program is worth its compile time."""
        rows = self._true.test_labels.shape[1]
        if rows > FEW_TEST:
            return None
        return layout.pad(np.zeros((members, rows, classes), np.float32))

    def _figures(self, output: AttackOutput, capacity: int, point: int) -> dict[str, HostArray]:
        """Returns each figure [members] at a point. The scores are on the devices, with copies that fill the
        batch; all else is on the host, without copies."""
        # the capacity is that of the attack's batch, whose width was chosen by other limits
        width = batch_layout.dividing_width(capacity, self._width)
        layout = batch_layout.Layout(capacity, width, dealt=True)
        count, by_draw = len(output.seed), []
        padded = layout.pad(output._replace(scores=(), draw=())._asdict())
        places = self._marked[np.asarray(output.seed)]

        scores, tested = output.scores, output.scores.test is not None
        members, *_, classes = scores.train.shape
        test = None if tested else self._no_test(members, classes, layout)

        def scored(draw: int, canaries: bool = False) -> dict[str, HostArray]:
            draws = layout.pad(np.full(count, draw, np.int32))
            drawn = _of_draw(scores, point, draw)
            drawn = drawn if tested else drawn._replace(test=test)
            of_draw = {**padded, "draw": draws, "scores": drawn}
            static, arguments = (canaries,), (AttackOutput(**of_draw), self._true)
            program = programs.program(
                _make_scorer, static, layout, arguments, self._level, fitting=True
            )
            figures = layout.unpad(program.run_whole(*arguments, count), count)
            return {k: v for k, v in figures.items() if tested or not k.startswith("test_")}

        for draw in range(output.scores.train.shape[2]):  # one program for any number of draws
            figures = scored(draw)
            figures["right"] = np.take_along_axis(figures["right"], places, axis=1)
            by_draw.append(figures)
        with np.errstate(invalid="ignore"):  # NaN where the attack diverged in every draw
            figures = jax.tree.map(_mean, *by_draw)
        right = figures["right"]
        marks = np.select([(places < 0) | np.isnan(right), right == 1], ["-", "1"], "0")
        marks = marks.view(f"U{marks.shape[1]}")[:, 0]  # a text of each row
        of_canaries = {} if self._true.candidates is None else scored(0, canaries=True)
        return {**figures, **of_canaries, "right": marks}
