"""A printed number and our figure for it: the record, its row in a table of text, and the table's caption."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import pandas as pd

from analysis.reproduction.agreement import MARGIN, Agreement, Status, agreement, by_chance
from analysis.reproduction.papers import Number

SIGNS = {"lower_bound": "at least ", "upper_bound": "at most ", "approx": "about "}


class Compared(NamedTuple):
    """One printed number and our figure for it."""

    number: Number
    variant: str = ""
    scale: str = "full"
    point: str = ""  # our configuration's label; "" if none of the sweep matches the number
    federation: str = ""
    figure: str = ""  # what our figure is: an attack's label, if any, and a column
    ours: tuple[float, ...] = ()  # one per seed that did not diverge; () if not measured
    run: str = ""  # ``--variant`` of the command that ran it

    @property
    def agreement(self) -> Agreement | None:
        """How they agree; None if the run is smaller than published or the figure was not measured."""
        full = bool(self.ours) and self.scale == "full"
        return agreement(self.number, self.ours) if full else None

    @property
    def setting(self) -> str:
        """The number's setting as text, such as 'sigma=0.01 delta=0.05 gamma=1'."""
        return " ".join(f"{name}={value}" for name, value in self.number.setting.items())


def table(compared: Iterable[Compared]) -> pd.DataFrame:
    """Returns a frame of text: our figure, the printed number, and the verdict."""
    header = ["setting", "figure", "ours (95 %)", "published", "verdict"]
    return pd.DataFrame([row(c) for c in compared], columns=header)


def row(compared: Compared) -> list[str]:
    """Returns the cells of a comparison in ``table``."""
    number = compared.number
    variant = f" [{compared.variant}]" if compared.variant else ""
    cells = [f"{number.defense} {compared.setting}".strip() + variant, number.figure]
    if not compared.ours:
        unclear = compared.figure if not compared.point else ""
        return [*cells, unclear or "not measured", _printed(number), ""]
    digits = max(3, len(f"{number.value:g}".partition(".")[2]))
    ours = agreement(number, compared.ours)
    limits = f" ({ours.low:.{digits}f} to {ours.high:.{digits}f})" * (len(compared.ours) > 1)
    word = verdict(ours)
    if compared.scale != "full":
        word = f"{compared.scale} run: no verdict"
    elif ours.status is Status.ONE_SEED:
        word = "too few seeds"
    return [*cells, f"{ours.mean:.{digits}f}{limits}", _printed(number), word]


def verdict(ours: Agreement) -> str:
    """Returns the verdict in words; ``DIFFERS`` comes with the difference and its 95 % interval."""
    words, by, half = str(ours.status), ours.difference, ours.width
    if ours.status is Status.DIFFERS:
        words += f" by {by:+.3f} ({by - half:+.3f} to {by + half:+.3f})"
    return f"{words}; with our spread for the paper's" if ours.borrowed else words


def _printed(number: Number) -> str:
    spread = "" if number.spread is None else f" ± {number.spread:g}"
    extremes = (
        "" if number.worst is None else f" ({number.worst:g} to {number.best:g} of {number.runs})"
    )
    return f"{SIGNS.get(number.kind, '')}{number.printed}{spread}{extremes}"


def caption(compared: Sequence[Compared], source: str, scale: str) -> str:
    """Returns what a table compares with, how it judges, and how many numbers have each verdict.

    Args:
      compared: the rows of the table.
      source: the paper, its table and data set.
      scale: "full", or how the run is smaller than the published setting.
    """
    if scale != "full":
        return (
            f"{source}. This run is not at the published setting ({scale}): it bears on the order of methods "
            "and is judged against no number."
        )
    count = Counter(c.agreement.status for c in compared if c.agreement is not None)
    return (
        f"{source}. Ours: mean over seeds and its 95 % interval. Equivalent: within {MARGIN:g}, or two printed "
        "units where those are larger, by two one-sided tests at 5 %. Differs: not equivalent, and Welch's "
        "test at 5 % finds a difference larger than rounding. Compatible, low power: neither. "
        f"{count[Status.EQUIVALENT]} are equivalent, {count[Status.COMPATIBLE]} compatible and "
        f"{count[Status.DIFFERS]} differ, where chance alone would make up to "
        f"{by_chance(count.elements()):.1f} differ."
    )
