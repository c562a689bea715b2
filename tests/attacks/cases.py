"""Constructed runs for attacks: arrays as a sweep stores them, seen through the library's own
``view_of`` and ``known_rows``, so that tests meet the same wall between attacker and labels."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from tests import harness
from vfljax import attacking, keys
from vfljax.attacks.core import Attack
from vfljax.models import MLP
from vfljax.types import Known, Scores, View

WIDTH = 6  # the attacker's columns
CUT = 6
BOTTOM = MLP((), CUT)


class Case(NamedTuple):
    target: attacking.Target
    ground: attacking.Ground


def make_case(
    labels, num_classes, *, gradients=None, sent=None, features=None, test_features=None, known=40
) -> Case:
    """A stored run of len(labels) training rows; what is not given carries no information."""
    labels = np.asarray(labels)
    rng, rows = np.random.default_rng(123), len(labels)
    features = rng.normal(size=(rows, WIDTH)) if features is None else features
    test_features = rng.normal(size=(10, WIDTH)) if test_features is None else test_features
    gradients = np.zeros((1, rows, 2)) if gradients is None else np.asarray(gradients)
    epochs, _, cut = gradients.shape
    sent = np.ones((epochs, rows), bool) if sent is None else np.asarray(sent)
    total = rows + len(test_features)
    zeros = jnp.zeros((rows, cut))
    target = attacking.Target(
        seed=jnp.uint32(0),
        seed_index=jnp.int32(0),
        key_name=jnp.uint32(0),
        knobs={"known": jnp.float32(known)},
        exchange={
            "embeddings": jnp.zeros((epochs, rows, cut)),
            "gradients": jnp.asarray(gradients, jnp.float32),
            "order": jnp.tile(jnp.arange(rows), (epochs, 1)),
            "sent": jnp.asarray(sent),
            "epochs": jnp.arange(epochs),
            "sum_gradient": zeros,
            "sum_sign": zeros,
            "sum_square": zeros,
            "sum_count": jnp.zeros(rows, jnp.int32),
        },
        bottom={"params": {"Dense_0": {"kernel": jnp.eye(WIDTH, CUT), "bias": jnp.zeros(CUT)}}},
    )
    by_class = np.argsort(labels, kind="stable")
    turn = np.concatenate([np.arange(np.sum(labels == c)) for c in range(num_classes)])
    ground = attacking.Ground(
        features=jnp.asarray(np.concatenate([features, test_features]), jnp.float32),
        mean=jnp.zeros((1, WIDTH)),
        scale=jnp.ones((1, WIDTH)),
        train=jnp.arange(rows)[None],
        test=jnp.arange(rows, total)[None],
        labels=jnp.asarray(np.concatenate([labels, np.zeros(total - rows, int)]), jnp.int32),
        known_order=jnp.asarray(by_class[np.argsort(turn, kind="stable")])[None],
        selects=jnp.asarray(np.arange(rows) % 2 == 0)[None],
    )
    return Case(target, ground)


def sight(case: Case) -> tuple[View, Known]:
    """What the attacker sees and knows of a case."""
    known = attacking.known_rows(case.ground, jnp.int32(0), case.target.knobs["known"])
    return attacking.view_of(case.target, case.ground), known


@functools.cache
def jitted(run):
    return harness.quick_jit(run)


def attack(one: Attack, case: Case, key=None, **knobs) -> Scores:
    """The attack's scores, with its published knobs unless given."""
    key = keys.run_key(0) if key is None else key
    numbers = {**one.knobs, **knobs}
    view, known = sight(case)
    return jitted(one.run)(key, view, known, {k: jnp.float32(v) for k, v in numbers.items()})
