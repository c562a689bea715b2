"""What in a recording makes the figures of its attacks wrong, or lets some attacks not run."""

from __future__ import annotations

import enum
import math
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

MOST_ROWS = 2000  # rows that a linear model is fitted to
WINDOW = 4  # messages on each side of a jump of gradient lengths
SPREAD, NEAR = 0.3, 0.1  # of log2 of these lengths: within a window, and to a whole number
LEARNS = 0.9  # lengths of gradients fall to this share, or below, where a federation learns
FOLDS = 4


class Kind(enum.Enum):
    """What a remark is about."""

    NO_GRADIENTS = "no gradients"
    NO_COLUMNS = "no columns"
    LOSS_SCALE = "a loss scale"
    UNANSWERED = "messages without an answer"
    DROPPED = "messages left out"
    MISALIGNED = "columns that predict nothing"
    LABEL_COLUMN = "labels among the columns"
    NOT_FINITE = "numbers that are not finite"
    FLATTENED = "cuts of several axes"


class Remark(NamedTuple):
    """One finding of ``Recorder.save``."""

    kind: Kind
    text: str
    party: Hashable = None  # None: of all parties


def of_wire(
    arrays: Mapping[str, np.ndarray],
    parties: Sequence[Hashable],
    dropped: int,
    broken: Mapping[Hashable, int],
) -> list[Remark]:
    """Returns the remarks on the arrays of a wire.

    Args:
      arrays: by name.
      parties: by number.
      dropped: how many messages without an answer were left out.
      broken: by party, how many answers to a row count as none because they are not finite.
    """
    found = []
    if dropped:
        text = f"{dropped} messages that were never answered are left out."
        found.append(Remark(Kind.DROPPED, text))
    trees = "party0_nodes" in arrays
    if not trees and "party0_gradients" not in arrays:
        text = "no gradients are recorded: attacks that read them are not run."
        found.append(Remark(Kind.NO_GRADIENTS, text))
    for number, party in enumerate(parties):
        of = {
            name.removeprefix(f"party{number}_"): array
            for name, array in arrays.items()
            if name.startswith(f"party{number}_")
        }
        labels = arrays.get("labels")
        if labels is not None and "task" in arrays:  # numbers: those below and above the median
            labels = (labels > np.median(labels)).astype(np.int32)
        found += (
            [] if trees else [*_unanswered(of, party, broken.get(party, 0)), *_scaled(of, party)]
        )
        found += _columns(of, labels, party)
    return found


def flattened(
    parties: Sequence[Hashable], shapes: Mapping[Hashable, tuple[int, ...]]
) -> list[Remark]:
    """Returns a remark for each party whose cut has several axes.

    Args:
      parties: by number.
      shapes: of a row of each party's arrays.
    """
    several = {party: shapes[party] for party in parties if len(shapes.get(party, ())) > 1}
    return [
        Remark(
            Kind.FLATTENED,
            f"the cut of party {party!r} of shape {list(shape)} is flattened to {math.prod(shape)} numbers.",
            party,
        )
        for party, shape in several.items()
    ]


def not_finite(party: Hashable, sent: int, received: int) -> list[Remark]:
    """Returns the remark that a party's recording held NaN or infinity, if it did.

    Args:
      party: whose recording it is.
      sent: rows of messages that held any, which are left out.
      received: likewise of answers.
    """
    if not sent + received:
        return []
    text = (
        f"{sent} rows that party {party!r} sent and {received} that it received hold NaN or infinity, which "
        "float16 gives above 65,504: they are left out, or count as without an answer."
    )
    return [Remark(Kind.NOT_FINITE, text, party)]


def _unanswered(of: Mapping[str, np.ndarray], party: Hashable, broken: int) -> list[Remark]:
    """Returns the remark that some messages of a party have no answer, not even one that is not finite."""
    if "answered" not in of or (~of["answered"]).sum() <= broken:
        return []
    steps, answered = of["steps"], of["answered"]
    lacking, every = len(np.unique(steps[~answered])), len(np.unique(steps))
    last = "the last one too, " if not answered[steps == steps.max()].any() else ""
    text = (
        f"{lacking} of {every} messages of party {party!r} have no answer, {last}and are not attacked: record "
        "the answers, or give drop_unanswered=True if these messages are of evaluation."
    )
    return [Remark(Kind.UNANSWERED, text, party)]


def _scaled(of: Mapping[str, np.ndarray], party: Hashable) -> list[Remark]:
    """Returns the remark that lengths of gradients jump by powers of two, as under a loss scale."""
    jumps = scale_jumps(_lengths(of))
    if not jumps:
        return []
    factors = ", ".join(f"{2.0**power:g}" for _, power in jumps[:3])
    text = (
        f"lengths of gradients of party {party!r} jump by powers of two ({len(jumps)} times, by {factors}): if "
        "the loss was scaled, as in mixed precision, give the factor to received(..., scale=)."
    )
    return [Remark(Kind.LOSS_SCALE, text, party)]


def _lengths(of: Mapping[str, np.ndarray]) -> np.ndarray:
    """Returns the median length of the gradients of each answered message, in the order of the messages."""
    if "gradients" not in of:
        return np.zeros(0)
    here = of.get("answered", np.ones(len(of["steps"]), bool))
    if not here.any():
        return np.zeros(0)
    steps, lengths = of["steps"][here], np.linalg.norm(of["gradients"][here], axis=1)
    order = np.argsort(steps, kind="stable")
    begins = np.flatnonzero(np.diff(steps[order], prepend=-1))
    return np.array([np.median(part) for part in np.split(lengths[order], begins[1:])])


