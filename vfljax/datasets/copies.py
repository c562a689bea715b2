"""Finds rows of a table that are copies of each other, so that splits can keep them in one part."""

from __future__ import annotations

import numpy as np
import pandas as pd

PIECE = 1 << 26  # bytes of the rows that are hashed at a time


def copies(features: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    """Finds the rows that are equal in all features and in the label. Two NaN are equal.

    Args:
      features: [R, F] numbers.
      labels: [R] int32.

    Returns:
      The group of each row [R] int32: equal rows have one group, and groups are numbered in the order of
      their first rows. None if no two rows are equal. Rows are compared by 64-bit hashes; two of a million
      different rows have the same one with a chance of 3e-8.
    """
    rows, width = features.shape
    hashes, step = np.empty(rows, np.int64), max(1, PIECE // (4 * width + 4))
    for first in range(0, rows, step):
        piece = slice(first, first + step)
        values = np.column_stack([features[piece], labels[piece]]).astype(np.float32)
        values += 0.0  # -0.0 becomes 0.0, which is equal to it
        values[np.isnan(values)] = np.nan  # whose bytes may differ
        hashes[piece] = [hash(row.tobytes()) for row in values]
    groups, different = pd.factorize(hashes)
    return None if len(different) == rows else groups.astype(np.int32)


def copies_note(groups: np.ndarray, test: np.ndarray | None) -> str:
    """Returns a sentence for a person on how many rows are copies of others, and what is done about it.

    Args:
      groups: of ``copies``.
      test: [R] bool, the rows of the test file; None without one.
    """
    count = len(groups) - len(np.unique(groups))
    note = f"{count:,} of {len(groups):,} rows are copies of others, with the same label"
    across = 0 if test is None else int(np.isin(groups[~test], groups[test]).sum())
    if across:
        note += f"; {across:,} training rows are copies of test rows, so they are not used"
    return (
        f"{note}. Copies stay in one part (training, validation or test), so that none is tested on what it "
        "was trained on; if equal rows are different people, name a column of row numbers in groups=."
    )
