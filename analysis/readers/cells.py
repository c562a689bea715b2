"""Compares readers with the strongest stored attack or local-only learner of each run.

A cell is a configuration in a panel. A reader knows as many labels as the report leads with, and is run on all
draws of them. In each run, a configuration and a seed, the federation and the attackers of whom it reads most
count, as they do for stored attacks; its gain is its leak less that of the strongest stored attack or learner.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportReturnType=false

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.readers import protocol
from analysis.readers.protocol import Reader
from vfljax.report.frames import PANELS
from vfljax.report.strongest import RUN, by_run
from vfljax.report.sweep_answers import judge_sweep
from vfljax.types import NO_SPLIT, SPLIT, federation_of

COLUMNS = [
    "sweep",
    "label",
    "panel",
    "known",
    "leader",
    "stored",
    "reader",
    "leak",
    "gain",
    "gains",
]


def cells(
    workdir: pathlib.Path,
    readers: Mapping[str, Reader],
    data_dir: str | None = None,
    say: Callable[[str], None] = print,
) -> pd.DataFrame:
    """Returns a row for each cell of a sweep and reader, with the columns ``COLUMNS``.

    ``stored`` and ``leak`` are means over the seeds of which both have a figure, ``gains`` has the gain of
    each of these seeds and ``gain`` is their mean.

    Args:
      workdir: the folder of a sweep that has been attacked.
      readers: by name.
      data_dir: where the data is now, if it has moved.
      say: is given each line of progress.
    """
    stored, judged = protocol.opened(workdir, data_dir), judge_sweep(workdir)
    known, draws = (
        judged.facts.known,
        stored.plan.experiment.known_draws if judged.facts.known else 1,
    )
    trials, found, outputs = judged.sweep.results.to_pylist(), [], []
    classes = stored.plan.dataset.num_classes
    for number, of in enumerate(protocol.seen(stored, trials)):
        drawn = [protocol.known_of(of, known, draw) for draw in range(draws)]
        panel = SPLIT if federation_of(of.row["federation"]).split else NO_SPLIT
        for name, reader in readers.items():
            scores = [protocol.scores_of(name, reader, of, each, classes) for each in drawn]
            outputs.append(
                protocol.output(of, np.stack(scores), known, stored.begun.header["naming"])
            )
            found.append((of.row["configuration"], panel, of.row["seed"], name))
        say(f"{workdir.name}: read {number + 1} of {len(trials)} trials")
    leaks = [figures["leak"] for figures in stored.scorer.figures_on_host(outputs)]
    read = pd.DataFrame(found, columns=[*RUN, "reader"]).assign(leak=leaks)
    read = read.groupby([*RUN, "reader"])["leak"].max().reset_index()
    read["stored"] = (
        by_run(judged.rows, judged.facts, known)
        .reindex(pd.MultiIndex.from_frame(read[RUN]))
        .to_numpy()
    )
    read = read.dropna(subset=["leak", "stored"])
    leading = judged.leading.set_index(["configuration", "panel"])
    rows = []
    by_cell: Any = read.groupby(["configuration", "panel", "reader"])
    for (number, panel, name), of in by_cell:
        gains = (of["leak"] - of["stored"]).tolist()
        about = leading.loc[(number, panel)]
        means = of[["stored", "leak"]].mean()
        place = workdir.name, about["label"], PANELS[panel], known, about["leader"]
        gain = math.fsum(gains) / len(gains)
        rows.append((*place, means["stored"], name, means["leak"], gain, gains))
    return pd.DataFrame(rows, columns=COLUMNS)


def text(table: pd.DataFrame) -> str:
    """Returns rows of ``cells`` as Markdown, of highest gain first."""
    head = ["configuration", "known", "stored, strongest", "reader", "gain", "by seed"]
    lines = [head, ["---"] * len(head)]
    for row in table.sort_values("gain", ascending=False).to_dict("records"):
        lines.append(
            [
                f"{row['sweep']}: {row['label']}, {row['panel']}",
                f"{row['known']}",
                f"{row['stored']:.3f} {row['leader']}",
                f"{row['leak']:.3f} {row['reader']}",
                f"{row['gain']:+.3f}",
                " ".join(f"{gain:+.3f}" for gain in row["gains"]),
            ]
        )
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
