"""Mean and median: a row belongs to the class whose center its gradient is nearest (GAFM).

    y_i = argmin_c | g_i - m_c |_2,   m_c the mean, or the median by coordinate, of class c

Reference: Han, Guan. "GAN-based Vertical Federated Learning for Label Protection in Binary
Classification", 2023, section 3.5, equations 8 and 9; for two classes there, natural for more.

oracle=True is the published form: the centers of the TRUE classes, which no attacker has. By default
they are those of the rows whose labels the attacker knows. The published attacks assign a class
(scores="nearest"); the distances themselves leak more (scores="distance").
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.attacks.core import SPLIT, Attack, check_epoch, number_of, received
from vfljax.types import Array, Known, Scores, View

SCORES = ("nearest", "distance")


def _centers(
    statistic: Callable[[Array], Array],
    num_classes: int,
    epoch: int | str,
    oracle: bool,
    scores: str,
) -> Attack:
    check_epoch(epoch)
    if scores not in SCORES:
        raise ValueError(f"scores={scores!r} is unknown: choose one of {', '.join(SCORES)}.")

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        del key, knobs
        g, sent = received(view, epoch)
        labels = jnp.full(len(g), -1).at[known.rows].set(known.labels)

        def distance(c: Array) -> Array:
            members = (labels == c) & sent
            center = statistic(jnp.where(members[:, None], g, jnp.nan))
            return jnp.linalg.norm(g - center[None, :], axis=-1)

        near = -jnp.stack([distance(jnp.int32(c)) for c in range(num_classes)], axis=-1)
        if scores == "nearest":  # ties go to class 1 of two, as published
            best = num_classes - 1 - jnp.argmax(near[:, ::-1], axis=-1)
            near = jnp.where(jnp.isnan(near), jnp.nan, jax.nn.one_hot(best, num_classes))
        return Scores(jnp.where(sent[:, None], near, jnp.nan))

    return Attack(
        run,
        SPLIT,
        knobs={} if oracle else {"known": 40.0},
        oracle=oracle,
        epoch=number_of(epoch),
    )


def mean(
    bottom: nn.Module,
    num_classes: int,
    *,
    epoch: int | str = -1,
    oracle: bool = False,
    scores: str = "nearest",
) -> Attack:
    """Nearest class mean of what was received in ``epoch`` (``core.received``)."""
    del bottom
    return _centers(lambda g: jnp.nanmean(g, axis=0), num_classes, epoch, oracle, scores)


def median(
    bottom: nn.Module,
    num_classes: int,
    *,
    epoch: int | str = -1,
    oracle: bool = False,
    scores: str = "nearest",
) -> Attack:
    """Nearest class median (by coordinate) of what was received in ``epoch``."""
    del bottom
    return _centers(lambda g: jnp.nanmedian(g, axis=0), num_classes, epoch, oracle, scores)
