"""Criteo: its forms against plain restatements; streaming; the real rows."""

import collections
import doctest
import json
import tracemalloc
import zlib

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import real_data
from tests.datasets.clicks import CRITEO_FILES as FILES
from tests.datasets.clicks import CRITEO_FORMS as FORMS
from tests.datasets.clicks import CRITEO_ROWS as ROWS
from tests.datasets.clicks import criteo_rows, csv, tsv
from vfljax import datasets
from vfljax.datasets import criteo as criteo_module
from vfljax.datasets import ctr, ctr_forms, prepared
from vfljax.datasets.core import checksum
from vfljax.datasets.criteo import CATEGORIES, NUMBERS, criteo, prepare, stream
from vfljax.errors import UserError


@pytest.fixture
def good(tmp_path):
    (tmp_path / "train.txt").write_bytes(FILES["train.txt"])
    return str(tmp_path)


def restated(rows, form, numbers="log", buckets=10_000):
    """Forms "codes" and "unique", value by value."""
    words = [sorted({row[14 + j] for row in rows}) for j in range(26)]
    out = []
    for row in rows:
        line = []
        for text in row[1:14]:
            x = float(text or 0)
            line.append(np.sign(x) * np.log(1 + abs(x)) if numbers == "log" else x)
        for j, (name, word) in enumerate(zip(CATEGORIES, row[14:], strict=True)):
            if form == "unique":
                line.append(words[j].index(word))
            else:
                code = 1 + zlib.crc32(f"{name}={word}".encode()) % (buckets - 1)
                line.append(code if word else 0)
        out.append(line)
    return np.array(out, np.float32)


def as_released(rows, size, limit):
    """Fu et al.'s released preprocessing, its hash replaced: counts of the fields' hashes and of
    their pairwise XORs, rows of a repeated label left out."""
    last, features, labels = "1", [], []
    for row in rows:
        if row[0] == last or len(labels) == limit:
            continue
        last = row[0]
        names = zip((*NUMBERS, *CATEGORIES), row[1:], strict=True)
        single = [zlib.crc32(f"{name}={text}".encode()) % size for name, text in names]
        wide = [0] * size
        for i, one in enumerate(single):
            wide[one] += 1
            for other in single[i + 1 :]:
                wide[one ^ other] += 1
        features.append(wide)
        labels.append(int(row[0]))
    return np.array(features), labels


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("numbers", ["log", "raw"])
def test_codes_are_numbers_and_hashed_categories(tmp_path, file, numbers):
    (tmp_path / file).write_bytes(FILES[file])
    data = criteo(str(tmp_path), numbers=numbers, buckets=50)
    assert data.features.dtype == np.float32
    np.testing.assert_allclose(data.features, restated(ROWS, "codes", numbers, 50), rtol=1e-6)
    assert data.labels.tolist() == [int(row[0]) for row in ROWS]
    assert [c.name for c in data.columns] == [*NUMBERS, *CATEGORIES]
    assert [c.kind for c in data.columns] == ["number"] * 13 + ["code"] * 26
    assert {c.vocabulary for c in data.columns[13:]} == {50}
    assert data.features[:, 13:].max() < 50


def test_unique_codes_are_places_in_sorted_order(good):
    data = criteo(good, form="unique")
    np.testing.assert_allclose(data.features, restated(ROWS, "unique"), rtol=1e-6)
    assert [c.vocabulary for c in data.columns[13:]] == [
        len({row[14 + j] for row in ROWS}) for j in range(26)
    ]
    few = criteo(good, form="unique", rows=9, offset=4)  # the vocabulary is of the rows read
    np.testing.assert_allclose(few.features, restated(ROWS[4:13], "unique"), rtol=1e-6)


