"""Constructed runs on which attacks are tried, as arrays in the form in which a sweep stores them.

Attacks see them through the library's ``view_of`` and ``known_rows``, which hide labels from attackers.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from vfljax.attacking.view import AttackInput, CommonData, known_rows, view_of
from vfljax.attacks.core import CLEAN
from vfljax.models import MLP
from vfljax.types import Agreed, HostArray, Known, View

WIDTH = 6  # number of the attacker's columns
CUT = 6
BOTTOMS = (MLP((), CUT),)
BATCH = 20
LAYER = "party0.hidden.0"


class Case(NamedTuple):
    """A stored run, and the data that all runs share."""

    run: AttackInput
    common: CommonData


def _host(values: Any, dtype: Any = np.float32) -> HostArray:
    return np.asarray(values, dtype)


def make_case(
    labels: Any,
    num_classes: int,
    *,
    gradients: Any = None,
    embeddings: Any = None,
    sent: Any = None,
    features: Any = None,
    test_features: Any = None,
    inputs: Any = None,
    known: int = 40,
    cut: int = CUT,
) -> Case:
    """Returns a stored run; arrays that are left out carry no information.

    Args:
      labels: [N] of the training rows.
      num_classes: C.
      gradients, embeddings: [E, N, D].
      sent: [E, N] bool.
      features, test_features: [N, F] and [M, F], columns of the attacker.
      inputs: [E, N, H] of the attacker's last layer.
      known: number of labels that the attacker knows.
      cut: D; the attacker's bottom returns the first D columns.
    """
    labels = np.asarray(labels)
    rng, rows = np.random.default_rng(123), len(labels)
    features = rng.normal(size=(rows, WIDTH)) if features is None else features
    test_features = rng.normal(size=(10, WIDTH)) if test_features is None else test_features
    gradients = np.zeros((1, rows, num_classes)) if gradients is None else np.asarray(gradients)
    epochs, _, width = gradients.shape
    embeddings = np.zeros((epochs, rows, width)) if embeddings is None else np.asarray(embeddings)
    sent = np.ones((epochs, rows), bool) if sent is None else np.asarray(sent)
    total = rows + len(test_features)
    kernel = np.eye(WIDTH, cut, dtype=np.float32)
    received = np.where(sent[:, :, None], gradients, 0.0).astype(np.float32)
    run = AttackInput(
        seed=_host(0, np.int32),
        key_name=_host(0, np.uint32),
        knobs={"known": _host(known)},
        exchange={
            "embeddings": _host(embeddings),
            "gradients": _host(gradients),
            "order": _host(np.tile(np.arange(rows), (epochs, 1)), np.int32),
            "sent": sent,
            "epochs": _host(np.arange(epochs), np.int32),
            "sum_gradient": received.sum(0),
            "sum_sign": np.sign(received).sum(0),
            "sum_square": (received**2).sum(0),
            "sum_count": _host(sent.sum(0), np.int32),
            **({} if inputs is None else {"inputs": _host(inputs)}),
        },
        bottoms=({"params": {"Dense_0": {"kernel": kernel, "bias": np.zeros(cut, np.float32)}}},),
    )
    by_class = np.argsort(labels, kind="stable")
    turn = np.concatenate([np.arange(np.sum(labels == c)) for c in range(num_classes)])
    common = CommonData(
        features=(_host(np.concatenate([features, test_features])),),
        mean=(_host(np.zeros((1, WIDTH))),),
        scale=(_host(np.ones((1, WIDTH))),),
        train=_host(np.arange(rows)[None], np.int32),
        test=_host(np.arange(rows, total)[None], np.int32),
        labels=_host(np.concatenate([labels, np.zeros(total - rows, int)]), np.int32),
        known_order=_host(by_class[np.argsort(turn, kind="stable")][None], np.int32),
    )
    return Case(run, common)


def seen_of(run: AttackInput, common: CommonData) -> tuple[View, Known]:
    """Returns what the attacker sees and knows of a case.

    In the diagnostics, received gradients stand for clean ones, and embeddings for a layer.

    Args:
      run: the stored run.
      common: the data that all runs share.
    """
    known = known_rows(common, run.seed, run.knobs["known"])
    e = run.exchange
    diagnostics = {CLEAN: e["gradients"][-1], LAYER: e["embeddings"][-1]}
    return view_of(run, common, Agreed(BATCH), diagnostics), known
