"""The stored evidence on papers' claims: comparisons with printed numbers, and figures of attacks.

The figures of a sweep's attacks are stored as a small CSV of ``LeakRow``. A row has the means over seeds of an
attack, or of the strongest attack, on a configuration in a federation. Differences between two figures are
paired by seed and have a 95 % t-interval.
"""

from __future__ import annotations

import enum
import itertools
import json
import math
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from analysis.reproduction.comparison_csv import read_rows
from vfljax.papers import paper_of
from vfljax.papers.comparisons import Compared
from vfljax.report import tables
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import ConfigurationSummary
from vfljax.report.estimates import NO_INTERVAL, Estimate, interval

SAME = ("table", "dataset", "attack", "split", "metric")  # are equal in compared numbers
FIGURES = ("accuracy", "auc", "leak", "success", "excess")


class LeakRow(NamedTuple):
    """The figures of one attack on a configuration; NaN where there is none."""

    table: str  # the paper's table that the sweep reproduces
    configuration: str  # its label
    method: str
    defenses: tuple[str, ...]  # of its chain; () is undefended
    knobs: Mapping[str, Any]  # "kdk.epsilon" -> .45
    federation: str
    attack: str  # its label
    row: str  # the attack's row in attacks.TABLE; "" for the local-only baseline
    strongest: bool  # whether the row is of the strongest attack
    accuracy: float = math.nan
    auc: float = math.nan
    leak: float = math.nan
    success: float = math.nan
    excess: float = math.nan  # leak beyond the local-only baseline
    classes: int = 2  # number of classes of the data set


def leak_rows(table: str, assessed: Assessed) -> list[LeakRow]:
    """Returns a row for every attack, and for the strongest, on every configuration and federation.

    Args:
      table: the paper's table that the sweep reproduces.
      assessed: the sweep.
    """
    rows: list[LeakRow] = []
    for c in assessed.configurations:
        about = table, c.label, c.method, c.defenses, c.knobs
        for key, figures in c.attacks.items():
            means: dict[str, Any] = {n: figures[n].mean for n in ("leak", "success", "excess")}
            means |= _utilities(c, key.federation)
            rows.append(LeakRow(*about, key.federation, key.label, key.attack, False, **means))
        for a in assessed.assessments:
            if a.configuration is c and a.strongest is not None:
                identity = a.strongest.attack.identity
                name = "" if identity is None else identity.attack
                means = {"leak": a.leak.mean, "excess": a.excess.mean}
                means |= _utilities(c, a.federation)
                rows.append(LeakRow(*about, a.federation, a.strongest.name, name, True, **means))
    classes = round(1 / assessed.reference.chance)
    return [row._replace(classes=classes) for row in rows]


def _utilities(c: ConfigurationSummary, federation: str) -> dict[str, float]:
    by_name = {"accuracy": c.accuracy, "auc": c.auc}
    return {name: x.get(federation, NO_INTERVAL).mean for name, x in by_name.items()}


def leaks_text(rows: Iterable[LeakRow]) -> str:
    """Returns the rows as CSV, figures with four decimals."""
    cells = []
    for row in rows:
        figures = {name: getattr(row, name) for name in FIGURES}
        texts = {n: "" if math.isnan(value) else f"{value:.4f}" for n, value in figures.items()}
        texts |= {"defenses": "+".join(row.defenses), "knobs": json.dumps(dict(row.knobs))}
        texts["strongest"] = "1" * row.strongest
        cells.append([*(row._asdict() | texts).values()])
    return tables.csv_text(LeakRow._fields, cells)


def read_leaks(path: pathlib.Path) -> list[LeakRow]:
    """Returns the rows of a file that ``leaks_text`` wrote; raises UserError for any other file."""

    def parsed(row: dict[str, str]) -> LeakRow:
        values: dict[str, Any] = {**row, **{name: float(row[name] or "nan") for name in FIGURES}}
        values["defenses"] = tuple(filter(None, row["defenses"].split("+")))
        values["knobs"] = json.loads(row["knobs"])
        values["strongest"] = row["strongest"] == "1"
        values["classes"] = int(row["classes"])
        return LeakRow(**values)

    return read_rows(path, LeakRow._fields, parsed)


class Support(enum.StrEnum):
    """Whether a piece of evidence supports a claim."""

    FOR = "for"
    AGAINST = "against"
    OPEN = "open"
    MEASURED = "measured"  # a figure that no paper makes a claim about


def difference(a: ArrayLike, b: ArrayLike) -> Estimate:
    """Returns the mean of a - b over seeds, with its 95 % t-interval.

    Args:
      a: [seeds] figures.
      b: [seeds] figures of the same seeds.
    """
    by_seed = interval(np.subtract(a, b))
    return Estimate(by_seed.mean, by_seed.limits)


def below(by: Estimate, limit: float) -> Support:
    """Returns FOR if the interval is below ``limit``, AGAINST if above, OPEN if around it or missing."""
    lower, upper = by.limits
    if math.isnan(lower) or lower <= limit <= upper:
        return Support.OPEN
    return Support.FOR if upper < limit else Support.AGAINST


class Evidence(NamedTuple):
    """The stored comparisons and attack figures of all runs."""

    compared: Sequence[Compared]
    leaks: Mapping[str, Sequence[LeakRow]]  # by the sweep's name

    def sweeps(self, *tables: str) -> Iterator[tuple[str, Sequence[LeakRow]]]:
        """Yields name and rows of every sweep that reproduces one of these tables, sorted by name.

        Args:
          *tables: such as "kdk/8", or "kdk" for all tables of a paper.
        """
        for name, rows in sorted(self.leaks.items()):
            if rows and {rows[0].table, paper_of(rows[0].table)} & set(tables):
                yield name, rows

    def pairs(
        self, a: Mapping[str, str], b: Mapping[str, str], same: Sequence[str] = SAME
    ) -> Iterator[tuple[Compared, Compared]]:
        """Yields pairs of comparisons without a variant, of equal scale and equally many seeds.

        Args:
          a: fields of the first number, with their values.
          b: fields of the second number.
          same: fields in which the two are equal.
        """
        first, second = (
            [c for c in self.compared if not c.variant and _fields(c, fields) == [*fields.values()]]
            for fields in (a, b)
        )
        for x, y in itertools.product(first, second):
            alike = _fields(x, same) == _fields(y, same) and x.scale == y.scale
            if alike and len(x.ours) == len(y.ours):
                yield x, y


def _fields(compared: Compared, names: Iterable[str]) -> list[Any]:
    return [getattr(compared.number, name) for name in names]
