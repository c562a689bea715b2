"""Randomized response on bins: label DP of numbers (Ghazi et al. 2023), a mechanism of ``label_dp``.

    y~ = Phi(y) with probability e^eps / (e^eps + d - 1), else uniform over the other d - 1 values

with Phi of the range (low, high) onto values v_1 < ... < v_d, each the image of one interval. For a prior p of
labels, d, the intervals I_j and the values are those of the least expected squared error

    min over d, I_1 .. I_d of  sum_j min over v of sum_y p(y) (1 + (e^eps - 1) 1[y in I_j]) (v - y)^2
                               ---------------------------------------------------------------------
                                                          e^eps + d - 1

and found by dynamic programming over d and the end of the last interval. The best v_j is a weighted mean. For
these labels no eps-differentially private mechanism has a smaller error (their theorem 3).

Reference: Ghazi, Kamath, Kumar, Leeman, Manurangsi, Varadarajan, Zhang. "Regression with Label Differential
Privacy", ICLR 2023, arXiv 2212.06074, algorithms 1 and 2.

The prior comes from the user and never from labels. The paper also estimates it by a Laplace histogram that
pays out of eps, which is not offered.

Scale: labels are u = (y - low) / (high - low), in [0, 1].

Deviation: the paper rounds labels to whole numbers. Here u falls into one of ``CELLS`` equal cells, each with
its mass at its middle.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import errors
from vfljax.types import Array, HostArray

CELLS = 64
"""G, the cells into which the range is divided, hence the most values of y~."""


class Bins(NamedTuple):
    """Phi: the interval of each cell, and the value of each interval."""

    bin_of: Array  # [G] int32, rising from 0 to d - 1
    values: Array  # [G] of the intervals, in [0, 1]; those from d on are not read
    count: Array  # [] int32, d


def prior_of(masses: str) -> HostArray:
    """Returns the mass of each cell [G], which sum to 1.

    Args:
      masses: of equal parts of the range, from low to high, such as "5:3:1", with the same density within a
        part; "" is uniform.

    Raises:
      ValueError: for a text that is none, and for more parts than cells.
    """
    parts = masses.split(":") if masses else ["1"]
    try:
        numbers = np.array([float(part) for part in parts])
    except ValueError:
        numbers = np.array([np.nan])
    if not (np.isfinite(numbers).all() and (numbers >= 0).all() and numbers.sum() > 0):
        remedy = "give numbers of at least 0, such as '5:3:1', or '' for a uniform prior"
        raise errors.UserError(field=errors.Field("masses", "masses"), value=masses, remedy=remedy)
    if len(numbers) > CELLS:
        what = f"has {len(numbers)} parts"
        field, remedy = errors.Field("masses", "masses"), f"give at most {CELLS}"
        raise errors.UserError(what, field=field, value=masses, remedy=remedy)
    edges = np.linspace(0, 1, CELLS + 1)
    below = np.interp(edges, np.linspace(0, 1, len(numbers) + 1), np.append(0, numbers.cumsum()))
    return np.asarray(np.diff(below) / numbers.sum(), np.float32)


def optimal_bins(prior: Array | HostArray, epsilon: Array | float) -> Bins:
    """Phi of least expected squared error under a ``prior`` [G] of the cells (Ghazi et al. 2023, algorithm 2).

    Of values of d that are equally good, to a relative 1e-6, it is the smallest.
    """
    chex.assert_rank([prior, epsilon], [1, 0])
    cells = len(prior)
    places, ends = jnp.arange(cells), jnp.arange(cells + 1)
    off = jnp.exp(-jnp.asarray(epsilon, jnp.float32))  # all weights are divided by e^eps
    # [3, first cell, cell] about the first cell of an interval and summed from there: nothing cancels, also
    # where a large epsilon leaves errors of 1e-13 only
    apart = (places[None] - places[:, None]) / cells
    moments = jnp.stack([prior[None] * apart**power for power in range(3)])
    within = jnp.cumsum(jnp.where(apart >= 0, moments, 0.0), axis=2)
    within = jnp.pad(within, ((0, 0), (0, 1), (1, 0)))  # [3, first cell, end]
    total = jnp.pad(jnp.sum(moments, axis=2), ((0, 0), (0, 1)))[..., None]
    mass, first, second = off * total + (1 - off) * within
    mean = first / jnp.where(mass > 0, mass, 1.0)
    cost = jnp.maximum(second - first * mean, 0.0)
    cost = jnp.where(ends[:, None] < ends[None], cost, jnp.inf)

    def add(best: Array, _: None) -> tuple[Array, tuple[Array, Array]]:
        through = best[:, None] + cost
        start = jnp.argmin(through, axis=0)
        best = jnp.min(through, axis=0)
        return best, (start, best[-1])

    none = jnp.where(ends == 0, 0.0, jnp.inf)
    _, (starts, sums) = jax.lax.scan(add, none, length=cells)
    errors_of = sums / (1 + jnp.arange(cells) * off)
    good = errors_of <= jnp.min(errors_of) * (1 + 1e-6)
    count = (jnp.argmax(good) + 1).astype(jnp.int32)

    def back(end: Array, of: tuple[Array, Array]) -> tuple[Array, Array]:
        number, start = of
        before = jnp.where(number <= count, start[end], end)
        return before, before

    numbers = jnp.arange(1, cells + 1)
    _, begins = jax.lax.scan(back, jnp.int32(cells), (numbers, starts), reverse=True)
    marks = jnp.zeros(cells + 1, jnp.int32).at[jnp.where(numbers <= count, begins, cells)].set(1)
    bin_of = jnp.cumsum(marks[:cells]) - 1
    weights = jnp.stack([prior, prior * (places + 0.5) / cells])
    sums_of = jax.ops.segment_sum(weights.T, bin_of, cells).T
    mass, first = off * jnp.sum(weights, axis=1)[:, None] + (1 - off) * sums_of
    values = first / jnp.where(mass > 0, mass, 1.0)
    return Bins(bin_of.astype(jnp.int32), values, count)


def cell_of(u: Array | HostArray) -> Array:
    """The cell [N] int32 of each label ``u`` [N] in [0, 1]."""
    return jnp.clip(jnp.floor(u * CELLS), 0, CELLS - 1).astype(jnp.int32)
