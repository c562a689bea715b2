"""Criteo and Avazu: every form against a plain restatement, block by block as at once, and bad files."""

import collections
import gzip
import importlib
import zlib

import numpy as np
import pytest

from tests.datasets.clicks import avazu_csv, avazu_rows, criteo_rows, csv, tsv
from tests.datasets.conversions import whole
from tests.datasets.refusals import one_line
from vfljax.datasets.converters import clicks
from vfljax.datasets.converters.avazu import FIELDS, avazu
from vfljax.datasets.converters.criteo import CATEGORIES, NUMBERS, criteo, word

ROWS, AVAZU_ROWS = criteo_rows(60), avazu_rows(60)
LABELS = [int(row[0]) for row in ROWS]
RELEASED = {"form": "hashed", "buckets": 256, "crosses": True, "counts": True, "balanced": True}
FORMS = [
    (criteo, tsv(ROWS), {"form": "unique", "positive_ratio": 0.5, "rows": 40}),
    (criteo, csv(ROWS), {"form": "frequent"}),
    (criteo, tsv(ROWS), RELEASED),
    (avazu, avazu_csv(AVAZU_ROWS), {}),
]


@pytest.fixture
def path(tmp_path):
    (tmp_path / "train.txt").write_bytes(tsv(ROWS))
    return str(tmp_path)


def coded(field, text, buckets):
    """A category's code by hash."""
    return 1 + zlib.crc32(f"{field}={text}".encode()) % (buckets - 1) if text else 0


def unique(rows, first):
    """Categories from column ``first`` on, as places in sorted order."""
    words = [sorted({row[j] for row in rows}) for j in range(first, len(rows[0]))]
    return [[w.index(text) for w, text in zip(words, row[first:], strict=True)] for row in rows]


@pytest.mark.parametrize("numbers", ["log", "raw"])
def test_codes_are_numbers_and_hashed_categories(path, numbers):
    data = whole(criteo(path, numbers=numbers, buckets=50))
    x = np.array([[float(text or 0) for text in row[1:14]] for row in ROWS])
    x = np.sign(x) * np.log(1 + abs(x)) if numbers == "log" else x
    codes = [[coded(*cell, 50) for cell in zip(CATEGORIES, row[14:])] for row in ROWS]
    assert data.features.dtype == np.float32
    np.testing.assert_allclose(data.features[:, :13], x, rtol=1e-6)
    np.testing.assert_array_equal(data.features[:, 13:], codes)
    assert data.labels.tolist() == LABELS
    assert data.labels.dtype == np.int32
    columns = [*((n, "number", "", 0) for n in NUMBERS), *((n, "code", "", 50) for n in CATEGORIES)]
    assert [tuple(column) for column in data.about["columns"]] == columns


def test_unique_codes_are_places_in_the_sorted_order_of_the_rows_read(path):
    for rows in (60, 9):
        data = whole(criteo(path, form="unique", rows=rows))
        np.testing.assert_array_equal(data.features[:, 13:], unique(ROWS[:rows], 14))
        sizes = [len({row[14 + j] for row in ROWS[:rows]}) for j in range(26)]
        assert [column.vocabulary for column in data.about["columns"][13:]] == sizes


def test_frequent_words_have_codes_and_the_others_share_one(tmp_path):
    rows = criteo_rows(200, seed=1, values=15)
    (tmp_path / "train.txt").write_bytes(tsv(rows))
    data = whole(criteo(str(tmp_path), form="frequent"))
    assert data.features.dtype == np.int32
    for j, column in enumerate(data.about["columns"]):
        texts = [word(row[j + 1]) if j < 13 else row[j + 1] for row in rows]
        known = sorted(text for text, count in collections.Counter(texts).items() if count >= 10)
        plain = [known.index(text) if text in known else len(known) for text in texts]
        assert data.features[:, j].tolist() == plain
        assert (column.kind, column.vocabulary) == ("code", len(known) + 1)


def as_released(rows, size):
    """Fu et al.'s released preprocessing, its hash replaced: counts of the fields' hashes and of their pairwise
    XORs, rows of a repeated label left out."""
    last, features, labels = "1", [], []
    for row in rows:
        if row[0] == last:
            continue
        last = row[0]
        fields = zip((*NUMBERS, *CATEGORIES), row[1:], strict=True)
        single = [zlib.crc32(f"{field}={text}".encode()) % size for field, text in fields]
        wide = [0] * size
        for i, one in enumerate(single):
            wide[one] += 1
            for other in single[i + 1 :]:
                wide[one ^ other] += 1
        features.append(wide)
        labels.append(int(row[0]))
    return np.array(features), labels


