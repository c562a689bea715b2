"""Measure what a setting costs when many are trained in one program.

    python -m launch.benchmark --suite=grid --out=runs/benchmark
    python -m launch.benchmark --suite=defenses --out=runs/benchmark
    python -m launch.benchmark --suite=convolutions --out=runs/benchmark
    python -m launch.benchmark --suite=reading --out=runs/benchmark

Suite grid: 8, 50 and 1,000 settings of one two-party MLP structure (32 columns a party, hidden
64-64, cut 16, top 64, 10 classes, batch 256, SGD with momentum), each size one compiled program. The
sizes are timed in turn, five times over; read the ratios and the spread, single times drift with the
machine. Useful rate: 6 operations a weight and row over the time of a step, beside the rate at which
the same devices multiply 1024 x 1024 float32 matrices. Writes grid.json and grid.md.

Suite defenses: for every defense the time it adds to a step, 64 settings a program, at the grid's
batch x cut and the papers': the same bottoms, averaged, a top of 64 (GAFM and Marvell: the generator
and two classes). Teachers and drawn labels are made before training and are not in it. Each defense
is timed in turn with its undefended twin; the median of the paired differences is given. About ten
minutes. Writes defenses.json and defenses.md.

Suite convolutions: a step of ResNet-18 over 4 settings, convolutions as XLA's and as matrix products,
settings one after the other and together, beside PyTorch's where it is installed (extra "parity"; run
it from the repository's root), at widths 16 and 64. Writes convolutions.json and convolutions.md.

Suite reading: a table from the prepared form, Parquet and array_record. Writes reading.json and
reading.md.
"""

from __future__ import annotations

import json
import pathlib
import platform
import statistics
from typing import Any

import jax
from absl import flags

from launch import common, convolutions, reading
from launch.measuring import Case, matmul_rate
from vfljax import store, sweep
from vfljax.errors import UserError
from vfljax.models import MLP, Generator
from vfljax.types import DefenseSpec, Spec

_SUITE = flags.DEFINE_string(
    "suite", "grid", "what to measure: grid, defenses, convolutions or reading"
)
_OUT = flags.DEFINE_string("out", None, "folder for the JSON and the table")
_REPEATS = flags.DEFINE_integer("repeats", 5, "times each size is measured, in turn", lower_bound=1)
_WIDTH = flags.DEFINE_integer("width", 0, "settings mapped at once on a device; 0: by backend")
_ONLY = flags.DEFINE_string("only", "", "suite defenses: one defense's row")

SIZES = (8, 50, 1000)
COLUMNS = 32
GRID = Spec(
    bottoms=(MLP((64, 64), 16),) * 2,
    top=MLP((64,), 10),
    passive=1,
    num_classes=10,
    num_rows=4096,
    batch_size=256,
    epochs=2,
    optimizers=("sgd",) * 3,
)

SETTINGS = 64
# batch, cut, classes: the grid's, then KDk on CIFAR-10, Criteo and GAFM's Spambase
SHAPES = ((256, 16, 10), (32, 10, 10), (1000, 4, 2), (1028, 1, 2))
# label, chain with options, knobs, needs two classes
ROWS: tuple[tuple[str, DefenseSpec, dict[str, float], bool], ...] = (
    ("kdk", DefenseSpec("kdk"), {"epsilon": 0.4, "k": 2.0}, False),
    ("label_dp", DefenseSpec("label_dp"), {"epsilon": 1.0}, False),
    ("dcor", DefenseSpec("dcor"), {"alpha": 0.01}, False),
    (
        "gafm",
        DefenseSpec("gafm"),
        {"delta": 0.05, "gamma": 1.0, "sigma": 0.01, "clip": 0.1, "learning_rate": 1e-4},
        True,
    ),
    ("noise laplace", DefenseSpec("noise"), {"scale": 1e-3}, False),
    ("noise gaussian", DefenseSpec("noise", (("law", "gaussian"),)), {"scale": 1e-3}, False),
    ("compression", DefenseSpec("compression"), {"keep_rate": 0.25}, False),
    (
        "ppdl",
        DefenseSpec("ppdl"),
        {"theta": 0.25, "epsilon": 1.8, "gamma": 1e-3, "tau": 1e-4, "sensitivity": 1.0},
        False,
    ),
    ("discrete_sgd", DefenseSpec("discrete_sgd"), {"intervals": 6.0, "bound": 0.03}, False),
    ("max_norm", DefenseSpec("max_norm"), {}, False),
    ("marvell", DefenseSpec("marvell"), {"power": 1.0, "error": 0.25}, True),
)


def head(suite: str) -> dict[str, Any]:
    """What every suite's JSON says of the machine."""
    return {
        "suite": suite,
        "backend": jax.default_backend(),
        "devices": [str(d.device_kind) for d in jax.devices()],
        "machine": platform.processor() or platform.machine(),
        "versions": sweep.versions(),
        "revision": sweep.revision(),
    }


