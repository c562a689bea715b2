"""What the strongest attack reads with certainty: a table of rates and recall, and a figure.

With two classes that is the ROC of the class ``facts.positive``: the share of its rows that are read if a share
of the others is taken for it. With more classes it is the precision among the rows an attack is surest of.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from vfljax.errors import UserError
from vfljax.report import records, words
from vfljax.report.figures import LOCAL_ONLY_COLOR, logarithmic, style
from vfljax.report.frames import PANELS, Facts
from vfljax.report.frontier import WIDTH, looks
from vfljax.report.judged_sweep import Judged
from vfljax.report.limits import SHOWN_LEVEL, Floats, half_row, limits
from vfljax.report.tables import Section
from vfljax.report.verdict_frame import LOCAL_ONLY_LEADER
from vfljax.tasks.certainty import CURVE_SHARES

TITLE = "How many rows can be read with certainty"
CAPTION = (
    "Means over seeds, with limits. Recall: of a class, the share that is named rightly. All seeds: of the "
    "rows that are scored on two seeds or more, the share that is named rightly on each that scores it."
)
RATES = {"tpr_at_1e-3": "0.1 %", "tpr_at_1e-2": "1 %", "tpr_at_1e-1": "10 %"}
READ = {"read_99": "read with 99 % precision"}
RARE = "No ROC is drawn: its rates need ten scored rows of the class {} on every seed, and one seed has fewer."
FEW = "No precision is drawn: it needs ten scored rows on every seed, and one has fewer."
AT_LEAST = " At least: an attack that a cheaper one settled may read more with certainty."
WITHOUT = "without the federation"
LOCAL_LOOK = {"color": LOCAL_ONLY_COLOR, "label": WITHOUT, "ls": "--"}


class Reader(NamedTuple):
    """The stored figures of who reads most on a configuration, with or without the federation."""

    label: str  # of the configuration
    panel: str
    attack: str
    rows: pd.DataFrame  # a row for each seed
    style: dict[str, Any]  # of its curve; {}: it is not drawn
    at_least: bool = False  # whether a settled attack might have read more with certainty

    def figures(self, column: str) -> Floats:
        """Returns a stored figure of the seeds that have it, [seeds, ...]."""
        if column not in self.rows:
            return np.zeros(0)
        # a column of curves has None where a row has no curve
        values = [v for v in self.rows[column] if v is not None and not np.all(pd.isna(v))]
        return np.array([np.asarray(v, float) for v in values])

    def curve(self, column: str) -> Floats:
        """Returns the mean of a stored curve [shares]; NaN where a seed has none."""
        if column not in self.rows or self.rows[column].isna().any():
            return np.full(len(CURVE_SHARES), np.nan)
        return np.stack([np.asarray(v, float) for v in self.rows[column]]).mean(axis=0)


def readers(judged: Judged) -> list[Reader]:
    """Returns who reads most on undefended and on every operating point, by panel, and then the best learner.

    Those without stored figures are left out.
    """
    if "recall" not in judged.rows:
        return []
    leading, look_of = judged.leading, looks(judged.verdicts)
    settled, out = judged.rows[judged.rows["settled_by"] != ""], []
    for panel in PANELS:
        of = leading[(leading["panel"] == panel) & (leading["leader"] != "")]
        bare = of[of["undefended"]]
        for row in pd.concat([bare, of[of["chosen"] & ~of["undefended"]]]).to_dict("records"):
            drawn = {"color": look_of[row["method"]][0], "label": row["label"]}
            shown = drawn if row["undefended"] or row["recommended"] else {}
            rows = records.rows_of(judged, row, row["leader"])
            if row["leader"] == LOCAL_ONLY_LEADER:
                out.append(Reader(row["label"], panel, WITHOUT, rows, shown))
                continue
            hidden = (settled["known"] <= row["known"]) & records.is_on(settled, row)
            out.append(Reader(row["label"], panel, row["leader"], rows, shown, hidden.any()))
        for row in bare.to_dict("records") if judged.facts.known else ():
            rows = records.rows_of(judged, row, LOCAL_ONLY_LEADER)
            out.append(Reader(row["label"], panel, WITHOUT, rows, LOCAL_LOOK))
    return [reader for reader in out if len(reader.rows)]


def section(judged: Judged) -> Section:
    """Returns the table, with a row for each of ``readers``."""
    facts = judged.facts
    two, scored = facts.classes == 2, facts.scored_rows
    of_class = scored if two else max(1, scored // facts.classes)
    rows, every = [], readers(judged)
    for reader in every:
        cells = {"configuration": reader.label, "federation": PANELS[reader.panel]}
        cells["attack"] = reader.attack
        for column, text in (RATES if two else READ).items():
            title = f"TPR of {facts.both[0]} at {text} FPR" if two else text
            cell = _cell(reader.figures(column), scored)
            cells[title] = f"at least {cell}" if reader.at_least and cell != words.NONE else cell
        recall = reader.figures("recall").reshape(-1, facts.classes)
        for c, name in enumerate(facts.class_names):
            cells[f"recall of {name}"] = _cell(recall[:, c], of_class)
        cells["all seeds"] = words.figure(records.share_in_every_run(reader.rows["right"]))
        rows.append(cells)
    caption = _caption(facts) + AT_LEAST * any(reader.at_least for reader in every)
    return Section(TITLE, caption, pd.DataFrame(rows))


def _caption(facts: Facts) -> str:
    if facts.classes != 2:
        return CAPTION
    positive, other = facts.both
    return (
        f"{CAPTION} TPR at 1 % FPR: the share of the rows of {positive} that is read if 1 % of the rows of "
        f"{other} are taken for it; {words.NONE} with fewer than ten rows."
    )


def _cell(values: Floats, rows: int) -> str:
    """Returns the mean over seeds with its limits as text.

    Args:
      values: [seeds].
      rows: the number of rows of which each is a share.
    """
    found = limits(values, half_row(rows), SHOWN_LEVEL)
    return words.with_limits(found.mean, *np.clip([found.lower, found.upper], 0, 1))


def figure(judged: Judged) -> Figure:
    """Draws undefended, the recommendation and the best learner without the federation.

    With two classes that is the ROC on logarithmic axes, with more the precision of the most certain rows.

    Raises:
      UserError: if no curve has any point, as where a class is too rare.
    """
    facts = judged.facts
    two = facts.classes == 2
    drawn = [of for of in readers(judged) if of.style]
    curves = [(of, of.curve("roc" if two else "precision")) for of in drawn]
    curves = [(of, curve) for of, curve in curves if np.isfinite(curve).any()]
    panels = [panel for panel in PANELS if panel in {of.panel for of, _ in curves}]
    if not panels:
        raise UserError(RARE.format(facts.both[1]) if two else FEW)
    with style():
        out = Figure(figsize=(WIDTH * len(panels), 4.0), layout="constrained")
        axes = out.subplots(1, len(panels), squeeze=False)[0]
        for ax, panel in zip(axes, panels, strict=True):
            members = [(of, curve) for of, curve in curves if of.panel == panel]
            for of, curve in members:
                ax.plot(CURVE_SHARES, curve, **of.style)
            x = CURVE_SHARES[np.isfinite([curve for _, curve in members]).any(axis=0)]
            level, label = (x, "chance") if two else (np.full_like(x, 0.99), "99 %")
            ax.plot(x, level, ":", color="gray", lw=0.8, label=label)
            ax.set(title=PANELS[panel], xscale="log", **_axes(facts))
            for axis in (ax.xaxis, ax.yaxis):
                if axis.get_scale() == "log":
                    logarithmic(axis)
            ax.legend()
    return out


def _axes(facts: Facts) -> dict[str, str]:
    if facts.classes > 2:
        return {"xlabel": "share of the rows, most certain first", "ylabel": "share named rightly"}
    positive, other = facts.both
    return {
        "xlabel": f"share of {other} taken for {positive} (FPR)",
        "ylabel": f"share of {positive} that is read (TPR)",
        "yscale": "log",
    }