def test_frequent_words_have_codes_and_the_others_share_one(tmp_path):
    rows = criteo_rows(200, seed=1, values=15)
    (tmp_path / "train.txt").write_bytes(tsv(rows))
    data = criteo(str(tmp_path), form="frequent")
    assert data.features.dtype == np.int32
    shared = 0
    for j, column in enumerate(data.columns):
        texts = [criteo_module.word(row[j + 1]) if j < 13 else row[j + 1] for row in rows]
        kept = sorted(text for text, count in collections.Counter(texts).items() if count >= 10)
        plain = [kept.index(text) if text in kept else len(kept) for text in texts]
        assert data.features[:, j].tolist() == plain
        assert (column.kind, column.vocabulary) == ("code", len(kept) + 1)
        shared += plain.count(len(kept))
    assert 0 < shared < data.features.size
    assert doctest.testmod(criteo_module).failed == 0
    none = criteo(str(tmp_path), form="frequent", rows=9)  # too few for any word to be frequent
    assert not none.features.any()


@pytest.mark.parametrize("buckets", [64, 8192])
def test_hashed_rows_are_the_released_ones_by_another_hash(good, buckets):
    plain, labels = as_released(ROWS, buckets, 10**9)
    data = criteo(good, form="hashed", buckets=buckets, crosses=True, counts=True, balanced=True)
    np.testing.assert_array_equal(data.features, plain)
    assert (data.features.sum(1) == 39 + 741).all()
    assert data.labels.tolist() == labels
    assert labels[:4] == [0, 1, 0, 1]
    assert data.features.dtype == np.uint8
    assert data.columns == ()  # so that halves are the first and the last buckets
    multihot = criteo(good, form="hashed", buckets=buckets, crosses=True, balanced=True)
    np.testing.assert_array_equal(multihot.features, plain > 0)


def test_without_crosses_a_row_has_its_fields_buckets(good):
    data = criteo(good, form="hashed")
    assert data.features.shape == (60, 8192)
    for row, wide in zip(ROWS, data.features, strict=True):
        names = zip((*NUMBERS, *CATEGORIES), row[1:], strict=True)
        plain = {zlib.crc32(f"{name}={text}".encode()) % 8192 for name, text in names}
        assert set(np.flatnonzero(wide).tolist()) == plain


@pytest.mark.parametrize("form", ["codes", "hashed"])
def test_rows_and_offset_cut_the_file(good, form):
    whole = criteo(good, form=form)
    part = criteo(good, form=form, rows=20, offset=7)
    np.testing.assert_array_equal(part.features, whole.features[7:27])
    np.testing.assert_array_equal(part.labels, whole.labels[7:27])
    assert len(criteo(good, offset=50).labels) == 10


def test_values_of_rows_left_out_do_not_matter(tmp_path):
    rows = [list(row) for row in ROWS]
    rows[30][1], rows[30][20] = "five", "a word of more than sixty-four characters" * 2
    (tmp_path / "train.txt").write_bytes(tsv(rows))
    for options in FORMS[:5]:
        assert len(criteo(str(tmp_path), **options, rows=30).labels) == 30
        assert len(criteo(str(tmp_path), **options, offset=31).labels) == 29
        with pytest.raises(UserError, match="line 31: I1 is 'five'"):
            criteo(str(tmp_path), **options, rows=31)


def test_balanced_rows_are_counted_after_others_are_dropped(good):
    data = criteo(good, balanced=True, rows=10)
    assert data.labels.tolist() == [0, 1] * 5
    plain, _ = as_released(ROWS, 64, 10)
    np.testing.assert_array_equal(
        criteo(
            good, form="hashed", buckets=64, crosses=True, counts=True, balanced=True, rows=10
        ).features,
        plain,
    )


@settings(max_examples=40, deadline=None)
@given(
    options=st.sampled_from(FORMS),
    file=st.sampled_from(list(FILES)),
    size=st.integers(1, 4000),
    rows=st.integers(0, 12),
    offset=st.integers(0, 30),
)
def test_any_block_size_gives_the_whole(tmp_path_factory, options, file, size, rows, offset):
    folder = tmp_path_factory.mktemp("x")
    (folder / file).write_bytes(FILES[file])
    options = {**options, "rows": rows, "offset": offset}
    try:
        whole = criteo(str(folder), **options)
    except UserError as error:  # too few rows, or of one class
        words = ("asks for more", "at least two classes", "rows read are clicks")
        assert any(word in str(error) for word in words)
        return
    features, labels = zip(*stream(str(folder), size, **options), strict=True)
    np.testing.assert_array_equal(np.concatenate(features), whole.features)
    np.testing.assert_array_equal(np.concatenate(labels), whole.labels)


