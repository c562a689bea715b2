"""The numbers that papers print, and how our runs compare with them.

    numbers.json        549 numbers of KDk (196), Fu et al. (24), GAFM (294) and Sun et al. (35), as printed,
                        with their settings; notes where a paper contradicts itself or leaves something out
    __init__            reads them: ``tables``, ``numbers`` and ``numbers_of``
    reproduction        finds the figures of a sweep that are compared with the numbers of a table
    agreement, coverage    verdicts on single numbers, and how all of them compare
    causes              why a number differs, and what shows it
    evidence, claims    what attacks read, and what that shows of the papers' claims
    gafm_gradients, paper_figures    GAFM's gradient in parts; figures in the papers' form
    reproduction_page   REPRODUCTION.md and a page a paper, by templates

A config names the table that it is a run of (``config.reproduces``).
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
    from vfljax.sweep.records import Reproduces

FILE = pathlib.Path(__file__).with_name("numbers.json")
PAPERS = {
    "kdk": "Arazzi et al. 2024 (KDk)",
    "fu": "Fu et al. 2022",
    "gafm": "Han and Guan 2023 (GAFM)",
    "sun": "Sun et al. 2022",
}
FIGURES = {
    "kdk": ("figure6", "figure7"),
    "gafm": ("figure2", "figure3"),
    "sun": tuple(f"figure{i}" for i in range(2, 8)),
}  # shown in the papers without numbers


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
    dataset: str = ""  # as the paper calls it; "" for a statement about several
    attack: str = ""  # "" for a utility
    split: str = ""  # "train", "test" or "": not stated
    spread: float | None = None  # a standard deviation over runs
    worst: float | None = None  # of the runs
    best: float | None = None
    runs: int | None = None
    uncertain: bool = False  # what is meant is not certain, or what setting
    incomparable: str = ""  # why no run of ours can measure it
    note: str = ""

    @property
    def figure(self) -> str:
        """What is measured: 'mean leak_auc', 'auc test'."""
        return " ".join(word for word in (self.attack, self.metric, self.split) if word)

    @property
    def half_unit(self) -> float:
        """Half of the last printed decimal: what rounding may have taken away."""
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
    """Returns the data sets of every table in the papers' order; of a figure, which prints no numbers, none."""
    out: dict[str, tuple[str, ...]] = {}
    for number in numbers():
        known = out.setdefault(number.table, ())
        if number.dataset and number.dataset not in known:
            out[number.table] = (*known, number.dataset)
    return out | {f"{paper}/{name}": () for paper, names in FIGURES.items() for name in names}


def numbers_of(table: str, dataset: str) -> tuple[Number, ...]:
    """Returns the numbers of a data set, as the paper calls it, in a table such as "gafm/2"."""
    return tuple(n for n in numbers() if n.table == table and n.dataset == dataset)


def paper_of(table: str) -> str:
    """Returns the paper that a table is of: "gafm" of "gafm/2"."""
    return table.partition("/")[0]


def check(reproduces: Reproduces | None) -> None:
    """Checks that some paper has the table, and the table the data set, that a config names.

    Raises:
      UserError: with the names that there are, if not.
    """
    if reproduces is None:
        return
    known, table = tables(), reproduces.table
    if table not in known:
        raise unknown("config.reproduces.table", table, known)
    if known[table] and reproduces.dataset not in known[table]:
        raise unknown("config.reproduces.dataset", reproduces.dataset, known[table])
