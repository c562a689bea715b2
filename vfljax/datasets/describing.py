"""What a data set is, as text for a person: rows, classes, balance, who owns what, a checksum."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import numpy as np

from vfljax import datasets
from vfljax.datasets import options, prepared
from vfljax.datasets.core import Dataset, PartyColumns, checksum
from vfljax.datasets.notes import columns_table

SHOWN = 40  # columns and classes listed before the rest is counted


def describe(
    dataset: Dataset, blocks: Sequence[PartyColumns], label_features: bool, networks: Sequence[str]
) -> str:
    """Every line a user needs to see that a copy is right and divided as meant. ``networks`` are the
    names of those that can read the first block."""
    rows, test = len(dataset.labels), dataset.test
    lines = [f"{dataset.name}: {rows:,} rows of kind {dataset.kind!r}"]
    if test is None:
        lines.append("published split: none; config.data's shares divide all rows")
    else:
        lines.append(f"published split: {np.sum(~test):,} training, {np.sum(test):,} test rows")
    if dataset.groups is not None:
        lines.append(f"groups: {len(np.unique(dataset.groups)):,}, each kept in one part")
    lines += ["classes:", *_classes(dataset)]
    for p, block in enumerate(blocks):
        is_label_party = label_features and p == len(blocks) - 1
        who = "label party" if is_label_party else f"passive party {p}"
        shape = " x ".join(map(str, block.input.shape))
        kind = block.input.kind + (" with codes" if _codes(block) else "")
        lines.append(f"{who}: {kind}, {shape} a row: {block.about}")
    lines.append("networks that read it: " + ", ".join(networks))
    if dataset.columns:
        lines += _few(["  " + line for line in columns_table(dataset).splitlines()])
    lines += [f"note: {note}" for note in dataset.notes]
    return "\n".join([*map(_clean, lines), f"sha256 of the values: {checksum(dataset)}"])


def origin(folder: str) -> str:
    """What a prepared folder was made by, and with which options."""
    spec = prepared.description(folder)
    by = f"the loader {spec['loader']!r} with" if spec["loader"] else "no loader, with"
    return _clean(f"prepared by {by} {options.sentence(spec['options'])}")


def _clean(line: str) -> str:
    """A line that stays one, whatever names it holds."""
    return "".join(c if c.isprintable() else "\ufffd" for c in line)


def _codes(block: PartyColumns) -> bool:
    return block.input.kind == "table" and any(block.input.vocabulary)


def _classes(dataset: Dataset) -> list[str]:
    # by those that have rows: there may be more classes than memory can count
    counts = dict(zip(*(a.tolist() for a in np.unique(dataset.labels, return_counts=True))))
    lines = []
    for c in range(min(SHOWN, dataset.num_classes)):
        name, count = dataset.classes[c] if dataset.classes else "", counts.get(c, 0)
        lines.append(f"  {c} {name}".rstrip() + f": {count:,} ({count / len(dataset.labels):.2%})")
    return _few(lines, dataset.num_classes)


def _few(lines: list[str], total: int = 0) -> list[str]:
    total = max(total, len(lines))
    return [*lines[:SHOWN], *([f"  ... and {total - SHOWN:,} more"] if total > SHOWN else [])]


def catalog() -> str:
    """Every data set with its loader's first sentence and its options."""
    lines = []
    for name, loader in datasets.TABLE.items():
        about = (inspect.getdoc(loader) or "").split("\n\n")[0].replace("\n", " ")
        lines.append(f"{name}: {about}")
        for option, default in datasets.options_of(name).items():
            needed = default is inspect.Parameter.empty
            lines.append(f"    {option}" + (" (needed)" if needed else f"={default!r}"))
    return "\n".join(lines)