@pytest.mark.parametrize("options", FORMS)
def test_prepared_is_what_the_loader_reads(good, tmp_path, options):
    out = str(tmp_path / "out")
    data = datasets.prepare("criteo", good, out, options)
    whole = criteo(good, **options)
    assert checksum(data) == checksum(whole)
    assert data._replace(features=0, labels=0) == whole._replace(features=0, labels=0)
    assert datasets.load("criteo", out, {}).columns == whole.columns
    prepared.verify(out)
    assert checksum(datasets.load("criteo", out, options)) == checksum(whole)
    with pytest.raises(UserError, match="was prepared with form="):
        datasets.load("criteo", out, {**options, "rows": 3})
    again = datasets.prepare("criteo", out, str(tmp_path / "copy"), {})
    assert checksum(again) == checksum(whole)
    recorded = json.loads((tmp_path / "copy" / "vfljax.json").read_text())["options"]
    assert recorded == json.loads((tmp_path / "out" / "vfljax.json").read_text())["options"]


def test_a_failed_prepare_leaves_nothing(tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "train.txt").write_bytes(tsv(ROWS) + b"0\tcut\n")
    with pytest.raises(UserError, match="line 61 has 2 columns"):
        prepare(str(folder), str(tmp_path / "out"))
    assert [p.name for p in tmp_path.iterdir()] == ["in"]


@pytest.mark.parametrize("form", ["codes", "unique"])
def test_memory_does_not_grow_with_the_rows(tmp_path, monkeypatch, form):
    for function in (ctr.read, ctr_forms.stream):  # blocks of 1 MB: fewer rows fill several
        monkeypatch.setattr(function, "__defaults__", (1 << 20,))
    lines = tsv(criteo_rows(50, values=400))
    peaks, arrow = [], []
    for times in (500, 2000):  # 25,000 and 100,000 rows
        with open(tmp_path / "train.txt", "wb") as file:
            for _ in range(times):
                file.write(lines)
        tracemalloc.start()
        data = prepare(str(tmp_path / "train.txt"), str(tmp_path / f"{times}"), form=form)
        labels = 2 * data.labels.nbytes  # held in memory by what is returned, and while checked
        peaks.append(tracemalloc.get_traced_memory()[1] - labels)
        tracemalloc.stop()
        arrow.append(pa.default_memory_pool().max_memory() or 0)
        assert data.features.shape == (50 * times, 39)
    assert peaks[1] < 1.1 * peaks[0]
    assert arrow[1] < 1.1 * arrow[0]


def test_quotes_crlf_and_a_mark_of_byte_order_are_read(tmp_path):
    plain = csv(ROWS).decode()
    quoted = "\r\n".join(
        ",".join(f'"{value}"' for value in line.split(",")) for line in plain.splitlines()
    )
    (tmp_path / "train.csv").write_bytes(b"\xef\xbb\xbf" + quoted.encode())
    np.testing.assert_allclose(criteo(str(tmp_path)).features, restated(ROWS, "codes"), rtol=1e-6)
    (tmp_path / "train.csv").write_bytes(b"\xef\xbb\xbf" + tsv(ROWS).replace(b"\n", b"\r\n"))
    np.testing.assert_allclose(criteo(str(tmp_path)).features, restated(ROWS, "codes"), rtol=1e-6)


def test_the_real_rows_have_their_balance():
    folder = str(real_data("criteo"))
    head = criteo(folder, file="train_head10k.txt.gz")
    spread = criteo(folder, file="train_spread.csv.gz", form="unique")
    assert (len(head.labels), int(head.labels.sum())) == (10_000, 2182)
    assert (len(spread.labels), int(spread.labels.sum())) == (4370, 1081)
    with pytest.raises(UserError, match="train_head10k.txt.gz, train_spread.csv.gz: name one"):
        criteo(folder)


