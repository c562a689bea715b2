"""Draws the training, validation and test rows of each seed."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.model_selection import train_test_split

from vfljax.datasets.core import Dataset
from vfljax.datasets.strata import noun, stratified
from vfljax.datasets.table_errors import one_line
from vfljax.errors import Field, UserError

REMEDY = ("leave them out, or give more rows", Field("data.shares", " or larger shares"))
SMALLER = "smaller groups (equal rows of a table are one, unless its option groups names a column)"
MANY = 1 << 21  # more rows than this are split by ``_stratified_arrays``


class Split(NamedTuple):
    """The row numbers of one seed's parts, which are disjoint and stratified by class."""

    train: np.ndarray  # [N]
    validation: np.ndarray  # [V]
    test: np.ndarray  # [M]
    known: np.ndarray = np.zeros(0, np.int32)  # places in train; empty: known rows are drawn


def _size(size: float, total: int) -> int:
    """Returns the number of rows of a size: a share of ``total`` (a float up to 1) or a count."""
    if not float(size).is_integer() and not _is_share(size):
        remedy = "give a share up to 1 or a number of rows"
        raise UserError(f"data: {size} rows is no whole number", remedy=remedy)
    return round(size * total) if _is_share(size) else int(size)


def _is_share(size: float) -> bool:
    return isinstance(size, float) and size <= 1


def split_rows(dataset: Dataset, seed: int, train: float, validation: float, test: float) -> Split:
    """Draws one seed's training, validation and test rows, stratified by class and disjoint. Labels that are
    numbers are stratified by their tenths (``strata``).

    If the data set has a published test part, test rows come from it and all others from the rest.
    Rows of a group stay in one part: groups are drawn whole and in random order. If each group has one label,
    as copies of a row do, classes are drawn in proportion, and otherwise without regard to class. Rows of a
    part's last group that exceed the part's size are not used. If shares ask for all rows, the training part
    is smaller by the most rows that can be lost so, which is the same for every seed.

    For a recording, seed s is run s, and all rows of the run are training rows, in their order. Nothing was
    held out: the other parts are the first row of each class, so that they are not empty.

    Args:
      dataset: its labels, groups, published test part and recording are read.
      seed: seed of the draw.
      train, validation: sizes of these parts: a share (a float up to 1) or a number of rows.
      test: likewise; if there is a published test part, a share of that.

    Returns:
      Row numbers of the three parts.

    Raises:
      UserError: for sizes that do not fit, and for a part that lacks a class; a test part may lack a class
        that the published test part lacks too.
    """
    kind, dataset = noun(dataset), stratified(dataset)
    labels, total = dataset.labels, len(dataset.labels)
    if dataset.recording is not None:
        of_runs = dataset.recording.known
        rows = np.split(np.arange(total, dtype=np.int32), len(of_runs))[seed]
        firsts = rows[np.unique(labels[rows], return_index=True)[1]]
        return Split(rows, firsts, firsts, of_runs[seed])
    if dataset.groups is not None and len(np.unique(dataset.groups)) == total:
        dataset = dataset._replace(groups=None)  # groups of one row: nothing to keep together
    rest, held = np.arange(total), None
    drawn, room = [train, validation, test], str(total)  # the parts that come from the rest
    if dataset.test is not None:
        rest, held = np.flatnonzero(~dataset.test), np.flatnonzero(dataset.test)
        if dataset.groups is not None:  # groups in the published test part are not trained on
            rest = rest[~np.isin(dataset.groups[rest], dataset.groups[held])]
        drawn, room = [train, validation], f"{len(rest)} training and {len(held)} test"
    sizes = [_size(share, len(rest)) for share in drawn]
    if all(map(_is_share, drawn)) and abs(sum(drawn) - 1) < 1e-6:
        sizes[0] = len(rest) - sum(sizes[1:]) - len(sizes[1:]) * _left(dataset, rest)
    fits = sum(sizes) <= len(rest)
    if held is not None:
        sizes.append(_size(test, len(held)))
        fits = fits and sizes[2] <= len(held)
    present = np.unique(labels)
    num_classes = len(present)
    if min(sizes) < num_classes or not fits:
        asked = f"data: train, validation, test = {train}, {validation}, {test} ask for {sizes} of "
        least = f"each part needs at least one row a class ({num_classes})"
        what = (Field("data.shares", asked), f"{room} rows")
        groups = "" if dataset.groups is None else f"; give {SMALLER}"
        raise UserError(what, remedy=f"{least} and together at most all rows{groups}")
    if held is not None:
        _, test_rows = _stratified(dataset, held, len(held) - sizes[2], sizes[2], seed)
    elif dataset.groups is not None:
        rest, test_rows = _by_group(dataset, rest, sizes[2], seed)
    else:
        rest, test_rows = _stratified(dataset, rest, total - sizes[2], sizes[2], seed)
    if dataset.groups is None:
        train_rows, validation_rows = _stratified(dataset, rest, sizes[0], sizes[1], seed)
    else:
        rest, validation_rows = _by_group(dataset, rest, sizes[1], seed)
        _check_left(rest, sizes[0])
        spare = len(rest) - sizes[0]
        left_over = spare if spare >= dataset.num_classes else 0
        train_rows, _ = _stratified(dataset, rest, sizes[0], left_over, seed)
    parts = (np.asarray(rows, np.int32) for rows in (train_rows, validation_rows, test_rows))
    return _complete(dataset, kind, present, Split(*parts))


