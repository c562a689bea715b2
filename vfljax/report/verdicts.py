"""Verdicts on the strengths of a sweep: what enters ``judging`` of a stored sweep, and the table of it.

For every point and federation the candidates are the attacks that are no oracle and know at most as many
labels as the leading budget allows. Their figure is the leak on the half of the rows on which neither
the attack nor its direction is chosen. The attacker who stays away is the best of the parties who could
have; without labels he reaches chance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax import store
from vfljax.report import judging, summary
from vfljax.report.budgets import Budget, known_of
from vfljax.report.worst import FEDERATIONS, Run, attack_on, names_by_panel

Figures = dict[Run, dict[int, float]]  # leak by candidate and seed
Table = tuple[list[str], list[list[str]]]


class Verdict(NamedTuple):
    """What may be said of one point in one panel of the report."""

    label: str  # the point's
    federation: str  # "split" or "no_split"
    judged: judging.Judged


def verdicts(sweep: store.Sweep, points: Sequence[summary.Point]) -> list[Verdict]:
    """A verdict for every defended point and federation; none without an undefended point."""
    plain = summary.undefended(points)
    if plain is None or not sweep.attacks.num_rows:
        return []
    budget = next(iter(summary.budgets_of(sweep).values()))
    figures = _figures(sweep, budget)
    chance, rows = summary.baseline(sweep)["chance"], judged_rows(sweep)
    seeds = sorted({row["seed"] for row in sweep.results.select(["seed"]).to_pylist()})
    away = _away(budget, seeds, chance)
    names = names_by_panel(sweep.attacks.to_pylist())
    out = []
    for federation in FEDERATIONS:
        undefended = figures.get((plain.number, federation), {})
        for point in points:
            candidates = figures.get((point.number, federation), {})
            if not point.defended or not candidates or not undefended:
                continue
            judged = judging.judge(
                [names[run] for run in candidates],
                _array(candidates, seeds),
                _array(undefended, seeds),
                away,
                rows,
            )
            out.append(Verdict(point.label, federation, judged))
    return out


def judged_rows(sweep: store.Sweep) -> int:
    """m: about how many rows of the rarest class a figure is of, half of those that were recorded."""
    data = sweep.header["data"]
    share = min(data["balance"]) / sum(data["balance"])
    return max(1, int(data.get("recorded", data["train"]) * share / 2))


def _figures(sweep: store.Sweep, budget: Budget) -> dict[tuple[int, str], Figures]:
    """The candidates' figures by point and panel."""
    attacks = sweep.attacks.to_pylist()
    oracle = summary.marks(sweep, dict.fromkeys(row["attack"] for row in attacks)).oracle
    point_of = {
        row["setting"]: row["point"]
        for row in sweep.results.select(["setting", "point"]).to_pylist()
    }
    figures: dict[tuple[int, str], Figures] = {}
    for row in attacks:
        if row["attack"] in oracle or known_of(row) > budget.known:
            continue
        run = Run(attack_on(row), row["point"])
        place = point_of[row["setting"]], run.on.panel
        figures.setdefault(place, {}).setdefault(run, {})[row["seed"]] = row["leak_report"]
    return figures


def _away(budget: Budget, seeds: Sequence[int], chance: float) -> np.ndarray:
    """His figure on every seed; NaN where it is not known."""
    if not budget.known:
        return np.full(len(seeds), chance)
    by_parties = [
        np.array([_leak(rows.get(seed)) for seed in seeds]) for rows in budget.away.values()
    ]
    blank = np.full(len(seeds), np.nan)
    return max(by_parties, key=lambda leaks: float(np.nanmean(leaks)), default=blank)


def _leak(row: Mapping[str, Any] | None) -> float:
    return np.nan if row is None else row["leak_report"]


def _array(figures: Figures, seeds: Sequence[int]) -> np.ndarray:
    """[candidates, seeds], NaN where there is no figure."""
    return np.array([[by_seed.get(s, np.nan) for s in seeds] for by_seed in figures.values()])


def verdict_rows(sweep: store.Sweep, points: Sequence[summary.Point]) -> Table:
    """What may be said of every strength in every federation, and what that rests on."""
    header = [
        *("setting", "federation", "leak", "at least to at most", "strongest attack", "chosen by"),
        *("excess over staying away", "its limits", "change to undefended", "its limits"),
        "verdict",
    ]
    rows = []
    for label, federation, judged in verdicts(sweep, points):
        worst = judged.worst
        rows.append(
            [
                *(label, FEDERATIONS[federation], f"{worst.leak:.3f}", str(worst.limits)),
                *(worst.attack, f"{worst.folds} of {worst.seeds} folds"),
                *(_signed(judged.excess), str(judged.excess_limits)),
                *(_signed(judged.change), str(judged.change_limits)),
                judged.verdict,
            ]
        )
    return header, rows


def _signed(value: float) -> str:
    return "-" if np.isnan(value) else f"{value:+.3f}"
