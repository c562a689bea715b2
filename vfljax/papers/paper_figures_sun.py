"""Figures 2, 4, 5 and 7 of Sun et al. 2022 in the paper's form, drawn from a stored sweep.

What enters: a sweep of ``configs/papers/sun_figure2.py``, ``.._figure4``, ``.._figure5`` or ``.._figure7``, and
points that a paper prints, which the caller reads where the papers' numbers are kept. What leaves: a
Matplotlib figure. Nothing is trained or judged.

    figure2, figure4   leak AUC of the spectral attack on each layer of the passive party, a panel a setting
    figure5            leak and test AUC over dCor's weight, without and with Marvell
    figure7            as figure 2, on every layer of both parties

The paper draws leaks over the course of training. Ours are of the trained model's layers, so that layers
stand on the horizontal axis and the test AUC is a line. Bars and bands are 95 % intervals over seeds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from vfljax.errors import UserError
from vfljax.report.configurations import ConfigurationSummary, stored_configurations
from vfljax.report.figures import COLORS, STYLE, plt
from vfljax.report.intervals import Interval
from vfljax.store import Sweep
from vfljax.types import SPLIT

PREFIX = "spectral/"
ALPHA = "dcor.alpha"
CUT = "spectral/signed"  # the attack of figure 5: algorithm 1 on the cut
Published = Mapping[str, Sequence[tuple[float, float]]]
"""Panel -> printed points (x, y). Panels are called by their titles; the horizontal axis of a layer is its
number from the input on, 1 the first, that of figure 5 alpha_d."""


def figure2(sweep: Sweep, published: Published | None = None) -> Figure:
    """Leaks of the passive party's layers, a panel a point of the sweep."""
    return layer_panels(stored_configurations(sweep), published, passive=True)


def figure4(sweep: Sweep, published: Published | None = None) -> Figure:
    """As ``figure2``, of a sweep of dCor without and with Marvell."""
    return layer_panels(stored_configurations(sweep), published, passive=True)


def figure7(sweep: Sweep, published: Published | None = None) -> Figure:
    """Leaks of both parties' layers; what the label party owns is shaded, for no attacker sees it."""
    return layer_panels(stored_configurations(sweep), published, passive=False)


def figure5(sweep: Sweep, published: Published | None = None, attack: str = CUT) -> Figure:
    """Leak and test AUC over alpha_d, in panels "leak AUC", "test AUC", "leak AUC, marvell" and
    "test AUC, marvell"."""
    return alpha_panels(stored_configurations(sweep), published, attack)


def layers_of(point: ConfigurationSummary) -> list[tuple[str, Interval]]:
    """(Layer, leak of the spectral attack on it), from the input on."""
    layers = [
        (signal, figures["leak"])
        for key, figures in point.attacks.items()
        if key.attack == "spectral" and "." in (signal := dict(key.options).get("signal", ""))
    ]
    return sorted(layers, key=lambda one: _depth(one[0]))


def _depth(layer: str) -> tuple[bool, bool, int]:
    """Passive parties before the label party's top, hidden layers by number before what they end in."""
    number = layer.rpartition(".")[2]
    hidden = number.isdecimal()
    return layer.startswith("top."), not hidden, int(number) if hidden else 0


def layer_panels(
    points: Sequence[ConfigurationSummary], published: Published | None, passive: bool
) -> Figure:
    """A panel a point: leaks by layer, those of the passive party alone if ``passive``.

    Raises UserError where no layer was attacked.
    """
    panels = [(point, layers_of(point)) for point in points]
    if not panels or not all(layers for _, layers in panels):
        raise UserError(
            "the sweep has no spectral attack on a layer: give config.attacks.spectral.signal layers such "
            "as 'party0.cut'."
        )
    wide = min(4, len(panels))
    high = -(-len(panels) // wide)
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            high, wide, figsize=(3.1 * wide, 2.7 * high), squeeze=False, sharey=True
        )
        for ax in axes.ravel()[len(panels) :]:
            ax.axis("off")
        for ax, (point, layers) in zip(axes.ravel(), panels, strict=False):
            shown = [one for one in layers if not passive or one[0].startswith("party")]
            _layer_panel(ax, point, shown, (published or {}).get(point.label, ()))
        for ax in axes[:, 0]:
            ax.set_ylabel("spectral attack, leak AUC")
        axes[0, 0].legend(loc="upper left", fontsize=7)
        figure.tight_layout()
    return figure


