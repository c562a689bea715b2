"""Constructed runs for attacks: arrays as a sweep stores them, seen through the library's own
``view_of`` and ``known_rows``, so that tests meet the same wall between attacker and labels."""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from tests import harness
from vfljax import keys
from vfljax.attacks.core import CLEAN, Attack
from vfljax.models import MLP
from vfljax.sight import Ground, Target, known_rows, view_of
from vfljax.types import Agreed, Known, Scores, View

WIDTH = 6  # the attacker's columns
CUT = 6
BOTTOMS = (MLP((), CUT),)
BATCH = 20
LAYER = "party0.hidden.0"


class Case(NamedTuple):
    target: Target
    ground: Ground


def make_case(
    labels,
    num_classes,
    *,
    gradients=None,
    embeddings=None,
    sent=None,
    features=None,
    test_features=None,
    known=40,
) -> Case:
    """A stored run of len(labels) training rows; what is not given carries no information."""
    labels = np.asarray(labels)
    rng, rows = np.random.default_rng(123), len(labels)
    features = rng.normal(size=(rows, WIDTH)) if features is None else features
    test_features = rng.normal(size=(10, WIDTH)) if test_features is None else test_features
    gradients = np.zeros((1, rows, num_classes)) if gradients is None else np.asarray(gradients)
    epochs, _, cut = gradients.shape
    embeddings = np.zeros((epochs, rows, cut)) if embeddings is None else np.asarray(embeddings)
    sent = np.ones((epochs, rows), bool) if sent is None else np.asarray(sent)
    total = rows + len(test_features)
    received = np.where(sent[:, :, None], gradients, 0.0).astype(np.float32)
    target = Target(
        seed=np.uint32(0),
        seed_index=np.int32(0),
        key_name=np.uint32(0),
        knobs={"known": np.float32(known)},
        exchange={
            "embeddings": np.float32(embeddings),
            "gradients": np.asarray(gradients, np.float32),
            "order": np.tile(np.arange(rows, dtype=np.int32), (epochs, 1)),
            "sent": sent,
            "epochs": np.arange(epochs, dtype=np.int32),
            "sum_gradient": received.sum(0),
            "sum_sign": np.sign(received).sum(0),
            "sum_square": (received**2).sum(0),
            "sum_count": np.int32(sent.sum(0)),
        },
        bottoms=(
            {
                "params": {
                    "Dense_0": {
                        "kernel": np.eye(WIDTH, CUT, dtype=np.float32),
                        "bias": np.zeros(CUT, np.float32),
                    }
                }
            },
        ),
    )
    by_class = np.argsort(labels, kind="stable")
    turn = np.concatenate([np.arange(np.sum(labels == c)) for c in range(num_classes)])
    ground = Ground(
        features=(np.float32(np.concatenate([features, test_features])),),
        mean=(np.zeros((1, WIDTH), np.float32),),
        scale=(np.ones((1, WIDTH), np.float32),),
        train=np.arange(rows, dtype=np.int32)[None],
        test=np.arange(rows, total, dtype=np.int32)[None],
        labels=np.int32(np.concatenate([labels, np.zeros(total - rows, int)])),
        known_order=np.int32(by_class[np.argsort(turn, kind="stable")])[None],
    )
    return Case(target, ground)


def sight(case: Case) -> tuple[View, Known]:
    """What the attacker sees and knows of a case: of what stands inside the federation, the clean
    gradients and one layer are here the received gradients and the embeddings."""
    return _sight(case.target, case.ground)


@harness.quick_jit
def _sight(target, ground):
    known = known_rows(ground, target.seed_index, target.knobs["known"])
    e = target.exchange
    inside = {CLEAN: e["gradients"][-1], LAYER: e["embeddings"][-1]}
    return view_of(target, ground, Agreed(BATCH), inside), known


@functools.cache
def jitted(run):
    return harness.quick_jit(run)


def attack(one: Attack, case: Case, key=None, **knobs) -> Scores:
    """The attack's scores, with its published knobs unless given."""
    key = keys.run_key(0) if key is None else key
    numbers = {**one.knobs, **knobs}
    view, known = sight(case)
    return jitted(one.run)(key, view, known, {k: np.float32(v) for k, v in numbers.items()})
