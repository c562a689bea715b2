"""Divides columns, pixels or words between the parties.

Passive parties come first. The label party, if it owns features, comes last. The rules:

    table    by name or glob (``columns``), or contiguous in shares (``shares``, equal by default);
             the categories of one source column go to one party
    image    contiguous columns in shares, rows in shares (``rule="rows"``), or a grid of patches
             (``rule="grid"``), counted along rows
    patches  one image a party
    text     contiguous spans of each row's words, in shares (Fu et al. 2022: halves)
"""

from __future__ import annotations

import fnmatch
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vfljax.config import Parties, as_axis
from vfljax.datasets.core import Column, Dataset, PartyColumns
from vfljax.datasets.npy import part
from vfljax.datasets.ragged import spans
from vfljax.datasets.table_errors import one_line
from vfljax.errors import Field, UserError, unknown
from vfljax.types import Input


def divide(dataset: Dataset, parties: Parties) -> tuple[PartyColumns, ...]:
    """Divides the features between parties, by the rules of this module's docstring.

    Args:
      dataset: of any kind.
      parties: who takes part, and the rule.

    Returns:
      The columns, pixels or words of each party that owns any, the label party's last.

    Raises:
      UserError: for a party without columns, columns without an owner, or a rule that this kind of data
        does not know.
    """
    shares = _shares(parties.shares, parties.owners)
    of_kind = f"{dataset.name} is of kind {dataset.kind!r}"
    if parties.rule != "contiguous" and dataset.kind != "image":
        what = f"config.parties.rule={parties.rule!r} divides images and {of_kind}"
        raise UserError(what, remedy="choose 'contiguous'")
    if parties.columns and dataset.kind != "table":
        what = f"config.parties.columns names a table's columns and {of_kind}"
        raise UserError(what, remedy="use rule and shares")
    return _DIVIDE[dataset.kind](dataset, parties, shares)


def _shares(given: Sequence[float], count: int) -> np.ndarray:
    """Returns the cumulated shares of ``count`` parties, [count + 1] from 0 to 1."""
    shares = np.asarray(given or (1.0,) * count, dtype=np.float64)
    return np.concatenate([[0.0], np.cumsum(shares) / shares.sum()])


