"""Labels, checksums, and the statistics by which columns are scaled; choosing some rows of a file."""

import jax.numpy as jnp
import numpy as np
import pytest

from tests.datasets.refusals import refused
from vfljax.datasets import npy
from vfljax.datasets import scaling as scalings
from vfljax.datasets.core import (
    Column,
    Dataset,
    PartyColumns,
    Vocabulary,
    checksum,
    classes,
    identity,
    spread,
)
from vfljax.datasets.scaling import statistics
from vfljax.datasets.splits import split_rows
from vfljax.federation.training import rows_of
from vfljax.sweep.plan import make_table
from vfljax.types import Input


def made(rows=200, **changes):
    labels = (np.arange(rows) % 4 == 0).astype(np.int32)
    return Dataset("made", np.zeros((rows, 1), np.float32), labels, 2)._replace(**changes)


@pytest.mark.parametrize("label", [2**31, -1, 0.5, np.nan, 10**400, "one"])
def test_a_label_that_is_no_class_of_int32_is_one_line(label):
    labels = np.array([0, 1, label], object if label == 10**400 else None)
    refused(classes, "made", labels, match="in row 3 is not an integer class|labels are not num")
    assert classes("made", [0, 2**31 - 1]).tolist() == [0, 2**31 - 1]


def test_missing_numbers_read_as_the_training_mean():
    x = np.array([[1.0, np.nan, 7], [3.0, np.nan, 7], [np.nan, np.nan, 7], [100.0, 5, 9]], "f4")
    mean, scale = statistics(x, np.arange(3), "standard")
    np.testing.assert_allclose(mean, [2, 0, 7])
    np.testing.assert_allclose(scale, [1, 1, 1])  # a constant column is left at zero
    mean, scale = statistics(x, np.arange(3), "minmax")
    np.testing.assert_allclose(mean, [1, 0, 7])
    np.testing.assert_allclose(scale, [2, 1, 1])


def test_categories_and_codes_stay_and_a_category_never_trained_on_reads_zero():
    columns = (
        Column("n"),
        Column("c", "category", "x"),
        Column("c", "category", "y"),
        Column("k", "code", vocabulary=9),
    )
    x = np.array([[2, 1, 0, 0], [4, 1, 0, 0], [np.nan, 0, 1, 7]], np.float32)
    labels = np.array([0, 1, 0], np.int32)
    split = split_rows(made(), 0, 0.5, 0.2, 0.3)._replace(
        train=np.array([0, 1]), validation=np.array([2]), test=np.array([2])
    )
    block = PartyColumns(x, Input("table", (4,), (0, 0, 0, 9)), columns)
    table = make_table([block], labels, [split], "minmax")
    (read,) = rows_of(table, jnp.int32(0), jnp.arange(3))
    assert np.asarray(read)[:, 1].tolist() == [1, 1, 0]
    assert np.asarray(read)[:, 2].tolist() == [0, 0, 0]  # 1 in row 2, never trained on
    assert np.asarray(read)[:, 3].tolist() == [0, 0, 7]
    assert np.asarray(read)[2, 0] == 0  # the missing number


