"""DiscreteSGD: gradients rounded to a few levels (Fu et al. 2022).

    measured  (the paper's; default) in the first epoch gradients are sent raw and measured; from
              then on the interval [mu - 2 sigma, mu + 2 sigma] is cut into N equal parts and every
              entry in it goes to the nearest end point; entries outside are sent as 0
    fixed     (released code) g <- Delta round(g / Delta), Delta = 2 bound / N, nothing is clipped;
              bound .03 (Criteo 1e-3)

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 6.2.

Guarantee: none. With "measured" the first epoch is sent raw by construction: an attack on that
epoch reads everything.
Scale: ``bound`` is absolute, on cut gradients of the batch-MEAN loss.
Edge cases: sigma = 0 sends mu where g = mu and 0 elsewhere; N = 1 leaves the two ends.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import optax

from vfljax.defenses import core
from vfljax.types import Array

INTERVALS = ("measured", "fixed")


class Moments(NamedTuple):
    """Of all entries one party's gradients had in the first epoch."""

    count: Array  # [] float32
    mean: Array  # []
    deviation: Array  # [] population standard deviation


def start() -> Moments:
    """Nothing seen yet."""
    zero = jnp.zeros((), jnp.float32)
    return Moments(zero, zero, zero)


def merge(seen: Moments, g: Array) -> Moments:
    """Moments after the entries of ``g`` too (Chan et al. 1983), in units of the largest number at
    hand, so that squares of 1e-30 and 1e30 stay finite."""
    largest = jnp.maximum(jnp.max(jnp.abs(g)), jnp.maximum(jnp.abs(seen.mean), seen.deviation))
    unit = jnp.where(largest > 0, largest, 1.0)
    new, old_mean, old_deviation = g / unit, seen.mean / unit, seen.deviation / unit
    count = seen.count + g.size
    share = g.size / count
    gap = jnp.mean(new) - old_mean
    mean = old_mean + gap * share
    variance = old_deviation**2 * (1 - share) + jnp.var(new) * share + gap**2 * share * (1 - share)
    return Moments(count, mean * unit, jnp.sqrt(variance) * unit)


def measured(g: Array, mean: Array, deviation: Array, intervals: Array | float) -> Array:
    """Entries in [mean - 2 deviation, mean + 2 deviation] at the nearest of its ``intervals`` + 1
    end points; 0 outside."""
    low, width = mean - 2 * deviation, 4 * deviation / intervals
    place = jnp.where(width > 0, (g - low) / jnp.where(width > 0, width, 1.0), 0.0)
    inside = jnp.abs(g - mean) <= 2 * deviation
    return jnp.where(inside, low + width * jnp.clip(jnp.round(place), 0, intervals), 0.0)


def fixed(g: Array, bound: Array | float, intervals: Array | float) -> Array:
    """``g`` rounded to multiples of 2 ``bound`` / ``intervals``, without clipping (released)."""
    width = 2 * jnp.asarray(bound, jnp.float32) / intervals
    steps = g / width
    return jnp.where(jnp.isfinite(steps), width * jnp.round(steps), g)  # too large to be rounded


def discrete_sgd(
    intervals: Array | int, bound: Array | float = 0.03, *, interval: str = "measured"
) -> core.Defense:
    """DiscreteSGD with N = ``intervals`` >= 1; ``bound`` > 0 is read by interval="fixed" only. No
    value of its knobs changes nothing."""
    core.check("intervals", intervals, 1, 2**20)
    core.check_integer("intervals", intervals)
    core.check("bound", bound, 1e-30, jnp.inf)
    core.check_option("interval", interval, INTERVALS)

    def init(params: Any) -> tuple[Moments, ...]:
        return tuple(start() for _ in params)  # one a party

    def update(updates, state, params=None, *, context: Any = None, **extra):
        del params, extra
        first = context.epoch == 0
        sent, moments = [], []
        for g, seen in zip(updates, state, strict=True):
            after = merge(seen, g)
            moments.append(Moments(*(jnp.where(first, a, b) for a, b in zip(after, seen))))
            sent.append(jnp.where(first, g, measured(g, seen.mean, seen.deviation, intervals)))
        return tuple(sent), tuple(moments)

    if interval == "fixed":
        return core.Defense(
            gradient=core.per_party(lambda key, g, context: fixed(g, bound, intervals))
        )
    return core.Defense(gradient=optax.GradientTransformationExtraArgs(init, update))
