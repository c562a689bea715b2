"""Decides which attacks need not run because a cheaper one already reads nearly all labels.

Attacks run from cheap to dear, in the order of ``AttackRow.cost``. An attack row with k labels and a leak of
at least ``SETTLING`` settles, in its run, every dearer attack by the same attackers that knows at least k
labels. A run is here a configuration, a panel, a seed and the attackers; undefended is never settled
(``run``). The stored row of a settled job has its identity, the
label of the attack that settled it in ``settled_by``, and no figures.

Attacks dearer than ``CHEAP`` are not run on a configuration that the caller of a sweep rejects for what cheap
ones read, such as an audit. Their stored rows have ``rejected`` and no figures: they count as not tried.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Mapping
from typing import Any

from vfljax.attack_runs.jobs import ALL_LABELS, ATTACK
from vfljax.attacks.core import SOLVE, Attack
from vfljax.types import federation_of

# no leak exceeds 1, so that a run whose dearer attacks are settled is said to leak at most .005 less than if
# they had run: a verdict that this changes is a verdict at its limit
SETTLING = 0.995
CHEAP = SOLVE
"""The cost up to which attacks are run on every configuration."""


def role_of(attack: Attack) -> str:
    """Returns "oracle" for an attack that is given all labels, "diagnostic" for one that reads what no attacker
    sees, else "attack". Only the last settle others, or are settled."""
    if attack.oracle:
        return "oracle"
    return "diagnostic" if attack.diagnostic else "attack"


def settled_by(rows: Iterable[Mapping[str, Any]], jobs: Iterable[Mapping[str, Any]]) -> list[str]:
    """Returns for each job the label of the attack that settles it, "" if it is to be run.

    Of several attacks that settle a job, the cheapest is named, and of equally cheap ones the first by label.
    ALL_LABELS jobs are settled together with their attack, and UNTRAINED ones never.

    Args:
      rows: stored rows, of any attacks and in any order, with the fields configuration, federation (its name),
        seed, attackers, known, cost, what, role (``role_of``; another word for a learner), label and leak.
        Rows whose leak is None or NaN settle nothing.
      jobs: jobs, with the same fields but the last two.
    """
    able = collections.defaultdict(list)
    for row in rows:
        if row["what"] == ATTACK and row["role"] == "attack" and (row["leak"] or 0) >= SETTLING:
            able[_run_of(row)].append((row["cost"], row["label"], row["known"]))
    return [_first(sorted(able[_run_of(job)]), job) for job in jobs]


def _first(able: Iterable[tuple[int, str, int]], job: Mapping[str, Any]) -> str:
    if job["what"] not in (ATTACK, ALL_LABELS) or job["role"] != "attack":
        return ""
    settling = (
        label for cost, label, known in able if cost < job["cost"] and known <= job["known"]
    )
    return next(settling, "")


def _run_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    split = federation_of(row["federation"]).split  # malicious federations are of the same panel
    return row["configuration"], split, row["seed"], row["attackers"]
