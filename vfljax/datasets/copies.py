"""Finds rows of a table that are copies of each other, so that splits can keep them in one part."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

PIECE = 1 << 16  # rows that are hashed at a time
SAMPLE = 20_000  # rows from which the chance that two values are equal is estimated
MANY = 30  # times as many equal pairs as independent columns would have: the rows are copies


def equal_rows(columns: Sequence[np.ndarray], labels: np.ndarray) -> np.ndarray | None:
    """Finds the rows that are equal in all columns and in the label. Two NaN are equal.

    Args:
      columns: numbers or codes [R] of each column, which are compared as float32.
      labels: [R] int32.

    Returns:
      The group of each row [R] int32: equal rows have one group, and groups are numbered in the order of
      their first rows. None if no two rows are equal. Rows are compared by 64-bit hashes; two of a million
      different rows have the same one with a chance of 3e-8.
    """
    rows, every = len(labels), (labels, *columns)
    factors = np.random.default_rng(0).integers(1, 1 << 63, len(every)).astype(np.uint64)
    sums = np.zeros(rows, np.uint64)
    for values, factor in zip(every, factors, strict=True):
        sums += _bits(values) * factor
    # equal rows have equal sums; rows whose sum no other row has need no look at their bytes
    suspected = np.flatnonzero(pd.Series(sums).duplicated(keep=False))
    if not len(suspected):
        return None
    for first in range(0, len(suspected), PIECE):
        some = suspected[first : first + PIECE]
        bits = np.stack([_bits(values[some]) for values in every], axis=1)
        sums[some] = np.array([hash(row.tobytes()) for row in bits], np.int64).astype(np.uint64)
    groups, different = pd.factorize(sums)
    return None if len(different) == rows else groups.astype(np.int32)


def _bits(values: np.ndarray) -> np.ndarray:
    """Returns the bits of numbers as float32, equal for equal numbers and for all NaN, as uint32."""
    values = values.astype(np.float32) + np.float32(0)  # -0.0 becomes 0.0, which is equal to it
    values[np.isnan(values)] = np.nan  # whose bits may differ
    return values.view(np.uint32)


def are_copies(groups: np.ndarray, columns: Sequence[np.ndarray], labels: np.ndarray) -> bool:
    """Returns whether equal rows are copies, and not different people who happen to be equal.

    Tables of few columns with few values have many equal rows: four columns of yes and no have 16 different
    ones. Rows are copies if there are ``MANY`` times as many equal pairs as independent columns with the same
    frequencies would have.

    Args:
      groups: of ``equal_rows``.
      columns: as of ``equal_rows``.
      labels: [R].
    """
    rows = len(labels)
    sample = np.random.default_rng(0).choice(rows, min(rows, SAMPLE), replace=False)
    by_chance = _equal_pairs(labels[sample])
    for values in columns:
        by_chance *= _equal_pairs(values[sample])
    return _equal_pairs(groups) > MANY * by_chance


def _equal_pairs(values: np.ndarray) -> float:
    """Returns the share of pairs of two values that are equal."""
    counts = np.unique(values, return_counts=True)[1].astype(float)
    return float((counts * (counts - 1)).sum() / (len(values) * (len(values) - 1.0)))


def note(groups: np.ndarray, copies: bool, test: np.ndarray | None) -> str:
    """Returns a sentence for a person on how many rows equal others, and what is done about it.

    Args:
      groups: of ``equal_rows``.
      copies: of ``are_copies``.
      test: [R] bool, the rows of the test file; None without one.
    """
    count = f"{len(groups) - len(np.unique(groups)):,} of {len(groups):,} rows"
    if not copies:
        return (
            f"{count} equal another row, label included, about as often as chance gives in so few different "
            "values. They are taken for different people; groups= keeps rows of one person together."
        )
    across = 0 if test is None else int(np.isin(groups[~test], groups[test]).sum())
    held = f"; {across:,} training rows are copies of test rows, so they are not used" * (
        across > 0
    )
    return (
        f"{count} are copies of others, with the same label{held}. Copies stay in one part (training, "
        "validation or test), so that none is tested on what it was trained on; if equal rows are different "
        "people, name a column of row numbers in groups=."
    )
