"""Spans of texts against a plain restatement, row by row."""

from fractions import Fraction

import numpy as np
import pytest

from vfljax.datasets import ragged as module
from vfljax.datasets.core import Ragged
from vfljax.datasets.ragged import spans

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


@pytest.mark.parametrize("unit", [1, 0.1, 0.01])
@pytest.mark.parametrize("shares", [(1, 1), (1, 1, 1), (7, 2, 1), (3, 50, 14, 33)])
def test_shares_are_those_of_the_plain_rule_in_any_unit(shares, unit, monkeypatch):
    rows = [list(range(1, n + 1)) for n in (*range(31), 100)]  # one and no token, cut ones
    expected = plain(rows, shares, 20)
    given = [share * unit for share in shares]
    for block in (module.ROWS, 4):  # blocks of rows do not show
        monkeypatch.setattr(module, "ROWS", block)
        found = spans(ragged(rows), given, 20, CLS, SEP, PAD)
        assert [one.tolist() for one in found] == expected
        assert {(one.dtype, one.shape) for one in found} == {(np.dtype("int32"), (len(rows), 20))}
