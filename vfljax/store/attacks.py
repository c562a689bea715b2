"""Rows of attacks, and the table of attack variants that they belong to.

``attacks.json`` describes every attack variant (an attack, its options, its attackers and its rule) before the
first row is written: whether it is an oracle, how many rows it will have, or why it was skipped. The key of a
variant is the column ``variant`` of its rows and the name of their folder. A folder holds chunks, files that
are named by a digest of the rows they hold, so that no chunk can replace another. The folder's manifest names
the complete chunks. Rows of two rules (``AttackRow.rule``) never share a folder.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import pathlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from vfljax.errors import unknown
from vfljax.store.atomic import remove, write_table
from vfljax.store.directory import read_tables, table_of
from vfljax.store.header import identity
from vfljax.store.lock import holding
from vfljax.store.manifest import MANIFEST, add_files, open_folder
from vfljax.store.sealed import Damaged, read_root, write_root
from vfljax.types import AttackIdentity

Summary = dict[str, dict[str, Any]]  # the entries of ``attacks.json``, by variant
DROPPED = ".dropped"  # this file marks a folder whose rows ``drop`` removes
LOCAL_ONLY = "logistic"  # the variant of the local-only baseline, whose rows belong to no trial
SHARES = np.logspace(-3, 0, 25)  # the shares at which curves are stored (``attacking.certainty``)


def identity_columns(attack: AttackIdentity) -> dict[str, Any]:
    """Returns the columns that store the identity of a row's attack; ``identity_of`` reads them back."""
    return {
        "label": attack.label,
        **attack._asdict(),
        "options": json.dumps(dict(attack.options)),
        "shown": json.dumps(attack.shown),
        "attackers": json.dumps(attack.attackers),
    }


def identity_of(row: Mapping[str, Any]) -> AttackIdentity:
    """Returns the identity of the attack of a stored row, or of an entry of ``attacks.json``."""
    options = json.loads(row["options"])
    fields = {name: row[name] for name in AttackIdentity._fields}
    return AttackIdentity(**fields)._replace(
        options=tuple((name, _hashable(value)) for name, value in options.items()),
        shown=tuple(json.loads(row["shown"])),
        attackers=tuple(json.loads(row["attackers"])),
    )


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def variant_of(attack: AttackIdentity) -> str:
    """Returns the key of an attack variant: its label and rule, without slashes."""
    return f"{attack.label.replace('/', '_')}.rule{attack.rule}"


def unit_of(variant: str) -> str:
    """Returns the folder of a variant's rows, relative to the folder of the sweep."""
    return f"attacks/{variant}"


def attack_summary(workdir: pathlib.Path) -> Summary:
    """Returns the entries of ``attacks.json`` by variant: identity, options, steps, seconds, or why it was
    skipped. Before the first attack there are none. Raises Damaged."""
    record = read_root(workdir, "attacks")
    if record is None:
        if any(workdir.glob("attacks/[!.]*")):
            raise Damaged(workdir, "attacks.json", "it is missing")
        return {}
    if record.get("sweep") != identity(workdir):
        raise Damaged(workdir, "attacks.json", "it is another sweep's")
    return record["attacks"]


def write_attack_summary(workdir: pathlib.Path, summary: Mapping[str, Any]) -> None:
    """Replaces ``attacks.json``.

    Args:
      workdir: the folder of the sweep.
      summary: the new entries by variant.
    """
    write_root(workdir, "attacks", {"sweep": identity(workdir), "attacks": summary})


def open_variant(workdir: pathlib.Path, variant: str) -> None:
    """Prepares a variant's folder for rows: makes a missing manifest, and removes unfinished chunks.

    Args:
      workdir: the folder of the sweep.
      variant: its key in ``attacks.json``.
    """
    unit = unit_of(variant)
    folder = workdir / unit
    if (folder / DROPPED).exists() and variant not in attack_summary(workdir):
        _discard(folder)  # ``drop`` was killed before this step
    folder.mkdir(parents=True, exist_ok=True)
    chunks = list(folder.glob("*.parquet"))
    if (folder / MANIFEST).exists():
        files = open_folder(workdir, unit).files
        for path in chunks:
            if path.name not in files:
                remove(path)
    elif chunks:
        raise Damaged(workdir, unit, f"its {MANIFEST} is missing")
    else:
        add_files(workdir, unit, [])


