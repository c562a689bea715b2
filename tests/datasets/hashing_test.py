"""The fixed hash, against plain restatements."""

import doctest
import zlib

import numpy as np
from hypothesis import strategies as st

from tests.datasets.fuzzing import drawn
from vfljax.datasets import hashing

VALUES = st.lists(st.text(max_size=12), max_size=20)


def test_the_documented_example_holds():
    assert doctest.testmod(hashing).failed == 0


@drawn(field=st.text(max_size=6), values=VALUES, count=st.integers(2, 1 << 20))
def test_buckets_are_crc32_of_field_equals_value(field, values, count):
    plain = [zlib.crc32((field + "=" + value).encode("utf-8")) % count for value in values]
    assert hashing.buckets(field, values, count).tolist() == plain
    codes = hashing.codes(field, values, count)
    assert codes.tolist() == [
        1 + zlib.crc32(f"{field}={value}".encode()) % (count - 1) if value else 0
        for value in values
    ]


def test_fields_hash_apart():
    assert hashing.buckets("C1", ["a"], 1 << 30) != hashing.buckets("C2", ["a"], 1 << 30)


def test_crosses_equal_a_double_loop():
    hashes = np.random.default_rng(0).integers(0, 8192, (5, 39))
    for row, crossed in zip(hashes.tolist(), hashing.crosses(hashes).tolist(), strict=True):
        plain = [row[i] ^ row[j] for i in range(39) for j in range(i + 1, 39)]
        assert crossed == plain
        assert len(crossed) == 741


def test_occurrences_are_counted_and_held_at_255():
    hashes = np.array([[1, 1, 3], [0, 0, 0]])
    assert hashing.occurrences(hashes, 4).tolist() == [[0, 2, 0, 1], [3, 0, 0, 0]]
    assert hashing.occurrences(np.zeros((1, 300), int), 2).tolist() == [[255, 0]]
    assert hashing.occurrences(np.zeros((0, 3), int), 4).shape == (0, 4)
