"""Constructed runs on which attacks are tried, as arrays in the form in which a sweep stores them.

Attacks see them through the library's ``view_of`` and ``known_rows``, which hide labels from attackers. The
keys of ``LEAKS`` name what gives the labels away, and those of ``LEAKS_OF_NUMBERS`` what gives away numbers.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import tasks
from vfljax.attack_runs.view import AttackInput, known_rows, view_of
from vfljax.attacks.core import CLEAN
from vfljax.datasets.strata import strata
from vfljax.federation.training import Table
from vfljax.models import MLP
from vfljax.types import Agreed, HostArray, Known, View

OWN_COLUMNS = 6  # number of the attacker's columns
CUT = 6
ONE_BOTTOM = (MLP((), CUT),)
BATCH = 20
LAYER = "party0.hidden.0"


class Case(NamedTuple):
    """A stored run, and the data that all runs share."""

    run: AttackInput
    common: Table


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
    nodes: Any = None,
    known: int = 40,
    cut: int = CUT,
) -> Case:
    """Returns a stored run; arrays that are left out carry no information.

    Args:
      labels: [N] of the training rows.
      num_classes: C, or 1 if labels are numbers.
      gradients, embeddings: [E, N, D].
      sent: [E, N] bool.
      features, test_features: [N, F] and [M, F], columns of the attacker.
      inputs: [E, N, H] of the attacker's last layer.
      nodes: [T, N, L] of trees; one root by default.
      known: number of labels that the attacker knows.
      cut: D; the attacker's bottom returns the first D columns.
    """
    labels = np.asarray(labels)
    rng, rows = np.random.default_rng(123), len(labels)
    features = rng.normal(size=(rows, OWN_COLUMNS)) if features is None else features
    test_features = rng.normal(size=(10, OWN_COLUMNS)) if test_features is None else test_features
    gradients = np.zeros((1, rows, num_classes)) if gradients is None else np.asarray(gradients)
    epochs, _, width = gradients.shape
    embeddings = np.zeros((epochs, rows, width)) if embeddings is None else np.asarray(embeddings)
    sent = np.ones((epochs, rows), bool) if sent is None else np.asarray(sent)
    total = rows + len(test_features)
    kernel = np.eye(OWN_COLUMNS, cut, dtype=np.float32)
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
            "nodes": _host(np.zeros((1, rows, 1)) if nodes is None else nodes, np.int32),
        },
        bottoms=({"params": {"Dense_0": {"kernel": kernel, "bias": np.zeros(cut, np.float32)}}},),
    )
    label_type = tasks.of(num_classes).label_type
    drawn = strata(labels.astype(label_type))
    by_class = np.argsort(drawn, kind="stable")
    turn = np.concatenate([np.arange(np.sum(drawn == c)) for c in range(drawn.max() + 1)])
    common = Table(
        features=(_host(np.concatenate([features, test_features])),),
        labels=_host(np.concatenate([labels, np.zeros(total - rows, int)]), label_type),
        train=_host(np.arange(rows)[None], np.int32),
        validation=_host(np.zeros((1, 0)), np.int32),
        test=_host(np.arange(rows, total)[None], np.int32),
        mean=(_host(np.zeros((1, np.shape(features)[1]))),),
        scale=(_host(np.ones((1, np.shape(features)[1]))),),
        scores=None,
        known_order=_host(by_class[np.argsort(turn, kind="stable")][None], np.int32),
    )
    return Case(run, common)


@jax.jit
def attacker_of(run: AttackInput, common: Table) -> tuple[View, Known]:
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


# --- labels that are given away ---

Leak = dict[str, Any]  # arguments of ``make_case``
Draw = Callable[..., Leak]  # (generator, labels [N], number of classes) -> leak


def _together(*draws: Draw) -> Draw:
    """Returns a draw that joins several draws, made one after the other from the same generator."""

    def draw(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
        return {k: v for draw in draws for k, v in draw(rng, labels, classes).items()}

    return draw


def _twice(gradients: HostArray) -> Leak:
    """Returns gradients that are the same in both recorded epochs."""
    return {"gradients": [gradients, gradients]}


def _points(rng: np.random.Generator, labels: HostArray, classes: int) -> HostArray:
    """Returns noisy points [N, C] around a center for each class: 1 in the class's column, else -1."""
    return (2 * np.eye(classes) - 1)[labels] + 0.1 * rng.normal(size=(len(labels), classes))


