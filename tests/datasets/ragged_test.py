"""Spans of texts against a plain restatement, row by row."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.datasets.fuzzing import drawn
from vfljax.datasets import ragged as module
from vfljax.datasets.core import Ragged
from vfljax.datasets.ragged import spans
from vfljax.errors import UserError

CLS, SEP, PAD = 101, 102, 0


def ragged(rows):
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    return Ragged(np.asarray([v for row in rows for v in row], np.int32), offsets)


def plain(rows, shares, length):
    """One list of rows a party, by exact fractions."""
    total, parties, reached = sum(shares), [], Fraction(0)
    for share in shares:
        low, reached = reached, reached + Fraction(share) / total
        out = []
        for row in rows:
            part = row[int(low * len(row)) : int(reached * len(row))][: length - 2]
            out.append([CLS, *part, SEP] + [PAD] * (length - 2 - len(part)))
        parties.append(out)
    return parties


ROWS = st.lists(st.lists(st.integers(1, 99), max_size=30), max_size=12)


@drawn(rows=ROWS, parts=st.integers(1, 5), length=st.integers(3, 20))
def test_equal_parts_are_those_of_the_plain_rule(rows, parts, length):
    found = spans(ragged(rows), parts, length, CLS, SEP, PAD)
    for one, expected in zip(found, plain(rows, [1] * parts, length), strict=True):
        assert one.dtype == np.int32
        assert one.shape == (len(rows), length)
        assert one.tolist() == expected


@drawn(
    rows=ROWS,
    shares=st.lists(st.integers(1, 50), min_size=1, max_size=5),
    length=st.integers(3, 20),
    unit=st.sampled_from([1, 0.1, 0.01]),
)
def test_shares_are_those_of_the_plain_rule_in_any_unit(rows, shares, length, unit):
    found = spans(ragged(rows), [share * unit for share in shares], length, CLS, SEP, PAD)
    for one, expected in zip(found, plain(rows, shares, length), strict=True):
        assert one.tolist() == expected


@drawn(rows=ROWS, shares=st.lists(st.floats(0.01, 1), min_size=1, max_size=4))
def test_every_token_goes_to_one_party_in_order(rows, shares):
    found = spans(ragged(rows), shares, 32, CLS, SEP, PAD)
    for row, expected in enumerate(rows):
        tokens = [v for one in found for v in one[row] if v not in (CLS, SEP, PAD)]
        assert tokens == expected


def test_the_first_half_of_a_text_is_the_first_party_s():
    first, second = spans(ragged([[1, 2, 3, 4, 5]]), 2, 6, CLS, SEP, PAD)
    assert first.tolist() == [[101, 1, 2, 102, 0, 0]]
    assert second.tolist() == [[101, 3, 4, 5, 102, 0]]


def test_a_long_part_keeps_its_separator_and_an_empty_one_is_two_tokens():
    (long,) = spans(ragged([[1, 2, 3, 4]]), 1, 4, CLS, SEP, PAD)
    assert long.tolist() == [[101, 1, 2, 102]]
    first, _ = spans(ragged([[7], []]), 2, 4, CLS, SEP, PAD)
    assert first.tolist() == [[101, 102, 0, 0], [101, 102, 0, 0]]


def test_blocks_of_rows_do_not_show(monkeypatch):
    rng = np.random.default_rng(0)
    rows = [rng.integers(1, 99, rng.integers(0, 20)).tolist() for _ in range(25)]
    whole = spans(ragged(rows), (2, 1), 9, CLS, SEP, PAD)
    monkeypatch.setattr(module, "ROWS", 4)
    for one, other in zip(whole, spans(ragged(rows), (2, 1), 9, CLS, SEP, PAD), strict=True):
        np.testing.assert_array_equal(one, other)


FAULTS = {
    "no parts": ({"parts": 0}, "cannot be divided into 0"),
    "minus one": ({"parts": -1}, "cannot be divided into -1"),
    "no shares": ({"parts": ()}, "cannot be divided"),
    "a share of nothing": ({"parts": (1, 0)}, "positive shares"),
    "an infinite share": ({"parts": (1, np.inf)}, "positive shares"),
    "no room": ({"length": 2}, "length=2 leaves no room"),
    "values left over": ({"ragged": Ragged(np.ones(3, np.int32), np.asarray([0, 2]))}, "offsets"),
    "offsets that fall": ({"ragged": Ragged(np.ones(1, np.int32), np.asarray([0, 2, 1]))}, "rise"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_cannot_be_is_one_line(fault):
    changes, message = FAULTS[fault]
    given_ = {"ragged": ragged([[1, 2]]), "parts": 2, "length": 8, **changes}
    with pytest.raises(UserError, match=message):
        spans(**given_, cls=CLS, sep=SEP, pad=PAD)
