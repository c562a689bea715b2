"""Constructed runs for attacks (``vfljax.testing.exchanges``), and attacks on them."""

from __future__ import annotations

import functools

import numpy as np

from tests import harness
from vfljax import keys
from vfljax.attacks.core import Attack
from vfljax.models import MLP
from vfljax.testing import exchanges
from vfljax.testing.exchanges import BATCH, CUT, LAYER, ONE_BOTTOM, OWN_COLUMNS, Case, make_case
from vfljax.testing.of_attacks import jitted, scores_of
from vfljax.types import Known, Scores, View


def swaps(rng, labels, classes):
    """Rows that all send one embedding in the last epoch, where those of its class receive less."""
    z, g = rng.normal(size=(2, 2, len(labels), classes))
    z[1] = z[1, 0]
    g = g / np.linalg.norm(g, axis=-1, keepdims=True)
    g[1] *= np.where(labels == labels[0], 0.2, 2.0)[:, None]
    return {"embeddings": z, "gradients": g}


LEAKS = {**exchanges.LEAKS, "swaps": swaps}
__all__ = [
    "BATCH",
    "CUT",
    "LAYER",
    "LEAKS",
    "ONE_BOTTOM",
    "OWN_COLUMNS",
    "Case",
    "jitted",
    "make_case",
]


def seen_of(case: Case) -> tuple[View, Known]:
    """What the attacker sees and knows of a case (``exchanges.attacker_of``)."""
    return exchanges.attacker_of(case.run, case.common)


def known_of(case: Case) -> np.ndarray:
    """The rows whose labels the attacker knows."""
    _, known = seen_of(case)
    return np.asarray(known.rows)[: int(known.count)]


def build(factory, num_classes, cut=CUT, **options) -> Attack:
    """The factory's attack on a linear bottom of this width: one object, hence one program, for equal
    options."""
    return _build(factory, num_classes, cut, tuple(options.items()))


@functools.cache
def _build(factory, num_classes, cut, options):
    return factory((MLP((), cut),), num_classes, **dict(options))


def attack(attack: Attack, case: Case, key=None, **knobs) -> Scores:
    """The attack's scores, with its published knobs where no others are passed."""
    key = keys.run_key(0) if key is None else key
    classes = case.common.labels.max() + 1
    return scores_of(attack, case, classes, key, {**attack.knobs, **knobs})


def attack_all(attacks, case: Case, key=None, **knobs) -> list[np.ndarray]:
    """The training rows' scores by several attacks with the same knobs: one program for all."""
    view, known = seen_of(case)
    key = keys.run_key(0) if key is None else key
    numbers = {k: np.float32(v) for k, v in {**attacks[0].knobs, **knobs}.items()}
    runs = tuple(attack.run for attack in attacks)
    return [np.asarray(scores) for scores in _all_jitted(runs)(key, view, known, numbers)]


@functools.cache
def _all_jitted(runs):
    return harness.quick_jit(lambda *arguments: [run(*arguments).train for run in runs])
