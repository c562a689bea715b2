"""The attack record. The argument list is the threat model: an attack sees a ``View`` and the few
``Known`` labels, nothing else, and says how likely it finds each class for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp

from vfljax.types import Array, Known, Scores, View

SPLIT, MALICIOUS, NO_SPLIT = "split", "malicious", "no_split"
BASELINES = ("untrained", "logistic", "all_labels")
"""The same attack on an untrained bottom, the same labels without any federation, and the same attack
knowing every label (its upper bound)."""
CLEAN = (
    "clean"  # gradients [N, D] of the undefended loss at the final weights, which nobody receives
)

OVER_EPOCHS = ("mean", "votes")


def check_epoch(epoch: int | str) -> None:
    """Refuse what is no epoch; whether a sweep recorded it is checked when it is attacked."""
    number = isinstance(epoch, int) and not isinstance(epoch, bool) and epoch >= -1
    if not number and epoch not in OVER_EPOCHS:
        raise ValueError(
            f"epoch={epoch!r} is not an epoch: choose 0, 1, ..., -1 (the last), 'mean' or 'votes'."
        )


def number_of(epoch: int | str) -> int:
    """The recorded epoch an attack on ``epoch`` needs; -1 is always recorded."""
    return epoch if isinstance(epoch, int) else -1


def received(view: View, epoch: int | str) -> tuple[Array, Array]:
    """The gradients [N, D] an attack reads, and which rows it has any of [N] bool.

    ``epoch``: the number of a recorded epoch (-1 the last), or what an attacker who knows of zero-mean
    noise keeps of all epochs: the "mean" of a row's gradients, or the mean of their signs, "votes".
    """
    if isinstance(epoch, int):
        place = place_of(view, epoch)
        return view.gradients[place], view.sent[place]
    total = view.sums.gradient if epoch == "mean" else view.sums.sign
    count = view.sums.count
    return total / jnp.maximum(count, 1)[:, None], count > 0


class Batches(NamedTuple):
    """Which rows were sent together in one epoch."""

    rows: Array  # [T, B] int32 in sending order; N where a batch is shorter
    sent: Array  # [T, B] bool

    def gather(self, x: Array) -> Array:
        """``x`` [N, ...] by batch [T, B, ...]; what was not sent reads 0."""
        padded = jnp.concatenate([x, jnp.zeros_like(x[:1])])
        taken = padded[self.rows]
        return jnp.where(self.sent.reshape(self.sent.shape + (1,) * (x.ndim - 1)), taken, 0)

    def scatter(self, values: Array, rows: int) -> Array:
        """``values`` [T, B, ...] by row [N, ...]; NaN for rows never sent."""
        blank = jnp.full((rows + 1, *values.shape[2:]), jnp.nan, values.dtype)
        where = jnp.where(self.sent, self.rows, rows)
        return blank.at[where.reshape(-1)].set(values.reshape(-1, *values.shape[2:]))[:rows]


def batches(view: View, epoch: int) -> Batches:
    """The batches of a recorded epoch (-1: the last)."""
    place = place_of(view, epoch)
    order, sent = view.order[place], view.sent[place]
    rows, size = len(order), view.agreed.batch_size
    in_order = jnp.argsort(order).astype(jnp.int32)
    spare = -rows % size
    padded = jnp.concatenate([in_order, jnp.full(spare, rows, jnp.int32)])
    was_sent = jnp.concatenate([sent[in_order], jnp.zeros(spare, bool)])
    return Batches(padded.reshape(-1, size), was_sent.reshape(-1, size))


def place_of(view: View, epoch: int) -> Array | int:
    """Where a recorded epoch stands in the view."""
    return -1 if epoch == -1 else jnp.argmax(view.epochs == epoch)


def two_sided(score: Array, sent: Array) -> Array:
    """Scores [N, 2] of a number [N] that is larger for positives: the larger half is called positive;
    NaN for rows never sent."""
    centered = score - jnp.nanmedian(jnp.where(sent, score, jnp.nan))
    scores = jnp.stack([-centered, centered], axis=-1)
    return jnp.where(sent[:, None], scores, jnp.nan)


class Attack(NamedTuple):
    """``run(key, view, known, knobs) -> Scores``, pure, for one setting; vmapped by the caller.

    ``structure`` is the federation the attack needs trained: ``split`` (honest, with a top model),
    ``malicious`` (with malicious parties) or ``no_split``. ``knobs`` are its numeric options and
    their published values; they reach ``run`` as arrays. ``ranges``: (low, high) of those that may not
    be just any number >= 0. ``steps`` counts its optimizer steps: an attack with any has a guess for
    every row, unless it diverged.
    """

    run: Callable[[Array, View, Known, Mapping[str, Array]], Scores]
    structure: str
    knobs: Mapping[str, float] = {}
    ranges: Mapping[str, tuple[float, float]] = {}
    baselines: tuple[str, ...] = ()  # what its figures stand beside, some of BASELINES
    binary: bool = False  # defined for two classes only
    oracle: bool = False  # knows more than an attacker can: stays out of the worst case
    adaptive: bool = False  # in no paper: an attacker who knows the defense
    inside: str = ""  # the entry of ``View.inside`` it reads: a layer's name, or CLEAN
    steps: int = 0
    epoch: int = -1  # the recorded epoch it reads; -1: the last, which always is recorded
    over_epochs: bool = False  # it reads the sums over all epochs
