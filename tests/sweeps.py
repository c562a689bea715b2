"""A sweep small enough for a test: every structure, two seeds, seconds."""

from __future__ import annotations

import copy
import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax import store
from vfljax.attack_runs import jobs
from vfljax.attacks import TABLE
from vfljax.report import page
from vfljax.scheduling import running
from vfljax.scheduling.work import Outcome, anything
from vfljax.store import units
from vfljax.store.loading import TIMES
from vfljax.sweep import grid, grouping, specs
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import Plan, make_plan
from vfljax.sweep.variants import AttackVariant
from vfljax.types import AttackIdentity, Federation, Input

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


def silent(line: str) -> None:
    """Throw a line of progress away."""
    del line


def by_label(workdir: pathlib.Path) -> dict[str, Any]:
    """The entries of the attacks of a sweep by label, but those of an earlier rule."""
    entries = store.attack_summary(workdir).values()
    return {about["label"]: about for about in entries if not about.get("outdated")}


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


def groups_beside(chain: Mapping[str, Any], **changes: Any) -> list[grouping.Group]:
    """The groups of a chain beside undefended trials on a table of two classes, if they are feasible."""
    experiment = parse(tiny(grid={"undefended": {}, "x": chain}, **changes))
    shape = specs.DataShape(2, 40, (Input("table", (3,)),) * 2)
    trials = grid.trials(experiment, [Federation(), Federation(split=False)])
    specs.check(experiment, shape, trials)
    return grouping.groups(experiment, shape, trials)


def plan_of(config: Mapping[str, Any]) -> Plan:
    """The plan of a config."""
    return make_plan(parse(config))


def train(
    workdir: pathlib.Path, config: Mapping[str, Any], attack: bool = True
) -> store.StoredSweep:
    """Run a sweep and its attacks; what they print is thrown away."""
    may = anything if attack else is_shard
    running.finish(parse(config), workdir, "test", silent, may=may).check()
    return store.load(workdir)


def is_shard(unit: store.Unit) -> bool:
    """Whether a unit is a shard to train."""
    return unit.kind == units.SHARD


def attack(
    workdir: pathlib.Path, names: Any = None, plan: Plan | None = None, **more: Any
) -> Outcome:
    """Attack a stored sweep, as ``launch.attack`` does."""
    plan = plan or running.stored_plan(workdir)
    outcome = running.attack_stored(plan, workdir, names, **{"say": silent, **more})
    outcome.check()
    return outcome


def report_of(workdir: pathlib.Path) -> str:
    """The page of a stored sweep, written anew."""
    page.present(workdir)
    return (workdir / "report.html").read_text()


def identity(text: str, **fields: Any) -> AttackIdentity:
    """The attack of a label such as "direct/most_negative" or "norm/parties=0+1"; an option is a rule, or a
    signal of the spectral attack."""
    variant, _, parties = text.partition("/parties=")
    attack, _, option = variant.partition("/")
    name = "signal" if attack == "spectral" else "rule"
    options: Any = (((name, option),), (name,)) if option else ((), ())
    fields = {"rule": TABLE[attack].rule if attack in TABLE else 1} | fields
    fields = {"attackers": tuple(map(int, parties.split("+")))} | fields if parties else fields
    return AttackIdentity(attack, *options, **fields)


def variant_on(
    plan: Plan,
    name: str,
    options: dict[str, Any] | None = None,
    points: Sequence[dict[str, float]] = ({},),
) -> AttackVariant:
    """A variant of an attack as it runs on a plan's trials."""
    named = tuple(sorted((options or {}).items()))
    of = AttackIdentity(name, named, rule=TABLE[name].rule)
    return jobs._planned(AttackVariant(of, [*points], jobs._attack(of, plan)), plan)


def columns(text: str, federation: str = "split", **fields: Any) -> dict[str, Any]:
    """The columns that a stored row of that attack has of it."""
    return store.identity_columns(identity(text, federation=federation, **fields))


def attack_units(workdir: pathlib.Path, label: str, rule: int | None = None) -> list[str]:
    """The names of the units of an attack."""
    every = store.units_of(store.read_header(workdir), outdated=True)
    entries = store.attack_summary(workdir)
    return [
        unit.name
        for unit in every
        if unit.kind == units.ATTACK and entries[unit.of]["label"] == label
        if rule in (None, entries[unit.of]["rule"])
    ]


def drop_units(workdir: pathlib.Path, label: str) -> list[str]:
    """Remove the finished units of an attack, as if they had never been made; their names."""
    names = attack_units(workdir, label)
    for name in names:
        shutil.rmtree(workdir / name)
    return names


def flip(path: pathlib.Path, bit: int | None = None) -> None:
    """Flip a bit of a file: that one, or one in its middle."""
    content = bytearray(path.read_bytes())
    place = 8 * (len(content) // 2) if bit is None else bit
    content[place // 8] ^= 1 << place % 8
    path.write_bytes(content)


def comparable(table: Any) -> list[dict[str, Any]]:
    """Rows without the columns that hold times; what a figure lacks is None, which equals itself."""

    def plain(value: Any) -> Any:
        return (
            [*map(plain, value)] if isinstance(value, list) else None if value != value else value
        )

    rows = table.to_pylist()
    return [{k: plain(v) for k, v in row.items() if k not in TIMES} for row in rows]
