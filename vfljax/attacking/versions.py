"""Decides what happens to stored rows that another rule of their attack made (``AttackRow.rule``).

The rows of each rule have a folder of their own. If all rows of a variant are stored under another rule, they
are left as they are unless the caller asks to renew them. If some are missing, the variant is attacked anew,
because the code of that rule is gone. The earlier rows are then kept, and marked as superseded.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vfljax import store
from vfljax.attacking.batching import Stored
from vfljax.errors import UserError
from vfljax.store.attacks import Summary
from vfljax.sweep.variants import AttackVariant

NO_COST: dict[str, Any] = {"seconds": 0.0, "compiles": 0, "views": 0}  # before an attack has run


def earlier(variant: AttackVariant, summary: Summary) -> str:
    """Returns the key of a variant's entry of another rule that is not superseded; '' if there is none.

    Args:
      variant: the attack variant.
      summary: ``attacks.json``.
    """
    others = (
        name
        for name, about in summary.items()
        if about["label"] == variant.label and name != variant.key and not about.get("superseded")
    )
    return next(others, "")


def settle(
    variant: AttackVariant,
    about: Mapping[str, Any],
    stored: Stored,
    renew: bool,
    say: Callable[[str], None],
) -> bool:
    """Decides whether a variant is attacked by its present rule.

    Args:
      variant: the attack variant.
      about: its entry of ``attacks.json`` by the present rule.
      stored: the sweep. If the variant is to be attacked, its summary gets the entry, and an entry of
        another rule is marked as superseded, or removed if it has no rows.
      renew: whether to attack the variant anew if all its rows are stored under another rule.
      say: is given a line if rows of another rule are stored.

    Returns:
      False if the variant is left as it is.
    """
    summary = stored.summary
    name = earlier(variant, summary)
    rows = 0 if not name or summary[name]["status"] == "skipped" else _rows(stored, name)
    if name and not rows:
        del summary[name]
    elif name:
        old = f"{variant.label} is stored by its rule {summary[name]['rule']}"
        now = f"this version has rule {about['rule']}"
        if not renew and is_whole(name, stored, about["shards"]):
            say(f"{old}, {now}: left as it is; `vfljax attack --renew_rules` attacks anew.")
            return False
        say(f"{old}, {now}: attacked anew; the earlier rows are kept.")
        summary[name] |= {"superseded": True, "rows": rows}
    # an earlier entry of the present rule may have been superseded
    before = {k: v for k, v in summary.get(variant.key, {}).items() if k != "superseded"}
    summary[variant.key] = {**NO_COST, **before, **about}
    store.open_variant(stored.workdir, variant.key)
    return True


def is_whole(key: str, stored: Stored, shards: int) -> bool:
    """Returns whether all planned rows of a variant are stored, with all trained shards in the plan.

    Args:
      key: of the variant in ``attacks.json``.
      stored: the sweep.
      shards: how many shards are trained.
    """
    about = stored.summary[key]
    if about["status"] == "skipped":
        return False
    return _rows(stored, key) >= about["rows"] and about["shards"] >= shards


def _rows(stored: Stored, key: str) -> int:
    return store.read_variant(stored.workdir, key).num_rows


def check_options(
    variant: AttackVariant, rows: Sequence[Mapping[str, Any]], workdir: pathlib.Path
) -> None:
    """Refuses to add to rows that were made with other options or knobs under the same name.

    Args:
      variant: the attack variant.
      rows: its stored rows.
      workdir: the folder of the sweep, for the message.

    Raises:
      UserError: if options or knobs differ.
    """
    options = store.identity_columns(variant.identity)["options"]
    for row in rows:
        knobs = {k.removeprefix("attack."): v for k, v in row.items() if k.startswith("attack.")}
        place = row["attack_configuration"]
        same = place < len(variant.knobs) and knobs == variant.knobs[place]
        if not (same and row["options"] == options):
            raise UserError(
                f"{variant.label} is stored in {workdir} with {row['options']} and {knobs}, and now asks "
                f"for {options} and {variant.knobs}: give it those, or attack in a copy of the workdir."
            )
