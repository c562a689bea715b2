"""A scatter plot of our figures against the printed numbers of a paper."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
from matplotlib.figure import Figure

from analysis.reproduction.agreement import GRADIENTS, MARGIN, Status, agreement
from analysis.reproduction.coverage import Covered
from vfljax.report.figures import COLORS, MARKERS, STYLE

LOOKS = {
    Status.EQUIVALENT: {"color": COLORS[0], "marker": MARKERS[0]},
    Status.COMPATIBLE: {"color": COLORS[1], "marker": MARKERS[1]},
    Status.DIFFERS: {"color": COLORS[2], "marker": MARKERS[2]},
    Status.CLAIMS: {"color": "gray", "marker": MARKERS[3]},
}


def draw(covered: Sequence[Covered]) -> Figure | None:
    """Returns the scatter plot of a paper's numbers (``coverage.coverage``) that were run; None if none was.

    A number is a point at (printed, our mean over seeds). Bars are the printed standard deviation, where there
    is one, and our 95 % interval. The band is the margin of ``agreement``. Gradients, which are no share or
    AUC, are left out. Numbers of smaller runs are gray, because these have no verdict.
    """
    points = [
        (e.status, e.number, agreement(e.number, e.main.ours))
        for e in covered
        if e.main is not None and e.status in LOOKS and e.number.metric not in GRADIENTS
    ]
    if not points:
        return None
    low = min(min(number.value, ours.mean) for _, number, ours in points) - 0.05
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.6, 5.2))
        ax = figure.subplots()
        ax.plot([low, 1], [low, 1], color="black", lw=0.8)
        band = [low - MARGIN, 1 - MARGIN], [low + MARGIN, 1 + MARGIN]
        ax.fill_between([low, 1], *band, color="gray", alpha=0.15)
        for status, look in LOOKS.items():
            shown = [(number, ours) for of_point, number, ours in points if of_point is status]
            ax.errorbar(
                [number.value for number, _ in shown],
                [ours.mean for _, ours in shown],
                xerr=[number.spread or 0.0 for number, _ in shown],
                yerr=[ours.high - ours.mean for _, ours in shown],
                **look,
                **{"ls": "", "ms": 4, "lw": 0.8, "alpha": 0.8},
                label=f"{status} ({len(shown)})" if shown else None,
            )
        ax.set(xlabel="printed", ylabel="ours", xlim=(low, 1.03), ylim=(low, 1.03))
        ax.legend(loc="upper left")
        figure.tight_layout()
    return figure
