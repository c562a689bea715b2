"""A sweep small enough for a test: every structure, two seeds, seconds."""

from __future__ import annotations

import copy
import pathlib
from typing import Any

from vfljax import attacking, store, sweep
from vfljax.judging import Interval, Point, Worst

TINY: dict[str, Any] = {
    "name": "tiny",
    "seeds": 2,
    "data": {"name": "digits", "train": 320, "validation": 160, "test": 160, "scaling": "range"},
    "model": {"hidden": (8,), "cut": 4, "top": "head"},
    "training": {"epochs": 3, "batch_size": 64, "learning_rate": 0.05},
    "teacher": {"hidden": (8,), "epochs": 4},
    "grid": {
        "undefended": {},
        "kdk": {"kdk": {"epsilon": (0.0, 0.45), "k": (1, 3)}},
        "noise": {"noise": {"scale": (0.01,)}},
    },
    "attacks": {
        "passive": {"known": 20, "steps": 20, "ema": 0.9},
        "direct": {"rule": ("first_negative", "most_negative")},
        "norm": {},
    },
}


def tiny(**changes: Any) -> dict[str, Any]:
    """TINY with dotted-path changes, e.g. ``**{"training.epochs": 2}``."""
    config = copy.deepcopy(TINY)
    for path, value in changes.items():
        *parents, last = path.split(".")
        here = config
        for name in parents:
            here = here.setdefault(name, {})
        here[last] = value
    return config


def train(workdir: pathlib.Path, config: dict[str, Any], attack: bool = True) -> store.Sweep:
    """Run a sweep and its attacks; what was said is thrown away."""
    lab = sweep.run(config, workdir, "test", say=lambda line: None)
    if attack:
        attacking.run(lab, workdir, say=lambda line: None)
    return store.load(workdir)


def comparable(table: Any) -> list[dict[str, Any]]:
    """Rows without the columns that hold times."""
    return [{k: v for k, v in row.items() if k not in store.TIMES} for row in table.to_pylist()]


def point(
    arm, accuracy, leak, knobs=None, validation=None, attack="passive", inverted=0, **attacks
):
    """A judged point of one federation whose seeds agree."""

    def constant(value):
        return Interval(value, 0.0, 3)

    return Point(
        number=0,
        arm=arm,
        knobs=knobs or {},
        named=tuple(knobs or {}),
        auc={},
        accuracy={"split": constant(accuracy)},
        validation={"split": constant(accuracy if validation is None else validation)},
        by_seed={"split": {0: accuracy, 1: accuracy}},
        attacks={name: constant(value) for name, value in attacks.items()},
        figures={},
        worst={
            "split": Worst(
                attack, constant(leak), {0: leak, 1: leak}, leak, 0.55, constant(2 * leak - 1)
            )
        },
        published={},
        oracle={},
        diverged=0,
        inverted=inverted,
        settings=2,
    )
