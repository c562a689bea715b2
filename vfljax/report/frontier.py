"""The frontier of a sweep: the strongest attack's leak against test utility, and its axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from vfljax.report.assessed import Assessed, Assessment
from vfljax.report.configurations import ConfigurationSummary
from vfljax.report.figures import COLORS, MARKERS, STYLE, numbers
from vfljax.report.stored_rows import FEDERATIONS, grouped

KNOBS = {"epsilon": "ε", "keep_rate": "p", "alpha": "\N{GREEK SMALL LETTER ALPHA}", "scale": ""}


def short(configuration: ConfigurationSummary) -> str:
    """Returns a short label for annotations, such as 'ε.45 k3'."""
    parts = []
    for key in (key for key in configuration.knobs if key in configuration.named):
        name, value = key.split(".")[-1], configuration.knobs[key]
        text = f"{value:g}" if isinstance(value, float) else str(value)
        if not isinstance(value, str):
            text = KNOBS.get(name, name) + (text.removeprefix("0") if "." in text else text)
        parts.append(text)
    return " ".join(parts)


def frontier(assessed: Assessed) -> Figure:
    """Draws privacy against utility, with one panel per federation. Down and right is better.

    Bars are the 95 % interval of test utility over seeds, and the strongest attack's limits, if it has any. A
    ring marks the chosen operating point of each method. Configurations whose utility is far below that of the
    label party alone are left of the axis, and only their number is shown.
    """
    federations, base = assessed.federations, assessed.reference
    count = max(1, len(federations))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6 * count, 4.6))
        axes = figure.subplots(1, count, squeeze=False)
        for ax, federation in zip(axes[0], federations, strict=False):
            drawn = assessed.attacked_on(federation)
            axis = reach(assessed, federation)
            ax.set(xlim=(axis.left, axis.right), ylim=(axis.bottom, 1.02))
            _points(ax, [a for a in drawn if a.utility.count], numbers(assessed.configurations))
            chosen = [a for a in drawn if a.chosen]
            ax.scatter(
                [a.utility.mean for a in chosen],
                [a.leak.mean for a in chosen],
                s=110,
                facecolors="none",
                edgecolors="black",
                linewidths=0.9,
                zorder=4,
                label="chosen operating point" if chosen else None,
            )
            _guesses(ax, assessed, federation)
            if axis.beyond:
                at = {"transform": ax.transAxes, "fontsize": 7, "color": "gray"}
                ax.text(0.01, 0.01, f"further left: {axis.beyond}", **at)
            ax.set(
                title=FEDERATIONS[federation],
                xlabel=f"test {base.utility} of the federation  (better →)",
                ylabel=f"strongest attack, {base.scale}  (better ↓)",
            )
        pairs = [zip(*ax.get_legend_handles_labels()) for ax in axes[0]]
        shown = {label: handle for of_axes in pairs for handle, label in of_axes}
        handles, labels = list(shown.values()), list(shown)
        columns = min(3 * count, len(labels)) or 1
        figure.legend(handles, labels, loc="lower center", ncols=columns)
        figure.tight_layout(rect=(0, 0.042 * -(-len(labels) // columns) + 0.02, 1, 1))
    return figure


class Reach(NamedTuple):
    """The axes of a frontier, which fit what is drawn."""

    left: float  # a third of the gain below the label party alone, or below the guess
    right: float
    bottom: float
    beyond: int  # number of configurations left of it


def reach(assessed: Assessed, federation: str) -> Reach:
    """Returns the axes of a federation's frontier."""
    drawn = [a for a in assessed.attacked_on(federation) if a.utility.count]
    values, levels = [a.utility.mean for a in drawn], [a.leak.mean for a in drawn]
    high = max([*values, assessed.reference.guess])
    low = min(alone(assessed, federation)[0], high - 0.02)
    left = low - (high - low) / 3
    lowest = np.nanmin([*levels, assessed.local_only(federation), 1.0])
    bottom = max(0.0, lowest - 0.15 * (1.02 - lowest) - 0.01)
    beyond = sum(value < left for value in values)
    return Reach(left, high + 0.12 * (high - left), float(bottom), beyond)


