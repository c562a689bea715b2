"""Rows between training, validation and test parts: published test parts, groups, rare classes."""

import itertools
import re
from unittest import mock

import numpy as np
import pytest

from tests.datasets.core_test import made
from tests.datasets.refusals import refused
from vfljax.datasets import splits
from vfljax.datasets.splits import split_rows
from vfljax.errors import UserError

FIVES = (np.arange(200) // 5).astype(np.int32)  # groups of five rows, which differ in label


def share_no_group(groups, split):
    owners = [set(groups[part]) for part in split[:3]]
    return all(not one & other for one, other in itertools.combinations(owners, 2))


def few(counts, **changes):
    """A data set of so many rows of each class, in an order that mixes them."""
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(len(counts)), counts))
    rows = len(labels)
    return made(rows, labels=labels.astype(np.int32), num_classes=len(counts), **changes)


def test_a_published_test_part_is_where_test_rows_come_from():
    test = np.arange(200) >= 120
    split = split_rows(made(test=test), 0, 0.75, 0.25, 1.0)
    assert sorted(split.test) == list(range(120, 200))
    assert sorted([*split.train, *split.validation]) == list(range(120))
    assert len(split.train) == 90
    some = split_rows(made(test=test), 0, 60, 20, 40)
    assert [len(part) for part in some[:3]] == [60, 20, 40]
    assert test[some.test].all()
    assert not test[some.train].any()
    message = "120 training and 80 test rows"
    refused(split_rows, made(test=test), 0, 0.5, 0.2, 90, match=message)


@pytest.mark.parametrize("share", [(0.7, 0.15, 0.15), (0.6, 0.2, 0.2)])
def test_shares_of_all_rows_leave_room_for_what_groups_leave_over(share):
    for seed in range(5):
        sizes = np.random.default_rng(seed).integers(1, 9, 60)
        groups = np.repeat(np.arange(len(sizes)), sizes).astype(np.int32)
        split = split_rows(made(len(groups), groups=groups), seed, *share)
        expected = [round(part * len(groups)) for part in share[1:]]
        assert [len(split.validation), len(split.test)] == expected
        lost = 2 * (max(sizes) - 1)  # the same for every seed
        assert len(split.train) == len(groups) - sum(expected) - lost
        assert share_no_group(groups, split)


def test_many_rows_are_stratified_as_arrays_by_the_same_law():
    labels = np.sort(np.random.default_rng(3).choice(3, 997, p=[0.85, 0.1, 0.05]))
    dataset = made(997, labels=labels.astype(np.int32), num_classes=3)
    with mock.patch.object(splits, "MANY", 100):
        split, again = (split_rows(dataset, 3, 0.8, 0.1, 0.1) for _ in range(2))
    assert np.array_equal(np.sort(np.concatenate(split)), np.arange(997))
    for part, same in zip(split[:3], again):
        assert np.array_equal(part, same)
        assert not np.array_equal(labels[part], np.sort(labels[part]))
        counts = np.bincount(labels[part], minlength=3)
        assert np.abs(counts - np.bincount(labels) * len(part) / 997).max() < 2


