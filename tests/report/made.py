"""Judged sweeps that are made of frames, for the tests of judging and of what is shown; nothing is trained."""

from __future__ import annotations

import contextlib
import math
import pathlib
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pyarrow as pa

from tests.sweeps import columns
from vfljax.report import first_screen, looks
from vfljax.report.families import Applying
from vfljax.report.frames import Facts, Frames
from vfljax.report.judged_sweep import Judged, judge_frames
from vfljax.report.sweep_answers import with_decisions
from vfljax.store import StoredSweep
from vfljax.sweep.grid import parse

NAN, SEEDS = math.nan, 5
FACTS = Facts(
    2, 0.5, 2000, 40, parties=("telco", "shop"), class_names=("defaulted", "repaid"), positive=0
)
WOBBLE = np.array([0.0, 0.004, -0.004, 0.002, -0.002])
UTILITY = {"test_utility": 0.90, "validation_utility": 0.90}
ALONE = {"alone_test": 0.80, "alone_validation": 0.80}
BARE = {"probe/mean": 0.95}
PROTECTS = {"probe/mean": 0.6, "test_utility": 0.88}
"""Points of ``sweep``: undefended, and one that protects and keeps most of the gain."""
ENTRY = {"status": "ok", "federations": ["split"], "knobs": [{"known": 40.0}], "steps": 20}
ENTRY |= {"seconds": 1.0, "tracing": 0.1, "compiling": 0.2, "running": 0.3}
ENTRY |= {"compiles": 1, "trials": 5, "diverged": 0, "rows": 5}
"""What ``store.attack_summary`` has of an attack beside its identity."""
COMMAND = "vfljax sweep --config=configs/x.py --workdir=runs/x --config.data.dir=D --config.seeds=3"
CONFIG: dict[str, Any] = {
    "attackers": ((0,),),
    "parties": {"passive": 2, "names": ("telco", "shop", "bank")},
}


def trial(configuration, seed, federation="split", **values):
    kinds = {"split": 0, "malicious-0": 1, "no_split": 2}
    return {
        "trial": (configuration * 10 + seed) * 3 + kinds[federation],
        "configuration": configuration,
        "method": f"method{configuration}" if configuration else "undefended",
        "defenses": "noise" if configuration else "",
        "panel": "no_split" if federation == "no_split" else "split",
        "federation": federation,
        "seed": seed,
        "diverged": False,
        **UTILITY,
        **ALONE,
        **values,
    }


def attack(of, label, leak, **values):
    names = ("trial", "configuration", "panel", "federation", "seed")
    row = {name: of[name] for name in names}
    row |= {"attackers": "0", "known": 40, "draws": 1.0, "attack": label.split("/")[0]}
    return row | {"label": label, "role": "attack", "leak": leak, "settled_by": "", **values}


def learner(seed, leak, label="logistic", **values):
    of = {"trial": -1, "configuration": -1, "panel": "", "federation": "", "seed": seed}
    return attack(of, label, leak, role="learner", **values)


def sweep(*configurations, base=0.6, seeds=SEEDS):
    """Trials and rows: each configuration is a dict of attacks' leaks (a number, or one a seed), undefended
    first, in which "utility" and others are of its trials."""
    trials, rows = [], []
    for seed in range(seeds):
        rows.append(learner(seed, base))
        for number, of in enumerate(configurations):
            values = {k: at(v, seed) for k, v in of.items() if k in (*UTILITY, *ALONE)}
            trials.append(trial(number, seed, diverged=math.isnan(values.get("test_utility", 0))))
            trials[-1] |= values
            for label, leak in of.items():
                if label not in values:
                    rows.append(attack(trials[-1], label, at(leak, seed, 1.0)))
    return rows, trials


def at(value, seed, wobble=0.0):
    return value[seed] if isinstance(value, list) else value + wobble * WOBBLE[seed]


# Arrow's strings, of which pandas makes frames of stored sweeps, double the time of judging frames this small
@pd.option_context("mode.string_storage", "python")
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
    entries: dict[str, Any] | None = None,
    every_family: bool = True,
    **values: Any,
) -> Judged:
    """Returns a judged sweep.

    Args:
      *configurations: attacks' leaks and utilities by name, undefended first; see ``sweep``. The
        labels are those of attacks of the table.
      defenses: the defense of each configuration but the first; "noise" by default. It is its method's name.
      facts: of the sweep.
      knobs: columns of the trials.
      command: of the sweep's header.
      workdir: the sweep's folder.
      config: fields of the experiment. The points that are planned are those of ``configurations``.
      balance: the number of rows of each class.
      rows: columns of the rows of attacks.
      entries: further ones of ``store.attack_summary``.
      every_family: whether no other family of attacks applies.
      **values: of ``sweep``.
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
    attacks = frame.loc[frame["role"] == "attack", "label"].unique()
    summary = {label: columns(label) | ENTRY for label in attacks} | (entries or {})
    frames = Frames(frame, trials, facts, summary)
    data = {"name": "x", "balance": list(balance), "party_shapes": [[3], [2], [4]], "train": 1000}
    results = pa.table({"seconds": [1.0] * len(trials)})
    header = {"command": command, "data": data, "trials": len(trials), "earlier": []}
    header |= {"config": {"seeds": trials["seed"].nunique()}, "attacks": {}}
    stored = StoredSweep(pathlib.Path(workdir), header, results, pa.table({}))
    found = judge_frames(stored, parse(CONFIG | (config or {})), frames)
    none = mock.patch.object(Applying, "families", return_value=frozenset())
    points = mock.patch.object(looks, "planned_points", return_value=len(configurations) - 1)
    with points, none if every_family else contextlib.nullcontext():
        return with_decisions(found)


def the(judged: Judged) -> first_screen.Screen:
    """The first screen of a sweep of one panel."""
    (screen,) = first_screen.answers(judged)
    return screen


def row(screen: first_screen.Screen, name: str) -> str:
    """The text of a row of a screen."""
    return dict(screen.rows)[name]
