"""What the audit of the same table on the other kind of federation answers, networks beside boosted trees.

Every report of an audit leaves ``answer.json`` in the sweep's folder: the kind of federation, the table's
columns with their owners, and the answer on each panel. A report reads those in the folders beside its own.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

from vfljax import store
from vfljax.report.judged_sweep import Judged

FILE = "answer.json"
NETWORKS, TREES = "Networks", "Trees"


def write(judged: Judged, answers: Mapping[str, str]) -> None:
    """Writes the answers on an audit into its folder; nothing for other sweeps.

    Args:
      judged: the sweep.
      answers: sentences by panel.
    """
    if audit := _audit(judged):
        text = json.dumps({**audit, "answers": dict(answers)}, indent=1)
        store.write_text(judged.sweep.workdir / FILE, text + "\n")


def others(judged: Judged) -> list[tuple[str, str]]:
    """Returns the kind and the answers of audits of the same table and parties on the other kind of federation,
    in the folders beside the sweep's, each with the name of its folder.

    Args:
      judged: the sweep.
    """
    audit, out = _audit(judged), []
    if not audit:
        return []
    for path in sorted(judged.sweep.workdir.resolve().parent.glob(f"*/{FILE}")):
        found = _read(path)
        same = all(found.get(name) == audit[name] for name in ("columns", "parties"))
        if same and found["kind"] != audit["kind"]:
            text = " ".join(f"{t}: {a}" if t else a for t, a in found["answers"].items())
            out.append((found["kind"], f"{text} ({path.parent.name})"))
    return out


def _audit(judged: Judged) -> dict[str, Any]:
    """Returns the kind of an audit's federations, and what identifies its table and parties; {} for a sweep
    that is no audit of a user's table."""
    data, parties = judged.sweep.header["data"], judged.experiment.parties
    columns = [
        [of["name"], of["read_as"] == "label", of["owner"]] for of in data.get("sources", ())
    ]
    if not columns:
        return {}
    kind = TREES if data.get("trees") else NETWORKS
    return {"kind": kind, "columns": columns, "parties": [*parties.names]}


def _read(path: pathlib.Path) -> dict[str, Any]:
    """Returns what a file of answers holds; {} if another program wrote it."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    whole = isinstance(found, dict) and {"kind", "columns", "parties", "answers"} <= found.keys()
    return found if whole else {}
