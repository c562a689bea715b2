"""Avazu: both forms against plain restatements; every bad file is one line."""

import datetime
import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import real_data
from tests.datasets.clicks import avazu_csv, avazu_rows, zipped
from tests.datasets.fuzzing import drawn
from vfljax import datasets
from vfljax.datasets.avazu import FIELDS, avazu, prepare, stream
from vfljax.datasets.core import checksum
from vfljax.errors import UserError

ROWS = avazu_rows(50)
GOOD = avazu_csv(ROWS)
FORMS = ({}, {"form": "unique"}, {"hour": "parts"}, {"form": "unique", "hour": "parts"})


@pytest.fixture
def good(tmp_path):
    (tmp_path / "train.csv").write_bytes(GOOD)
    return str(tmp_path)


def coded(name, text, buckets):
    return 1 + zlib.crc32(f"{name}={text}".encode()) % (buckets - 1) if text else 0


def unique(rows):
    words = [sorted({row[j + 1] for row in rows}) for j in range(22)]
    return [[w.index(text) for w, text in zip(words, row[1:], strict=True)] for row in rows]


@pytest.mark.parametrize("file", ["train.csv", "train.csv.gz"])
def test_codes_are_hashed_categories(tmp_path, file):
    (tmp_path / file).write_bytes(zipped(GOOD) if file.endswith("gz") else GOOD)
    data = avazu(str(tmp_path), buckets=100)
    plain = [[coded(*cell, 100) for cell in zip(FIELDS, row[1:], strict=True)] for row in ROWS]
    assert data.features.dtype == np.int32
    np.testing.assert_array_equal(data.features, plain)
    assert data.labels.tolist() == [int(row[0]) for row in ROWS]
    assert [(c.name, c.kind, c.vocabulary) for c in data.columns] == [
        (name, "code", 100) for name in FIELDS
    ]
    assert len(data.columns) == 22


def test_unique_codes_are_places_in_sorted_order(tmp_path):
    rows = [list(row) for row in ROWS]
    for row in rows[::3]:
        row[7] = ""  # the missing value has its own code
    (tmp_path / "x").write_bytes(avazu_csv(rows))
    data = avazu(str(tmp_path / "x"), form="unique")
    words = [sorted({row[j + 1] for row in rows}) for j in range(22)]
    np.testing.assert_array_equal(data.features, unique(rows))
    assert [c.vocabulary for c in data.columns] == [len(w) for w in words]
    assert words[6][0] == ""


@pytest.mark.parametrize("form", ["codes", "unique"])
def test_an_hour_has_two_parts_where_asked(good, form):
    data = avazu(good, form=form, hour="parts")
    times = [
        datetime.datetime(2000 + int(h[:2]), int(h[2:4]), int(h[4:6]), int(h[6:]))
        for h in (row[1] for row in ROWS)
    ]
    assert data.features[:, 0].tolist() == [time.hour for time in times]
    assert data.features[:, 1].tolist() == [time.weekday() for time in times]
    assert [(c.name, c.vocabulary) for c in data.columns[:2]] == [
        ("hour_of_day", 24),
        ("day_of_week", 7),
    ]
    np.testing.assert_array_equal(data.features[:, 2:], avazu(good, form=form).features[:, 1:])


@settings(max_examples=30, deadline=None)
@given(options=st.sampled_from(FORMS), size=st.integers(1, 4000), rows=st.integers(30, 50))
def test_any_block_size_gives_the_whole(tmp_path_factory, options, size, rows):
    path = tmp_path_factory.mktemp("x") / "x"
    path.write_bytes(GOOD)
    whole = avazu(str(path), **options, rows=rows)
    features, labels = zip(*stream(str(path), size, **options, rows=rows), strict=True)
    np.testing.assert_array_equal(np.concatenate(features), whole.features)
    np.testing.assert_array_equal(np.concatenate(labels), whole.labels)


@pytest.mark.parametrize("options", FORMS)
def test_prepared_is_what_the_loader_reads(good, tmp_path, options):
    out = str(tmp_path / "out")
    whole = avazu(good, **options)
    assert checksum(prepare(good, out, **options)) == checksum(whole)
    read = datasets.load("avazu", out, options)
    assert checksum(read) == checksum(whole)
    assert read.columns == whole.columns
    with pytest.raises(UserError, match="was prepared by 'avazu' and config.data.name is 'criteo'"):
        datasets.load("criteo", out, {})


