"""Criteo and Avazu: every form against a plain restatement, block by block as at once, and bad files."""

import collections
import gzip
import importlib
import tracemalloc
import zlib

import numpy as np
import pytest
from hypothesis import strategies as st

from tests.datasets.clicks import avazu_csv, avazu_rows, criteo_rows, csv, tsv
from tests.datasets.conversions import whole
from tests.datasets.fuzzing import drawn, mutate
from tests.datasets.refusals import one_line
from vfljax.datasets.converters import clicks
from vfljax.datasets.converters.avazu import FIELDS, avazu
from vfljax.datasets.converters.criteo import CATEGORIES, NUMBERS, criteo, word
from vfljax.errors import UserError

ROWS, AVAZU_ROWS = criteo_rows(60), avazu_rows(60)
LABELS = [int(row[0]) for row in ROWS]
RELEASED = {"form": "hashed", "buckets": 256, "crosses": True, "counts": True, "balanced": True}
FORMS = [
    *((criteo, tsv(ROWS), form) for form in ({}, {"numbers": "raw"}, {"form": "unique"})),
    (criteo, csv(ROWS), {"form": "frequent"}),
    (criteo, tsv(ROWS), {"form": "unique", "positive_ratio": 0.5, "rows": 40}),
    (criteo, tsv(ROWS), {"form": "hashed", "buckets": 256}),
    (criteo, tsv(ROWS), RELEASED),
    (avazu, avazu_csv(AVAZU_ROWS), {}),
    (avazu, avazu_csv(AVAZU_ROWS), {"form": "unique", "rows": 40}),
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


@pytest.mark.parametrize("buckets", [2, 64, 8192])
def test_hashed_rows_are_the_released_ones_by_another_hash(path, buckets):
    plain, labels = as_released(ROWS, buckets)
    data = whole(criteo(path, **{**RELEASED, "buckets": buckets}))
    np.testing.assert_array_equal(data.features, np.minimum(plain, 255))
    assert data.features.dtype == np.uint8
    assert data.labels.tolist() == labels
    assert "columns" not in data.about  # so that halves are the first and the last buckets
    hits = whole(criteo(path, **{**RELEASED, "buckets": buckets, "counts": False}))
    np.testing.assert_array_equal(hits.features, plain > 0)


def test_without_crosses_a_row_has_the_buckets_of_its_fields(path):
    data = whole(criteo(path, form="hashed", buckets=8192))
    for row, features in zip(ROWS, data.features, strict=True):
        fields = zip((*NUMBERS, *CATEGORIES), row[1:], strict=True)
        plain = {zlib.crc32(f"{field}={text}".encode()) % 8192 for field, text in fields}
        assert set(np.flatnonzero(features).tolist()) == plain


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
    for name, content in {
        "a.txt.gz": gzip.compress(tsv(ROWS)),
        "a.csv": csv(ROWS),
        "a.csv.gz": gzip.compress(b"\xef\xbb\xbf" + csv(ROWS).replace(b"\n", b"\r\n")),
    }.items():
        (tmp_path / name).write_bytes(content)
        for other in (criteo(f"{tmp_path}/{name}"), criteo(path, file=name)):
            np.testing.assert_array_equal(whole(other).features, data.features)


def test_rows_are_counted_after_balancing(path):
    data = whole(criteo(path, balanced=True, rows=6))
    kept, last = [], 1
    for r, label in enumerate(LABELS):
        if label != last:
            kept, last = [*kept, r], label
    np.testing.assert_array_equal(data.features, whole(criteo(path)).features[kept[:6]])
    assert data.labels.tolist() == [0, 1] * 3


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


def test_every_row_without_a_click_is_as_likely_to_stay():
    labels, draws = np.array([0, 1, 0, 0, 0, 1, 0]), 4000
    rng = np.random.default_rng(1)
    counts = np.zeros(7)
    for _ in range(draws):
        sample = clicks._sampler(2, 5, rng)
        stays = np.concatenate([sample(labels[:3]), sample(labels[3:])])
        assert stays.sum() == 4
        counts += stays
    assert (counts[[1, 5]] == draws).all()
    np.testing.assert_allclose(counts[[0, 2, 3, 4, 6]] / draws, 2 / 5, atol=0.04)


@pytest.mark.parametrize("size", [800, 3000])
def test_small_blocks_give_the_same_rows(tmp_path, monkeypatch, size):
    for convert, content, options in FORMS:
        (tmp_path / "train").write_bytes(content)
        path = str(tmp_path / "train")
        at_once = whole(convert(path, **options))
        with monkeypatch.context() as patch:
            patch.setattr(clicks, "BLOCK_BYTES", size)
            patch.setattr(importlib.import_module(criteo.__module__), "CELLS", 3 * 256)
            conversion = convert(path, **options)
            blocks = list(conversion.blocks)
        assert len(blocks) > 1
        np.testing.assert_array_equal(
            np.concatenate([b.features for b in blocks]), at_once.features
        )
        np.testing.assert_array_equal(np.concatenate([b.labels for b in blocks]), at_once.labels)
        assert conversion.about == at_once.about


@pytest.mark.parametrize("form", ["codes", "unique"])
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch, form):
    monkeypatch.setattr(clicks, "BLOCK_BYTES", 1 << 14)
    peaks = []
    for times in (10, 40):
        (tmp_path / "train.txt").write_bytes(tsv(criteo_rows(50)) * times)
        tracemalloc.start()
        rows = sum(len(block.labels) for block in criteo(str(tmp_path), form=form).blocks)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert rows == 50 * times
    assert peaks[1] < 1.5 * peaks[0]


