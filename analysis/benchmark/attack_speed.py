"""Times attacks on many trials at once: a part of the suite ``gpu`` of ``python -m launch.benchmark``.

A family, all variants of an attack, is one program, and one call takes all trials. The exchange is random
numbers of the shape of an audit's, with two classes: what an attack reads does not change its time.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax
import numpy as np

from analysis.benchmark.measuring import in_turn, markdown, times
from vfljax import attacks
from vfljax.attack_runs.batching import AttackProgram, make_attack_member
from vfljax.config import combinations
from vfljax.models import MLP
from vfljax.sweep import batch_layout, programs
from vfljax.testing.exchanges import make_case
from vfljax.types import Agreed

FAMILIES: Mapping[str, Mapping[str, Any]] = {
    "norm": {"epoch": (-1, "mean")},
    "probe": {"inputs": ("both", "gradients"), "epoch": (-1, "mean")},
    "ranks": {"learner": ("kernel", "lda")},
    "spreading": {"blocks": ("all", "ranks")},
    "posterior": {"signal": ("direction", "opposed"), "columns": "ranks", "epoch": ("mean", 0)},
    "joint": {"blocks": ("all", "best")},
    "surrogate": {"names": "none"},
}
HEADER = ("attack", "variants", "seconds per thousand trials (median; range)", "compiling, s")


class Shape(NamedTuple):
    """The sizes of an exchange."""

    rows: int = 2000
    epochs: int = 3
    cut: int = 4
    columns: int = 29
    batch: int = 64


def measured(trials: int, turns: int, shape: Shape) -> tuple[list[dict[str, Any]], str]:
    """Returns a row for each of ``FAMILIES``, and their table.

    Args:
      trials: attacked in one call.
      turns: how many times each is timed.
      shape: of the exchange.
    """
    random = np.random.default_rng(0)
    wire = random.normal(size=(2, shape.epochs, shape.rows, shape.cut))
    case = make_case(
        random.permutation(shape.rows) % 2,
        2,
        embeddings=wire[0],
        gradients=wire[1],
        features=random.normal(size=(shape.rows, shape.columns)),
        test_features=random.normal(size=(10, shape.columns)),
        cut=shape.cut,
    )
    layout = batch_layout.layout(trials)
    common = batch_layout.share(case.common)
    measures, rows = {}, {}
    for name, options in FAMILIES.items():
        variants = tuple(
            tuple(sorted(of.items())) for of in combinations(options, f"attacks.{name}")
        )
        bottoms = (MLP((), shape.cut),)
        static = AttackProgram(name, variants, bottoms, 2, Agreed(shape.batch))
        attack = attacks.TABLE[name](bottoms, 2, **dict(variants[0]))
        knobs = {knob: np.asarray([value], np.float32) for knob, value in attack.knobs.items()}
        one = case.run._replace(knobs=knobs)
        members = layout.pad(jax.tree.map(lambda a: np.stack([np.asarray(a)] * trials), one))
        program = programs.program(make_attack_member, (static,), layout, (members, common))
        began = time.monotonic()
        program.compile(members, common)
        rows[name] = {"variants": len(variants), "compiling": time.monotonic() - began}
        measures[name] = functools.partial(_seconds, program, members, common, trials)
    table = []
    for name, seconds in in_turn(measures, turns).items():
        row, spread = rows[name], times([1e3 * each / trials for each in seconds])
        row |= {"attack": name, **spread._asdict()}
        shown = str(row["variants"]), spread.shown(".2f"), f"{row['compiling']:.1f}"
        table.append((name, *shown))
    return [*rows.values()], markdown(HEADER, table)


def _seconds(program: programs.Program, members: Any, common: Any, trials: int) -> float:
    began = time.monotonic()
    program.run_whole(members, common, trials)
    return time.monotonic() - began
