"""Rows between parts: published test parts, groups; statistics of missing numbers and categories."""

import re
from unittest import mock

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from vfljax.datasets import core
from vfljax.datasets import scaling as scalings
from vfljax.datasets.core import (
    Column,
    Dataset,
    PartyColumns,
    Vocabulary,
    checksum,
    classes,
    identity,
    split_rows,
)
from vfljax.datasets.scaling import statistics
from vfljax.errors import UserError
from vfljax.federation.training import rows_of
from vfljax.sweep.plan import make_table
from vfljax.types import Input


def made(rows=200, **changes):
    labels = (np.arange(rows) % 4 == 0).astype(np.int32)
    return Dataset("made", np.zeros((rows, 1), np.float32), labels, 2)._replace(**changes)


@pytest.mark.parametrize(
    "label",
    [2**31, 2**32, 2**63, 2**64 - 1, -1, 0.5, 1e300, np.nan, np.inf, 10**400, "one"],
    ids=lambda label: str(label)[:12],
)
def test_a_label_that_is_no_class_of_int32_is_one_line(label):
    made = np.array([0, 1, label], object if type(label) is int and label >= 2**64 else None)
    with pytest.raises(UserError, match="in row 3 is not an integer class|labels are not num") as e:
        classes("made", made)
    assert len(str(e.value).splitlines()) == 1
    assert classes("made", [0, 2**31 - 1]).tolist() == [0, 2**31 - 1]


def test_a_published_test_part_is_where_test_rows_come_from():
    test = np.arange(200) >= 120
    split = split_rows(made(test=test), 0, 0.75, 0.25, 1.0)
    assert sorted(split.test) == list(range(120, 200))
    assert sorted([*split.train, *split.validation]) == list(range(120))
    assert len(split.train) == 90
    some = split_rows(made(test=test), 0, 60, 20, 40)
    assert [len(part) for part in some] == [60, 20, 40]
    assert test[some.test].all()
    assert not test[some.train].any()


def test_more_test_rows_than_were_published_are_refused():
    with pytest.raises(UserError, match=r"120 training and 80 test rows"):
        split_rows(made(test=np.arange(200) >= 120), 0, 0.5, 0.2, 90)


