"""A sweep small enough for a test: every structure, two seeds, seconds."""

from __future__ import annotations

import copy
import pathlib
from collections.abc import Mapping
from typing import Any

from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.report import judging
from vfljax.report.confidence import Interval
from vfljax.report.summary import Point
from vfljax.report.worst import AttackOn, Worst
from vfljax.store import header, manifest
from vfljax.sweep.experiment import parse
from vfljax.sweep.plan import Plan, make_plan
from vfljax.sweep.train import train_sweep
from vfljax.types import AttackIdentity

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
        group = config
        for name in parents:
            group = group.setdefault(name, {})
        group[last] = value
    return config


def plan_of(config: Mapping[str, Any]) -> Plan:
    """The plan of a config."""
    return make_plan(parse(config))


def train(workdir: pathlib.Path, config: Mapping[str, Any], attack: bool = True) -> store.Sweep:
    """Run a sweep and its attacks; what they print is thrown away."""
    plan = train_sweep(parse(config), workdir, "test", say=lambda line: None)
    if attack:
        attack_sweep(plan, workdir, say=lambda line: None)
    return store.load(workdir)


def identity(text: str, **fields: Any) -> AttackIdentity:
    """The attack of a label such as "direct/most_negative" or "probe", whose option is a rule."""
    attack, _, rule = text.partition("/")
    options: Any = ((("rule", rule),), ("rule",)) if rule else ((), ())
    return AttackIdentity(attack, *options, **fields)


def columns(text: str, federation: str = "split", **fields: Any) -> dict[str, Any]:
    """The columns that a stored row of that attack has of it."""
    return store.identity_columns(identity(text, federation=federation, **fields))


def folder_of(workdir: pathlib.Path, label: str, rule: int | None = None) -> str:
    """The folder of an attack's rows, below the workdir."""
    units = [
        f"attacks/{variant}"
        for variant, about in store.attack_summary(workdir).items()
        if about["label"] == label and rule in (None, about["rule"])
    ]
    return units[-1]


def drop_blocks(workdir: pathlib.Path, label: str, pattern: str = "*.parquet") -> list[str]:
    """Take chunks of an attack's rows away, as if it had been killed before it wrote them; their names."""
    unit = folder_of(workdir, label)
    folder = workdir / unit
    dropped = sorted(path.name for path in folder.glob(pattern))
    for name in dropped:
        (folder / name).unlink()
    rest = [path.name for path in sorted(folder.glob("*.parquet"))]
    manifest.add_files(workdir, unit, header.identity(workdir), rest, keep=False)
    return dropped


def flip(path: pathlib.Path, bit: int | None = None) -> None:
    """Flip a bit of a file: that one, or one in its middle."""
    content = bytearray(path.read_bytes())
    place = 8 * (len(content) // 2) if bit is None else bit
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)


def comparable(table: Any) -> list[dict[str, Any]]:
    """Rows without the columns that hold times."""
    return [{k: v for k, v in row.items() if k not in store.TIMES} for row in table.to_pylist()]


def point(
    arm,
    accuracy,
    leak,
    knobs=None,
    validation=None,
    attack="passive",
    inverted=0,
    defenses=None,
    on="split",
    **attacks,
):
    """A point whose seeds agree, and its ``attacks`` on one federation. Its chain has the ``defenses`` its
    knobs are of, unless they are named."""

    def constant(value):
        return Interval(value, 0.0, 3)

    three = (0, 1, 2)
    candidates = judging.candidates([attack], [[leak] * 3], [0.5] * 3, 1000)
    strongest = Worst(
        attack=attack,
        federation="split",
        name=attack,
        identity=identity(attack, federation="split"),
        case=judging.worst_case(candidates),
        seeds=three,
        null=0.55,
        advantage=2 * leak - 1,
        candidates=candidates,
    )

    return Point(
        number=0,
        arm=arm,
        defenses=tuple(dict.fromkeys(name.split(".")[0] for name in knobs or {}))
        if defenses is None
        else defenses,
        knobs=knobs or {},
        named=tuple(knobs or {}),
        auc={},
        accuracy={"split": constant(accuracy)},
        validation={"split": constant(accuracy if validation is None else validation)},
        by_seed={"split": dict.fromkeys(three, accuracy)},
        validated={"split": dict.fromkeys(three, accuracy if validation is None else validation)},
        attacks={AttackOn(name, on): constant(value) for name, value in attacks.items()},
        identities={AttackOn(name, on): identity(name, federation=on) for name in attacks},
        figures={},
        worst={"split": strongest},
        published={},
        oracle={},
        by_budget={20: {"split": strongest}},
        diverged=0,
        inverted=inverted,
        settings=2,
    )
