"""What becomes of stored rows that were made by another rule than the attack has now (``AttackRow.rule``).

Rows of each rule have a folder of their own. A variant that is whole under another rule is left as it is until
it is asked to be attacked anew. One that is not whole cannot be completed, as the rule is gone: it is
attacked anew. Either way its rows are kept, and superseded.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vfljax import store
from vfljax.errors import UserError
from vfljax.store.attacks import Summary
from vfljax.sweep.attack_variants import AttackVariant

NO_COST: dict[str, Any] = {"seconds": 0.0, "compiles": 0, "views": 0}  # before it has run


def earlier(form: AttackVariant, summary: Summary) -> str:
    """The variant that is stored of a form by another rule and was not superseded, '' where none is."""
    others = (
        name
        for name, about in summary.items()
        if about["label"] == form.label and name != form.variant and not about.get("superseded")
    )
    return next(others, "")


def settle(
    form: AttackVariant,
    about: Mapping[str, Any],
    summary: Summary,
    workdir: pathlib.Path,
    renew: bool,
    say: Callable[[str], None],
) -> bool:
    """Decide whether a form is attacked by its present rule.

    Args:
      form: what is to be attacked with.
      about: its entry of ``attacks.json``, as it is now.
      summary: ``attacks.json``; where the form is to be attacked, it gets the entry, and an entry of another
        rule is marked as superseded.
      workdir: the stored sweep.
      renew: attack anew what is whole under another rule.
      say: is told a line where rows of another rule are stored.

    Returns:
      False where the form is left as it is.
    """
    name = earlier(form, summary)
    if name and (summary[name]["status"] == "skipped" or not _rows(workdir, name)):
        del summary[name]
    elif name:
        stored = f"{form.label} is stored by its rule {summary[name]['rule']}"
        now = f"this version has rule {about['rule']}"
        if not renew and is_whole(name, summary, workdir, about["shards"]):
            say(f"{stored}, {now}: left as it is; `vfljax attack --renew_rules` attacks anew.")
            return False
        say(f"{stored}, {now}: attacked anew; the earlier rows are kept.")
        summary[name]["superseded"] = True
        summary[name]["rows"] = _rows(workdir, name)
    # the present rule may be one that was attacked with, and superseded, before
    before = {k: v for k, v in summary.get(form.variant, {}).items() if k != "superseded"}
    summary[form.variant] = {**NO_COST, **before, **about}
    store.open_variant(workdir, form.variant)
    return True


def is_whole(variant: str, summary: Summary, workdir: pathlib.Path, shards: int) -> bool:
    """Whether as many rows are stored as were planned, of all ``shards`` that are trained."""
    about = summary[variant]
    if about["status"] == "skipped":
        return False
    return _rows(workdir, variant) >= about["rows"] and about["shards"] >= shards


def _rows(workdir: pathlib.Path, variant: str) -> int:
    return store.read_variant(workdir, variant).num_rows


def check_options(
    form: AttackVariant, rows: Sequence[Mapping[str, Any]], workdir: pathlib.Path
) -> None:
    """Refuse to add to rows that were made with other options or knobs under the same name."""
    options = store.identity_columns(form.identity)["options"]
    for row in rows:
        if row["what"] == "logistic":
            continue
        knobs = {k.removeprefix("attack."): v for k, v in row.items() if k.startswith("attack.")}
        place = row["attack_configuration"]
        same = place < len(form.knobs) and knobs == form.knobs[place]
        if not (same and row["options"] == options):
            raise UserError(
                f"{form.label} is stored in {workdir} with {row['options']} and {knobs}, and now asks "
                f"for {options} and {form.knobs}: give it those, or attack in a copy of the workdir."
            )
