"""A sweep's figures beside the ones its paper prints.

What enters: ``config.published``, typed from the paper by whoever wrote the config, and a stored sweep.
What leaves: a table, one line a figure of an arm, that says whether our mean is inside the published
spread. ``config.published`` is ``{"source": which table, "digits": decimals it prints, "rows": {arm:
{figure: numbers}}}``. A figure is ``"AUC"`` (test AUC, oriented) or an attack's label (its leak AUC).
Its numbers are (mean, spread), the spread a standard deviation over runs, or (mean, lowest, highest) of
all runs; ours are the same statistics over seeds (standard deviation with n - 1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from vfljax import judging
from vfljax.config import unknown
from vfljax.errors import UserError
from vfljax.store import Sweep

AUC, RAW, POOLED = "AUC", "AUC as trained", "AUC, released evaluation"
FIELDS = ("source", "digits", "rows")


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


def check(config: Mapping[str, Any], labels: Iterable[str]) -> None:
    """Refuse a ``config.published`` that names what the sweep does not have; ``labels``: its attacks'."""
    given = config["published"]
    if given == {}:
        return
    if not isinstance(given, Mapping) or set(given) != set(FIELDS):
        raise UserError(f"config.published must have exactly the fields {', '.join(FIELDS)}.")
    digits, rows = given["digits"], given["rows"]
    if not isinstance(digits, int) or isinstance(digits, bool) or not 0 <= digits <= 9:
        raise UserError(
            f"config.published.digits={digits!r} must be a whole number, for example 2."
        )
    if not isinstance(rows, Mapping):
        raise UserError(f"config.published.rows={rows!r} must be {{arm: {{figure: numbers}}}}.")
    for arm, figures in rows.items():
        if arm not in config["grid"]:
            raise unknown("arm of config.published", arm, config["grid"])
        if not isinstance(figures, Mapping):
            raise UserError(f"config.published.rows.{arm}={figures!r} must be {{figure: numbers}}.")
        for figure, numbers in figures.items():
            if figure != AUC and figure not in labels:
                raise unknown(f"figure of config.published.rows.{arm}", figure, [AUC, *labels])
            good = isinstance(numbers, (list, tuple)) and all(
                isinstance(n, (int, float)) and not isinstance(n, bool) for n in numbers
            )
            if not good or len(numbers) not in (2, 3):
                raise UserError(
                    f"config.published.rows.{arm}.{figure}={numbers!r} must be (mean, spread) or "
                    "(mean, lowest, highest)."
                )


def cells(sweep: Sweep) -> list[Cell]:
    """Every published figure of every point of its arm; with AUC also the one before orientation."""
    rows = sweep.config["published"]["rows"]
    results = [r for r in sweep.results.to_pylist() if r["status"] == "ok"]
    attacks = [a for a in sweep.attacks.to_pylist() if a["point"] == 0]
    out = []
    for point in judging.points(sweep):
        own = [r for r in results if r["point"] == point.number]
        ids = {r["setting"] for r in own}
        split = [r for r in own if r["structure"] == "split"]
        for figure, numbers in rows.get(point.arm, {}).items():
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
            leaks = [a for a in attacks if a["attack"] == figure and a["setting"] in ids]
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


def table(sweep: Sweep) -> tuple[list[str], list[list[str]]]:
    """Header and rows of text; no rows for a config without ``published``."""
    header = ["setting", "figure", "ours", "published", "our mean is", "note"]
    if not sweep.config.get("published"):
        return header, []
    digits = sweep.config["published"]["digits"]
    words = {True: "inside", False: "OUTSIDE", None: ""}
    rows = []
    for cell in cells(sweep):
        by_range = len(cell.published) == 3 or cell.figure == RAW
        ours = "not measured" if not cell.ours else (_range if by_range else _spread)(cell.ours)
        printed = _printed(cell.published, digits)
        rows.append([cell.point, cell.figure, ours, printed, words[cell.inside(digits)], cell.note])
    return header, rows


def caption(sweep: Sweep) -> str:
    """What the table compares with, and how many of its figures are inside."""
    given = sweep.config["published"]
    found = [cell.inside(given["digits"]) for cell in cells(sweep)]
    judged = [one for one in found if one is not None]
    return (
        f"{given['source']}. Ours over {sweep.config['seeds']} seeds: mean ± standard deviation, or mean "
        f"(lowest to highest), as published; attacks: leak AUC. Inside: our mean is within the published "
        f"spread or range, rounding allowed. {sum(judged)} of {len(judged)} figures are inside."
    )