def _layer_panel(
    ax: Any,
    point: ConfigurationSummary,
    layers: Sequence[tuple[str, Interval]],
    printed: Sequence[tuple[float, float]],
) -> None:
    x = np.arange(1, len(layers) + 1)
    _line(ax, x, [leak for _, leak in layers], COLORS[0], "leak AUC")
    top = [number for number, (name, _) in zip(x, layers, strict=True) if name.startswith("top.")]
    if top:
        ax.axvspan(top[0] - 0.5, top[-1] + 0.5, color="gray", alpha=0.12, lw=0)
    if SPLIT in point.auc:
        ax.axhline(point.auc[SPLIT].mean, color="black", lw=0.9, ls="--", label="test AUC")
    ax.axhline(0.5, color="gray", lw=0.8, ls=":")
    _printed(ax, printed)
    ax.set(title=point.label, xlabel="layer", xticks=x, ylim=(0.45, 1.02))


def alpha_panels(
    points: Sequence[ConfigurationSummary], published: Published | None, attack: str
) -> Figure:
    """Two panels a set of defenses beside dCor: leak of ``attack`` and test AUC by dCor's weight, 0 for the
    point without it. Raises UserError where a point lacks the attack, or none has dCor."""
    series = {
        beside: sorted((_alpha(p), p) for p in points if _beside(p) == beside)
        for beside in dict.fromkeys(map(_beside, points))
    }
    series = {beside: line for beside, line in series.items() if any(a > 0 for a, _ in line)}
    if not series:
        raise UserError("the sweep has no arm with dcor: give config.grid one with several alpha.")
    leaks = {p.number: p.figures_of(attack, SPLIT) for line in series.values() for _, p in line}
    if None in leaks.values():
        raise UserError(f"the sweep has no attack {attack!r} on every setting: run launch.attack.")
    with plt.rc_context(STYLE):
        figure, axes = plt.subplots(
            1, 2 * len(series), figsize=(6.2 * len(series), 2.8), squeeze=False, sharey=True
        )
        for number, (beside, line) in enumerate(series.items()):
            values = {
                "leak AUC": [figures["leak"] for _, p in line if (figures := leaks[p.number])],
                "test AUC": [p.auc[SPLIT] for _, p in line],
            }
            for place, (name, intervals) in enumerate(values.items()):
                ax = axes[0, 2 * number + place]
                title = f"{name}, {beside}" if beside else name
                x = np.array([alpha for alpha, _ in line])
                _line(ax, x, intervals, COLORS[place], "ours")
                _printed(ax, (published or {}).get(title, ()))
                ax.axhline(0.5, color="gray", lw=0.8, ls=":")
                ax.set_xscale("symlog", linthresh=1e-3)
                ax.set_xticks(x, [f"{alpha:g}" for alpha in x], rotation=60, fontsize=7)
                ax.minorticks_off()
                ax.set(title=title, xlabel="$\\alpha_d$", ylim=(0.45, 1.02))
                ax.tick_params(labelleft=True)
        axes[0, 0].legend(loc="lower left", fontsize=7)
        figure.tight_layout()
    return figure


def _alpha(point: ConfigurationSummary) -> float:
    return float(point.knobs.get(ALPHA) or 0.0)


def _beside(point: ConfigurationSummary) -> str:
    """The defenses of its chain but dCor."""
    return "+".join(name for name in point.defenses if name != "dcor")


def _line(ax: Any, x: np.ndarray, values: Sequence[Interval], color: str, label: str) -> None:
    mean = np.array([value.mean for value in values])
    half = np.nan_to_num([value.half for value in values])
    ax.plot(x, mean, marker="o", ms=4, color=color, label=label)
    ax.fill_between(x, mean - half, mean + half, color=color, alpha=0.15, lw=0)


def _printed(ax: Any, points: Sequence[tuple[float, float]]) -> None:
    if points:
        x, y = zip(*points, strict=True)
        ax.plot(x, y, "x", color="#B00020", ms=6, label="published", zorder=5)
