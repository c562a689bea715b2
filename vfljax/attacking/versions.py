"""What becomes of stored rows that were made by another rule than the attack has now (``AttackRow.rule``).

Rows of two rules never stand in one folder. A form that is whole under another rule is left as it is until
it is asked to be attacked anew. One that is not whole cannot be completed, as the rule is gone: it is
attacked anew. Either way its rows are kept, under a label with their rule's number ("passive/rule=1").
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vfljax import store
from vfljax.attacking.jobs import options_text
from vfljax.errors import UserError
from vfljax.sweep.attack_variants import Form

Summary = dict[str, dict[str, Any]]


def settle(
    form: Form,
    about: Mapping[str, Any],
    summary: Summary,
    workdir: pathlib.Path,
    renew: bool,
    say: Callable[[str], None],
) -> bool:
    """Whether a form is to be attacked, into the folder that ``summary`` then names.

    ``about`` describes the form as it is now. Where its stored rows are of another rule, ``summary``
    changes, or the form is left as it is; a line says so.
    """
    label, now = form.label, about["rule"]
    store.open_form(workdir, store.folder_of(label, summary))
    rows = store.read_form(workdir, store.folder_of(label, summary)).to_pylist()
    rule = store.rule_of(rows[0]) if rows else now
    if rule == now:
        return True
    said = f"{label} is stored by its rule {rule}, this version has rule {now}: "
    if not renew and is_whole(summary.get(label), len(rows), about["shards"]):
        say(f"{said}left as it is; launch.attack --renew_rules attacks anew.")
        return False
    say(f"{said}attacked anew; the earlier rows are kept.")
    _begin_anew(summary, label, (rule, len(rows)), about)
    store.open_form(workdir, store.folder_of(label, summary))
    return True


def is_whole(entry: Mapping[str, Any] | None, rows: int, shards: int) -> bool:
    """Whether as many ``rows`` are stored as were planned, of all ``shards`` that are trained."""
    if entry is None or "rows" not in entry:
        return entry is not None  # sweeps of schema 3 described an attack once it was done
    return rows >= entry["rows"] and entry["shards"] >= shards


def _begin_anew(
    summary: Summary, label: str, stored: tuple[int, int], about: Mapping[str, Any]
) -> None:
    """Give stored rows, their rule and number, an entry of their own, and the form another folder."""
    rule, rows = stored
    folder = store.folder_of(label, summary)
    # where a kill left rows without an entry, only what they are is known
    before = summary.pop(label, {**about, "seconds": 0.0, "compiles": 0, "views": 0})
    now = store.with_rule(label, about["rule"])
    # the present rule may be one that was attacked with before
    summary[label] = summary.pop(now, {"folder": now})
    earlier = {**before, "rule": rule, "folder": folder, "rows": rows}
    summary[store.with_rule(label, rule)] = earlier


def check_options(form: Form, rows: Sequence[Mapping[str, Any]], workdir: pathlib.Path) -> None:
    """Refuse to add to rows that were made with other options or knobs under the same name."""
    options = options_text(form)
    for row in rows:
        if row["what"] == "logistic":
            continue
        knobs = {k.removeprefix("attack."): v for k, v in row.items() if k.startswith("attack.")}
        same = row["point"] < len(form.knobs) and knobs == form.knobs[row["point"]]
        if not (same and row["options"] == options):
            raise UserError(
                f"{form.label} is stored in {workdir} with {row['options']} and {knobs}, and now asks "
                f"for {options} and {form.knobs}: give it those, or attack in a copy of the workdir."
            )
