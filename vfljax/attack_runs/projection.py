"""Narrows wide cuts for the attacks whose time or memory would grow too fast with their width.

Such attacks declare the ``AttackRow.widest`` cut that they read. Of a wider one they are given a projection to
that width by a matrix R of independent Gaussian numbers, which keeps lengths and angles of rows nearly
(Johnson and Lindenstrauss, 1984): the error is about 1 / sqrt(256) of a length.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence

import numpy as np

from vfljax.types import HostArray

LINEAR = ("embeddings", "gradients", "sum_gradient", "sum_sign")
SQUARED = ("sum_square",)


def width_read(width: int, widest: int) -> int:
    """Returns how many numbers of a cut of this width an attack reads.

    Args:
      width: D of one party.
      widest: of ``AttackRow.widest``.
    """
    return min(width, widest) if widest else width


@functools.lru_cache(maxsize=4)
def _matrix(seed: int, party: int, width: int, widest: int) -> HostArray:
    """Returns R [D, widest] of independent normal numbers, of variance 1 / widest."""
    drawn = np.random.default_rng([seed, party]).standard_normal((width, widest), np.float32)
    return drawn / np.float32(np.sqrt(widest))


def project_exchange(
    arrays: Mapping[str, HostArray], widths: Sequence[int], widest: int, seed: int
) -> dict[str, HostArray]:
    """Returns the arrays of an exchange, in which no party's cut is wider than ``widest``.

    Narrower cuts stay as they are. Sums over epochs are those of projected vectors. ``sum_sign`` is that of
    projected signs, and not of the signs of projections: each number of the cut still has one vote an epoch,
    whatever its size. Sums of squares become their expectation if signs are independent.

    Args:
      arrays: by name; those of gradients and embeddings end in the axis [sum(widths)].
      widths: of each attacker's cut.
      widest: the most numbers of a party's cut that are read; 0: all.
      seed: of the run. Its trials have the same R, and so have embeddings and gradients.
    """
    if all(width_read(width, widest) == width for width in widths):
        return dict(arrays)
    ends = np.cumsum(widths)[:-1]

    def narrow(array: HostArray, square: bool) -> HostArray:
        parts = np.split(np.asarray(array, np.float32), ends, axis=-1)
        for party, width in enumerate(widths):
            if width > widest:
                matrix = _matrix(seed, party, width, widest)
                parts[party] = parts[party] @ (matrix**2 if square else matrix)
        return np.concatenate(parts, axis=-1)

    return {
        name: narrow(array, name in SQUARED) if name in (*LINEAR, *SQUARED) else array
        for name, array in arrays.items()
    }
