"""The sweeps on which ``deciding`` repeats whole decisions: their configs, and the table of one of them."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import pandas as pd

from vfljax.auditing import suite
from vfljax.config import as_axis, from_file

SEEDS = 60
LINEAR = {"probe": {"known": 40, "epoch": (-1, "mean")}, "ranks": {"learner": "lda", "known": 40}}
SPREADING = {**LINEAR, "spreading": {"known": 40}}
# every family that reads networks, at the first variant of an audit's suite, as decisions try them
FIRST = {
    name: {option: as_axis(axis)[0] for option, axis in of.items()}
    for name, of in {**suite.ATTACKS, "clusters": {}, "inner": {}}.items()
}
FIRST["posterior"] |= {"signal": "direction", "epsilon": (0.3, 0.5, 1.0)}  # those of the grid
DIGITS = {
    "undefended": {},
    "kdk": {"kdk": {"epsilon": (0.05, 0.15, 0.3), "k": (2, 3)}},
    "noise": {"noise": {"scale": (3e-3, 1e-2, 3e-2)}},
}
LABEL_DP = {"undefended": {}, "label_dp": {"label_dp": {"epsilon": (0.3, 0.5, 1.0)}}}
NOISE = {"noise": {"noise": {"scale": (1e-2, 3e-2, 1e-1)}}}
SCORE = {
    **suite.trained(
        2,
        data={
            "name": "table",
            "options": {"label": "label"},
            "train": 4000,
            "validation": 1000,
            "test": 2000,
        },
        parties={"passive": 1, "label_features": True, "columns": (("score",), ("a", "b", "c"))},
        training={
            "epochs": 10,
            "batch_size": 128,
            "learning_rate": 3e-3,
            "record": (*range(10),),  # noise that is drawn anew is averaged over all epochs
            "record_rows": 600,
        },
    ),
    "attacks": suite.suited(FIRST, ("split",), suite.KNOWN, 2),
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "digits": ("configs/quickstart.py", {"grid": DIGITS, "attacks": LINEAR}),
    "digits_spreading": ("configs/quickstart.py", {"grid": DIGITS, "attacks": SPREADING}),
    "breast_cancer": (
        "configs/breast_cancer.py",
        {
            "grid": {
                "undefended": {},
                "kdk": {"kdk": {"epsilon": (0.1, 0.3), "k": 2}},
                "noise": {"noise": {"scale": (1e-2, 1e-1)}},
                "compression": {"compression": {"keep_rate": (0.5, 0.1)}},
            },
            "attacks": LINEAR,
        },
    ),
    "score": ("configs/knowers.py", {**SCORE, "grid": {**LABEL_DP, **NOISE}}),
    "score_label_dp": ("configs/knowers.py", {**SCORE, "grid": LABEL_DP}),
    "synthetic": (
        "configs/knowers.py",
        {
            "parties": {"passive": 1, "label_features": True, "shares": (16, 16)},
            "grid": {
                "undefended": {},
                "label_dp": {"label_dp": {"epsilon": (0.3, 0.5, 1.0, 2.0)}},
                "noise": {"noise": {"scale": (1e-2, 3e-2, 1e-1, 3e-1)}},
            },
            "attacks": {
                **SPREADING,
                "posterior": {"signal": "direction", "columns": "ranks", "epoch": "mean"},
            },
        },
    ),
}
"""A config, and the fields in place of its own."""


def score(path: pathlib.Path) -> None:
    """Writes the table of the case ``score``: a passive party's one column, which alone separates the classes
    by an AUC of .76, and three columns of the label party, which do so together. All four reach .84.

    The label is half positive. A column is normal with a variance of 1 and a mean that is higher by 1, or by
    1 / sqrt(3) in the label party's, where the label is positive.

    It was chosen so that a good point exists: the means were computed for label DP, and a trial of four seeds
    with fewer attacks and recorded epochs, and without noise of .03, came before the sweep. It says how often a
    good point is found where there is one, and not how often real tables have one.
    """
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 7000)
    shifts = np.array([1, *[3**-0.5] * 3])
    columns = random.normal(size=(7000, 4)) + shifts * labels[:, None]
    table = pd.DataFrame(columns.astype(np.float32), columns=["score", "a", "b", "c"])
    path.parent.mkdir(parents=True, exist_ok=True)
    table.assign(label=labels).to_parquet(path)


def config_of(case: str, workdir: pathlib.Path) -> dict[str, Any]:
    """Returns the config of a case's sweep: honest federations with a top model."""
    path, fields = CASES[case]
    if fields.get("data", {}).get("name") == "table":
        table = workdir / "score.parquet"
        if not table.exists():
            score(table)
        fields = {**fields, "data": {**fields["data"], "dir": str(table.resolve())}}
    return {
        **from_file(path),
        "name": f"deciding: {case}",
        "seeds": SEEDS,
        "known_draws": 2,
        "federations": ("split",),
        "malicious": {"parties": ()},
        "decide": False,
        **fields,
    }