def test_rows_offset_and_balance_cut_the_file(good):
    part = avazu(good, rows=20, offset=7)
    plain = [[coded(*c, 10_000) for c in zip(FIELDS, row[1:], strict=True)] for row in ROWS[7:27]]
    np.testing.assert_array_equal(part.features, plain)
    assert part.labels.tolist() == [int(row[0]) for row in ROWS[7:27]]
    kept, last = [], "1"
    for row in ROWS:
        if row[0] != last:
            kept, last = [*kept, row], row[0]
    data = avazu(good, balanced=True, rows=6)
    plain = [[coded(*c, 10_000) for c in zip(FIELDS, row[1:], strict=True)] for row in kept[:6]]
    np.testing.assert_array_equal(data.features, plain)
    assert data.labels.tolist() == [0, 1] * 3


def test_unique_codes_are_of_the_rows_read_alone(good):
    data = avazu(good, form="unique", rows=9, offset=4)
    np.testing.assert_array_equal(data.features, unique(ROWS[4:13]))
    assert [c.vocabulary for c in data.columns] == [
        len({row[j + 1] for row in ROWS[4:13]}) for j in range(22)
    ]


def test_the_real_rows_have_their_balance():
    data = avazu(str(real_data("avazu")), form="unique")
    assert (len(data.labels), int(data.labels.sum())) == (9999, 1706)
    assert data.columns[0].vocabulary == 1  # all of one hour


LINE = GOOD.splitlines(keepends=True)[1]
CASES = {
    "nothing": (b"", {}, "is empty"),
    "no header": (GOOD.split(b"\n", 1)[1], {}, "line 1 names no column 'click'"),
    "a column missing": (GOOD.replace(b",C17,", b",", 1), {}, "line 1 names no column 'C17'"),
    "a column twice": (GOOD.replace(b"id,", b"C17,", 1), {}, "line 1 names 'C17' twice"),
    "Criteo's": (b"0\t1\t2\n", {}, "line 1 names no column 'click'"),
    "a line cut": (GOOD + LINE[:60] + b"\n", {}, "line 52 has"),
    "a label of 2": (GOOD.replace(b",1,1410", b",2,1410", 1), {}, "line 2: click is '2'"),
    "a day that is none": (
        GOOD.replace(LINE.split(b",")[2], b"14023012", 1),
        {"hour": "parts"},
        "line 2: hour is '14023012', not a time YYMMDDHH",
    ),
    "a word for an hour": (
        GOOD.replace(b",1,1410", b",1,noon", 1),
        {"hour": "parts"},
        "not a time YYMMDDHH",
    ),
    "an hour of five digits, as a category": (
        GOOD.replace(LINE.split(b",")[2], b"14102", 1),
        {},
        "line 2: hour is '14102', not a time YYMMDDHH",
    ),
    "a word for an hour, by hash": (
        GOOD.replace(b",1,1410", b",1,noon", 1),
        {"form": "unique"},
        "not a time YYMMDDHH",
    ),
    "a word for hour's form": (GOOD, {"hour": "day"}, "unknown config.data.options.hour"),
    "hashed": (GOOD, {"form": "hashed"}, "unknown config.data.options.form"),
    "buckets of unique": (GOOD, {"form": "unique", "buckets": 9}, "form='unique' has none"),
    "buckets beyond float32": (GOOD, {"buckets": 2**32}, "from 0 to 16777216"),
    "a number for a file": (GOOD, {"file": 3}, "options.file=3: give the name of a file"),
    "one bucket": (GOOD, {"buckets": 1}, "give at least 2"),
    "more rows than there are": (GOOD, {"rows": 51}, "has 50 rows"),
    "one class": (avazu_csv([r for r in ROWS if r[0] == "0"]), {}, "all labels are 0"),
    "gzip cut off": (zipped(GOOD)[:-9], {}, "cannot be read"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_bad_file_or_option_is_one_line(tmp_path, case):
    content, options, message = CASES[case]
    (tmp_path / "train.csv").write_bytes(content)
    with pytest.raises(UserError) as error:
        avazu(str(tmp_path), **options)
    assert message in str(error.value)
    assert len(str(error.value).splitlines()) == 1


@drawn(
    options=st.sampled_from(FORMS),
    at=st.integers(0, len(GOOD)),
    what=st.binary(max_size=5) | st.sampled_from([b"\n", b",", b'"', b"\r", b"1"]),
    cut=st.integers(0, 5),
)
def test_a_mutated_file_loads_or_is_one_line(tmp_path_factory, options, at, what, cut):
    path = tmp_path_factory.mktemp("mutated") / "train.csv"
    path.write_bytes(GOOD[:at] + what + GOOD[at + cut :])
    try:
        data = avazu(str(path), **options)
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        assert str(path) in str(error)
        return
    assert len(data.features) in (49, 50, 51)
    for column, codes in zip(data.columns, data.features.T, strict=True):
        assert 0 <= codes.min() <= codes.max() < column.vocabulary
