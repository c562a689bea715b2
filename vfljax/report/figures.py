"""The report's figures, from points. Matplotlib only, no state, nothing is trained."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vfljax.report import choosing, strengths, worst
from vfljax.report.drawing import plt
from vfljax.report.summary import Point
from vfljax.report.worst import FEDERATIONS, AttackOn, titles

COLORS = (
    *("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#7F7F7F", "#000000"),
    *("#882255", "#44AA99", "#999933", "#332288", "#DDCC77", "#AA4499"),
)
MARKERS = "osD^vPhX<>*pd8"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "figure.dpi": 110,
    "svg.hashsalt": "vfljax",
}


def short(point: Point) -> str:
    """'ε.45 k3' for annotations."""
    names = {"epsilon": "ε", "keep_rate": "p", "alpha": "\N{GREEK SMALL LETTER ALPHA}", "scale": ""}
    parts = []
    for key, value in point.knobs.items():
        if key not in point.named:
            continue
        name = key.split(".")[-1]
        text = f"{value:g}" if isinstance(value, float) else str(value)
        parts.append(f"{names.get(name, name)}{text.removeprefix('0') if '.' in text else text}")
    return " ".join(parts)


def numbers(points: Sequence[Point]) -> dict[str, int]:
    """The defended arms, numbered: the place of each one's color and marker in every figure."""
    return {arm: n for n, arm in enumerate(dict.fromkeys(p.arm for p in points if p.defended))}