def _embedded(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    z = _points(rng, labels, classes)
    return {"embeddings": [z, z]}


def _features(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    def columns(labels: HostArray) -> HostArray:
        centers = 4 * (np.arange(OWN_COLUMNS) % classes == labels[:, None])
        return centers + 0.3 * rng.normal(size=(len(labels), OWN_COLUMNS))

    return {"features": columns(labels), "test_features": columns(np.arange(10) % classes)}


def _signs(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    return _twice(rng.dirichlet(np.ones(classes), len(labels)) - np.eye(classes)[labels])


def _lengths(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    direction = rng.normal(size=(len(labels), classes))
    return _twice(direction / np.linalg.norm(direction, axis=1)[:, None] * (1 + labels)[:, None])


def _centers(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    return _twice(_points(rng, labels, classes))


def _drops(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """Gradients whose entries are the larger, the larger the label."""
    return _twice(labels[:, None] + 0.1 * rng.uniform(size=(len(labels), classes)))


def _pulls(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """Gradients 0.05 sin(z) - 0.5 y of the embedding z and the label y."""
    z = rng.uniform(-1, 1, size=(len(labels), 1))
    return {"embeddings": [z, z], **_twice(0.05 * np.sin(z) - 0.5 * labels[:, None])}


def _charges(rng: np.random.Generator, labels: HostArray, classes: int, alpha: float = 0.5) -> Leak:
    """The forces of PELoss with the factor ``alpha`` between the rows of a batch."""
    return _forces(
        rng, labels, classes, lambda y: -2 * alpha * (y / np.maximum(y.sum(0), 1)) @ y.T, 1.5
    )


def _correlations(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """The part of dCor's forces between the rows of a batch that depends on the labels."""
    return _forces(rng, labels, classes, lambda y: (y.mean(0) - y) @ (y - y.mean(0)).T, 0.5)


def _forces(
    rng: np.random.Generator, labels: HostArray, classes: int, weigh: Any, power: float
) -> Leak:
    """Sums over a batch of w_ij (z_i - z_j) / d_ij^power, d being squared distances and w = weigh(one-hot)."""
    # classes are slightly apart, so that batches agree on which class is positive
    z = _points(rng, labels, classes) + rng.normal(size=(2, len(labels), classes))
    g = np.zeros_like(z)
    for epoch, first in itertools.product(range(2), range(0, len(labels), BATCH)):
        batch = slice(first, first + BATCH)
        apart = z[epoch, batch, None] - z[epoch, None, batch]
        near = np.sum(apart**2, axis=-1, keepdims=True) + 1e-6
        weights = weigh(np.eye(classes)[labels[batch]])[:, :, None]
        g[epoch, batch] = np.sum(weights * apart / near**power, axis=1)
    return {"embeddings": z, "gradients": g}


def _sums(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """The gradients of ``_signs``, with inputs of a last layer that is wider than a batch has rows."""
    inputs = rng.normal(size=(2, len(labels), BATCH + 10))
    return {**_signs(rng, labels, classes), "inputs": inputs}


def _nodes(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """One tree of one level, whose leaves hold one class each."""
    return {"nodes": rng.permutation(classes)[labels][None, :, None]}


def _tops(rng: np.random.Generator, labels: HostArray, classes: int) -> Leak:
    """Overlapping embeddings, and their exact gradients under the top model h(z) = z."""
    z = 0.7 * _points(rng, labels, classes) + 0.7 * rng.normal(size=(len(labels), classes))
    p = np.exp(z) / np.exp(z).sum(axis=1, keepdims=True)
    return {"embeddings": [z, z], **_twice((p - np.eye(classes)[labels]) / BATCH)}


LEAKS: dict[str, Draw] = {
    "features": _features,
    "signs": _signs,
    "signs_and_features": _together(_signs, _features),
    # embeddings that are the party's own logits, and gradients that do not depend on them
    "logits_and_signs": _together(_embedded, _signs),
    "lengths": _lengths,
    "centers": _centers,
    "drops": _drops,
    "clusters": _together(_embedded, _centers),
    "nodes": _nodes,
    "tops": _tops,
    "tops_and_features": _together(_features, _tops),
    "sums": _sums,
    "charges": _charges,
    "correlations": _correlations,
    "pulls": _pulls,  # last: its embeddings have one column, for which an attack is compiled anew
}


# --- labels that are numbers, standardized ---


def drawn_numbers(rng: np.random.Generator, rows: int) -> HostArray:
    """Returns labels [N] float32 of mean 0 and variance 1, with a tail to the right."""
    y = rng.gumbel(size=rows)
    return ((y - y.mean()) / y.std()).astype(np.float32)


def _residuals(rng: np.random.Generator, labels: HostArray, width: int) -> Leak:
    """Gradients 2 (f - y) / B of a squared loss along one direction, and embeddings that make f."""
    f = 0.1 * rng.normal(size=len(labels))
    direction = rng.normal(size=(1, width)) if width > 1 else np.ones((1, 1))
    z = np.outer(f, rng.normal(size=width)) if width > 1 else f[:, None] / 2
    return {"embeddings": [z, z], **_twice((2 * (f - labels) / BATCH)[:, None] * direction)}


def _columns(rng: np.random.Generator, labels: HostArray, width: int) -> Leak:
    noise = rng.normal(size=(len(labels), OWN_COLUMNS))
    return {"features": np.outer(labels, rng.uniform(0.5, 1.5, OWN_COLUMNS)) + 0.5 * noise}


def _sizes(rng: np.random.Generator, labels: HostArray, width: int) -> Leak:
    """Gradients that are the longer, the larger the label."""
    direction = rng.normal(size=(len(labels), width))
    length = np.exp(labels / 2) / np.linalg.norm(direction, axis=1)
    return _twice(direction * length[:, None])


def _tenths(rng: np.random.Generator, labels: HostArray, width: int) -> Leak:
    """One tree of one level, whose leaves hold a tenth of the labels each, and the paths through them."""
    tenth = strata(labels)
    z = np.eye(tenth.max() + 1)[tenth]
    return {"nodes": tenth[None, :, None], "embeddings": [z, z], **_twice(0 * z)}


def _angles(rng: np.random.Generator, labels: HostArray, width: int) -> Leak:
    """Gradients of one length, whose direction turns with the label."""
    turned = np.stack([np.cos(labels / 2), np.sin(labels / 2)], axis=1)
    return _twice(np.pad(turned, ((0, 0), (0, max(width, 2) - 2)))[:, :width])


LEAKS_OF_NUMBERS: dict[str, Draw] = {
    "residuals": _residuals,
    "residuals_and_columns": _together(_residuals, _columns),
    "sizes": _sizes,
    "angles": _angles,
    "nodes": _tenths,
}
