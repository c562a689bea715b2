"""Measures the time that each defense adds to a step: a suite of ``python -m launch.benchmark``.

A program has 64 trials, with the batch size and cut width of the grid suite or of a paper. The bottoms are
those of the grid suite, averaged; the top is an MLP of 64 (for defenses of two classes, GAFM's generator).
Teachers and drawn labels are made before training, outside the timed step. Each defense is timed in turn with
its undefended twin, and the figure is the median of paired differences. The suite takes about ten minutes.
"""

from __future__ import annotations

import functools
from typing import Any

from analysis.benchmark.grid_speed import COLUMNS
from analysis.benchmark.measuring import TimedStep, in_turn, markdown, ratios, times
from vfljax.defenses import TABLE, with_networks
from vfljax.models import MLP, Generator
from vfljax.types import DefenseSpec, Spec

TRIALS = 64
# batch, cut, classes: the grid's, then KDk on CIFAR-10, Criteo and GAFM's Spambase
SHAPES = ((256, 16, 10), (32, 10, 10), (1000, 4, 2), (1028, 1, 2))
# other rules of a defense that are timed beside its default one
OTHER_FORMS = (DefenseSpec("noise", (("law", "gaussian"),)),)


def timed_defenses() -> list[tuple[str, DefenseSpec]]:
    """Returns labels and specs of all defenses at default options, each followed by its ``OTHER_FORMS``."""
    out = []
    for name in TABLE:
        for spec in (DefenseSpec(name), *(other for other in OTHER_FORMS if other.name == name)):
            out.append((" ".join([name, *(str(value) for _, value in spec.options)]), spec))
    return out


def spec_of(shape: tuple[int, int, int], defense: DefenseSpec | None, binary: bool) -> Spec:
    """Returns the structure of the grid suite with another batch size and cut width.

    Args:
      shape: batch, cut and classes.
      defense: the defense of the program; None for an undefended one.
      binary: whether there are two classes and GAFM's generator as the top model.
    """
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
    """Returns the figures and the table of all defenses, each timed in turn with its undefended twin.

    Args:
      repeats: turns of each pair.
      width: trials mapped at once on a device; None for that of the backend.
      only: a prefix; defenses are measured whose labels begin with it.
    """
    chosen = [(label, defense) for label, defense in timed_defenses() if label.startswith(only)]
    rows, cells = [], {label: [label] for label, _ in chosen}
    for shape in SHAPES:
        undefended: dict[bool, TimedStep] = {}
        for label, defense in chosen:
            row, binary = TABLE[defense.name], TABLE[defense.name].two_classes
            if binary not in undefended:
                twin = spec_of(shape, None, binary)
                undefended[binary] = TimedStep(twin, TRIALS, COLUMNS, {}, width)
            spec = spec_of(shape, defense, binary)
            case = TimedStep(spec, TRIALS, COLUMNS, {defense.name: row.example}, width)
            pair = {"undefended": undefended[binary], "defended": case}
            measures = {n: functools.partial(c.measure, 0.25) for n, c in pair.items()}
            base, defended = in_turn(measures, repeats).values()
            added = times([a - b for a, b in zip(defended, base, strict=True)])
            alone, ratio = times(base).median, ratios(defended, base).median
            rows.append(
                {
                    "defense": label,
                    "batch": shape[0],
                    "cut": shape[1],
                    "classes": spec.num_classes,
                    "added_microseconds": added.median,
                    "lowest": added.lowest,
                    "highest": added.highest,
                    "undefended_microseconds": alone,
                    "ratio": ratio,
                    "compiles": case.program.traces,
                }
            )
            cells[label].append(f"{added.shown('.0f')}, x {ratio:.2f}")
            place = f"{label} {shape[0]} x {shape[1]}"
            spread = f"{added.median:+.0f} us ({added.lowest:+.0f} to {added.highest:+.0f})"
            print(f"{place}: {spread} on {alone:.0f}", flush=True)
    header = [
        "added µs per trial and step (lowest to highest)",
        *(f"{b} x {d}" for b, d, _ in SHAPES),
    ]
    return {"trials": TRIALS, "rows": rows}, markdown(header, cells.values())
