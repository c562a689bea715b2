"""What was not attacked, or not scored, and why: a line each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from vfljax import defenses, store
from vfljax.report import summary
from vfljax.report.worst import FEDERATIONS, AttackOn, attack_on, panel, titles


def not_attacked(sweep: store.Sweep, points: Sequence[summary.Point]) -> list[str]:
    """What was not attacked, and why."""
    attacks = store.attack_summary(sweep.workdir)
    return [
        *(f"{a['label']}: {a['reason']}." for a in attacks.values() if a["status"] == "skipped"),
        *_not_known(attacks, summary.kinds_trained(sweep), points),
        *_diverged_attacks(sweep, attacks),
        *_diverged_settings(points),
        *_not_scored(sweep),
    ]


def _not_scored(sweep: store.Sweep) -> list[str]:
    """Budgets of which nobody who stays away is known."""
    budgets = summary.budgets_of(sweep)
    missing = [f"{known}" for known in sorted(budgets) if not budgets[known].scored]
    if not missing:
        return []
    return [
        f"Staying away with {' or '.join(missing)} known labels: it is no candidate of the worst case, and no "
        "excess is known, because the sweep was attacked before that was scored. `vfljax attack` adds it."
    ]


def _not_known(
    attacks: dict[str, dict[str, Any]], trained: set[str], points: Sequence[summary.Point]
) -> list[str]:
    """Defenses and federations where nobody who knows of the defense attacked."""
    out = []
    members = dict.fromkeys((p.arm, name) for p in points for name in p.defenses)
    for federation, words in FEDERATIONS.items():
        run = [
            store.identity_of(a)
            for a in attacks.values()
            if a["status"] == "ok"
            and federation in map(panel, trained.intersection(summary.kinds_of(a)))
        ]
        for arm, name in members if run else ():
            row = defenses.TABLE[name]
            if row.known_by.get(federation) and not row.known_to(federation, run):
                out.append(
                    f"{arm}, {words}: nobody who knows of {name} attacked it; in config.attacks, one "
                    f"of {row.advice(federation)}."
                )
    return out


def _diverged_attacks(sweep: store.Sweep, attacks: dict[str, dict[str, Any]]) -> list[str]:
    trained = {variant for variant, a in attacks.items() if a.get("steps")}
    successes: dict[AttackOn, list[float]] = {}
    for row in sweep.attacks.to_pylist():
        if row["variant"] in trained:
            successes.setdefault(attack_on(row), []).append(row["success"])
    names, out = titles(successes), []
    for key, values in successes.items():
        lost = sum(math.isnan(value) for value in values)
        if lost:
            out.append(
                f"{names[key]}: {lost} of its {len(values)} runs diverged and are left out, which says "
                "nothing about a defense: lower config.attacks' learning_rate or lambda_u."
            )
    return out


def _diverged_settings(points: Sequence[summary.Point]) -> list[str]:
    out = []
    for p in points:
        if p.diverged:
            out.append(f"{p.label}: {p.diverged} of {p.settings} settings diverged.")
        trained = set(map(panel, p.accuracy))  # where it is not, the findings say so
        missing = [FEDERATIONS[f] for f in _federations(points) if f in trained - p.worst.keys()]
        if missing and p.diverged < p.settings:
            out.append(f"{p.label}: no attack on it {' or '.join(missing).lower()}.")
    return out


def _federations(points: Sequence[summary.Point]) -> list[str]:
    return list(dict.fromkeys(f for p in points for f in p.worst))
