"""Controls: where a leak comes from, by sweeps whose labels were permuted (``datasets.label_permutation``).

    WORKDIR/controls/scores/    labels permuted among rows of equal scores of the passive parties' columns
    WORKDIR/controls/all/       labels permuted among all rows

In the first the local-only baseline stays about as it was, in the second it is chance. What is read beyond it
in either has come through the federation; what the true labels lose against a control came from columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from vfljax.report.frames import PANELS
from vfljax.report.fresh import grid_of, named
from vfljax.report.judged_sweep import Judged, of_same_points
from vfljax.report.limits import FEWEST_SEEDS, of_row
from vfljax.report.sweep_answers import judge_sweep
from vfljax.report.verdict_frame import LOCAL_ONLY_LEADER
from vfljax.report.words import NONE, figure, signed, with_limits

FOLDER = "controls"
TRUE = "true"
GROUPS = 10  # of equal scores, for each likeliest class
CONTROLS: Mapping[str, Mapping[str, Any]] = {
    "scores": {"data.permute_labels": 1.0, "data.permute_groups": GROUPS},
    "all": {"data.permute_labels": 1.0, "data.permute_groups": 0},
}
"""The fields of the config of each control, by the name of its folder."""
LABELS = {
    "scores": "permuted among rows of equal scores of the passive parties' columns",
    "all": "permuted among all rows",
}
CAPTION = (
    "The same federations, trained and attacked on permuted labels. Where labels are permuted among rows of "
    "equal scores, the passive parties' columns tell of them about what they told before, and no other column "
    "tells more; where they are permuted among all rows, no column tells anything. What is read beyond the "
    "baseline under permuted labels has therefore come through the federation from each row's own label, and "
    "what true labels leak beyond that has come from columns."
)


def fields(found: Judged, control: str) -> dict[str, Any]:
    """Returns the fields by which the config of a control differs from that of a sweep.

    It trains undefended, and what is switched on, or nearest to be.

    Args:
      found: the judged sweep.
      control: a key of ``CONTROLS``.
    """
    experiment = found.experiment
    return {
        "name": f"{experiment.name}: labels {LABELS[control]}",
        "notes": (),
        "seeds": min(FEWEST_SEEDS, experiment.seeds),
        "grid": grid_of(found, [v["configuration"] for v in named(found).values()]),
        "reproduces": {},
        **CONTROLS[control],
    }


def control_table(judged: Judged) -> pd.DataFrame:
    """Returns a row for each configuration and panel of the controls, under true and under permuted labels.

    Without controls beside the sweep there are no rows.
    """
    folders = {name: judged.sweep.workdir / FOLDER / name for name in CONTROLS}
    controls = {n: judge_sweep(f) for n, f in folders.items() if (f / "sweep.json").exists()}
    parts = [
        of_same_points(judged, of).assign(labels=LABELS[name]) for name, of in controls.items()
    ]
    if not parts:
        return pd.DataFrame()
    found = pd.concat(parts)
    true = judged.leading.assign(labels=TRUE)
    found = pd.concat([true[true["configuration"].isin(found["configuration"])], found])
    found = found[found["leader"] != ""]
    order = {labels: place for place, labels in enumerate([TRUE, *LABELS.values()])}
    places = found["labels"].map(order)
    found = found.assign(place=places).sort_values(["panel", "configuration", "place"])
    rows = found.to_dict("records")
    return pd.DataFrame(
        {
            "configuration": [row["label"] for row in rows],
            "federation": [PANELS[row["panel"]] for row in rows],
            "labels": [row["labels"] for row in rows],
            "leaks": [with_limits(*of_row(row, "leak")) for row in rows],
            "without the federation": [figure(row["local_only"]) for row in rows],
            "excess": [signed(*of_row(row, "e")) for row in rows],
            judged.facts.utility: [figure(row["utility"], 3) for row in rows],
            "strongest attack": [
                NONE if row["leader"] == LOCAL_ONLY_LEADER else row["leader"] for row in rows
            ],
        }
    )