HEAD, TAIL, LINE = tsv(ROWS), csv(ROWS), tsv(ROWS[:1])
CLICKS = avazu_csv(AVAZU_ROWS)
FAULTS = {
    "nothing": (criteo, b"", "cannot be read"),
    "a header alone": (criteo, csv([]), "has no rows"),
    "a column missing": (criteo, HEAD + LINE.rpartition(b"\t")[0] + b"\n", "Row #61"),
    "a line cut off": (criteo, HEAD[:-40], "Row #60"),
    "a label of 2": (criteo, HEAD + b"2" + LINE[1:], "'Label' has 2"),
    "an empty label": (criteo, HEAD + LINE[1:], "invalid value ''"),
    "a word for a number": (criteo, HEAD + b"0\tfive" + b"\t" * 38 + b"\n", "'I1' cannot"),
    "another encoding": (criteo, HEAD + b"0\t1\t\xff" + b"\t" * 37 + b"\n", "Row #61"),
    "gzip cut off": (criteo, gzip.compress(HEAD)[:-30], "cannot be read"),
    "no header": (criteo, TAIL.partition(b"\n")[2], "'Label'"),
    "a column not named": (criteo, TAIL.replace(b",I5,", b",i5,"), "'I5'"),
    "the header again": (criteo, TAIL + TAIL, "Row #62"),
    "a quote": (criteo, TAIL.replace(b",0,", b',"0,', 1), "invalid value '\"0'"),
    "Criteo's file": (avazu, HEAD, "cannot be read"),
    "Avazu's file": (criteo, CLICKS, "'Label'"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, case):
    convert, content, words = FAULTS[case]
    path = tmp_path / ("train.csv.gz" if content[:2] == b"\x1f\x8b" else "train.csv")
    path.write_bytes(content)
    one_line(lambda: whole(convert(str(tmp_path))), str(path), words)


OPTIONS = (
    {"form": "code"},
    {"numbers": "sqrt"},
    {"buckets": 1},
    {"rows": 61},
    {"rows": 40, "balanced": True},
    {"form": "codes", "crosses": True},
    {"buckets": 100, "form": "hashed", "crosses": True},
    {"positive_ratio": 0.05},
    {"positive_ratio": 0.999},
    {"positive_ratio": 1.5},
)


@pytest.mark.parametrize("options", OPTIONS)
def test_a_bad_option_is_one_line_that_names_it(path, options):
    (name, value), *_ = options.items()
    one_line(lambda: whole(criteo(path, **options)), f"data.options.{name}", repr(value))


def test_the_file_is_found_or_asked_for(tmp_path, path):
    one_line(lambda: criteo(path, file="x.csv"), "x.csv")
    one_line(lambda: criteo(str(tmp_path / "nowhere")), "nowhere")
    (tmp_path / "train.csv").write_bytes(csv(ROWS))
    one_line(lambda: criteo(path), "train.csv, train.txt")


@drawn(case=st.sampled_from(FORMS), data=st.data())
def test_a_damaged_file_is_read_or_is_one_line(tmp_path_factory, case, data):
    convert, content, options = case
    path = tmp_path_factory.mktemp("damaged") / "train.gz"
    path.write_bytes(mutate(data, gzip.compress(content, mtime=0)))
    try:
        read = whole(convert(str(path), **options))
    except UserError as error:
        assert len(str(error).splitlines()) == 1
        assert str(path) in str(error)
        return
    assert np.isfinite(read.features).all()
    for column, codes in zip(read.about.get("columns", ()), read.features.T):
        assert column.kind == "number" or 0 <= codes.min() <= codes.max() < column.vocabulary
