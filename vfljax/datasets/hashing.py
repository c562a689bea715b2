"""The one hash of this package: CRC-32 of the UTF-8 bytes ``field=value``, modulo the buckets.

What enters: a field's name and its distinct values. What leaves: bucket numbers. CRC-32 (zlib's,
polynomial 0xEDB88320) is public and equal on every machine; the hash of Fu et al.'s released code is
Python's own, seeded anew by every process, so that its columns cannot be had again.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import numpy as np


def buckets(field: str, values: Iterable[str], count: int) -> np.ndarray:
    """``crc32(f"{field}={value}") mod count`` of each value, [V] int64. Give distinct values and
    gather: the cost is a Python call a value.

    >>> buckets("C1", ["68fd1e64", ""], 8192).tolist()
    [8011, 296]
    """
    start = zlib.crc32(f"{field}=".encode())  # the CRC of a prefix goes on with what follows
    sums = [zlib.crc32(value.encode(), start) for value in values]
    return np.array(sums, np.int64) % count


def codes(field: str, values: Iterable[str], count: int) -> np.ndarray:
    """A code 1..count-1 of each value by the same hash modulo count - 1, and 0 for the empty string:
    what is missing meets no other value."""
    values = list(values)
    missing = np.array([not value for value in values], bool)
    return np.where(missing, 0, 1 + buckets(field, values, count - 1))


def crosses(hashes: np.ndarray) -> np.ndarray:
    """All pairwise XORs of each row's hashes, [R, K] -> [R, K (K - 1) / 2], pairs (i, j) with i < j.
    Of hashes below a power of two they stay below it."""
    first, second = np.triu_indices(hashes.shape[1], 1)
    return hashes[:, first] ^ hashes[:, second]


def occurrences(hashes: np.ndarray, count: int) -> np.ndarray:
    """How often each bucket occurs in a row, [R, K] -> [R, count] uint8 (255 and more read 255)."""
    rows = len(hashes)
    flat = hashes + np.arange(rows)[:, None] * count
    counted = np.bincount(flat.ravel(), minlength=rows * count)
    return np.minimum(counted, 255).astype(np.uint8).reshape(rows, count)
