"""DiscreteSGD: gradients rounded to a few levels (Fu et al. 2022).

    measured  (the paper's; default) in the first epoch gradients are sent raw, and their mean mu
              and standard deviation sigma are measured; from then on the interval
              [mu - 2 sigma, mu + 2 sigma] is cut into N equal parts, an entry in it goes to the
              nearest end point, and an entry outside is sent as 0
    fixed     (the released code's) g <- Delta round(g / Delta) with Delta = 2 bound / N; nothing is
              clipped; bound .03, for Criteo 1e-3

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 6.2.

Guarantee: none. With "measured" the first epoch is sent raw by construction, so an attack on that
epoch reads everything.

Scale: ``bound`` is absolute, on cut gradients of the batch-MEAN loss.

Edge cases: sigma = 0 sends mu where g = mu and 0 elsewhere; N = 1 leaves the interval's two ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax.numpy as jnp
import optax

from vfljax import errors
from vfljax.defenses import core
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Strengths
from vfljax.types import Array


class Moments(NamedTuple):
    """Moments of all entries of one party's gradients in the first epoch."""

    count: Array  # [] float32
    mean: Array  # [], in the gradients' unit
    deviation: Array  # [] population standard deviation, in the gradients' unit


def start() -> Moments:
    """The moments of no entries: zeros."""
    return Moments(*jnp.zeros(3, jnp.float32))


def merge(moments: Moments, g: Array) -> Moments:
    """``moments`` with the entries of ``g``, of any shape, added (Chan et al. 1983).

    The sums are taken in units of the largest number involved, so that squares of 1e-30 and 1e30 stay finite.
    """
    chex.assert_rank(list(moments), 0)
    largest = jnp.maximum(
        jnp.max(jnp.abs(g)), jnp.maximum(jnp.abs(moments.mean), moments.deviation)
    )
    unit = jnp.where(largest > 0, largest, 1.0)
    new, old_mean, old_deviation = g / unit, moments.mean / unit, moments.deviation / unit
    count = moments.count + g.size
    share = g.size / count
    gap = jnp.mean(new) - old_mean
    mean = old_mean + gap * share
    variance = old_deviation**2 * (1 - share) + jnp.var(new) * share + gap**2 * share * (1 - share)
    return Moments(count, mean * unit, jnp.sqrt(variance) * unit)


def measured(g: Array, mean: Array, deviation: Array, intervals: Array | float) -> Array:
    """``g`` [B, D] rounded to the ``intervals`` + 1 end points of the equal parts of
    [mean - 2 deviation, mean + 2 deviation]; entries outside become 0.

    ``mean``, ``deviation`` and ``intervals`` are scalars.
    """
    chex.assert_rank([g, mean, deviation, intervals], [2, 0, 0, 0])
    low, width = mean - 2 * deviation, 4 * deviation / intervals
    place = jnp.where(width > 0, (g - low) / jnp.where(width > 0, width, 1.0), 0.0)
    inside = jnp.abs(g - mean) <= 2 * deviation
    return jnp.where(inside, low + width * jnp.clip(jnp.round(place), 0, intervals), 0.0)


def fixed(g: Array, bound: Array | float, intervals: Array | float) -> Array:
    """``g`` [B, D] rounded to multiples of 2 ``bound`` / ``intervals``, without clipping."""
    chex.assert_rank([g, bound, intervals], [2, 0, 0])
    width = 2 * jnp.asarray(bound, jnp.float32) / intervals
    steps = g / width
    return jnp.where(jnp.isfinite(steps), width * jnp.round(steps), g)  # not finite: left as it is


def discrete_sgd(
    intervals: Array | int, bound: Array | float = 0.03, *, interval: str = "measured"
) -> core.Defense:
    """DiscreteSGD with N = ``intervals``, a whole number from 1 to 2^20.

    ``bound`` > 0 matters with interval="fixed" only. DiscreteSGD never reduces to no defense. Raises
    ``ValueError`` for a knob out of range or an unknown ``interval``.
    """
    errors.check("intervals", intervals, 1, 2**20, whole=True)
    errors.check("bound", bound, 1e-30, jnp.inf)
    errors.check_choice("interval", interval, ("measured", "fixed"))

    def init(params: Any) -> tuple[Moments, ...]:
        return tuple(start() for _ in params)  # one a party

    def update(updates, state, params=None, *, context: Any = None, **extra):
        del params, extra
        first = context.epoch == 0
        sent, after = [], []
        for g, moments in zip(updates, state, strict=True):
            merged = merge(moments, g)
            after.append(Moments(*(jnp.where(first, a, b) for a, b in zip(merged, moments))))
            rounded = measured(g, moments.mean, moments.deviation, intervals)
            sent.append(jnp.where(first, g, rounded))
        return tuple(sent), tuple(after)

    if interval == "fixed":
        rule = core.per_party(lambda key, g, context: fixed(g, bound, intervals))
        return core.Defense(gradient=rule)
    return core.Defense(gradient=optax.GradientTransformationExtraArgs(init, update))


ROW = DefenseRow(
    factory=discrete_sgd,
    example={"intervals": 6.0, "bound": 0.03},
    not_for_numbers="",
    known_by={"no_split": READING, "split": AVERAGING},
    strengths=Strengths("intervals", (24.0, 12.0, 6.0, 4.0, 2.0), whole=True),
)
