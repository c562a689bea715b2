"""A sweep's figures beside the ones its paper prints.

What enters: ``config.published``, typed from the paper by whoever wrote the config, and a stored
sweep. What leaves: a table, one line a figure of an arm, that says whether our mean is inside the
published spread. ``config.published`` is ``{"source": which table, "digits": decimals it prints, "rows": {arm:
{figure: numbers}}}``. A figure is ``"AUC"`` (test AUC, oriented) or an attack's label (its leak AUC).
Its numbers are (mean, spread), the spread a standard deviation over runs, or (mean, lowest, highest) of
all runs; ours are the same statistics over seeds (standard deviation with n - 1).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from vfljax import store
from vfljax.report import summary
from vfljax.report.worst import AttackOn, attack_on
from vfljax.store import Sweep
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.records import AUC, Published
from vfljax.types import SPLIT

RAW, POOLED = "AUC as trained", "AUC, released evaluation"


class Cell(NamedTuple):
    """One figure of one point; ``published`` is empty where the paper has none."""

    point: str
    figure: str
    ours: tuple[float, ...]  # over seeds, none for a figure that was not measured
    published: tuple[float, ...]
    note: str = ""

    def inside(self, digits: int) -> bool | None:
        """Whether our mean lies within the published spread or range, each printed number being
        any that rounds to it; None where one of the two is missing."""
        if not self.ours or not self.published:
            return None
        mean, half = float(np.mean(self.ours)), 0.5 * 10.0**-digits
        if len(self.published) == 2:
            middle, spread = self.published
            return bool(abs(mean - middle) <= spread + 2 * half + 1e-9)
        _, low, high = self.published
        return bool(low - half - 1e-9 <= mean <= high + half + 1e-9)


def cells(sweep: Sweep, published: Published) -> list[Cell]:
    """Every published figure of every point of its arm; with AUC also the one before orientation."""
    results = [r for r in sweep.results.to_pylist() if r["status"] == "ok"]
    attacks = [a for a in sweep.attacks.to_pylist() if a["point"] == 0]
    described = store.by_label(store.attack_summary(sweep.workdir))
    out = []
    for point in summary.points(sweep):
        trained = [r for r in results if r["point"] == point.number]
        ids = {r["setting"] for r in trained}
        split = [r for r in trained if r["federation"] == SPLIT]
        for figure, numbers in published.rows.get(point.arm, {}).items():
            if figure == AUC:
                turned = sum(r.get("inverted") == 1 for r in split)
                note = f"{turned} of {len(split)} runs learned inverted" if turned else ""
                for name, column, beside in (
                    (AUC, "test_oriented_auc", tuple(numbers)),
                    (RAW, "test_auc", ()),
                    (POOLED, "test_pooled_oriented_auc", tuple(numbers)),
                ):
                    ours = tuple(r[column] for r in split if r.get(column) is not None)
                    if ours or name != POOLED:  # only where config.training.evaluation asks for it
                        out.append(Cell(point.label, name, ours, beside, note if beside else ""))
                continue
            # papers attack the first of the federations that an attack is defined on
            first, *_ = summary.kinds_of(described.get(figure, {})) or ("",)
            key = AttackOn(figure, first)
            leaks = [a for a in attacks if attack_on(a) == key and a["setting"] in ids]
            out.append(Cell(point.label, figure, tuple(a["leak"] for a in leaks), tuple(numbers)))
    return out


def _spread(values: tuple[float, ...]) -> str:
    deviation = f" ± {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{deviation}"


def _range(values: tuple[float, ...]) -> str:
    return f"{np.mean(values):.3f} ({min(values):.3f} to {max(values):.3f})"


def _printed(numbers: tuple[float, ...], digits: int) -> str:
    words = [f"{n:.{digits}f}" for n in numbers]
    if not words:
        return ""
    return (
        f"{words[0]} ± {words[1]}" if len(words) == 2 else f"{words[0]} ({words[1]} to {words[2]})"
    )


def table(sweep: Sweep, experiment: Experiment) -> tuple[list[str], list[list[str]]]:
    """Header and rows of text; no rows for a config without ``published``."""
    header = ["setting", "figure", "ours", "published", "our mean is", "note"]
    if experiment.published is None:
        return header, []
    digits = experiment.published.digits
    words = {True: "inside", False: "OUTSIDE", None: ""}
    rows = []
    for cell in cells(sweep, experiment.published):
        by_range = len(cell.published) == 3 or cell.figure == RAW
        ours = "not measured" if not cell.ours else (_range if by_range else _spread)(cell.ours)
        printed = _printed(cell.published, digits)
        rows.append([cell.point, cell.figure, ours, printed, words[cell.inside(digits)], cell.note])
    return header, rows


def caption(sweep: Sweep, experiment: Experiment) -> str:
    """What the table compares with, and how many of its figures are inside; '' without one."""
    published = experiment.published
    if published is None:
        return ""
    verdicts = [cell.inside(published.digits) for cell in cells(sweep, published)]
    compared = [verdict for verdict in verdicts if verdict is not None]
    return (
        f"{published.source}. Ours over {experiment.seeds} seeds: mean ± standard deviation, or mean "
        f"(lowest to highest), as published; attacks: leak AUC. Inside: our mean is within the published "
        f"spread or range, rounding allowed. {sum(compared)} of {len(compared)} figures are inside."
    )