def drop(workdir: pathlib.Path, names: Collection[str]) -> list[str]:
    """Removes attacks and all their rows; if the process is killed, all or none. The caller holds the lock.

    Args:
      workdir: the folder of the sweep.
      names: names of attacks ("direct"), or labels of single variants ("direct/most_negative").

    Returns:
      The labels of the removed variants, including variants whose attack was skipped.

    Raises:
      UserError: if nothing is stored under a name.
    """
    summary = attack_summary(workdir)
    # the local-only baseline cannot be dropped: other attacks are compared with it
    texts = {v: (a["attack"], a["label"]) for v, a in summary.items() if v != LOCAL_ONLY}
    known = dict.fromkeys(itertools.chain(*texts.values()))
    for name in names:
        if name not in known:
            raise unknown("attack", name, known, f" No other is stored in {workdir}.")
    gone = {variant: summary.pop(variant) for variant in texts if {*texts[variant]} & {*names}}
    folders = [workdir / unit_of(variant) for variant in with_rows(gone)]
    for folder in folders:
        (folder / DROPPED).touch()
    write_attack_summary(workdir, summary)  # from here on the attacks count as removed
    for folder in folders:
        _discard(folder)
    return [about["label"] for about in gone.values()]


def _discard(folder: pathlib.Path) -> None:
    """Removes a folder of rows. It is renamed first, so that no half-removed folder has its name."""
    hidden = folder.with_name(f".{folder.name}.tmp")
    os.replace(folder, hidden)
    remove(hidden)


def write_chunk(
    workdir: pathlib.Path, variant: str, name: str, keys: Sequence[Any], rows: list[dict]
) -> None:
    """Stores some rows of a variant in a file of their own.

    Args:
      workdir: the folder of the sweep.
      variant: its key in ``attacks.json``.
      name: the first part of the file's name.
      keys: the keys of the rows; their digest is the last part of the file's name.
      rows: the rows.
    """
    text, unit = json.dumps(sorted(map(str, keys))), unit_of(variant)
    file = f"{name}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.parquet"
    with holding(workdir, unit):  # other jobs may write rows of this variant too
        write_table(workdir / unit / file, table_of(rows))
        add_files(workdir, unit, [file])


def read_variant(workdir: pathlib.Path, variant: str) -> pa.Table:
    """Returns every stored row of a variant, including the rows of its baselines.

    Args:
      workdir: the folder of the sweep.
      variant: its key in ``attacks.json``.
    """
    opened = open_folder(workdir, unit_of(variant))
    return read_tables([opened.file(name) for name in sorted(opened.files)])


def with_rows(summary: Summary) -> list[str]:
    """Returns the variants that have a folder of rows: those that were not skipped."""
    return [name for name, about in summary.items() if about["status"] != "skipped"]


def unknown_units(workdir: pathlib.Path, summary: Summary) -> list[str]:
    """Returns the folders of rows that ``attacks.json`` does not name and ``drop`` did not mark.

    Args:
      workdir: the folder of the sweep.
      summary: the entries of ``attacks.json``.
    """
    known, folders = with_rows(summary), sorted(workdir.glob("attacks/[!.]*"))
    others = [p for p in folders if p.name not in known and any(p.glob("*.parquet"))]
    return [unit_of(p.name) for p in others if not (p / DROPPED).exists()]


def local_only_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the key by which a row finds its local-only baseline: attackers, number of known labels, seed,
    and number of draws of known labels."""
    return row["attackers"], row["known"], row["seed"], row.get("draws") or 1.0


def learner_of(row: Mapping[str, Any]) -> str:
    """Returns the name of the learner of a row of the local-only baseline."""
    identity = identity_of(row)
    if identity.attack == LOCAL_ONLY:
        return dict(identity.options).get("learner", LOCAL_ONLY)
    point = f", knobs {row['attack_configuration']}" if row["attack_configuration"] else ""
    return f"{identity._replace(attackers=(0,)).label} on an untrained bottom{point}"


def learner_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the unique key of a row of the local-only baseline."""
    return *local_only_key(row), learner_of(row)
