"""The record of a task: everything that depends on what a label is.

Training, scoring and reports call these functions and never ask which task it is. ``num_classes`` is the width
of outputs and scores: C, the number of classes, or 1 if labels are numbers. ``tasks.of`` finds the task by it.

Functions on arrays of JAX are pure, and are used inside compiled programs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from vfljax.types import Array

Read = Callable[[str], tuple[Array, Array]]
"""``read(part)`` are the outputs [n, C] of the joint model and the labels [n], as training reads them, of
"train", "validation" or "test" rows."""


class Utility(NamedTuple):
    """The figure that says how useful a federation is, on test rows."""

    name: str  # as reports call it
    figure: str  # how the columns that hold it end: "test_" + figure
    alone: str  # the same of the learners of the label party
    guess: float  # what a guess reaches


class Task(NamedTuple):
    """What labels are, how they are learned, and how attacks on them are scored."""

    name: str
    credited: str  # the name of the training utility
    label_type: Any  # of labels as networks learn them: int32 or float32

    # --- training ---
    # (labels [B], num_classes) -> [B, C]
    targets: Callable[[Array, int], Array]
    # (outputs [B, C], targets [B, C], class weights, Huber's delta) -> [], the mean over the batch
    loss: Callable[[Array, Array, tuple[float, ...], float], Array]
    # (outputs [B, C], labels [B]) -> [], whose sum over an epoch, divided by its rows, is the training utility
    credit: Callable[[Array, Array], Array]
    # (read, num_classes, the label's unit []) -> figures of the trained federation by name, [] each
    evaluate: Callable[[Read, int, Array | float], dict[str, Array]]

    # --- scoring an attack: scores [n, C], labels [n], weights [n] of 0 or 1 ---
    # (scores, labels, weights) -> [C] int32, the names of the scores' columns that fit these rows best
    names: Callable[[Array, Array, Array], Array]
    # (scores, names) -> scores [n, C] under these names
    named: Callable[[Array, Array], Array]
    # (scores, names, labels, weights or None) -> [], from chance to 1
    leak: Callable[[Array, Array, Array, Array | None], Array]
    # (scores, labels, weights of rows sent, weights of those of unknown label) -> further figures by name
    figures: Callable[[Array, Array, Array, Array], dict[str, Array]]
    # (scores, labels) -> further figures of test rows by name
    test_figures: Callable[[Array, Array], dict[str, Array]]
    # (named scores, labels, weights, the positive one of two classes) -> figures of the rows of which an attack
    # is sure. Among them is "right" [n], which is 1 for a row that is named rightly, else 0, NaN without weight
    sure: Callable[[Array, Array, Array, Array], dict[str, Array]]

    # --- the labels that attackers know, which are drawn by strata in turn ---
    least_known: Callable[[int], int]  # num_classes -> the fewest from which anything is learned
    # (num_classes, rows of the rarest class, rows) -> the most, short of all, that are drawn evenly
    most_known: Callable[[int, int, int], int]

    # --- reports: ``balance`` is the number of rows of each class, or of all rows alone ---
    scale: Callable[[int], str]  # the name of the scale of leaks
    chance: Callable[[int], float]  # the leak of a guess
    utility: Callable[[Sequence[int]], Utility]
    # (balance, rows, rows of the most frequent label of all) -> of so many rows those whose errors bound the
    # spread of a leak
    counted_rows: Callable[[Sequence[int], int, int], int]
    # (num_classes, counted rows) -> the standard deviation of the leak of random scores
    null_spread: Callable[[int, int], float]


def table(*tasks: Task) -> Mapping[str, Task]:
    """Returns tasks by name."""
    return {task.name: task for task in tasks}
