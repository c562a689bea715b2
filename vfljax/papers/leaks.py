"""What attacks read of a sweep: the figures by which claims are weighed, as a small CSV.

A row is an attack, or the strongest of all, on a configuration and a federation, as means over seeds.
"""

from __future__ import annotations

import csv
import io
import json
import math
import pathlib
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from vfljax.errors import UserError
from vfljax.report import tables
from vfljax.report.assessed import Assessed
from vfljax.report.configurations import ConfigurationSummary

FIGURES = ("accuracy", "auc", "leak", "success", "excess")


class LeakRow(NamedTuple):
    """The figures of one attack on a configuration; NaN where there is none."""

    table: str  # the paper's table that the sweep is a run of
    configuration: str  # its label
    method: str
    defenses: tuple[str, ...]  # of its chain; () is undefended
    knobs: Mapping[str, Any]  # "kdk.epsilon" -> .45
    federation: str
    attack: str  # its label
    row: str  # of the attack in attacks.TABLE; "" for the local-only baseline
    strongest: bool  # whether it is there as the strongest of all
    accuracy: float = math.nan
    auc: float = math.nan
    leak: float = math.nan
    success: float = math.nan
    excess: float = math.nan  # leak beyond the local-only baseline


def leak_rows(table: str, assessed: Assessed) -> list[LeakRow]:
    """Returns every attack, and the strongest, on every configuration and federation.

    Args:
      table: the paper's table that the sweep is a run of.
      assessed: the sweep.
    """
    rows = []
    for c in assessed.configurations:
        for key, figures in c.attacks.items():
            row = _row(table, c, key.federation, key.label, key.attack)
            means = {name: figures[name].mean for name in ("leak", "success", "excess")}
            rows.append(row._replace(**means))
        for a in assessed.assessments:
            if a.configuration is c and a.strongest is not None:
                identity = a.strongest.attack.identity
                name = "" if identity is None else identity.attack
                row = _row(table, c, a.federation, a.strongest.name, name)
                means = {"leak": a.leak.mean, "excess": a.excess.mean}
                rows.append(row._replace(strongest=True, **means))
    return rows


def _row(table: str, c: ConfigurationSummary, federation: str, attack: str, name: str) -> LeakRow:
    accuracy, auc = (
        values[federation].mean if federation in values else math.nan
        for values in (c.accuracy, c.auc)
    )
    return LeakRow(
        table=table,
        configuration=c.label,
        method=c.method,
        defenses=c.defenses,
        knobs=c.knobs,
        federation=federation,
        attack=attack,
        row=name,
        strongest=False,
        accuracy=accuracy,
        auc=auc,
    )


def text(rows: Iterable[LeakRow]) -> str:
    """Returns the rows as CSV, figures with four decimals."""
    cells = []
    for row in rows:
        figures = (getattr(row, name) for name in FIGURES)
        facts = row._replace(
            defenses="+".join(row.defenses),
            knobs=json.dumps(dict(row.knobs)),
            strongest="1" * row.strongest,
        )
        shown = ("" if math.isnan(value) else f"{value:.4f}" for value in figures)
        cells.append([*facts[: -len(FIGURES)], *shown])
    return tables.csv_text(LeakRow._fields, cells)


def read(path: pathlib.Path) -> list[LeakRow]:
    """Returns the rows of a file that ``text`` wrote; raises UserError for another."""
    reader = csv.DictReader(io.StringIO(path.read_text()))
    if reader.fieldnames is None or tuple(reader.fieldnames) != LeakRow._fields:
        raise UserError(
            f"{path} is no table of `vfljax reproduce`: its columns must be {LeakRow._fields}."
        )
    return [_read(row) for row in reader]


def _read(row: Mapping[str, str]) -> LeakRow:
    values: dict[str, Any] = dict(row)
    values |= {name: float(row[name] or "nan") for name in FIGURES}
    values["defenses"] = tuple(name for name in row["defenses"].split("+") if name)
    values["knobs"] = json.loads(row["knobs"])
    values["strongest"] = row["strongest"] == "1"
    return LeakRow(**values)
