"""Reads the 869 numbers that papers print: ``tables``, ``numbers`` and ``numbers_of``.

``numbers.json`` has those of KDk (196), Fu et al. (24), GAFM (294), Sun et al. (35) and of Li et al.'s
notebooks (320), as printed, with their settings. Notes say where a paper contradicts itself or leaves something
out. A config names the table that its sweep reproduces (``config.reproduces``).
"""

from __future__ import annotations

import functools
import json
import pathlib
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from vfljax.errors import unknown

if TYPE_CHECKING:
    from vfljax.config import Reproduces

FILE = pathlib.Path(__file__).with_name("numbers.json")
PAPERS = {
    "kdk": "Arazzi et al. 2024 (KDk)",
    "fu": "Fu et al. 2022",
    "gafm": "Han and Guan 2023 (GAFM)",
    "sun": "Sun et al. 2022",
    "li": "Li et al. 2022 (Marvell)",
}
FIGURES = {
    "kdk": ("figure6", "figure7"),
    "gafm": ("figure2", "figure3"),
    "sun": tuple(f"figure{i}" for i in range(2, 8)),
}  # figures in which the papers print no numbers


class Number(NamedTuple):
    """One printed number. Shares, AUCs and accuracies are in [0, 1]."""

    id: str
    table: str  # "gafm/2", "gafm/C.1", "kdk/text", "fu/attacks"
    defense: str
    setting: Mapping[str, Any]
    metric: str
    value: float
    kind: str  # "reported", "approx", "lower_bound", "upper_bound"
    printed: str
    dataset: str = ""  # its name in the paper; "" for a statement about several
    attack: str = ""  # "" for a utility
    split: str = ""  # "train" or "test"; "" if the paper does not state it
    spread: float | None = None  # a standard deviation over runs
    worst: float | None = None  # the worst of the runs
    best: float | None = None
    runs: int | None = None
    incomparable: str = ""  # why no run of ours can measure it; "" if one can

    @property
    def figure(self) -> str:
        """What is measured, such as 'mean leak_auc' or 'auc test'."""
        return " ".join(word for word in (self.attack, self.metric, self.split) if word)

    @property
    def half_unit(self) -> float:
        """Half a unit of the last printed digit: the most that rounding can change."""
        digits = re.match(r"-?\d*\.?(\d*)", self.printed)
        decimals = len(digits[1]) if digits else 0
        percent = self.printed.rstrip().endswith("%")
        return 0.5 * 10.0 ** -(decimals + (2 if percent else 0))


@functools.cache
def numbers() -> tuple[Number, ...]:
    """Returns every printed number, by paper, table and row."""
    records = json.loads(FILE.read_text())
    return tuple(
        Number(**{name: record[name] for name in Number._fields if name in record})
        for record in records
    )


@functools.cache
def tables() -> dict[str, tuple[str, ...]]:
    """Returns each table's data sets, in the papers' order; figures, which print no numbers, have none."""
    out: dict[str, tuple[str, ...]] = {}
    for number in numbers():
        known = out.setdefault(number.table, ())
        if number.dataset and number.dataset not in known:
            out[number.table] = (*known, number.dataset)
    return out | {f"{paper}/{name}": () for paper, names in FIGURES.items() for name in names}


def numbers_of(table: str, dataset: str) -> tuple[Number, ...]:
    """Returns the numbers of a data set in a table.

    Args:
      table: such as "gafm/2".
      dataset: its name in the paper.
    """
    return tuple(n for n in numbers() if n.table == table and n.dataset == dataset)


def paper_of(table: str) -> str:
    """Returns the paper of a table, such as "gafm" for "gafm/2"."""
    return table.partition("/")[0]


def check(reproduces: Reproduces | None) -> None:
    """Checks that the table and the data set that a config names exist.

    Raises:
      UserError: if one does not exist; the message lists the existing names.
    """
    if reproduces is None:
        return
    known, table = tables(), reproduces.table
    if table not in known:
        raise unknown("config.reproduces.table", table, known)
    if known[table] and reproduces.dataset not in known[table]:
        raise unknown("config.reproduces.dataset", reproduces.dataset, known[table])