def places(shares: np.ndarray, length: int) -> list[tuple[int, int]]:
    """Divides consecutive places between parties; equal shares are divided as by np.array_split.

    Args:
      shares: cumulated, from 0 to 1, [parties + 1].
      length: how many places there are.

    Returns:
      Each party's first place, and the first place after its part.

    >>> places(np.array([0, 1 / 2, 1]), 7)
    [(0, 4), (4, 7)]
    >>> places(np.array([0, 1 / 4, 1]), 8)
    [(0, 2), (2, 8)]
    """
    count = len(shares) - 1
    if np.allclose(np.diff(shares), 1 / count):
        sizes = [length // count + (p < length % count) for p in range(count)]
        edges = np.concatenate([[0], np.cumsum(sizes)])
    else:
        edges = np.floor(shares * length + 0.5).astype(int)
    if (np.diff(edges) < 1).any():
        party = int(np.argmax(np.diff(edges) < 1))
        raise UserError(
            f"parties: party {party} of {count} parties would own none of the data's {length} columns: choose "
            "fewer passive parties, other config.parties.shares, or label_features=False."
        )
    return [(int(a), int(b)) for a, b in itertools.pairwise(edges)]


def _table(dataset: Dataset, parties: Parties, shares: np.ndarray) -> tuple[PartyColumns, ...]:
    named = bool(dataset.columns)
    columns = dataset.columns or tuple(
        Column(f"column {j}") for j in range(dataset.features.shape[1])
    )
    sources = list(dict.fromkeys(column.name for column in columns))
    if parties.columns:
        owned = _by_name(dataset.name, sources, parties.columns, len(shares) - 1)
    else:
        owned = [sources[a:b] for a, b in places(shares, len(sources))]
    blocks = []
    for mine in owned:
        names = set(mine)
        which = [j for j, column in enumerate(columns) if column.name in names]
        block = tuple(columns[j] for j in which)
        first, last = which[0], which[-1] + 1
        run = which == list(range(first, last))
        vocabulary = tuple(column.vocabulary for column in block)
        features = part(dataset.features, slice(first, last) if run else np.array(which))
        reads = Input("table", (len(which),), vocabulary if any(vocabulary) else ())
        blocks.append(PartyColumns(features, reads, block if named else (), _few(mine)))
    return tuple(blocks)


def _few(names: Sequence[str]) -> str:
    """'a, b, c' or 'a, b, ..., z (25)'."""
    if len(names) <= 6:
        return ", ".join(names)
    return f"{names[0]}, {names[1]}, ..., {names[-1]} ({len(names)} columns)"


def _by_name(
    name: str, sources: Sequence[str], given: Sequence[Any], count: int
) -> list[list[str]]:
    """Returns each party's source columns by names and globs; '*' takes what no other party names."""
    if len(given) != count:
        raise UserError(
            f"config.parties.columns has {len(given)} entries for {count} parties that own columns: "
            "give one tuple of names or globs each, passive parties first."
        )
    patterns = [as_axis(entry) for entry in given]
    where, who = Field("parties.columns"), [f"party {p}" for p in range(count)]
    owned = owned_columns(sources, dict(zip(who, patterns, strict=True)), where)
    for party, columns in owned.items():
        if not columns:
            raise UserError((where, f" leaves {party} without columns."))
    taken = set(itertools.chain.from_iterable(owned.values()))
    unowned = [s for s in sources if s not in taken]
    if unowned:
        remedy = (
            "name them, let one party own the rest ('*'), or drop them by the data set's options"
        )
        raise UserError((where, f": no party owns {_few(unowned)}"), remedy=remedy)
    return list(owned.values())


def owned_columns(
    sources: Sequence[str], patterns: Mapping[str, Sequence[str]], where: Field
) -> dict[str, list[str]]:
    """Finds every party's source columns, by names and globs.

    Args:
      sources: all columns.
      patterns: each party's names and globs; the pattern "*" is all columns that no party names.
      where: what messages call the patterns.

    Returns:
      The columns of each party, in the order of ``sources``.

    Raises:
      UserError: for a name that is no column, a column with two owners, two parties that ask for the rest,
        and a party that is left with nothing though it has a pattern.
    """
    owner: dict[str, str] = {}
    rest = [who for who, names in patterns.items() if "*" in names]
    if len(rest) > 1:
        raise UserError((where, f": {' and '.join(rest)} both ask for the rest ('*'): one can."))
    for who, names in patterns.items():
        for pattern in names:
            if pattern == "*":
                continue
            exact = one_line(pattern)
            matching = [exact] if exact in sources else fnmatch.filter(sources, pattern)
            if not matching:
                raise unknown((f"column of {who} in ", where), pattern, sources)
            for source in matching:
                if owner.setdefault(source, who) != who:
                    claims = f"{owner[source]} and {who} ({pattern!r})"
                    what = f": column {source!r} is claimed by {claims}: each has one owner."
                    raise UserError((where, what))
    others = rest[0] if rest else ""
    owned = {who: [s for s in sources if owner.get(s, others) == who] for who in patterns}
    for who, columns in owned.items():
        if patterns[who] and not columns:
            raise UserError((where, f": nothing is left for {who}: name its columns."))
    return owned


def _image(dataset: Dataset, parties: Parties, shares: np.ndarray) -> tuple[PartyColumns, ...]:
    x = dataset.features
    height, width = x.shape[1:3]
    if parties.rule == "grid":
        cells = _grid(len(shares) - 1, height, width, parties.shares)
    elif parties.rule == "rows":
        cells = [(a, b, 0, width) for a, b in places(shares, height)]
    else:
        cells = [(0, height, a, b) for a, b in places(shares, width)]
    blocks = []
    for top, bottom, left, right in cells:
        pixels = part(x, slice(top, bottom), slice(left, right))
        about = f"rows {top}-{bottom - 1}, columns {left}-{right - 1}"
        blocks.append(PartyColumns(pixels, Input("image", pixels.shape[1:]), about=about))
    return tuple(blocks)


def _grid(
    count: int, height: int, width: int, shares: Sequence[float]
) -> list[tuple[int, int, int, int]]:
    """Returns (top, bottom, left, right) of a grid's cells, as square as ``count`` allows (6: 2 x 3)."""
    if shares:
        raise UserError("config.parties.rule='grid' has equal patches: leave shares empty.")
    down = max(d for d in range(1, int(count**0.5) + 1) if count % d == 0)
    rows = places(np.linspace(0, 1, down + 1), height)
    columns = places(np.linspace(0, 1, count // down + 1), width)
    return [(*edges, *sides) for edges in rows for sides in columns]


def _patches(dataset: Dataset, parties: Parties, shares: np.ndarray) -> tuple[PartyColumns, ...]:
    count, has = len(shares) - 1, dataset.features.shape[1]
    if has != count or parties.shares:
        what = (
            f"{dataset.name} has {has} patches a row, one a party, and {count} parties own columns"
        )
        patches, divided = Field("data.options.patches"), Field("parties.shares")
        raise UserError(what, remedy=("set ", patches, " to their number, and no ", divided))
    x, reads = dataset.features, Input("image", dataset.features.shape[2:])
    return tuple(PartyColumns(part(x, p), reads, about=f"patch {p}") for p in range(count))


def _text(dataset: Dataset, parties: Parties, shares: np.ndarray) -> tuple[PartyColumns, ...]:
    del parties
    assert dataset.tokens is not None
    size, pad, cls, sep = dataset.tokens
    parts = spans(dataset.features, np.diff(shares).tolist(), dataset.length, cls, sep, pad)
    return tuple(
        PartyColumns(
            part,
            Input("text", part.shape[1:], (size,), pad),
            about=f"words from {a:.0%} to {b:.0%} of each text, {dataset.length} tokens",
        )
        for part, a, b in zip(parts, shares[:-1], shares[1:], strict=True)
    )


_DIVIDE: dict[str, Callable[[Dataset, Parties, np.ndarray], tuple[PartyColumns, ...]]] = {
    "table": _table,
    "image": _image,
    "patches": _patches,
    "text": _text,
}