@pytest.mark.parametrize("buckets", [2, 8192])
def test_hashed_rows_are_the_released_ones_by_another_hash(path, buckets):
    plain, labels = as_released(ROWS, buckets)
    data = whole(criteo(path, **{**RELEASED, "buckets": buckets}))
    np.testing.assert_array_equal(data.features, np.minimum(plain, 255))
    assert data.features.dtype == np.uint8
    assert data.labels.tolist() == labels
    assert "columns" not in data.about  # so that halves are the first and the last buckets
    hits = whole(criteo(path, **{**RELEASED, "buckets": buckets, "counts": False}))
    np.testing.assert_array_equal(hits.features, plain > 0)
    few = whole(criteo(path, **{**RELEASED, "buckets": buckets, "rows": 6}))  # after balancing
    np.testing.assert_array_equal(few.features, data.features[:6])
    (row,) = whole(criteo(path, form="hashed", buckets=buckets, rows=1)).features  # no crosses
    fields = zip((*NUMBERS, *CATEGORIES), ROWS[0][1:], strict=True)
    single = {zlib.crc32(f"{field}={text}".encode()) % buckets for field, text in fields}
    assert set(np.flatnonzero(row).tolist()) == single


def test_avazu_s_fields_are_categories(tmp_path):
    (tmp_path / "train.csv").write_bytes(avazu_csv(AVAZU_ROWS))
    data = whole(avazu(str(tmp_path), buckets=100))
    plain = [[coded(*cell, 100) for cell in zip(FIELDS, row[1:])] for row in AVAZU_ROWS]
    assert data.features.dtype == np.int32
    np.testing.assert_array_equal(data.features, plain)
    assert data.labels.tolist() == [int(row[0]) for row in AVAZU_ROWS]
    data = whole(avazu(str(tmp_path), form="unique"))
    np.testing.assert_array_equal(data.features, unique(AVAZU_ROWS, 1))


def test_every_kind_of_file_holds_the_same_rows(path, tmp_path):
    data = whole(criteo(path))
    packed = gzip.compress(b"\xef\xbb\xbf" + csv(ROWS).replace(b"\n", b"\r\n"))
    (tmp_path / "a.csv.gz").write_bytes(packed)
    for other in (criteo(f"{tmp_path}/a.csv.gz"), criteo(path, file="a.csv.gz")):
        np.testing.assert_array_equal(whole(other).features, data.features)


def test_a_positive_ratio_leaves_out_random_rows_without_a_click(tmp_path):
    (tmp_path / "train.txt").write_bytes(tsv(criteo_rows(200)))
    data = whole(criteo(str(tmp_path), rows=150))
    part = whole(criteo(str(tmp_path), rows=150, positive_ratio=0.6))
    clicked = data.labels.sum()
    assert part.labels.sum() == clicked
    assert len(part.labels) == clicked + round(clicked * 0.4 / 0.6)
    places = [np.flatnonzero((data.features == row).all(1))[0] for row in part.features]
    assert places == sorted(set(places))
    assert data.labels[places].tolist() == part.labels.tolist()
    left_out = set(np.flatnonzero(data.labels == 0)) - set(places)
    assert min(left_out) < 50 < 100 < max(left_out)  # all over the file


def test_small_blocks_give_the_same_rows(tmp_path, monkeypatch):
    for convert, content, options in FORMS:
        (tmp_path / "train").write_bytes(content)
        path = str(tmp_path / "train")
        at_once = whole(convert(path, **options))
        with monkeypatch.context() as patch:
            patch.setattr(clicks, "BLOCK_BYTES", 3000)
            patch.setattr(importlib.import_module(criteo.__module__), "CELLS", 3 * 256)
            conversion = convert(path, **options)
            blocks = list(conversion.blocks)
        assert len(blocks) > 1
        np.testing.assert_array_equal(
            np.concatenate([b.features for b in blocks]), at_once.features
        )
        np.testing.assert_array_equal(np.concatenate([b.labels for b in blocks]), at_once.labels)
        assert conversion.about == at_once.about


HEAD, TAIL, LINE = tsv(ROWS), csv(ROWS), tsv(ROWS[:1])
FAULTS = {
    "a header alone": (csv([]), "has no rows"),
    "a label of 2": (HEAD + b"2" + LINE[1:], "'Label' has 2"),
    "a word for a number": (HEAD + b"0\tfive" + b"\t" * 38 + b"\n", "'I1' cannot"),
    "a column not named": (TAIL.replace(b",I5,", b",i5,"), "'I5'"),
    "the header again": (TAIL + TAIL, "Row #62"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, case):
    content, words = FAULTS[case]
    (tmp_path / "train.csv").write_bytes(content)
    one_line(lambda: whole(criteo(str(tmp_path))), str(tmp_path / "train.csv"), words)


def test_a_bad_option_is_one_line_that_names_it(path):
    for options in (
        {"form": "code"},
        {"rows": 61},
        {"form": "codes", "crosses": True},
        {"buckets": 100, "form": "hashed", "crosses": True},
        {"positive_ratio": 0.999},
    ):
        (name, value), *_ = options.items()
        one_line(lambda o=options: whole(criteo(path, **o)), f"data.options.{name}", repr(value))
