"""Rows of attacks that another rule made than this version has, named as such.

``shown`` gives those rows a label of their own, "passive/rule=1", so that no figure is of two rules; ``title``
and ``notes`` describe them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from vfljax import store
from vfljax.attacks import TABLE
from vfljax.types import AttackIdentity


def _identity(entry: Mapping[str, Any]) -> AttackIdentity:
    """The identity of a row or an entry of ``attacks.json``, outdated where the rule is not this version's."""
    attack = store.identity_of(entry)
    row = TABLE.get(attack.attack)
    return attack._replace(outdated=row is not None and row.rule != attack.rule)


def shown(sweep: store.Sweep) -> store.Sweep:
    """The sweep with the rows of other rules under labels that show the rule."""
    rows = sweep.attacks.to_pylist()
    if not rows:
        return sweep
    rows = [{**row, **store.identity_columns(_identity(row))} for row in rows]
    return sweep._replace(attacks=pa.Table.from_pylist(rows, schema=sweep.attacks.schema))


def title(entry: Mapping[str, Any]) -> str:
    """'passive (rule 1; this version has rule 2)'; the label itself where the rule is this version's."""
    attack = _identity(entry)
    if entry["status"] == "skipped" or not attack.outdated:
        return entry["label"]
    now = TABLE[attack.attack].rule
    return f"{entry['label']} (rule {attack.rule}; this version has rule {now})"


def notes(summary: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """A sentence for every attack variant whose rows another rule made."""
    return [
        f"{title(entry)}: its rows are shown as {_identity(entry).label}, and are part of no other "
        "figure. `vfljax attack --renew_rules` attacks with the present rule."
        for entry in summary.values()
        if title(entry) != entry["label"]
    ]