@pytest.mark.parametrize("scaling", ["standard", "minmax", "range"])
def test_statistics_in_pieces_are_those_of_the_whole(scaling, monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.normal(3, 2, size=(50, 4)).astype(np.float32)
    x[rng.random(x.shape) < 0.2] = np.nan
    columns = (*(Column(c) for c in "abc"), Column("d", "category", "v"))
    x[:, 3] = rng.random(50) < 0.1
    rows = rng.permutation(50)[:37]
    whole = statistics(x, rows, scaling, columns)
    if scaling == "standard":
        np.testing.assert_allclose(whole[0][:3], np.nanmean(x[rows, :3], axis=0), rtol=1e-6)
        np.testing.assert_allclose(whole[1][:3], np.nanstd(x[rows, :3], axis=0), rtol=1e-6)
    monkeypatch.setattr(scalings, "PIECE", 5)
    for one, other in zip(whole, statistics(x, rows, scaling, columns), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_the_range_of_a_table_is_that_of_its_numbers_and_an_image_has_one_for_all_pixels():
    columns = (Column("n"), Column("k", "code", vocabulary=9001), Column("c", "category", "v"))
    x = np.array([[0.25, 9000, 1], [0.75, 1, 0]], np.float32)
    mean, scale = statistics(x, np.arange(2), "range", columns)
    np.testing.assert_allclose(mean, [0.25, 0, 0])
    np.testing.assert_allclose(scale, [0.5, 1, 1])
    x = np.array([[[2, 9], [4, 4]], [[3, 12], [6, 2]], [[0, 99], [0, 0]]], np.uint8)
    mean, scale = statistics(x, np.arange(2), "range")
    assert (mean.shape, scale.shape) == ((), ())
    assert (mean, scale) == (2, 10)


def test_every_seed_has_rows_and_statistics_of_its_own():
    x = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    data = made(features=x)
    splits = [split_rows(data, seed, 0.5, 0.2, 0.3) for seed in range(2)]
    for part in ("train", "validation", "test"):
        assert len({frozenset(getattr(split, part)) for split in splits}) == 2
    held = made(features=x, test=np.arange(200) >= 120)
    one, other = (split_rows(held, seed, 0.5, 0.2, 0.5) for seed in range(2))
    assert set(one.train) != set(other.train)
    assert set(one.test) != set(other.test)
    block = PartyColumns(x, Input("table", (3,)))
    of_training, of_all = (
        make_table([block], data.labels, splits, "standard", rows) for rows in ("train", "all")
    )
    for seed, split in enumerate(splits):
        np.testing.assert_allclose(of_training.mean[0][seed], x[split.train].mean(0), atol=1e-6)
        np.testing.assert_allclose(of_training.scale[0][seed], x[split.train].std(0), rtol=1e-5)
        np.testing.assert_allclose(of_all.mean[0][seed], x.mean(0), atol=1e-6)
        (read,) = rows_of(of_training, jnp.int32(seed), of_training.train[seed])
        np.testing.assert_allclose(np.asarray(read).mean(0), 0, atol=1e-6)


def test_token_ids_are_never_scaled():
    ids = np.array([[3, 0], [7, 9]], np.int32)
    split = split_rows(made(), 0, 0.5, 0.2, 0.3)._replace(train=np.arange(2))
    block = PartyColumns(ids, Input("text", (2,), (50,), 0))
    table = make_table([block], np.arange(2), [split], "standard")
    assert (table.mean[0].tolist(), table.scale[0].tolist()) == ([0], [1])


def test_the_checksum_is_of_every_row_however_many_are_digested_at_a_time(monkeypatch):
    x = np.arange(10, dtype=np.float32)[:, None]
    whole, last = made(10, features=x), made(10, features=np.where(x == 9, -1, x))
    expected = checksum(whole)
    monkeypatch.setattr(npy, "BYTES", 3 * x.itemsize)
    assert checksum(whole) == expected
    assert checksum(last) != expected
    labels = whole.labels.copy()
    labels[-1] ^= 1
    assert checksum(whole._replace(labels=labels)) != expected


def test_the_identity_is_of_all_that_reaches_a_split_or_a_network():
    one = made(20)
    others = [
        one._replace(test=np.arange(20) > 9),
        one._replace(groups=np.arange(20)),
        one._replace(columns=(Column("a"),)),
        one._replace(columns=(Column("a", "code", vocabulary=1),)),
        one._replace(kind="image"),
        one._replace(num_classes=3),
        *(one._replace(tokens=Vocabulary(9, 0, 1, sep)) for sep in (2, 3)),
        one._replace(length=7),
    ]
    found = {identity(dataset) for dataset in (one, *others)}
    assert len(found) == 10
    assert identity(one) == identity(made(20)._replace(notes=("read elsewhere",)))


def test_rows_are_spread_evenly_within_each_class():
    one = np.zeros(10, int)
    assert spread(one, 0).tolist() == list(range(10))
    assert spread(one, 4).tolist() == [0, 2, 5, 7]
    assert spread(np.array([0, 0, 0, 0, 1, 1]), 3).tolist() == [0, 2, 4]
    assert spread(np.repeat([0, 1, 2], [5, 1, 4]), 4).tolist() == [0, 2, 6, 8]  # 2, 0.4 and 1.6
    labels = np.tile([0, 1, 1, 3], 25)  # shares are kept in periodic files too
    chosen = spread(labels, 50)
    assert (np.diff(chosen) > 0).all()
    np.testing.assert_allclose(np.bincount(labels[chosen]), np.bincount(labels) / 2, atol=1)
