"""The report's figures of a method's configurations, drawn without pyplot, so that no backend is chosen."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from vfljax.errors import UserError
from vfljax.report.configurations import ConfigurationSummary, Reference, titles, varying_knobs
from vfljax.report.estimates import NO_INTERVAL, Interval
from vfljax.report.stored_rows import FEDERATIONS
from vfljax.types import AttackIdentity

COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F", "#000000"),
    *("#882255", "#44AA99", "#999933", "#332288", "#DDCC77", "#AA4499"),
)
MARKERS = "osD^vPhX<>pd8"  # one fewer than colors, so that pairs repeat late
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "figure.dpi": 110,
    "svg.hashsalt": "vfljax",
}


T = TypeVar("T")


def attempted(draw: Callable[[], T]) -> tuple[T | None, str]:
    """Returns what ``draw`` returns and "", or None and a sentence on why there is no figure.

    A report is written after hours of training, and no figure in it may cost the others. A figure without
    anything to show raises a UserError whose text is that sentence.
    """
    try:
        return draw(), ""
    except UserError as error:
        return None, str(error)
    except Exception as error:  # drawing libraries raise nearly every type
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return None, f"This figure could not be drawn ({reason})."


def numbers(every: Sequence[ConfigurationSummary]) -> dict[str, int]:
    """Returns a number for each defended method: the place of its color and marker in every figure."""
    return {m: n for n, m in enumerate(dict.fromkeys(c.method for c in every if c.defended))}


def _tick(value: Any) -> str:
    """A value of a knob, or of an option, at an axis."""
    return f"{value:g}" if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _leak(c: ConfigurationSummary, key: AttackIdentity) -> Interval:
    return c.attacks[key]["leak"] if key in c.attacks else NO_INTERVAL


def heat_maps(members: Sequence[ConfigurationSummary]) -> Figure:
    """Draws accuracy and what every attack leaks over the two knobs of a method, from its configurations."""
    knobs = varying_knobs(members)
    down, across = sorted(knobs, key=lambda knob: len({c.knobs[knob] for c in members}))
    rows, columns = (sorted({c.knobs[knob] for c in members}) for knob in (down, across))
    panels = [
        (f"accuracy, {FEDERATIONS[f]}", True, [c.accuracy.get(f, NO_INTERVAL) for c in members])
        for f in FEDERATIONS
        if f in members[0].accuracy
    ]
    for key, title in titles(members[0].attacks).items():
        panels.append((f"leak to {title}", False, [_leak(c, key) for c in members]))
    wide = min(3, len(panels))
    high = -(-len(panels) // wide)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(4.3 * wide, 2.75 * high))
        grid = figure.subplots(high, wide, squeeze=False)
        for ax in grid.ravel()[len(panels) :]:
            ax.axis("off")
        for ax, (title, utility, figures) in zip(grid.ravel(), panels, strict=False):
            values = np.full((len(rows), len(columns)), np.nan)
            for c, reached in zip(members, figures, strict=True):
                values[rows.index(c.knobs[down]), columns.index(c.knobs[across])] = reached.mean
            _heat(ax, values, utility)
            ax.set_xticks(range(len(columns)), [_tick(c) for c in columns])
            ax.set_yticks(range(len(rows)), [_tick(r) for r in rows])
            for label, knob in ((ax.set_xlabel, across), (ax.set_ylabel, down)):
                name = knob.split(".")[-1]
                label("ε" if name == "epsilon" else name)
            ax.set_title(title)
        figure.tight_layout()
    return figure


def _heat(ax: Any, values: np.ndarray, utility: bool) -> None:
    """Draws one heat map, with its values written."""
    cmap = "viridis" if utility else "magma_r"
    ax.imshow(values, cmap=cmap, vmin=0, vmax=1, aspect="auto", origin="lower")
    for (i, j), value in np.ndenumerate(values):
        dark = value < 0.55 if utility else value > 0.55
        text = "-" if math.isnan(value) else f"{value:.2f}".removeprefix("0")
        at = {"ha": "center", "va": "center", "color": "white" if dark else "black"}
        ax.text(j, i, text, fontsize=7.5, **at)
    for spine in ax.spines.values():
        spine.set_visible(False)


CURVES = 12  # most attacks in one figure: those with the highest leak anywhere in it


def _highest(members: Sequence[ConfigurationSummary], key: AttackIdentity) -> float:
    means = [_leak(c, key).mean for c in members]
    return max((mean for mean in means if not math.isnan(mean)), default=-math.inf)


def curves(members: Sequence[ConfigurationSummary], reference: Reference) -> Figure:
    """Draws accuracy and what attacks leak along the one knob of a method.

    Args:
      members: the configurations of the method.
      reference: has the scale of leaks, and chance on it.
    """
    (knob,) = varying_knobs(members)
    members = sorted(members, key=lambda c: c.knobs[knob])
    ticks = [c.knobs[knob] for c in members]
    numeric = all(map(_is_number, ticks))
    # values of an option are names, so no line joins them
    x = np.array(ticks if numeric else range(len(ticks)), float)
    names = titles(members[0].attacks)
    shown = sorted(names, key=lambda key: -_highest(members, key))[:CURVES]
    series = [
        (f"accuracy, {FEDERATIONS[f]}", [c.accuracy[f] for c in members], dashes, "black")
        for f, dashes in zip(FEDERATIONS, ("-", ":"), strict=True)
        if f in members[0].accuracy
    ]
    for number, key in enumerate(key for key in names if key in shown):
        figures = [_leak(c, key) for c in members if key in c.attacks]
        series.append((names[key], figures, "--", COLORS[number % len(COLORS)]))
    with mpl.rc_context(STYLE):
        # as high as its legend, which has a line per series
        figure = Figure(figsize=(7.6, max(4.2, 0.19 * len(series))))
        ax = figure.subplots()
        for number, (label, values, dashes, color) in enumerate(series):
            mean = np.array([v.mean for v in values])
            half = np.nan_to_num([v.half for v in values])
            marker = MARKERS[number % len(MARKERS)]
            drawn = {"marker": marker, "ms": 4, "color": color, "label": label}
            ax.plot(x[: len(mean)], mean, linestyle=dashes if numeric else "none", **drawn)
            if numeric:
                band = x[: len(mean)], mean - half, mean + half
                ax.fill_between(*band, color=color, alpha=0.1, lw=0)
        if not numeric:
            ax.set_xticks(x, [_tick(value) for value in ticks])
        elif x.min() > 0 and x.max() / x.min() > 20:
            ax.set_xscale("log")
        ax.axhline(reference.chance, color="gray", lw=0.8, ls=":")
        left_out = f": the {CURVES} strongest of {len(names)} attacks" * (len(names) > CURVES)
        ax.set(
            xlabel=knob,
            ylabel=f"accuracy, and {reference.scale} of attacks",
            ylim=(0, 1.03),
            title=members[0].method + left_out,
        )
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        figure.tight_layout()
    return figure