@given(seed=st.integers(0, 500), size=st.integers(2, 9))
def test_rows_of_a_group_never_part(seed, size):
    groups = (np.arange(200) // size).astype(np.int32)
    split = split_rows(made(groups=groups), seed, 100, 30, 40)
    assert [len(part) for part in split] == [100, 30, 40]
    owners = [set(groups[part]) for part in split]
    assert not owners[0] & owners[1] | owners[0] & owners[2] | owners[1] & owners[2]


@given(
    seed=st.integers(0, 500),
    sizes=st.lists(st.integers(1, 9), min_size=40, max_size=60),
    shares=st.sampled_from([(0.7, 0.15, 0.15), (0.6, 0.2, 0.2), (0.7, 0.1, 0.2)]),
)
def test_shares_of_all_rows_leave_room_for_what_groups_leave_over(seed, sizes, shares):
    groups = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
    dataset = made(len(groups), groups=groups)
    try:
        split = split_rows(dataset, seed, *shares)
    except UserError as error:  # by chance: of 40 small groups, a part of 6 rows may lack a class
        assert "groups leave a part without rows of some class" in str(error)
        reject()
    expected = [round(share * len(groups)) for share in shares[1:]]
    assert [len(split.validation), len(split.test)] == expected
    lost = 2 * (max(sizes) - 1)  # the same for every seed
    assert len(split.train) == len(groups) - sum(expected) - lost
    owners = [set(groups[part]) for part in split]
    assert not owners[0] & owners[1] | owners[0] & owners[2] | owners[1] & owners[2]


@given(seed=st.integers(0, 500), share=st.sampled_from([(0.8, 0.1, 0.1), (0.5, 0.25, 0.25)]))
def test_many_rows_are_stratified_as_arrays_by_the_same_law(seed, share):
    labels = np.sort(np.random.default_rng(seed).choice(3, 997, p=[0.85, 0.1, 0.05]))
    labels[:3] = [0, 1, 2]
    dataset = made(997)._replace(labels=labels.astype(np.int32), num_classes=3)
    with mock.patch.object(core, "MANY", 100):
        split, again = (split_rows(dataset, seed, *share) for _ in range(2))
    few = split_rows(dataset, seed, *share)
    assert np.array_equal(np.sort(np.concatenate(split)), np.arange(997))
    for part, same, usual in zip(split, again, few, strict=True):
        assert np.array_equal(part, same)
        assert not np.array_equal(part, np.sort(part))
        counts = np.bincount(labels[part], minlength=3)
        assert np.abs(counts - np.bincount(labels[usual], minlength=3)).max() <= 2
        assert np.abs(counts - np.bincount(labels) * len(part) / 997).max() < 2


def test_groups_differ_by_seed_and_too_few_of_them_are_refused():
    groups = (np.arange(200) // 5).astype(np.int32)
    one, other = (split_rows(made(groups=groups), seed, 100, 30, 40) for seed in (0, 1))
    assert set(one.test) != set(other.test)
    with pytest.raises(UserError, match="ask for fewer rows"):
        split_rows(made(groups=(np.arange(200) // 100).astype(np.int32)), 0, 100, 50, 50)


def test_missing_numbers_read_as_the_training_mean():
    x = np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan], [100.0, 5.0]], np.float32)
    mean, scale = statistics(x, np.arange(3), "standard")
    np.testing.assert_allclose(mean, [2, 0])
    np.testing.assert_allclose(scale, [1, 1])
    mean, scale = statistics(x, np.arange(3), "minmax")
    np.testing.assert_allclose(mean, [1, 0])
    np.testing.assert_allclose(scale, [2, 1])


def test_categories_and_codes_stay_and_a_category_never_trained_on_reads_zero():
    columns = (
        Column("n"),
        Column("c", "category", "x"),
        Column("c", "category", "y"),
        Column("k", "code", vocabulary=9),
    )
    x = np.array([[2, 1, 0, 5], [4, 1, 0, 8], [np.nan, 0, 1, 7]], np.float32)
    dataset = Dataset("made", x, np.array([0, 1, 0], np.int32), 2, columns=columns)
    split = split_rows(made(), 0, 0.5, 0.2, 0.3)._replace(
        train=np.array([0, 1]), validation=np.array([2]), test=np.array([2])
    )
    block = PartyColumns(x, Input("table", (4,), (0, 0, 0, 9)), columns)
    for scaling in ("standard", "minmax"):
        table = make_table([block], dataset.labels, [split], scaling)
        (read,) = rows_of(table, jnp.int32(0), jnp.arange(3))
        assert np.asarray(read)[:, 1].tolist() == [1, 1, 0]
        assert np.asarray(read)[:, 2].tolist() == [0, 0, 0]  # 1 in row 2, never trained on
        assert np.asarray(read)[:, 3].tolist() == [5, 8, 7]
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
    monkeypatch.setattr(scalings, "PIECE", 5)
    for one, other in zip(whole, statistics(x, rows, scaling, columns), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_standard_statistics_are_numpy_s():
    x = np.random.default_rng(1).normal(5, 3, size=(40, 3)).astype(np.float32)
    x[::7, 1] = np.nan
    mean, scale = statistics(x, np.arange(30), "standard")
    np.testing.assert_array_equal(mean, np.nanmean(x[:30].astype(np.float64), axis=0).astype("f4"))
    np.testing.assert_array_equal(scale, np.nanstd(x[:30].astype(np.float64), axis=0).astype("f4"))


def test_nobody_of_the_published_test_part_is_trained_on():
    groups = np.arange(200, dtype=np.int32) // 3  # the 40th has rows on both sides of row 120
    split = split_rows(made(test=np.arange(200) >= 121, groups=groups), 0, 0.5, 0.2, 1.0)
    trained = {*groups[split.train], *groups[split.validation]}
    assert not trained & set(groups[split.test])
    assert len(split.test) == 79


def test_shares_that_sum_to_one_use_every_row_and_leftovers_of_a_few_rows_do_no_harm():
    odd = made(75, test=np.arange(75) >= 60)._replace()
    for share in (0.9, 0.85, 0.75):
        split = split_rows(odd, 0, share, 1 - share, 1.0)
        assert len(split.train) + len(split.validation) == 60
    assert [len(part) for part in split_rows(made(200), 0, 150, 30, 19)] == [150, 30, 19]
    groups = np.arange(200, dtype=np.int32) // 2
    split = split_rows(made(groups=groups), 0, 139, 30, 30)
    assert [len(part) for part in split] == [139, 30, 30]


def test_the_range_of_a_table_is_that_of_its_numbers():
    columns = (Column("n"), Column("k", "code", vocabulary=9001), Column("c", "category", "v"))
    x = np.array([[0.25, 9000, 1], [0.75, 1, 0]], np.float32)
    mean, scale = statistics(x, np.arange(2), "range", columns)
    np.testing.assert_allclose(mean, [0.25, 0, 0])
    np.testing.assert_allclose(scale, [0.5, 1, 1])


def test_the_checksum_is_of_every_row_however_many_are_digested_at_a_time(monkeypatch):
    x = np.arange(10, dtype=np.float32)[:, None]
    whole, last = made(10, features=x), made(10, features=np.where(x == 9, -1, x))
    expected = checksum(whole)
    monkeypatch.setattr(core, "DIGESTED", 3)
    assert checksum(whole) == expected
    assert checksum(last) != expected
    labels = whole.labels.copy()
    labels[-1] ^= 1
    assert checksum(whole._replace(labels=labels)) != expected


def test_the_identity_is_also_of_the_classes_and_the_vocabulary():
    one = made(20)
    others = [one._replace(num_classes=3)]
    others += [one._replace(tokens=Vocabulary(9, 0, 1, sep)) for sep in (2, 3)]
    assert len({identity(dataset) for dataset in (one, *others)}) == 4


def test_every_seed_has_rows_and_statistics_of_its_own():
    x = np.random.default_rng(0).normal(size=(200, 3)).astype(np.float32)
    data = made(features=x)
    splits = [split_rows(data, seed, 0.5, 0.2, 0.3) for seed in range(3)]
    for part in ("train", "validation", "test"):
        assert len({frozenset(getattr(split, part)) for split in splits}) == 3
    held = made(features=x, test=np.arange(200) >= 120)
    one, other = (split_rows(held, seed, 0.5, 0.2, 0.5) for seed in range(2))
    assert set(one.train) != set(other.train)
    assert set(one.test) != set(other.test)
    table = make_table([PartyColumns(x, Input("table", (3,)))], data.labels, splits, "standard")
    for seed, split in enumerate(splits):
        np.testing.assert_allclose(table.mean[0][seed], x[split.train].mean(0), atol=1e-6)
        np.testing.assert_allclose(table.scale[0][seed], x[split.train].std(0), rtol=1e-5)
        (read,) = rows_of(table, jnp.int32(seed), table.train[seed])
        np.testing.assert_allclose(np.asarray(read).mean(0), 0, atol=1e-6)


def test_the_range_of_a_block_is_one_number_for_all_its_pixels():
    x = np.array([[[2, 9], [4, 4]], [[3, 12], [6, 2]], [[0, 99], [0, 0]]], np.uint8)
    mean, scale = statistics(x, np.arange(2), "range")
    assert (mean.shape, scale.shape) == ((), ())
    assert (mean, scale) == (2, 10)


def test_a_code_that_no_training_row_has_is_read_as_it_is():
    """A network has a row for it, unlike a one-hot category, which reads 0."""
    x = np.array([[0.0, 1], [0, 0], [7, 1]], np.float32)
    columns = (Column("k", "code", vocabulary=9), Column("c", "category", "v"))
    mean, scale = statistics(x, np.arange(2), "standard", columns)
    np.testing.assert_array_equal((x - mean) / scale, x)


@pytest.mark.parametrize("scaling", ["standard", "minmax", "range"])
@pytest.mark.parametrize("rows", ["train", "all"])
def test_token_ids_are_never_scaled(scaling, rows):
    ids = np.random.default_rng(0).integers(0, 50, (200, 5)).astype(np.int32)
    data = made(kind="text")
    split = split_rows(data, 0, 0.5, 0.2, 0.3)
    block = PartyColumns(ids, Input("text", (5,), (50,), 0))
    table = make_table([block], data.labels, [split], scaling, rows)
    (read,) = rows_of(table, jnp.int32(0), jnp.arange(200))
    np.testing.assert_array_equal(read, ids)


def test_the_identity_is_of_all_that_reaches_a_split_or_a_network():
    one = made(20)
    others = [
        one._replace(test=np.arange(20) > 9),
        one._replace(groups=np.arange(20)),
        one._replace(columns=(Column("a"),)),
        one._replace(columns=(Column("a", "code", vocabulary=1),)),
        one._replace(kind="image"),
        one._replace(length=7),
    ]
    found = {identity(dataset) for dataset in (one, *others)}
    assert len(found) == 7
    assert identity(one) == identity(made(20)._replace(notes=("read elsewhere",)))


def few(counts, **changes):
    """A data set of so many rows of each class, in an order that mixes them."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    rows = len(labels)
    return made(rows, labels=labels.astype(np.int32), num_classes=len(counts), **changes)


@pytest.mark.parametrize("rare", [1, 2])
def test_a_class_of_too_few_rows_for_each_part_is_named(rare):
    said = (
        f"class no has {rare} row.*: train, validation and test need one each: leave the class out"
    )
    for most in (core.MANY, 10):
        with mock.patch.object(core, "MANY", most), pytest.raises(UserError, match=said) as error:
            split_rows(few([60, rare], classes=("yes", "no")), 0, 0.6, 0.2, 0.2)
        assert len(str(error.value).splitlines()) == 1


@given(
    seed=st.integers(0, 300),
    counts=st.lists(st.integers(3, 40), min_size=2, max_size=4),
    share=st.sampled_from([(0.6, 0.2, 0.2), (0.8, 0.1, 0.1), (0.5, 0.3, 0.1)]),
    grouped=st.booleans(),
    published=st.booleans(),
)
def test_each_part_has_each_class_or_one_line_says_which_it_lacks(
    seed, counts, share, grouped, published
):
    dataset = few(counts)
    rows = np.arange(len(dataset.labels))
    if grouped:
        dataset = dataset._replace(groups=(rows // 2).astype(np.int32))
    if published:
        dataset = dataset._replace(test=rows % 5 == 0)
    try:
        split = split_rows(dataset, seed, *share)
    except UserError as error:
        own = "class . has|each part needs|without rows of some class|rows of other groups are left"
        assert re.search(own, str(error)), error
        assert len(str(error).splitlines()) == 1
        return
    of_test = np.unique(dataset.labels if dataset.test is None else dataset.labels[dataset.test])
    for part, wanted in zip(
        split, (rows[: len(counts)], rows[: len(counts)], of_test), strict=True
    ):
        assert np.array_equal(np.unique(dataset.labels[part]), wanted)


def test_a_published_test_part_may_lack_a_class_but_no_other_part():
    test = np.arange(200) >= 120
    labels = (np.arange(200) % 4 == 0).astype(np.int32)
    lacks = made(labels=np.where(test, 0, labels), test=test)
    split = split_rows(lacks, 0, 0.75, 0.25, 0.5)
    assert set(labels[split.train]) == set(labels[split.validation]) == {0, 1}
    only = made(labels=np.where(test, labels, 0), test=test)
    with pytest.raises(UserError, match="class 1 has 0 rows outside the published test part"):
        split_rows(only, 0, 0.75, 0.25, 0.5)


def test_one_published_test_row_of_a_class_is_drawn_or_named():
    labels = np.zeros(200, np.int32)
    labels[:40] = labels[199] = 1
    dataset = made(labels=labels, test=np.arange(200) >= 120)
    assert 199 in split_rows(dataset, 0, 0.75, 0.25, 0.9).test
    assert len(split_rows(dataset, 0, 0.75, 0.25, 79).test) == 79
    with pytest.raises(UserError, match="class 1 has 41 rows and none of the 8 of the test part"):
        split_rows(dataset, 0, 0.75, 0.25, 0.1)


@pytest.mark.parametrize("sizes", [(20.7, 5, 5), (20, 5.5, 5), (20, 5, 1.5), (float("nan"), 5, 5)])
def test_a_count_of_rows_that_is_not_whole_is_refused(sizes):
    with pytest.raises(
        UserError, match="rows is no whole number: give a share up to 1 or a number"
    ):
        split_rows(made(), 0, *sizes)
    assert [len(part) for part in split_rows(made(), 0, 20.0, 5.0, 5)] == [20, 5, 5]