def test_the_real_rows_hashed_as_released():
    file = str(real_data("criteo") / "train_head10k.txt.gz")
    data = criteo(file, form="hashed", crosses=True, counts=True, balanced=True, rows=2000)
    assert data.features.shape == (2000, 8192)
    assert data.labels.mean() == 0.5
    assert (data.features.sum(1, dtype=int) == 780).all()


def test_a_positive_ratio_leaves_out_random_rows_without_a_click(good):
    whole = criteo(good)
    clicks = int(whole.labels.sum())
    assert 0 < clicks < 27  # of 60: 45 % of fewer rows can be clicks
    for ratio in (0.45, 0.5):
        data = criteo(good, positive_ratio=ratio)
        kept = round(clicks * (1 - ratio) / ratio)
        assert (len(data.labels), int(data.labels.sum())) == (clicks + kept, clicks)
        places = [np.flatnonzero((whole.features == row).all(1))[0] for row in data.features]
        assert places == sorted(set(places))  # in the file's order, none twice
        assert whole.labels[places].tolist() == data.labels.tolist()
        left = [p for p in np.flatnonzero(whole.labels == 0) if p not in places]
        assert min(left) < max(places)  # out of the whole file
        assert max(left) > 30
    assert checksum(criteo(good, positive_ratio=0.45)) == checksum(
        criteo(good, positive_ratio=0.45)
    )
    part = criteo(good, positive_ratio=0.5, rows=30, offset=5)  # of the rows read
    inside = whole.labels[5:35]
    assert part.labels.tolist().count(1) == part.labels.tolist().count(0) == inside.sum()


def test_every_row_without_a_click_is_as_likely_to_be_kept():
    draws = 4000
    labels = np.array([0, 1, 0, 0, 0, 1, 0])
    rng = np.random.default_rng(1)
    counts = np.zeros(7)
    for _ in range(draws):
        draw = ctr._Draw(2, 5)
        draw._rng = rng
        kept = np.concatenate(
            [draw.of(np.arange(3), labels[:3]), draw.of(3 + np.arange(4), labels[3:])]
        )
        assert len(kept) == 4
        counts[kept] += 1
    assert (counts[[1, 5]] == draws).all()
    np.testing.assert_allclose(counts[[0, 2, 3, 4, 6]] / draws, 2 / 5, atol=0.04)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"positive_ratio": 0.05}, "of the 60 rows read are clicks: give a larger one"),
        ({"positive_ratio": 0.999}, "of the 60 rows read are clicks: read more rows"),
        ({"positive_ratio": 1}, "positive_ratio=1: give a share above 0 and below 1"),
        ({"positive_ratio": -0.1}, "positive_ratio=-0.1: give a share"),
        ({"positive_ratio": True}, "positive_ratio=True: give a share"),
        ({"positive_ratio": "half"}, "positive_ratio='half': give a share"),
        ({"positive_ratio": 0.5, "balanced": True}, "balanced=True makes it 1/2; leave one out"),
    ],
)
def test_a_positive_ratio_that_cannot_be_is_refused(good, options, words):
    with pytest.raises(UserError, match=words):
        criteo(good, **options)


def test_a_folder_prepared_before_there_was_an_option_is_read_with_its_default(good, tmp_path):
    out = tmp_path / "out"
    datasets.prepare("criteo", good, str(out), {"buckets": 50})
    spec = json.loads((out / "vfljax.json").read_text())
    del spec["options"]["positive_ratio"]
    (out / "vfljax.json").write_text(json.dumps(spec))
    assert len(datasets.load("criteo", str(out), {"buckets": 50}).labels) == 60
    with pytest.raises(UserError, match="was prepared with"):
        datasets.load("criteo", str(out), {"buckets": 50, "positive_ratio": 0.5})
