"""The time that each defense adds to a step: a suite of ``vfljax benchmark``.

64 settings a program, at the grid suite's batch x cut and the papers': the same bottoms, averaged, a
top of 64 (for defenses of two classes: the generator and two classes). Teachers and drawn labels are
made before training and are not in it. Each defense is timed in turn with its undefended twin; the
median of the paired differences is given. The whole suite takes about ten minutes.
"""

from __future__ import annotations

import statistics
from typing import Any, NamedTuple

from vfljax.benchmark.grid_speed import COLUMNS
from vfljax.benchmark.measuring import TimedStep
from vfljax.defenses import TABLE, with_networks
from vfljax.models import MLP, Generator
from vfljax.types import DefenseSpec, Spec

SETTINGS = 64
# batch, cut, classes: the grid's, then KDk on CIFAR-10, Criteo and GAFM's Spambase
SHAPES = ((256, 16, 10), (32, 10, 10), (1000, 4, 2), (1028, 1, 2))
# other rules of a defense that are timed beside its default one
OTHER_FORMS = (DefenseSpec("noise", (("law", "gaussian"),)),)


class TimedDefense(NamedTuple):
    """A defense with its options, and what its line is called."""

    label: str
    defense: DefenseSpec


def timed_defenses() -> list[TimedDefense]:
    """Every defense of the table at its default options, and ``OTHER_FORMS`` behind theirs."""
    out = []
    for name in TABLE:
        out.append(TimedDefense(name, DefenseSpec(name)))
        for other in OTHER_FORMS:
            if other.name == name:
                words = (str(value) for _, value in other.options)
                out.append(TimedDefense(" ".join([name, *words]), other))
    return out


def spec_of(shape: tuple[int, int, int], defense: DefenseSpec | None, binary: bool) -> Spec:
    """The grid's structure at another batch and cut. GAFM's has its generator and averages."""
    batch, cut, classes = shape
    classes = 2 if binary else classes
    top = Generator((16,), 2) if binary else MLP((64,), classes)
    spec = Spec(
        bottoms=(MLP((64, 64), cut),) * 2,
        top=top,
        passive=1,
        num_classes=classes,
        num_rows=16 * batch,
        batch_size=batch,
        epochs=2,
        optimizers=("sgd",) * 3,
        defenses=() if defense is None else (defense,),
        aggregation="mean",
    )
    return with_networks(spec)


def measured(repeats: int, width: int | None, only: str) -> tuple[dict[str, Any], str]:
    """Figures and table: each defense whose row starts with ``only`` in turn with its undefended
    twin, ``repeats`` times."""
    rows = []
    chosen = [timed for timed in timed_defenses() if timed.label.startswith(only)]
    for shape in SHAPES:
        undefended: dict[bool, TimedStep] = {}
        for label, defense in chosen:
            row = TABLE[defense.name]
            knobs, binary = row.example, row.two_classes
            if binary not in undefended:
                undefended[binary] = TimedStep(
                    spec_of(shape, None, binary), SETTINGS, COLUMNS, {}, width
                )
            spec = spec_of(shape, defense, binary)
            case = TimedStep(spec, SETTINGS, COLUMNS, {defense.name: knobs}, width)
            base, undefended[binary].microseconds = undefended[binary], []
            for _ in range(repeats):
                base.measure(0.25)
                case.measure(0.25)
            pairs = list(zip(case.microseconds, base.microseconds, strict=True))
            added = sorted(a - b for a, b in pairs)
            rows.append(
                {
                    "defense": label,
                    "batch": shape[0],
                    "cut": shape[1],
                    "classes": spec.num_classes,
                    "added_microseconds": statistics.median(added),
                    "lowest": added[0],
                    "highest": added[-1],
                    "undefended_microseconds": statistics.median(base.microseconds),
                    "ratio": statistics.median(a / b for a, b in pairs),
                    "compiles": case.program.traces,
                }
            )
            print(
                f"{label} {shape[0]} x {shape[1]}: {rows[-1]['added_microseconds']:+.0f} us "
                f"({added[0]:+.0f} to {added[-1]:+.0f}) on "
                f"{rows[-1]['undefended_microseconds']:.0f}",
                flush=True,
            )
    names = [f"{b} x {d}" for b, d, _ in SHAPES]
    lines = [
        "| added us a setting and step (lowest to highest) | " + " | ".join(names) + " |",
        "|---|" + "---|" * len(names),
    ]
    for label, *_ in chosen:
        figures = [r for r in rows if r["defense"] == label]
        cells = (
            f"{r['added_microseconds']:.0f} ({r['lowest']:.0f} to {r['highest']:.0f}), x "
            f"{r['ratio']:.2f}"
            for r in figures
        )
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return {"settings": SETTINGS, "rows": rows}, "\n".join(lines)
