"""Avazu: both forms against plain restatements, and the real rows."""

import datetime

import numpy as np
import pytest

from tests.datasets.clicks import AVAZU_ROWS, avazu_csv, coded, unique
from vfljax.datasets.avazu import FIELDS, avazu

ROWS = [list(row) for row in AVAZU_ROWS]
for row in ROWS[::3]:
    row[7] = ""  # a missing value


@pytest.fixture
def good(tmp_path):
    (tmp_path / "x").write_bytes(avazu_csv(ROWS))
    return str(tmp_path / "x")


def test_codes_are_hashed_categories(good):
    data = avazu(good, buckets=100)
    plain = [[coded(*cell, 100) for cell in zip(FIELDS, row[1:], strict=True)] for row in ROWS]
    assert data.features.dtype == np.int32
    np.testing.assert_array_equal(data.features, plain)
    assert data.labels.tolist() == [int(row[0]) for row in ROWS]
    assert [tuple(c) for c in data.columns] == [(name, "code", "", 100) for name in FIELDS]
    assert len(data.columns) == 22


def test_unique_codes_are_places_in_the_sorted_order_of_the_rows_read(good):
    for options, rows in (({}, ROWS), ({"rows": 9, "offset": 4}, ROWS[4:13])):
        data = avazu(good, form="unique", **options)
        np.testing.assert_array_equal(data.features, unique(rows))
        sizes = [len({row[j + 1] for row in rows}) for j in range(22)]
        assert [c.vocabulary for c in data.columns] == sizes
        missing = [row[7] == "" for row in rows]  # which has a code of its own, the first
        assert any(missing)
        assert (data.features[:, 6] == 0).tolist() == missing


@pytest.mark.parametrize("form", ["codes", "unique"])
def test_an_hour_has_two_parts_where_asked(good, form):
    data = avazu(good, form=form, hour="parts")
    times = [
        datetime.datetime(2000 + int(h[:2]), int(h[2:4]), int(h[4:6]), int(h[6:]))
        for h in (row[1] for row in ROWS)
    ]
    assert data.features[:, 0].tolist() == [time.hour for time in times]
    assert data.features[:, 1].tolist() == [time.weekday() for time in times]
    parts = [("hour_of_day", "code", "", 24), ("day_of_week", "code", "", 7)]
    assert [tuple(column) for column in data.columns[:2]] == parts
    np.testing.assert_array_equal(data.features[:, 2:], avazu(good, form=form).features[:, 1:])
