"""The attack record. The argument list is the threat model: an attack sees a ``View`` and the few
``Known`` labels, nothing else, and says how likely it finds each class for each row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax.numpy as jnp

from vfljax.types import Array, Known, Scores, View

SPLIT, MALICIOUS, NO_SPLIT = "split", "malicious", "no_split"


def check_epoch(epoch: int) -> None:
    """Refuse what is no epoch number; whether a sweep recorded it is checked when it is attacked."""
    if not isinstance(epoch, int) or isinstance(epoch, bool) or epoch < -1:
        raise ValueError(f"epoch={epoch!r} is not an epoch: choose 0, 1, ... or -1 (the last).")


def place_of(epoch: int, epochs: Array) -> Array | int:
    """Where epoch number ``epoch`` stands among the recorded ``epochs`` [E]; -1 is the last."""
    return -1 if epoch == -1 else jnp.argmax(epochs == epoch)


class Attack(NamedTuple):
    """``run(key, view, known, knobs) -> Scores``, pure, for one setting; vmapped by the caller.

    ``structure`` is the federation the attack needs trained: ``split`` (honest, with a top model),
    ``malicious`` (with malicious parties) or ``no_split``. ``knobs`` are its numeric options and
    their published values; they reach ``run`` as arrays. ``steps`` counts its optimizer steps.
    """

    run: Callable[[Array, View, Known, Mapping[str, Array]], Scores]
    structure: str
    knobs: Mapping[str, float] = {}
    baselines: bool = False  # shown beside an untrained bottom, the same labels alone, all labels
    binary: bool = False  # defined for two classes only
    oracle: bool = False  # knows more than an attacker can: stays out of the worst case
    steps: int = 0
    epoch: int = -1  # the recorded epoch it reads; -1: the last, which always is recorded
