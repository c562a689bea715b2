"""Divides rows of different lengths between parties."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from vfljax.datasets.core import Ragged

ROWS = 65_536  # rows cut at once: bounds the memory of their indices


def spans(
    ragged: Ragged, shares: Sequence[float], length: int, cls: int, sep: int, pad: int
) -> tuple[np.ndarray, ...]:
    """Divides every text between parties. Returns [R, length] int32 per party, each row [CLS] part [SEP].

    Party p of P equal ones has a row's tokens p n // P to (p + 1) n // P (Fu et al., Label Inference Attacks
    Against Vertical Federated Learning, USENIX Security 2022: the attacker has the first half of the text).
    This deviates from their released code, which halves the text by characters before it is tokenized (a word
    may be cut in two) and adds no [CLS] and [SEP]: here tokens are divided, and both are added.

    Args:
      ragged: token ids.
      shares: the parties' shares of a row's n tokens, in proportion.
      length: tokens of a row, at least 3. A part of over ``length - 2`` is cut at its end; an empty one is
        [CLS] [SEP].
      cls, sep, pad: ids of the special tokens; ``pad`` fills a shorter part up.
    """
    counts = np.diff(ragged.offsets)
    reached = np.cumsum(np.asarray(shares, np.float64))
    reached = (counts[:, None] * reached[:-1] / reached[-1]).T  # [P - 1, R]
    # shares such as .7, .2, .1 have no exact binary sum: what is whole but for rounding counts as whole
    bounds = [np.zeros_like(counts), *np.floor(reached + 1e-9).astype(np.int64), counts]
    places, wrapped = np.arange(length - 2), []
    for low, high in itertools.pairwise(bounds):
        kept = np.minimum(high - low, length - 2)
        out = np.full((len(kept), length), pad, np.int32)
        out[:, 0] = cls
        for first in range(0, len(kept), ROWS):
            rows = slice(first, first + ROWS)
            inside = places < kept[rows, None]
            starts = (ragged.offsets[:-1] + low)[rows, None]
            out[rows, 1:-1][inside] = ragged.values[(starts + places)[inside]]
        out[np.arange(len(kept)), kept + 1] = sep
        wrapped.append(out)
    return tuple(wrapped)