def grid() -> tuple[dict[str, Any], str]:
    """The grid suite's figures and their table."""
    sizes = [Case(GRID, n, COLUMNS, {}, _WIDTH.value or None) for n in SIZES]
    for _ in range(_REPEATS.value):
        for size in sizes:
            size.measure()
    machine = matmul_rate()
    rows = []
    for size in sizes:
        median = statistics.median(size.microseconds)
        rows.append(
            {
                "settings": size.settings,
                "microseconds_a_setting_and_step": median,
                "lowest": min(size.microseconds),
                "highest": max(size.microseconds),
                "compiles": size.program.traces,
                "first_call_seconds": size.first,
                "peak_gib": size.memory,
                "useful_gflops": 6 * size.weights * GRID.batch_size / median / 1e3,
            }
        )
    pairs = zip(sizes[-1].microseconds, sizes[1].microseconds, strict=True)
    result = {
        **head("grid"),
        "width": sizes[-1].program.width,
        "matmul_gflops": machine,
        "ratio_1000_to_50": statistics.median(a / b for a, b in pairs),
        "rows": rows,
    }
    lines = [
        "| settings | us a setting and step (median; range) | compiles | first call, s | peak, GiB | "
        "useful GFLOP/s | of the matmul rate |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in rows:
        lines.append(
            f"| {r['settings']:,} | {r['microseconds_a_setting_and_step']:.1f} ({r['lowest']:.1f} to "
            f"{r['highest']:.1f}) | {r['compiles']} | {r['first_call_seconds']:.1f} | "
            f"{r['peak_gib']:.2f} | {r['useful_gflops']:.0f} | {r['useful_gflops'] / machine:.0%} |"
        )
    lines.append(
        f"\n1,000 against 50 settings, median of {_REPEATS.value} pairs: "
        f"{result['ratio_1000_to_50']:.2f}. Matrix multiply: {machine:.0f} GFLOP/s on "
        f"{len(result['devices'])} {result['backend']} device(s)."
    )
    return result, "\n".join(lines)


def spec_of(shape: tuple[int, int, int], defense: DefenseSpec | None, binary: bool) -> Spec:
    """The grid's structure at another batch and cut. GAFM's has its generator and averages."""
    batch, cut, classes = shape
    classes = 2 if binary else classes
    top = Generator((16,), 2) if binary else MLP((64,), classes)
    return Spec(
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


def defenses() -> tuple[dict[str, Any], str]:
    """The defenses suite's figures and their table."""
    rows = []
    chosen = [row for row in ROWS if not _ONLY.value or row[0].startswith(_ONLY.value)]
    for shape in SHAPES:
        width = _WIDTH.value or None
        plain: dict[bool, Case] = {}
        for label, defense, knobs, binary in chosen:
            if binary not in plain:
                plain[binary] = Case(spec_of(shape, None, binary), SETTINGS, COLUMNS, {}, width)
            spec = spec_of(shape, defense, binary)
            case = Case(spec, SETTINGS, COLUMNS, {defense.name: knobs}, width)
            base, plain[binary].microseconds = plain[binary], []
            for _ in range(_REPEATS.value):
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
        own = [r for r in rows if r["defense"] == label]
        cells = (
            f"{r['added_microseconds']:.0f} ({r['lowest']:.0f} to {r['highest']:.0f}), x "
            f"{r['ratio']:.2f}"
            for r in own
        )
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return {**head("defenses"), "settings": SETTINGS, "rows": rows}, "\n".join(lines)


def convolved() -> tuple[dict[str, Any], str]:
    """The convolutions suite's figures and their table."""
    result, text = convolutions.measured(_REPEATS.value, 2 * jax.device_count())
    return {**head("convolutions"), **result}, text


def read() -> tuple[dict[str, Any], str]:
    """The reading suite's figures and their table."""
    result, text = reading.measured(_REPEATS.value)
    return {**head("reading"), **result}, text


SUITES = {"grid": grid, "defenses": defenses, "convolutions": convolved, "reading": read}


def run() -> None:
    if _SUITE.value not in SUITES:
        raise UserError(f"--suite={_SUITE.value!r} is unknown: choose {', '.join(SUITES)}.")
    if not _OUT.value:
        raise UserError("--out is needed: a folder for the JSON and the table.")
    result, text = SUITES[_SUITE.value]()
    out = pathlib.Path(_OUT.value)
    store.write_text(out / f"{_SUITE.value}.json", json.dumps(result, indent=1))
    store.write_text(out / f"{_SUITE.value}.md", text + "\n")
    print(text)


if __name__ == "__main__":
    common.start(run)