def alone(assessed: Assessed, federation: str) -> tuple[float, str]:
    """Returns the utility of the label party alone, or of a guess where that is not known, and whose it is."""
    reached, guess = assessed.worth[federation].alone_mean, assessed.reference.guess
    known = not math.isnan(reached) and reached != guess
    return (reached, "label party alone") if known else (guess, "guess")


def _points(ax: Any, drawn: Sequence[Assessment], places: dict[str, int]) -> None:
    """Draws every configuration with its intervals; labels keep clear of each other and of undefended."""
    taken = [(a.utility.mean, a.leak.mean) for a in drawn if not a.configuration.defended]
    for method, members in grouped(drawn, lambda a: a.method).items():
        defended = members[0].configuration.defended
        number = places.get(method, 0)
        color = COLORS[number % len(COLORS)] if defended else "black"
        leaks = np.array([a.leak.mean for a in members])
        lower, upper = np.array([a.leak.limits for a in members], float).T
        ax.errorbar(
            [a.utility.mean for a in members],
            leaks,
            xerr=np.nan_to_num([a.utility.half for a in members]),
            yerr=np.nan_to_num([leaks - lower, upper - leaks]).clip(0),  # 0 without limits
            fmt=MARKERS[number % len(MARKERS)] if defended else "*",
            ms=5 if defended else 13,
            color=color,
            elinewidth=0.6,
            alpha=0.9,
            zorder=3 if defended else 5,
            label=method,
        )
        if defended:
            _front(ax, members, color, taken)


def _guesses(ax: Any, assessed: Assessed, federation: str) -> None:
    """Draws the lines of chance, the local-only baseline and the label party alone."""
    base, local_only = assessed.reference, assessed.local_only(federation)
    levels = [(0.01, base.chance, " chance", "gray", ":")]
    if not math.isnan(local_only):
        levels.append((0.01, local_only, " same labels, local-only", "#B00020", "--"))
    for x, level, words, color, dashes in levels:
        ax.axhline(level, color=color, lw=0.8, ls=dashes)
        at = {"transform": ax.get_yaxis_transform(), "va": "bottom", "zorder": 6}
        ax.text(x, level, words, color=color, fontsize=7, clip_on=True, **at)
    place, words = alone(assessed, federation)
    ax.axvline(place, color="gray", lw=0.8, ls=":")
    at = {"transform": ax.get_xaxis_transform(), "va": "center", "ha": "right", "rotation": 90}
    ax.text(place, 0.5, words, color="gray", fontsize=7, **at)


def _front(
    ax: Any, members: Sequence[Assessment], color: str, taken: list[tuple[float, float]]
) -> None:
    """Joins the points that no other point of the method beats in both leak and utility, and labels those
    with room, the chosen operating point first."""
    best, front = math.inf, []
    for a in sorted(members, key=lambda a: (-a.utility.mean, a.leak.mean)):
        if a.leak.mean < best - 0.01:
            best = a.leak.mean
            front.append(a)
    xy = [(a.utility.mean, a.leak.mean) for a in front]
    ax.plot(*zip(*xy, strict=True), color=color, lw=1, alpha=0.6, zorder=2)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    for a in (*(a for a in members if a.chosen), *front):
        x, y = a.utility.mean, a.leak.mean
        near = (
            abs(x - u) < 0.12 * (right - left) and abs(y - v) < 0.1 * (top - bottom)
            for u, v in taken
        )
        if x > left and not any(near):
            # beside the point, on the side that has room within the axes
            side, at = (-6, "right") if x > left + 0.35 * (right - left) else (6, "left")
            look = {"textcoords": "offset points", "fontsize": 7, "color": color}
            ax.annotate(short(a.configuration), (x, y), (side, -11), ha=at, **look)
            taken.append((x, y))
