"""Describes a data set as text for a person: rows, classes, balance, the parties' columns, a checksum."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Sequence

import numpy as np

from vfljax import datasets
from vfljax.datasets import options, prepared
from vfljax.datasets.columns import MISSING
from vfljax.datasets.core import Column, Dataset, PartyColumns, SourceColumn, checksum
from vfljax.datasets.table_errors import one_line, printable

MOST_LISTED = 40  # columns or classes that are listed; further ones are only counted


def describe(
    dataset: Dataset, blocks: Sequence[PartyColumns], label_features: bool, networks: Sequence[str]
) -> str:
    """Returns the lines that show a user whether a copy is right and divided between parties as intended.

    Args:
      dataset: of any kind.
      blocks: the columns of each party.
      label_features: whether the last block is the label party's.
      networks: the names of the networks that can read the first party's columns.
    """
    rows, test = len(dataset.labels), dataset.test
    lines = [f"{dataset.name}: {rows:,} rows of kind {dataset.kind!r}"]
    if test is None:
        lines.append("published split: none; config.data's shares divide all rows")
    else:
        lines.append(f"published split: {np.sum(~test):,} training, {np.sum(test):,} test rows")
    if dataset.groups is not None:
        lines.append(f"groups: {len(np.unique(dataset.groups)):,}, each kept in one part")
    of_numbers = dataset.num_classes == 1
    lines += [f"labels: {numbers(dataset)}"] if of_numbers else ["classes:", *_classes(dataset)]
    for p, block in enumerate(blocks):
        who = "label party" if label_features and p == len(blocks) - 1 else f"passive party {p}"
        shape = " x ".join(map(str, block.input.shape))
        coded = block.input.kind == "table" and any(block.input.vocabulary)
        kind = block.input.kind + (" with codes" if coded else "")
        lines.append(f"{who}: {kind}, {shape} a row: {block.about}")
    lines.append("networks that read it: " + ", ".join(networks))
    if dataset.columns or dataset.sources:
        lines += _few(["  " + line for line in columns_table(dataset).splitlines()])
    lines += [f"note: {note}" for note in dataset.notes]
    return "\n".join([*map(printable, lines), f"sha256 of the values: {checksum(dataset)}"])


def origin(folder: str) -> str:
    """Returns a line with the loader and the options that a prepared folder was made with."""
    spec = prepared.description(folder)
    by = f"the loader {spec['loader']!r} with" if spec["loader"] else "no loader, with"
    return printable(f"prepared by {by} {options.sentence(spec['options'])}")


def numbers(dataset: Dataset) -> str:
    """Returns the range and the quartiles of labels that are numbers."""
    low, *middle, high = np.quantile(dataset.labels, [0, 0.25, 0.5, 0.75, 1])
    quartiles = ", ".join(f"{of:g}" for of in middle)
    return f"numbers from {low:g} to {high:g}, quartiles {quartiles}"


def _classes(dataset: Dataset) -> list[str]:
    # only classes that have rows are counted: an array of num_classes counts may exceed memory
    counts = dict(zip(*(a.tolist() for a in np.unique(dataset.labels, return_counts=True))))
    lines = []
    for c in range(min(MOST_LISTED, dataset.num_classes)):
        name, count = dataset.classes[c] if dataset.classes else "", counts.get(c, 0)
        lines.append(f"  {c} {name}".rstrip() + f": {count:,} ({count / len(dataset.labels):.2%})")
    return _few(lines, dataset.num_classes)


def _few(lines: list[str], total: int = 0) -> list[str]:
    total = max(total, len(lines))
    more = total - MOST_LISTED
    return [*lines[:MOST_LISTED], *([f"  ... and {more:,} more"] if more > 0 else [])]


def columns_table(dataset: Dataset) -> str:
    """Returns an aligned table for people, a line per source column: its name, how it was read, the number
    and share of rows without a value, the categories that are kept, and what else is to be known of it."""
    rows = len(dataset.labels)
    lines = [("column", "read as", "missing", "categories", "note")]
    for column in dataset.sources or _sources(dataset):
        share = f"{column.missing:,} ({column.missing / rows:.1%})" if column.missing else ""
        kept = f"{column.categories:,}" if column.categories else ""
        pooled = f"{column.pooled:,} rare ones are (other)" if column.pooled else ""
        note = "; ".join(filter(None, [pooled, column.note]))
        lines.append((one_line(column.name), column.read_as, share, kept, one_line(note)))
    widths = [max(map(len, cells)) for cells in zip(*lines, strict=True)]
    return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in lines)


def _sources(dataset: Dataset) -> list[SourceColumn]:
    """Returns the columns as the features describe them, for a data set that is no user's table."""
    columns = dataset.columns or tuple(
        Column(f"column {j}") for j in range(dataset.features.shape[1])
    )
    found = []
    for (name, kind), group in itertools.groupby(enumerate(columns), lambda item: item[1][:2]):
        places = [j for j, _ in group]
        if kind == "number":
            missing = [int(np.isnan(dataset.features[:, j]).sum()) for j in places]
            found += [SourceColumn(name, kind, count) for count in missing]
        else:
            empty = [j for j in places if columns[j].value == MISSING]
            missing = int(dataset.features[:, empty].sum())
            found.append(
                SourceColumn(name, kind, missing, columns[places[0]].vocabulary or len(places))
            )
    return found


def catalog() -> str:
    """Returns a text with each data set, the first paragraph of its loader's docstring, and its options."""
    lines = []
    for name, loader in datasets.TABLE.items():
        about = (inspect.getdoc(loader) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"{name}: {about}")
        for option, default in datasets.options_of(name).items():
            needed = default is inspect.Parameter.empty
            lines.append(f"    {option}" + (" (needed)" if needed else f"={default!r}"))
    return "\n".join(lines)
