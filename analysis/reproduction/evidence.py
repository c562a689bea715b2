"""The stored evidence on papers' claims: comparisons with printed numbers, and figures of attacks.

The figures of a sweep's attacks are stored as a small CSV of ``LeakRow``. A row has the means over seeds of an
attack, or of the strongest attack, on a configuration in a federation. Differences between two figures are
paired by seed and have a 95 % t-interval.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import enum
import itertools
import json
import math
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from analysis.reproduction.comparison_csv import csv_text, read_rows
from analysis.reproduction.comparisons import Compared
from analysis.reproduction.papers import paper_of
from analysis.reproduction.seed_figures import seed_figures
from vfljax.api.forms import leak_frame
from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import SHOWN_LEVEL, limits
from vfljax.report.points import members_of, points_of
from vfljax.report.verdict_frame import LOCAL_ONLY_LEADER

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


def leak_rows(table: str, judged: Judged) -> list[LeakRow]:
    """Returns a row for every attack, and for the strongest, on every configuration and federation.

    Args:
      table: the paper's table that the sweep reproduces.
      judged: the sweep.
    """
    figures, knobs = seed_figures(judged.sweep), points_of(judged.trials)["knobs"]
    excess = leak_frame(judged).set_index(["variant", "trial", "point"])["excess"]
    excess = excess[~excess.index.duplicated()]
    attacks, utility = figures.attacks, figures.trials
    of_trial = utility.groupby(["configuration", "kind"])[["accuracy", "auc"]].mean()
    if len(attacks):
        at = pd.MultiIndex.from_frame(attacks[["variant", "trial"]].assign(point=0))
        attacks = attacks.assign(excess=excess.reindex(at).to_numpy())
    attack_of = judged.rows.drop_duplicates("label").set_index("label")["attack"]
    rows: list[LeakRow] = []
    for number, point in figures.points.iterrows():
        found: list[tuple[str, str, str, bool, dict[str, float]]] = []
        of = attacks[attacks["configuration"] == number]
        names = ["variant", "label", "attack", "kind"]
        for key, members in of.groupby(names, sort=False):
            assert isinstance(key, tuple)
            _, label, name, kind = map(str, key)
            means = members[["leak", "success", "excess"]].mean().to_dict()
            found.append((kind, label, name, False, means))
        leading = judged.leading[judged.leading["configuration"] == number]
        for verdict in leading[leading["leak"].notna()].to_dict("records"):
            leader, means = verdict["leader"], {"leak": verdict["leak"], "excess": verdict["e"]}
            name = "" if leader == LOCAL_ONLY_LEADER else str(attack_of[leader])
            found.append((verdict["panel"], leader, name, True, means))
        defenses = tuple(members_of(point["defenses"]))
        about = table, point["label"], point["method"], defenses, knobs[number]
        for kind, label, name, strongest, means in found:
            means |= of_trial.loc[number, kind].to_dict()
            rows.append(LeakRow(*about, kind, label, name, strongest, **means))
    return [each._replace(classes=judged.facts.classes) for each in rows]


def leaks_text(rows: Iterable[LeakRow]) -> str:
    """Returns the rows as CSV, figures with four decimals."""
    cells = []
    for row in rows:
        figures = {name: getattr(row, name) for name in FIGURES}
        texts = {n: "" if math.isnan(value) else f"{value:.4f}" for n, value in figures.items()}
        texts |= {"defenses": "+".join(row.defenses), "knobs": json.dumps(dict(row.knobs))}
        texts["strongest"] = "1" * row.strongest
        cells.append([*(row._asdict() | texts).values()])
    return csv_text(LeakRow._fields, cells)


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


class Difference(NamedTuple):
    """A mean over seeds with its 95 % t-interval, NaN for one seed."""

    mean: float
    lower: float
    upper: float

    @property
    def signed(self) -> str:
        """The text, such as '+0.050 (-0.010 to +0.120)'."""
        limits = "" if math.isnan(self.lower) else f" ({self.lower:+.3f} to {self.upper:+.3f})"
        return f"{self.mean:+.3f}{limits}"


def difference(a: ArrayLike, b: ArrayLike) -> Difference:
    """Returns the mean of a - b over seeds.

    Args:
      a: [seeds] figures.
      b: [seeds] figures of the same seeds.
    """
    found = limits(np.asarray(np.subtract(a, b), float), level=SHOWN_LEVEL, fewest=2)
    return Difference(*(float(value) for value in found[1:]))


def below(by: Difference, limit: float) -> Support:
    """Returns FOR if the interval is below ``limit``, AGAINST if above, OPEN if around it or missing."""
    if math.isnan(by.lower) or by.lower <= limit <= by.upper:
        return Support.OPEN
    return Support.FOR if by.upper < limit else Support.AGAINST


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
