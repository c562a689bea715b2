"""Attacks that know no label, with their classes named by those who know a few.

What enters: a sweep's directory. What leaves: the sweep as a report shows it. Where known labels name the
classes of an attack better than it does itself, its figures under those names stand beside its own, as an
attack called "direct/named" that knows so many labels: a candidate of the worst case like any other. A mere
renaming of the classes thus protects nobody.

Of two classes there is nothing to add, as every figure that counts has its direction from the half of the rows
that is not scored (``metrics.leak_turned``). This grants an attacker one bit. Known rows are no substitute: an
attack that returns the labels it knows points the right way there even where it is wrong everywhere else, so
that the worst case would understate what a more careful attacker reads.
"""

from __future__ import annotations

import pathlib
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from vfljax import store
from vfljax.report import rules
from vfljax.report.knowledge_table import known_of

FIGURES = {"leak": "leak_named", "leak_select": "named_select", "leak_report": "named_report"}
OTHERS = (
    "success",
    "f1",
    "test_",
    "logistic_",
    "untrained_",
    "all_labels_",
)  # not under those names


def shown(workdir: pathlib.Path) -> store.Sweep:
    """The stored sweep as a report shows it: with renamed attacks, and with rules that have changed since
    named as such."""
    return with_named(rules.shown(store.load(workdir)))


def with_named(sweep: store.Sweep) -> store.Sweep:
    """The sweep, and the figures of attacks under other names where those are better anywhere."""
    rows = sweep.attacks.to_pylist()
    if len(sweep.header["data"]["balance"]) == 2:
        return sweep
    summary = store.attack_summary(sweep.workdir)
    renamed = {row["label"] for row in rows if _is_better(row)}
    renamed -= {row["label"] for row in rows if summary[row["variant"]]["oracle"]}
    added = [_named(row) for row in rows if row["label"] in renamed and row.get("naming")]
    if not added:
        return sweep
    tables = [sweep.attacks, pa.Table.from_pylist(added)]
    return sweep._replace(attacks=pa.concat_tables(tables, promote_options="permissive"))


def _is_better(row: Mapping[str, Any]) -> bool:
    free = bool(row.get("naming")) and not known_of(row) and bool(row.get("renamed"))
    return free and row["named_select"] > row["leak_select"]


def _named(row: Mapping[str, Any]) -> dict[str, Any]:
    kept = {k: v for k, v in row.items() if not k.startswith(OTHERS)}
    figures = {name: row[under] for name, under in FIGURES.items()}
    attack = store.identity_of(row)._replace(named=True, known=int(row["naming"]))
    head = {**store.identity_columns(attack), "attack.known": row["naming"]}
    return {**kept, **figures, **head}


def notes(sweep: store.Sweep) -> list[str]:
    """A sentence for every attack that was renamed."""
    attacks = {row["label"]: store.identity_of(row) for row in sweep.attacks.to_pylist()}
    return [
        f"{label}: {attack._replace(named=False).label} with its classes named by {attack.known} known "
        "labels, because that is better than its own names somewhere."
        for label, attack in attacks.items()
        if attack.named
    ]
