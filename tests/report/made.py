"""Judged sweeps that are made of frames, for the tests of what is shown; nothing is trained."""

from __future__ import annotations

import pathlib
from typing import Any

import pandas as pd
import pyarrow as pa

from tests.report.judge_test import sweep
from tests.sweeps import columns
from vfljax.report.judge import judge
from vfljax.report.judged import Judged, with_words
from vfljax.report.rows import Facts, Frames
from vfljax.store import StoredSweep
from vfljax.sweep.grid import parse

FACTS = Facts(
    *(2, 0.5, 2000, 40), parties=("telco", "shop"), class_names=("defaulted", "repaid"), positive=0
)
COMMAND = "vfljax sweep --config=configs/x.py --workdir=runs/x --config.data.dir=D --config.seeds=3"
CONFIG: dict[str, Any] = {
    "attackers": ((0,),),
    "parties": {"passive": 2, "names": ("telco", "shop", "bank")},
}


def made(
    *configurations: dict[str, Any],
    defenses: tuple[str, ...] = (),
    facts: Facts = FACTS,
    knobs: dict[str, Any] | None = None,
    command: str = COMMAND,
    workdir: str = "runs/x",
    config: dict[str, Any] | None = None,
    balance: tuple[int, int] = (300, 700),
    rows: dict[str, Any] | None = None,
    **values: Any,
) -> Judged:
    """Returns a judged sweep.

    Args:
      *configurations: attacks' leaks and utilities by name, undefended first; see ``judge_test.sweep``. The
        labels are those of attacks of the table.
      defenses: the defense of each configuration but the first; "noise" by default. It is its method's name.
      facts: of the sweep.
      knobs: columns of the trials.
      command: of the sweep's header.
      workdir: the sweep's folder.
      config: fields of the experiment.
      balance: the number of rows of each class.
      rows: columns of the rows of attacks.
      **values: of ``judge_test.sweep``.
    """
    made_rows, made_trials = sweep(*configurations, **values)
    trials = pd.DataFrame(made_trials)
    chains = ["", *(defenses or ["noise"] * (len(configurations) - 1))]
    trials["defenses"] = trials["configuration"].map(dict(enumerate(chains)))
    trials["method"] = trials["defenses"].where(trials["defenses"] != "", "undefended")
    for name, of in (knobs or {}).items():
        trials[name] = trials["configuration"].map(dict(enumerate(of)))
    frame = pd.DataFrame(made_rows)
    frame = frame.assign(variant=frame["label"], point=0, adaptive=False).assign(**(rows or {}))
    summary = {label: columns(label) for label in frame.loc[frame["role"] == "attack", "label"]}
    frames = Frames(frame, trials, facts)
    data = {"name": "x", "balance": list(balance), "party_shapes": [[3], [2], [4]], "train": 1000}
    results = pa.table({"seconds": [1.0] * len(trials)})
    header = {"command": command, "data": data, "trials": len(trials)}
    stored = StoredSweep(pathlib.Path(workdir), header, results, pa.table({}))
    verdicts = with_words(judge(*frames), frames, summary)
    return Judged(stored, parse(CONFIG | (config or {})), *frames, verdicts, verdicts.iloc[:0])
