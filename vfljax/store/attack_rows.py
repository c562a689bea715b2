"""Rows of attacks: the columns that identify the attack of a row, and the entries of a sweep's attacks.

The header of a sweep has an entry for each attack variant (an attack, its options, its attackers and its rule):
whether it is an oracle, what it costs, or why it was skipped. The key of a variant is the column ``variant`` of
its rows and the name of the folder of its units. It includes the number of the attack's rule
(``attacks.core.AttackRow``), so that rows of different rules are never mixed.
"""

from __future__ import annotations

import json
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from vfljax.store.header import read_header
from vfljax.store.manifest import open_folder
from vfljax.store.units import attack_unit
from vfljax.types import AttackIdentity

Summary = dict[str, dict[str, Any]]  # entries by variant
LOCAL_ONLY_VARIANT = (
    "logistic"  # the variant of the local-only baseline, whose rows belong to no trial
)
MARKED = 1024  # rows of the data set for which it is stored whether an attack names them rightly
COSTS = (
    "seconds",
    "tracing",
    "compiling",
    "running",
    "compiles",
    "trials",
    "diverged",
    "rows",
)  # added up over the units of a variant


def numbers_of_rows(arrays: Mapping[str, Any]) -> np.ndarray:
    """Returns the number of each row of a data set [R]. Rows of several recorded runs that are one person have
    one number.

    Args:
      arrays: of the splits, ``known.split_arrays``; "rows" are the numbers, by default 0, 1, ....
    """
    return np.asarray(arrays.get("rows", np.arange(len(arrays["labels"]))))


def marked_rows(numbers: np.ndarray) -> np.ndarray:
    """Returns the rows of a data set whose marks the column ``right`` has, in the order of the marks.

    Args:
      numbers: of ``numbers_of_rows``.
    """
    rows = np.unique(numbers)
    random = np.random.default_rng(len(rows))
    return random.choice(rows, min(len(rows), MARKED), replace=False)


def identity_columns(attack: AttackIdentity) -> dict[str, Any]:
    """Returns the columns that store the identity of a row's attack; ``identity_of`` reads them back."""
    return {
        "label": attack.label,
        "attack": attack.attack,
        "options": json.dumps(dict(attack.options)),
        "shown": json.dumps(attack.label_options),
        "federation": attack.federation,
        "attackers": json.dumps(attack.attackers),
        "rule": attack.rule,
        "known": attack.known,
        "outdated": attack.outdated,
    }


def identity_of(row: Mapping[str, Any]) -> AttackIdentity:
    """Returns the identity of the attack of a stored row, or of an entry of the header."""
    options = json.loads(row["options"])
    return AttackIdentity(
        attack=row["attack"],
        options=tuple((name, _hashable(value)) for name, value in options.items()),
        label_options=tuple(json.loads(row["shown"])),
        federation=row["federation"],
        attackers=tuple(json.loads(row["attackers"])),
        rule=row["rule"],
        known=row["known"],
        outdated=row["outdated"],
    )


def _hashable(value: Any) -> Any:
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def variant_of(attack: AttackIdentity) -> str:
    """Returns the key of an attack variant: its label and rule, without slashes."""
    return f"{attack.label.replace('/', '_')}.rule{attack.rule}"


def attack_summary(workdir: pathlib.Path) -> Summary:
    """Returns the entries of a sweep's attacks by variant: identity, options, steps, or why it was skipped.

    The entry of an attack that was run also has what its finished units cost: ``seconds``, those of them spent
    on ``tracing`` and ``compiling`` programs (or waiting for them) and ``running`` them, ``compiles``, the
    attacked ``trials``, trials that ``diverged``, and ``rows``. The local-only baseline has an entry too.
    """
    header = read_header(workdir)
    summary = {key: dict(about) for key, about in header["attacks"].items()}
    for key, about in summary.items():
        if about["status"] != "skipped":
            about |= dict.fromkeys(COSTS, 0)
            units = (attack_unit(key, number) for number in range(len(header["blocks"])))
            for unit in (unit for unit in units if (workdir / unit).is_dir()):
                cost = open_folder(workdir, unit).record["cost"]
                about |= {name: about[name] + cost.get(name, 0) for name in COSTS}
    if header["local_only"]:
        points = (point for unit in header["local_only"] for point in unit["points"])
        known = sorted({count for count, _ in points})
        summary[LOCAL_ONLY_VARIANT] = {
            **identity_columns(AttackIdentity(LOCAL_ONLY_VARIANT)),
            **{"status": "ok", "steps": 0, "knobs": [{"known": count} for count in known]},
            **{"oracle": False, "labels": "", "adaptive": False, "baselines": []},
            **{"federations": [], **dict.fromkeys(COSTS, 0)},
        }
    return summary


def local_only_key(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the key by which a row finds its local-only baseline: attackers, number of known labels, seed,
    and number of draws of known labels."""
    return row["attackers"], row["known"], row["seed"], row.get("draws") or 1.0


def learner_of(row: Mapping[str, Any]) -> str:
    """Returns the name of the learner of a row of the local-only baseline."""
    identity = identity_of(row)
    if identity.attack == LOCAL_ONLY_VARIANT:
        return dict(identity.options).get("learner", LOCAL_ONLY_VARIANT)
    point = f", knobs {row['attack_configuration']}" if row["attack_configuration"] else ""
    return f"{identity._replace(attackers=(0,)).label} on an untrained bottom{point}"
