"""Criteo: its forms against plain restatements; clicks drawn; the real rows."""

import collections
import zlib

import numpy as np
import pytest

from tests.datasets.clicks import CRITEO_ROWS as ROWS
from tests.datasets.clicks import SETS, coded, criteo_rows, tsv, unique
from vfljax.datasets import criteo as criteo_module
from vfljax.datasets import ctr
from vfljax.datasets.core import checksum
from vfljax.datasets.criteo import CATEGORIES, NUMBERS, criteo


@pytest.fixture
def good(tmp_path):
    (tmp_path / "train.txt").write_bytes(SETS["criteo"].files["train.txt"])
    return str(tmp_path)


def restated(rows, form, numbers="log", buckets=10_000):
    """Forms "codes" and "unique", value by value."""
    x = np.array([[float(text or 0) for text in row[1:14]] for row in rows])
    x = np.sign(x) * np.log(1 + abs(x)) if numbers == "log" else x
    codes = unique(rows, 14)
    if form == "codes":
        codes = [[coded(*c, buckets) for c in zip(CATEGORIES, row[14:])] for row in rows]
    return np.concatenate([x, codes], axis=1).astype(np.float32)


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


@pytest.mark.parametrize("numbers", ["log", "raw"])
def test_codes_are_numbers_and_hashed_categories(good, numbers):
    data = criteo(good, numbers=numbers, buckets=50)
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


def test_more_than_255_hashes_of_one_bucket_are_held_at_255(good):
    data = criteo(good, form="hashed", buckets=2, crosses=True, counts=True)
    assert (data.features.max(1) == 255).all()  # of 780


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
        stay = ctr._draw(2, 5, rng)
        kept = np.concatenate([stay(labels[:3]), stay(labels[3:])])
        assert kept.sum() == 4
        counts += kept
    assert (counts[[1, 5]] == draws).all()
    np.testing.assert_allclose(counts[[0, 2, 3, 4, 6]] / draws, 2 / 5, atol=0.04)