def frontier(
    points: Sequence[Point], base: dict[str, Any], max_cost: float = choosing.MEAN_LOSS
) -> Figure:
    """Privacy against utility, one panel a federation. Down and right is better.

    Test accuracy has its 95 % interval over seeds and the worst case its limits, if there are any. A ring
    is around each defense's strength that costs at most ``max_cost`` and leaks least
    (``strengths.choices``).
    """
    federations = [f for f in FEDERATIONS if any(f in p.worst for p in points)]
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1,
            max(1, len(federations)),
            figsize=(5.6 * max(1, len(federations)), 4.6),
            squeeze=False,
        )
        places = numbers(points)
        reached = [v.mean for p in points for v in p.accuracy.values() if v.count]
        lowest = max(0.0, min([*reached, base["majority"]]) - 0.08)
        for ax, federation in zip(axes[0], federations, strict=False):
            # annotations keep clear of each other and of the undefended star
            taken = [
                (p.accuracy[federation].mean, p.worst[federation].leak.mean)
                for p in points
                if not p.defended and federation in p.worst
            ]
            for arm in dict.fromkeys(p.arm for p in points):
                number = places.get(arm, 0)
                drawn = [p for p in points if p.arm == arm and federation in p.worst]
                drawn = [p for p in drawn if p.accuracy[federation].count]
                if not drawn:
                    continue
                x = [p.accuracy[federation] for p in drawn]
                y = [p.worst[federation].leak for p in drawn]
                low, high = zip(*(_lengths(figure) for figure in y), strict=True)
                plain = not drawn[0].defended
                ax.errorbar(
                    [v.mean for v in x],
                    [v.mean for v in y],
                    xerr=[0 if math.isnan(v.half) else v.half for v in x],
                    yerr=[low, high],
                    fmt="*" if plain else MARKERS[number % len(MARKERS)],
                    ms=13 if plain else 5,
                    color="black" if plain else COLORS[number % len(COLORS)],
                    elinewidth=0.6,
                    alpha=0.9,
                    zorder=5 if plain else 3,
                    label=arm,
                )
                if not plain:
                    _front(ax, drawn, federation, COLORS[number % len(COLORS)], taken)
            chosen = strengths.choices(points, base["majority"], max_cost)
            rings = [c.point for c in chosen if c.point and c.federation == federation]
            ax.scatter(
                [p.accuracy[federation].mean for p in rings],
                [p.worst[federation].leak.mean for p in rings],
                s=110,
                facecolors="none",
                edgecolors="black",
                linewidths=0.9,
                zorder=4,
                label="chosen strength" if rings else None,
            )
            ax.axhline(base["chance"], color="gray", lw=0.8, ls=":")
            ax.axvline(base["majority"], color="gray", lw=0.8, ls=":")
            ax.text(
                0.01,
                base["chance"],
                " chance",
                color="gray",
                va="bottom",
                fontsize=7,
                transform=ax.get_yaxis_transform(),
            )
            ax.text(
                base["majority"],
                0.99,
                " majority guess",
                color="gray",
                va="top",
                fontsize=7,
                rotation=90,
                transform=ax.get_xaxis_transform(),
            )
            ax.set(
                title=f"{FEDERATIONS[federation]}",
                xlabel="test accuracy of the federation  (better →)",
                ylabel=f"worst attack, {base['scale']}  (better ↓)",
                xlim=(lowest, 1.02),
                ylim=(0.45 if base["chance"] == 0.5 else 0, 1.05),
            )
            if not math.isnan(base["alone"]):
                ax.axhline(base["alone"], color="#B00020", lw=0.9, ls="--")
                ax.text(
                    0.3,
                    base["alone"],
                    " same labels, no federation",
                    color="#B00020",
                    va="bottom",
                    fontsize=7,
                    zorder=6,
                    transform=ax.get_yaxis_transform(),
                )
        pairs = [zip(*ax.get_legend_handles_labels()) for ax in axes[0]]
        shown = {label: handle for of_axes in pairs for handle, label in of_axes}
        handles, labels = list(shown.values()), list(shown)
        figure.legend(handles, labels, loc="lower center", ncols=min(7, len(labels)))
        figure.tight_layout(rect=(0, 0.05 * -(-len(labels) // 7) + 0.02, 1, 1))
    return figure


def _lengths(figure: worst.Figure) -> tuple[float, float]:
    """How far its limits are below and above it; 0 without limits."""
    lower, upper = (float(limit) for limit in figure.limits)
    if math.isnan(lower):
        return 0.0, 0.0
    return max(0.0, figure.mean - lower), max(0.0, upper - figure.mean)


def _front(
    ax: Any, drawn: list[Point], federation: str, color: str, taken: list[tuple[float, float]]
) -> None:
    """Join the points no other point of the arm beats in both directions; name those with room."""
    best, front = math.inf, []
    for p in sorted(
        drawn, key=lambda p: (-p.accuracy[federation].mean, p.worst[federation].leak.mean)
    ):
        if p.worst[federation].leak.mean < best - 0.01:
            best = p.worst[federation].leak.mean
            front.append(p)
    xy = [(p.accuracy[federation].mean, p.worst[federation].leak.mean) for p in front]
    ax.plot(*zip(*xy, strict=True), color=color, lw=1, alpha=0.6, zorder=2)
    for p, (x, y) in zip(front, xy, strict=True):
        if all(abs(x - a) > 0.1 or abs(y - b) > 0.06 for a, b in taken):
            ax.annotate(
                short(p),
                (x, y),
                textcoords="offset points",
                xytext=(-6, -11),
                fontsize=7,
                color=color,
                ha="right",
            )
            taken.append((x, y))


def varying_knobs(settings: Sequence[Point]) -> list[str]:
    """The knobs of an arm's points that take several values: the axes of its figures."""
    if not settings:
        return []
    return [knob for knob in settings[0].knobs if len({p.knobs[knob] for p in settings}) > 1]


def _tick(value: Any) -> str:
    """A value of a knob, or of an option, at an axis."""
    return f"{value:g}" if _is_number(value) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def heat_maps(points: Sequence[Point], arm: str) -> Figure | None:
    """Accuracy and every attack's success over the two knobs of an arm; None unless it has two."""
    settings = [p for p in points if p.arm == arm]
    axes_names = varying_knobs(settings)
    if len(axes_names) != 2:
        return None
    rows_name, columns_name = sorted(axes_names, key=lambda n: len({p.knobs[n] for p in settings}))
    rows = sorted({p.knobs[rows_name] for p in settings})
    columns = sorted({p.knobs[columns_name] for p in settings})
    panels = [
        (f"accuracy, {FEDERATIONS[f]}", "accuracy", f)
        for f in FEDERATIONS
        if f in settings[0].accuracy
    ]
    panels += [(title, "attacks", key) for key, title in titles(settings[0].attacks).items()]
    wide = min(3, len(panels))
    high = -(-len(panels) // wide)
    with plt.rc_context(STYLE):
        figure, grid = plt.subplots(high, wide, figsize=(4.3 * wide, 2.75 * high), squeeze=False)
        for ax in grid.ravel()[len(panels) :]:
            ax.axis("off")
        for ax, (title, field, name) in zip(grid.ravel(), panels, strict=False):
            values = np.full((len(rows), len(columns)), np.nan)
            for p in settings:
                place = rows.index(p.knobs[rows_name]), columns.index(p.knobs[columns_name])
                interval = getattr(p, field).get(name)
                values[place] = math.nan if interval is None else interval.mean
            cmap = "viridis" if field == "accuracy" else "magma_r"
            ax.imshow(values, cmap=cmap, vmin=0, vmax=1, aspect="auto", origin="lower")
            for (i, j), value in np.ndenumerate(values):
                dark = value < 0.55 if field == "accuracy" else value > 0.55
                text = "-" if math.isnan(value) else f"{value:.2f}".removeprefix("0")
                ax.text(
                    j,
                    i,
                    text,
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color="white" if dark else "black",
                )
            ax.set_xticks(range(len(columns)), [_tick(c) for c in columns])
            ax.set_yticks(range(len(rows)), [_tick(r) for r in rows])
            names = {"epsilon": "ε"}
            ax.set_xlabel(names.get(columns_name.split(".")[-1], columns_name.split(".")[-1]))
            ax.set_ylabel(names.get(rows_name.split(".")[-1], rows_name.split(".")[-1]))
            ax.set_title(title if field == "accuracy" else f"success of {title}")
            for spine in ax.spines.values():
                spine.set_visible(False)
        figure.tight_layout()
    return figure


CURVES = 12  # attacks in one figure, those that succeed most anywhere in it


def _highest(settings: Sequence[Point], key: AttackOn) -> float:
    means = [p.attacks[key].mean for p in settings if key in p.attacks]
    return max((mean for mean in means if not math.isnan(mean)), default=-math.inf)


def curves(points: Sequence[Point], arm: str, base: dict[str, Any]) -> Figure | None:
    """Accuracy and attack success along the one knob of an arm; None unless it has one."""
    settings = [p for p in points if p.arm == arm]
    names = varying_knobs(settings)
    if len(names) != 1:
        return None
    settings = sorted(settings, key=lambda p: p.knobs[names[0]])
    values_of = [p.knobs[names[0]] for p in settings]
    numbers = all(map(_is_number, values_of))
    # an option's values are names, with nothing between them
    x = np.array(values_of if numbers else range(len(values_of)), float)
    with plt.rc_context(STYLE):
        series = [
            (f"accuracy, {FEDERATIONS[f]}", [p.accuracy[f] for p in settings], "-", "black")
            for f in FEDERATIONS
            if f in settings[0].accuracy
        ]
        names_of = titles(settings[0].attacks)
        shown = sorted(names_of, key=lambda key: -_highest(settings, key))[:CURVES]
        for number, key in enumerate(key for key in names_of if key in shown):
            title = names_of[key]
            series.append(
                (
                    title,
                    [p.attacks[key] for p in settings if key in p.attacks],
                    "--",
                    COLORS[number % len(COLORS)],
                )
            )
        # as high as its legend, a line a series
        figure, ax = plt.subplots(figsize=(7.6, max(4.2, 0.19 * len(series))))
        for number, (label, values, style, color) in enumerate(series):
            mean = np.array([v.mean for v in values])
            half = np.nan_to_num([v.half for v in values])
            line = ":" if label.endswith("without model splitting") else style
            ax.plot(
                x[: len(mean)],
                mean,
                linestyle=line if numbers else "none",
                marker=MARKERS[number % len(MARKERS)],
                ms=4,
                color=color,
                label=label,
            )
            if numbers:
                band = x[: len(mean)], mean - half, mean + half
                ax.fill_between(*band, color=color, alpha=0.1, lw=0)
        if not numbers:
            ax.set_xticks(x, [_tick(value) for value in values_of])
        elif x.min() > 0 and x.max() / x.min() > 20:
            ax.set_xscale("log")
        ax.axhline(1 / base["classes"], color="gray", lw=0.8, ls=":")
        of = (
            f": the {CURVES} strongest of {len(names_of)} attacks" if len(names_of) > CURVES else ""
        )
        ax.set(
            xlabel=names[0],
            ylabel="accuracy, attack success (top-1)",
            ylim=(0, 1.03),
            title=f"{arm}{of}",
        )
        ax.legend(loc="center left", bbox_to_anchor=(1.01, 0.5))
        figure.tight_layout()
    return figure