def scale_jumps(lengths: np.ndarray) -> list[tuple[int, int]]:
    """Returns where lengths jump by a power of two at once, and by which.

    >>> scale_jumps(np.array([3.0, 3.1, 2.9, 3.0, 6.1, 5.9, 6.0, 6.0, 6.1]))
    [(4, 1)]
    """
    logs = np.log2(lengths[lengths > 0])
    found = []
    for place in range(WINDOW, len(logs) - WINDOW + 1):
        before, after = logs[place - WINDOW : place], logs[place : place + WINDOW]
        step = float(np.median(after) - np.median(before))
        power = round(step)
        steady = max(np.ptp(before), np.ptp(after)) < SPREAD
        at_once = (
            abs(after[0] - before[-1] - power) < SPREAD / 2
        )  # lengths that fall steadily do not
        if power and steady and at_once and abs(step - power) < NEAR:
            found.append((place, power))
    return found


def _columns(
    of: Mapping[str, np.ndarray], labels: np.ndarray | None, party: Hashable
) -> list[Remark]:
    """Returns the remarks on a party's own columns."""
    if "columns" not in of:
        text = (
            f"columns of party {party!r} are not recorded: without them there is no baseline, and it cannot be "
            "said how much of a leak this party reads without the federation."
        )
        return [Remark(Kind.NO_COLUMNS, text, party)]
    if labels is None or len(np.unique(labels)) < 2:
        return []
    columns, classes = np.asarray(of["columns"], np.float64), np.asarray(labels)
    equal = [j for j, column in enumerate(columns.T) if _tells(column, classes)]
    if equal:
        text = f"column {equal[0]} of party {party!r}, counted from 0, tells every label: is it the label?"
        return [Remark(Kind.LABEL_COLUMN, text, party)]
    own, noise = separation(columns, classes)
    if own > 0.5 + 2 * noise:
        return []
    sent, lengths = _last_sent(of, len(classes)), _lengths(of)
    fifth = max(1, len(lengths) // 5)
    falls = len(lengths) >= 5 and lengths[-fifth:].mean() < LEARNS * lengths[:fifth].mean()
    if falls or (sent is not None and separation(sent[1], classes[sent[0]])[0] > 0.5 + 4 * noise):
        text = (
            f"columns of party {party!r} predict the labels no better than chance (AUC {own:.2f}, by a linear "
            "model), although the federation learns: are columns, labels and messages of the same rows?"
        )
        return [Remark(Kind.MISALIGNED, text, party)]
    return []


def _tells(column: np.ndarray, labels: np.ndarray) -> bool:
    """Returns whether a column has one value for each class, or a threshold that separates two classes."""
    values, codes = np.unique(column, return_inverse=True)
    classes = np.unique(labels)
    if len(values) == len(classes):
        pairs = np.unique(np.stack([codes.ravel(), labels]), axis=1)
        return pairs.shape[1] == len(classes)
    if len(classes) > 2 or np.isnan(column).any():
        return False
    first = labels == classes[0]
    low, high = column[first], column[~first]
    return bool(low.max() < high.min() or high.max() < low.min())


def _last_sent(of: Mapping[str, np.ndarray], rows: int) -> tuple[np.ndarray, np.ndarray] | None:
    """Returns the rows that were sent, and the last embedding of each; None if none is recorded."""
    if "embeddings" not in of:
        return None
    last = np.full(rows, -1)
    order = np.argsort(of["steps"], kind="stable")
    last[of["rows"][order]] = order
    here = np.flatnonzero(last >= 0)
    return here, of["embeddings"][last[here]].astype(np.float64)


def separation(x: np.ndarray, labels: np.ndarray) -> tuple[float, float]:
    """Returns how well ridge regression of numbers [N, F] predicts labels [N]: the mean AUC over classes, of
    rows that it was not fitted to, and the standard deviation of an AUC of guesses.

    >>> x = np.random.default_rng(0).normal(size=(200, 3))
    >>> separation(x, (x[:, 1] > 0).astype(int))[0] > 0.9
    True
    """
    chosen = np.random.default_rng(0).permutation(len(x))[:MOST_ROWS]
    x, labels = x[chosen][:, ~np.isnan(x[chosen]).all(axis=0)], labels[chosen]
    x = (x - np.nanmean(x, axis=0)) / np.maximum(np.nanstd(x, axis=0), 1e-12)
    x = np.clip(np.nan_to_num(x), -10, 10)
    kernel, fold = x @ x.T, np.arange(len(x)) % FOLDS
    kernel += 1.0  # an intercept
    ridge = max(x.shape[1], 1.0)
    of = np.unique(labels)
    of = of[int(len(of) == 2) :]  # of two classes one is enough
    targets = np.where(np.equal.outer(labels, of), 1.0, -1.0)
    scores = np.zeros(targets.shape)
    for k in range(FOLDS):
        fit, held = fold != k, fold == k
        gram = kernel[np.ix_(fit, fit)] + ridge * np.eye(fit.sum())
        scores[held] = kernel[np.ix_(held, fit)] @ np.linalg.solve(gram, targets[fit])
    figures, noise = [], []
    for score, target in zip(scores.T, targets.T):
        positive, negative = score[target > 0], score[target < 0]
        if len(positive) and len(negative):
            ordered = np.sort(negative)
            below = np.searchsorted(ordered, positive) + np.searchsorted(ordered, positive, "right")
            figures.append(below.mean() / 2 / len(negative))
            noise.append((1 / len(positive) + 1 / len(negative)) / 12)
    return float(np.mean(figures)), float(np.sqrt(np.mean(noise) / len(noise)))
