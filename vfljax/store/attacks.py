"""Rows of attacks, and what each attack is.

``attacks.json`` says what every attack form is before its first row is written: its options, whether it
is an oracle, how many rows it will have. A form's rows lie in blocks, files that are named by the rows
they hold, so that no block can take the place of another; the manifest of the form's folder names those
that are whole.

Rows are made by a numbered rule (``AttackRow.rule``); older sweeps have no number, and theirs is rule 1. A
folder holds rows of one rule. Where a form is attacked anew by another rule, its new rows lie in a folder of
their own, and the rows before are kept under a label with their rule's number ("passive/rule=1").
"""

from __future__ import annotations

import hashlib
import json
import pathlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from vfljax.store.atomic import remove
from vfljax.store.directory import open_unit, read_tables, write_rows
from vfljax.store.header import identity, is_sealed, read_root, write_root
from vfljax.store.lock import holding
from vfljax.store.manifest import MANIFEST, Damaged, add_files, open_folder

Summary = dict[str, dict[str, Any]]


def unit_of(label: str) -> str:
    """The folder of an attack form's rows."""
    return f"attacks/{label.replace('/', '_')}"


def rule_of(entry: Mapping[str, Any]) -> int:
    """The rule that made a stored row, or the rows of an entry of ``attacks.json``."""
    return int(entry.get("rule") or 1)


def with_rule(label: str, rule: int) -> str:
    """The label of rows that another rule made than the form's present one.

    >>> with_rule("direct/most_negative", 1)
    'direct/most_negative/rule=1'
    >>> without_rule("direct/most_negative/rule=1")
    'direct/most_negative'
    """
    form, parties, who = without_rule(label).partition("/parties=")
    return f"{form}/rule={rule}{parties}{who}"


def without_rule(label: str) -> str:
    """The label of the form that rows of another rule were of."""
    return re.sub(r"/rule=\d+", "", label)


def folder_of(label: str, summary: Mapping[str, Mapping[str, Any]]) -> str:
    """What the folder of a form's rows is called: by its label, unless rows of another rule lie there."""
    return summary.get(label, {}).get("folder", label)


def attack_summary(workdir: pathlib.Path) -> Summary:
    """What ``attacks.json`` says of each attack: options, steps, seconds, or why it was skipped."""
    record = read_root(workdir, "attacks")
    if record is None:
        if is_sealed(workdir) and any(_folders(workdir)):
            raise Damaged(workdir, "attacks.json", "it is missing")
        return {}
    if is_sealed(workdir):
        if record.get("sweep") != identity(workdir):
            raise Damaged(workdir, "attacks.json", "it is another sweep's")
        return record["attacks"]
    summary = record.get("attacks", record) if "sha256" in record else record
    if not all(isinstance(about, dict) for about in summary.values()):
        raise Damaged(workdir, "attacks.json", "it is not what launch.attack writes")
    return summary


def write_attack_summary(workdir: pathlib.Path, summary: Mapping[str, Any]) -> None:
    """Replace ``attacks.json``."""
    content = {"sweep": identity(workdir), "attacks": summary}
    write_root(workdir, "attacks", content)


def _folders(workdir: pathlib.Path) -> Iterable[pathlib.Path]:
    return (p for p in sorted(workdir.glob("attacks/*")) if not p.name.startswith("."))


def open_form(workdir: pathlib.Path, label: str) -> None:
    """Make a form's folder ready for rows: it has a manifest, and no block that was never finished."""
    unit = unit_of(label)
    folder = workdir / unit
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / MANIFEST).exists():
        # of schema 3: what is there is taken over as it is
        names = [] if is_sealed(workdir) else [p.name for p in sorted(folder.glob("*.parquet"))]
        if is_sealed(workdir) and any(folder.glob("*.parquet")):
            raise Damaged(workdir, unit, f"its {MANIFEST} is missing")
        add_files(workdir, unit, identity(workdir), names)
        return
    files = open_unit(workdir, unit).files
    for path in folder.glob("*.parquet"):
        if path.name not in files:
            remove(path)


def write_block(
    workdir: pathlib.Path, label: str, name: str, identities: Sequence[Any], rows: list[dict]
) -> None:
    """Store some rows of a form, in a block named ``name`` and by the identities of its rows."""
    text = json.dumps(sorted(map(str, identities)))
    file = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.parquet"
    with holding(workdir, unit_of(label)):  # of which jobs elsewhere may write rows too
        write_rows(workdir / unit_of(label) / file, rows)
        add_files(workdir, unit_of(label), identity(workdir), [file])


def read_form(workdir: pathlib.Path, label: str) -> pa.Table:
    """Every stored row of a form, its baselines' among them. Raises Damaged."""
    unit = unit_of(label)
    folder = workdir / unit
    if not folder.is_dir() and not is_sealed(workdir):
        return pa.table({})
    if not (folder / MANIFEST).exists() and not is_sealed(workdir):
        return read_tables(sorted(folder.glob("*.parquet")))
    opened = open_folder(workdir, unit, identity(workdir))
    return read_tables([opened.file(name) for name in sorted(opened.files)])


def read_forms(workdir: pathlib.Path, summary: Summary) -> dict[str, pa.Table]:
    """The rows of every form, by its label. Raises Damaged, also for rows of a form that ``summary``
    does not know."""
    if not is_sealed(workdir) and not summary:
        labels = [path.name for path in _folders(workdir)]
    else:
        labels = [label for label, about in summary.items() if about.get("status") != "skipped"]
    units = {unit_of(folder_of(label, summary)) for label in labels}
    for path in _folders(workdir):
        unit = f"attacks/{path.name}"
        if unit not in units and any(path.glob("*.parquet")):
            if is_sealed(workdir):
                raise Damaged(workdir, unit, "attacks.json does not name it")
            labels.append(path.name)
    return {
        label: _labeled(read_form(workdir, folder_of(label, summary)), label) for label in labels
    }


def _labeled(table: pa.Table, label: str) -> pa.Table:
    """The rows of a form, under a label with their rule's number where ``label`` has one."""
    if label == without_rule(label) or not table.num_rows:
        return table
    names = [with_rule(row["attack"], rule_of(row)) for row in table.to_pylist()]
    return table.set_column(table.column_names.index("attack"), "attack", pa.array(names))


def unfinished_forms(
    names: Iterable[str], summary: Summary, tables: Mapping[str, pa.Table], shards: int
) -> list[str]:
    """Attacks that are not done, a line each: of the sweep's own ``names`` not run, interrupted, or
    run when fewer of the ``shards`` were trained. Of sweeps of schema 3 only what their files say."""
    missing = [name for name in names if not any(_is(label, name) for label in summary)]
    lines = [f"the attack {name} was not run" for name in missing]
    for label, table in tables.items():
        about = summary.get(label, {})
        if "rows" not in about or label != without_rule(label):  # of an older rule: it stays so
            continue
        if table.num_rows < about["rows"]:
            lines.append(f"the attack {label} has {table.num_rows} of {about['rows']} rows")
        elif about["shards"] < shards:
            lines.append(f"the attack {label} saw {about['shards']} of {shards} shards")
    return lines


def _is(label: str, name: str) -> bool:
    return label.split("/")[0] == name
