"""What the strongest attack reads with certainty: a table of rates and recall, and a figure."""

from __future__ import annotations

import dataclasses
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from vfljax.errors import UserError
from vfljax.report import headline, interactive, intervals, words
from vfljax.report.assessed import Assessed, Assessment
from vfljax.report.candidates import LOCAL_ONLY, floats
from vfljax.report.estimates import NO_LIMITS, Estimate, Floats
from vfljax.report.figures import STYLE
from vfljax.report.spread import FEWEST_SEEDS, moments
from vfljax.report.stored_rows import FEDERATIONS
from vfljax.report.tables import Section
from vfljax.store.attacks import SHARES

TITLE = "How many rows can be read with certainty"
CAPTION = (
    "Means over seeds, with limits. Recall: of a class, the share that is named rightly. All seeds: of the "
    "rows that are scored on two seeds or more, the share that is named rightly on each that scores it."
)
OF_TWO = " TPR: of class 1, the share read where the FPR of class 0 is taken for it; — of fewer than ten rows."
TWO = {"tpr_at_1e-3": "TPR at 0.1 % FPR", "tpr_at_1e-2": "at 1 %", "tpr_at_1e-1": "at 10 %"}
MORE = {"read_99": "read with 99 % precision"}
ROC = {"xlabel": "false positive rate", "ylabel": "true positive rate", "yscale": "log"}
RARE = (
    "No ROC is drawn: its rates need ten scored rows of class 0 on every seed, and one has fewer."
)
FEW = "No precision is drawn: it needs ten scored rows on every seed, and one has fewer."
FEWEST = 100  # rows scored on two seeds, without which no share is shown
PRECISION = {"xlabel": "share of the rows, most certain first", "ylabel": "share named rightly"}


def readers(assessed: Assessed) -> list[tuple[Assessment, dict[str, Any]]]:
    """Returns undefended, every chosen operating point, and undefended with the local-only baseline as attack,
    by federation, each with its plot style ({}: not drawn). Those without stored figures are left out."""
    out: list[tuple[Assessment, dict[str, Any]]] = []
    colors = {mark.method: mark.color for mark in interactive.marks(assessed)}
    for federation in assessed.federations:
        bare, methods = assessed.undefended(federation), assessed.methods_on(federation)
        if bare and bare.strongest:
            for a in (bare, *(a for a in methods if a.chosen)):
                look = {"color": colors[a.method], "label": a.label}
                out.append((a, look if a in (bare, headline.recommended(methods)) else {}))
            local = dataclasses.replace(bare.strongest, attack=bare.strongest.candidates.baseline)
            look = {"color": "#B00020", "label": LOCAL_ONLY.name, "ls": "--"}
            out.append((dataclasses.replace(bare, strongest=local), look))
    return [(a, look) for a, look in out if len(_stored(a, "recall"))]


def _stored(a: Assessment, column: str) -> Any:
    """Returns a stored figure of the strongest attack, [seeds, ...], of the seeds that have it."""
    rows = a.strongest.attack.rows if a.strongest else ()
    return np.array([row[column] for row in rows if row.get(column) is not None])


def section(assessed: Assessed) -> Section:
    """Returns the table, with a row per entry of ``readers``."""
    judged, classes = assessed.reference.rows, assessed.reference.classes
    columns, of_class = (TWO, judged) if classes == 2 else (MORE, judged // classes)
    header = ["configuration", "federation", "attack", *columns.values()]
    header += [*(f"recall of {c}" for c in range(classes)), "all seeds"]
    rows = [
        [
            *(a.label, FEDERATIONS[a.federation], a.strongest.attack.brief if a.strongest else ""),
            *(_cell(_stored(a, name), judged) for name in columns),
            *(_cell(recall, of_class) for recall in _stored(a, "recall").T),
            _every_seed(_stored(a, "right")),
        ]
        for a, _ in readers(assessed)
    ]
    return Section(TITLE, CAPTION + OF_TWO * (classes == 2), (header, rows))


def _cell(values: Floats, rows: int) -> str:
    """Returns the mean over seeds with its limits as text; ``rows`` is the number of judged rows."""
    count, mean, _ = moments(values)
    sample = intervals.sample(values[None], rows)
    limits = floats(intervals.worst_limits(sample)) if count >= FEWEST_SEEDS else NO_LIMITS
    return words.figure(Estimate(float(mean), limits)) if count else "—"


def _every_seed(right: Any) -> str:
    """Returns the share of rows named rightly on every seed that scores them, of rows that two or more score.

    Seeds differ in their training rows, so that few rows are scored on all of many seeds. The more seeds score
    a row, the more often it must be named rightly.
    """
    marks = np.array([list(of_seed) for of_seed in right])  # [seeds, rows]
    often = (marks != "-").sum(axis=0) > 1
    shares = (marks != "0").all(axis=0)[often]
    return words.brief(shares.mean()) if len(shares) >= FEWEST else "—"


def figure(assessed: Assessed) -> Figure:
    """Draws undefended, the recommendation and the local-only baseline: for two classes the ROC on logarithmic
    axes, for more the precision among the most certain rows.

    Raises:
      UserError: if no curve has any point, as where a class is too rare.
    """
    two, panels = assessed.reference.classes == 2, assessed.federations
    curves = [
        (a.federation, _stored(a, "roc" if two else "precision").mean(axis=0), look)
        for a, look in readers(assessed)
        if look
    ]
    shown = {federation: np.zeros(len(SHARES), bool) for federation in panels}
    for federation, curve, _ in curves:
        shown[federation] |= np.isfinite(curve)
    if not np.any(list(shown.values())):
        raise UserError(RARE if two else FEW)
    with mpl.rc_context(STYLE):
        drawn = Figure(figsize=(5.6 * len(panels), 4.2))
        axes = drawn.subplots(1, len(panels), squeeze=False)
        for ax, federation in zip(axes[0], panels, strict=True):
            ax.set(title=FEDERATIONS[federation])
            x = SHARES[shown[federation]]
            if not len(x):  # Matplotlib has no logarithmic axis without a number
                at = {"ha": "center", "wrap": True, "transform": ax.transAxes}
                ax.text(0.5, 0.5, RARE if two else FEW, **at)
                continue
            for of, curve, look in curves:
                if of == federation:
                    ax.plot(SHARES, curve, **look)
            level, label = (x, "chance") if two else (np.full_like(x, 0.99), "99 %")
            ax.plot(x, level, ":", color="gray", lw=0.8, label=label)
            ax.set(xscale="log", **(ROC if two else PRECISION))
            ax.legend()
        drawn.tight_layout()
    return drawn