class Unused(NamedTuple):
    """How many rows are in no part of a seed, and why; the numbers are equal for all seeds."""

    shares: int = 0  # the sizes of the parts ask for fewer rows
    groups: int = (
        0  # of a part's last group: groups stay together, and parts have one size on all seeds
    )
    tested: int = 0  # they belong to groups that are in the published test part
    published: int = 0  # of the published test part, of which the test part is a share


def unused(dataset: Dataset, split: Split, train: float, validation: float, test: float) -> Unused:
    """Returns how many rows a split leaves out, and why.

    Args:
      dataset: the data set.
      split: of any seed.
      train, validation, test: as of ``split_rows``.
    """
    if dataset.recording is not None:
        return Unused()  # all rows of a run are attacked
    held = np.zeros(len(dataset.labels), bool) if dataset.test is None else dataset.test
    tested = np.zeros_like(held)
    if dataset.groups is not None:
        tested = ~held & np.isin(dataset.groups, np.unique(dataset.groups[held]))
    drawn = [train, validation] if dataset.test is not None else [train, validation, test]
    rest = int((~held & ~tested).sum())
    left = rest - len(split.train) - len(split.validation)
    left -= len(split.test) if dataset.test is None else 0
    all_asked = all(map(_is_share, drawn)) and abs(sum(drawn) - 1) < 1e-6
    grouped = all_asked and dataset.groups is not None
    published = int(held.sum()) - len(split.test) if dataset.test is not None else 0
    return Unused(0 if grouped else left, left if grouped else 0, int(tested.sum()), published)


def _complete(dataset: Dataset, kind: str, present: np.ndarray, split: Split) -> Split:
    """Returns the split; raises UserError if a part lacks one of the ``present`` classes, which messages call
    ``kind``. A test part that is drawn from the published one needs only the classes of the latter."""
    for part, rows in zip(("training", "validation", "test"), split[:3], strict=True):
        expected = present
        if part == "test" and dataset.test is not None:
            expected = np.unique(dataset.labels[dataset.test])
        lacking = np.setdiff1d(expected, dataset.labels[rows])
        if len(lacking):
            label = int(lacking[0])
            name = one_line(dataset.classes[label]) if dataset.classes else str(label)
            of_class, of_groups, remedy = dataset.labels == label, "", REMEDY
            if dataset.groups is not None:
                of_groups = f" in {len(np.unique(dataset.groups[of_class]))} groups"
                remedy = (*REMEDY, f" or {SMALLER}")
            has = f"{of_class.sum()} rows{of_groups} and none of the {len(rows)} of the {part} part"
            least = "training, validation and test need one each"
            raise UserError(f"data: {kind} {name} has {has}: {least}", remedy=remedy)
    return split


def _left(dataset: Dataset, rows: np.ndarray) -> int:
    """Returns the most rows of its last group that a part can leave unused; 0 without groups."""
    if dataset.groups is None:
        return 0
    return int(np.unique(dataset.groups[rows], return_counts=True)[1].max(initial=1)) - 1