def test_groups_differ_by_seed_and_too_few_of_them_are_refused():
    one, other = (split_rows(made(groups=FIVES), seed, 100, 30, 40) for seed in (3, 1))
    assert [len(part) for part in one[:3]] == [100, 30, 40]
    assert share_no_group(FIVES, one)
    assert set(one.test) != set(other.test)
    # stored sweeps have these rows: groups of several labels are drawn as ever
    assert one.train[:4].tolist() == [72, 44, 7, 114]
    assert one.validation[:3].tolist() == [192, 190, 194]
    assert one.test[:3].tolist() == [196, 198, 199]
    halves = made(groups=(np.arange(200) // 100).astype(np.int32))
    message = "0 rows of other groups are left for a part of 100"
    refused(split_rows, halves, 0, 100, 50, 50, match=message)


def test_groups_of_one_label_are_stratified_and_a_rare_class_is_in_every_part():
    for seed in range(10):
        random = np.random.default_rng(seed)
        of_groups = np.repeat([0, 1, 2], [40, 60, 3])  # the label of each group
        sizes = random.integers(1, 6, len(of_groups))
        groups = random.permutation(np.repeat(np.arange(len(sizes)), sizes)).astype(np.int32)
        labels = of_groups[groups].astype(np.int32)
        dataset = made(len(groups), labels=labels, groups=groups, num_classes=3)
        split, other = (split_rows(dataset, s, 0.6, 0.2, 0.2) for s in (seed, seed + 1))
        assert [len(part) for part in split] == [len(part) for part in other]
        assert share_no_group(groups, split)
        whole = np.bincount(labels) / len(labels)
        for part in split[:3]:
            found = np.bincount(labels[part], minlength=3)
            assert found.min() > 0
            # a class is off by a group of five rows, and the others' first groups take some room
            assert (np.abs(found - whole * len(part)) <= 15).all()


def test_nobody_of_the_published_test_part_is_trained_on():
    groups = np.arange(200, dtype=np.int32) // 3  # the 40th has rows on both sides of row 120
    split = split_rows(made(test=np.arange(200) >= 121, groups=groups), 0, 0.5, 0.2, 1.0)
    assert share_no_group(groups, split)
    assert len(split.test) == 79


def test_shares_that_sum_to_one_use_every_row_and_leftovers_of_a_few_rows_do_no_harm():
    for share in (0.9, 0.85):
        split = split_rows(made(75, test=np.arange(75) >= 60), 0, share, 1 - share, 1.0)
        assert len(split.train) + len(split.validation) == 60
    assert [len(part) for part in split_rows(made(200), 0, 150, 30, 19)[:3]] == [150, 30, 19]
    groups = np.arange(200, dtype=np.int32) // 2
    split = split_rows(made(groups=groups), 0, 139, 30, 30)
    assert [len(part) for part in split[:3]] == [139, 30, 30]


@pytest.mark.parametrize("rare", [1, 2])
def test_a_class_of_too_few_rows_for_each_part_is_named(rare):
    message = f"class no has {rare} rows and none of the .*: leave them out"
    for most in (splits.MANY, 10):
        with mock.patch.object(splits, "MANY", most):
            dataset = few([60, rare], classes=("yes", "no"))
            refused(split_rows, dataset, 0, 0.6, 0.2, 0.2, match=message)


@pytest.mark.parametrize("grouped", [False, True])
@pytest.mark.parametrize("published", [False, True])
@pytest.mark.parametrize("share", [(0.6, 0.2, 0.2), (0.5, 0.3, 0.1)])
def test_each_part_has_each_class_or_one_line_says_which_it_lacks(share, published, grouped):
    for seed in range(6):
        dataset = few(np.random.default_rng(seed).integers(3, 40, 3))
        rows = np.arange(len(dataset.labels))
        if grouped:
            dataset = dataset._replace(groups=(rows // 2).astype(np.int32))
        if published:
            dataset = dataset._replace(test=rows % 5 == 0)
        try:
            split = split_rows(dataset, seed, *share)
        except UserError as error:
            own = "class . has|each part needs|rows of other groups are left"
            assert re.search(own, str(error)), error
            continue
        for part in split[:2] if published else split[:3]:
            assert {*dataset.labels[part]} == {0, 1, 2}


def test_a_published_test_part_may_lack_a_class():
    test = np.arange(200) >= 120
    labels = (np.arange(200) % 4 == 0).astype(np.int32)
    split = split_rows(made(labels=np.where(test, 0, labels), test=test), 0, 0.75, 0.25, 0.5)
    assert set(labels[split.train]) == set(labels[split.validation]) == {0, 1}


def test_a_count_of_rows_that_is_not_whole_is_refused():
    for size in (20.7, float("nan")):
        refused(split_rows, made(), 0, size, 5, 5, match="rows is no whole number: give a share")
    assert [len(part) for part in split_rows(made(), 0, 20.0, 5.0, 5)[:3]] == [20, 5, 5]


def test_every_row_is_in_a_part_or_counted_among_those_left_out():
    held = np.arange(200) % 4 == 0
    for changes, shares, why in (
        ({}, (0.6, 0.2, 0.2), set()),
        ({}, (0.5, 0.2, 0.2), {"shares"}),
        ({}, (100, 20, 20), {"shares"}),
        ({"groups": FIVES}, (0.6, 0.2, 0.2), {"groups"}),
        ({"groups": FIVES}, (0.5, 0.2, 0.2), {"shares"}),
        ({"test": held}, (0.8, 0.2, 0.5), {"published"}),
        ({"test": np.arange(200) < 52, "groups": FIVES}, (0.8, 0.2, 1.0), {"groups", "tested"}),
    ):
        dataset = few([100, 100], **changes)
        split = split_rows(dataset, 0, *shares)
        left = splits.unused(dataset, split, *shares)
        assert {name for name, rows in left._asdict().items() if rows} == why
        assert sum(map(len, split[:3])) + sum(left) == 200
        assert split_rows(dataset, 1, *shares).train.shape == split.train.shape
