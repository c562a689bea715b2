"""Rows of different lengths, and how a text's tokens are divided between parties.

What enters: token ids without special tokens. What leaves: one padded block of ids a party, as BERT
reads it. Making ids from text is ``vfljax.datasets.wordpiece``'s business.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vfljax.errors import UserError

BLOCK = 65_536  # rows treated at once: bounds the memory of their indices


class Ragged(NamedTuple):
    """R rows of different lengths, one after another: row r is values[offsets[r] : offsets[r + 1]]."""

    values: np.ndarray  # [total] int32
    offsets: np.ndarray  # [R + 1] int64, from 0 to total


def spans(
    ragged: Ragged, parts: int | Sequence[float], length: int, cls: int, sep: int, pad: int
) -> tuple[np.ndarray, ...]:
    """Each party's contiguous part of every row as [CLS] part [SEP]: one [R, length] int32 a party.

    ``parts`` is their number, or their shares of a row's n tokens, in proportion. Party p of P equal
    ones has tokens p n // P to (p + 1) n // P (Fu et al., Label Inference Attacks Against Vertical
    Federated Learning, USENIX Security 2022: the attacker has the first half of the text). This
    deviates from their released code, which halves the text by characters before it is tokenized (a word
    may be cut in two) and adds no [CLS] and [SEP]: here tokens are divided, and both are added. A part
    longer than ``length - 2`` loses its end, not [SEP]; a shorter one is filled up with ``pad``; a
    part without tokens is [CLS] [SEP]. Raises UserError for parts or lengths that cannot be.
    """
    shares = np.ones(max(parts, 0)) if isinstance(parts, int) else np.asarray(parts, np.float64)
    if shares.ndim != 1 or not len(shares) or not (np.isfinite(shares) & (shares > 0)).all():
        raise UserError(
            f"a text cannot be divided into {parts!r}: give a number of parts or positive shares."
        )
    if length < 3:
        raise UserError(f"length={length} leaves no room beside [CLS] and [SEP]: give 3 or more.")
    counts = np.diff(ragged.offsets)
    if ragged.offsets[0] != 0 or ragged.offsets[-1] != len(ragged.values) or (counts < 0).any():
        raise UserError("the offsets of a Ragged must rise from 0 to the number of its values.")
    reached = np.cumsum(shares)
    reached = (counts[:, None] * reached[:-1] / reached[-1]).T  # [P - 1, R]
    # shares such as .7, .2, .1 have no exact binary sum: what is whole but for rounding counts as whole
    inner = np.floor(reached + 1e-9).astype(np.int64)
    bounds = [np.zeros_like(counts), *inner, counts]
    return tuple(
        _wrapped(ragged, low, high, length, cls, sep, pad)
        for low, high in itertools.pairwise(bounds)
    )


def _wrapped(
    ragged: Ragged, low: np.ndarray, high: np.ndarray, length: int, cls: int, sep: int, pad: int
) -> np.ndarray:
    """[R, length]: [CLS], the tokens ``low`` to ``high`` of each row as far as they fit, [SEP], pads."""
    kept = np.minimum(high - low, length - 2)
    out = np.full((len(kept), length), pad, np.int32)
    out[:, 0] = cls
    places = np.arange(length - 2)
    for first in range(0, len(kept), BLOCK):
        rows = slice(first, first + BLOCK)
        inside = places < kept[rows, None]
        starts = (ragged.offsets[:-1] + low)[rows, None]
        out[rows, 1:-1][inside] = ragged.values[(starts + places)[inside]]
    out[np.arange(len(kept)), kept + 1] = sep
    return out