def _stratified(
    dataset: Dataset, rows: np.ndarray, first: int, second: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Draws two disjoint parts of ``rows`` of these sizes, in random order, classes in proportion."""
    if len(rows) > MANY:
        return _stratified_arrays(dataset.labels[rows], rows, first, second, seed)
    spare = len(rows) - first - second
    if not first or not second or 0 < spare < dataset.num_classes:  # which train_test_split refuses
        rows = np.random.default_rng([seed, len(rows)]).permutation(rows)[: first + second]
    if not first or not second:
        return rows[:first], rows[first:]
    counts = np.unique(dataset.labels[rows], return_counts=True)[1]
    if counts.min() < 2 or min(first, second) < len(counts):  # which it refuses too
        return _stratified_arrays(dataset.labels[rows], rows, first, second, seed)
    parts: list[Any] = train_test_split(
        rows, train_size=first, test_size=second, random_state=seed, stratify=dataset.labels[rows]
    )
    return parts[0], parts[1]


def _stratified_arrays(
    labels: np.ndarray, rows: np.ndarray, first: int, second: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    # scikit-learn makes a Python integer of every row: 4 GB and minutes for Criteo's 45 million rows
    rng = np.random.default_rng([seed, len(rows)])
    order = rng.permutation(len(rows))
    by_class = order[np.argsort(labels[order], kind="stable")]
    whole = np.bincount(labels)
    starts = np.cumsum(whole) - whole
    parts = []
    for size in (first, second):
        counts = _apportioned(whole, size)
        chosen = [by_class[a : a + n] for a, n in zip(starts, counts, strict=True)]
        parts.append(rows[rng.permutation(np.concatenate(chosen))])
        whole, starts = whole - counts, starts + counts
    return parts[0], parts[1]


def _apportioned(counts: np.ndarray, size: int) -> np.ndarray:
    """Divides ``size`` in proportion to ``counts``, by largest remainders; no share exceeds its count."""
    base, rest = np.divmod(counts.astype(np.int64) * size, counts.sum())
    base[np.argsort(-rest, kind="stable")[: size - base.sum()]] += 1
    return base


def _by_group(
    dataset: Dataset, rows: np.ndarray, size: int, seed: int
) -> tuple[np.ndarray, np.ndarray]:
    """Returns (the rest of ``rows``, a part of this size), no group in both. Groups come in random order. The
    rows of the last group that exceed the part are in neither: all seeds need parts of equal size."""
    assert dataset.groups is not None
    _check_left(rows, size)
    rng = np.random.default_rng([seed, len(rows)])
    groups = dataset.groups[rows]
    if label_groups(dataset) is None:
        rank = rng.permutation(int(groups.max()) + 1)[groups]
    else:
        rank = _ranks(dataset.labels[rows], groups, rng)
    queue = np.lexsort((rng.permutation(len(rows)), rank))
    part, edge = queue[:size], rank[queue[size - 1]]
    rest = queue[rank[queue] > edge]
    return rows[rest], rows[part]


def _check_left(rows: np.ndarray, size: int) -> None:
    if len(rows) < size:
        what = f"data: {len(rows)} rows of other groups are left for a part of {size}"
        raise UserError(what, remedy=f"ask for fewer rows, or give {SMALLER}")


def _ranks(labels: np.ndarray, groups: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns the rank of each row's group in a random order of groups of one label each, of which any first
    part has the classes in proportion, and at least one group of each class if it has room for them.

    Each class's groups are put in random order and spread evenly over the whole order by their rows; the
    first group of each class comes before all others.
    """
    _, first, of_row, sizes = np.unique(groups, True, True, True)
    classes, place = labels[first], np.zeros(len(first))
    for c in np.unique(classes):
        of_class = rng.permutation(np.flatnonzero(classes == c))
        ends = np.cumsum(sizes[of_class])
        place[of_class[1:]] = (ends - sizes[of_class] / 2)[1:] / ends[-1]
    rank = np.empty(len(first), np.int64)
    rank[np.lexsort((rng.permutation(len(first)), place))] = np.arange(len(first))
    return rank[of_row]


def label_groups(dataset: Dataset) -> np.ndarray | None:
    """Returns the groups [R] if all rows of each group have one label, as copies of a row have; else None.

    Whoever knows the label of one row of such a group knows those of the others.
    """
    groups, labels = dataset.groups, dataset.labels
    if groups is None:
        return None
    _, first, of_row = np.unique(groups, return_index=True, return_inverse=True)
    return groups if (labels[first][of_row] == labels).all() else None


def distinct_rows(dataset: Dataset, rows: np.ndarray) -> np.ndarray:
    """Returns the ``rows``, of each of the ``label_groups`` only one; all of them without such groups."""
    groups = label_groups(dataset)
    return rows if groups is None else rows[np.unique(groups[rows], return_index=True)[1]]
