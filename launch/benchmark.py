"""Measure what a setting costs when many are trained in one program.

    python -m launch.benchmark --suite=grid --out=runs/benchmark

Suite grid: 8, 50 and 1,000 settings of one two-party MLP structure (32 columns a party, hidden
64-64, cut 16, top 64, 10 classes, batch 256, SGD with momentum), each size one compiled program. The
sizes are timed in turn, five times over; read the ratios and the spread, single times drift with the
machine. Useful rate: 6 operations a weight and row over the time of a step, beside the rate at which
the same devices multiply 1024 x 1024 float32 matrices. Writes grid.json and grid.md.
"""

from __future__ import annotations

import json
import pathlib
import platform
import resource
import statistics
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from absl import flags

from launch import common
from vfljax import lanes, store, sweep, training
from vfljax.errors import UserError
from vfljax.models import MLP
from vfljax.types import HostArray, HParams, Spec

_SUITE = flags.DEFINE_string("suite", "grid", "what to measure; only 'grid' so far")
_OUT = flags.DEFINE_string("out", None, "folder for the JSON and the table")
_REPEATS = flags.DEFINE_integer("repeats", 5, "times each size is measured, in turn", lower_bound=1)
_WIDTH = flags.DEFINE_integer("width", 0, "settings mapped at once on a device; 0: by backend")

SIZES = (8, 50, 1000)
ROWS, COLUMNS, CLASSES, BATCH, EPOCHS, SEEDS = 4096, 32, 10, 256, 2, 3
SPEC = Spec(
    bottoms=(MLP((64, 64), 16),) * 2,
    top=MLP((64,), CLASSES),
    passive=1,
    num_classes=CLASSES,
    num_rows=ROWS,
    batch_size=BATCH,
    epochs=EPOCHS,
    optimizers=("sgd",) * 3,
)


def make_table() -> training.Table:
    """Random columns and labels: the time of a step does not depend on their values."""
    rng = np.random.default_rng(0)
    rows = np.tile(np.arange(ROWS, dtype=np.int32), (SEEDS, 1))
    return training.Table(
        features=tuple(
            jnp.asarray(rng.normal(size=(ROWS, COLUMNS)), jnp.float32) for _ in range(2)
        ),
        labels=jnp.asarray(rng.integers(0, CLASSES, ROWS), jnp.int32),
        train=jnp.asarray(rows),
        validation=jnp.asarray(rows[:, :1]),
        test=jnp.asarray(rows[:, :1]),
        mean=(jnp.zeros((SEEDS, COLUMNS)),) * 2,
        scale=(jnp.ones((SEEDS, COLUMNS)),) * 2,
        scores=None,
    )


class Size:
    """One grid size: its compiled program, its arguments on the devices, its times."""

    def __init__(self, settings: int, table: training.Table, initial: Any) -> None:
        def column(value: float) -> HostArray:
            return np.full(settings, value, np.float32)

        rates: HostArray = np.linspace(0.01, 0.1, settings, dtype=np.float32)
        hparams = HParams(
            learning_rate=rates,
            momentum=column(0.9),
            weight_decay=column(5e-4),
            milestones=column(0.0)[:, None][:, :0],
            decay=column(0.1),
            gamma=column(0.0)[:, None].repeat(2, axis=1),
            defenses={},
        )
        seeds: HostArray = np.arange(settings) % SEEDS
        lane = training.Lane(seeds.astype(np.uint32), seeds.astype(np.int32), hparams)
        self.settings = settings
        self.program = lanes.Program(training.make_run(SPEC), settings, _WIDTH.value or None)
        lane = self.program.pad(lane)
        table, initial = self.program.share((table, initial))
        self.lane, self.seeds = lane, jnp.arange(SEEDS, dtype=jnp.uint32)
        self.shared = table, initial
        self.state = self.program.pad(sweep.empty_progress(SPEC, lane, table, initial))
        began = time.perf_counter()
        self.train()
        self.first = time.perf_counter() - began  # tracing and compilation included
        self.memory = peak_memory()
        self.microseconds: list[float] = []

    def train(self) -> None:
        """All epochs of all settings, as a sweep runs them."""
        state = self.state
        for number in range(EPOCHS):
            now = self.program.share(training.epoch_of(jnp.int32(number), self.seeds, ROWS))
            state, finite = self.program((self.lane, state), (*self.shared, now))
            jax.block_until_ready(finite)

    def measure(self) -> None:
        """One repeat: at least half a second of training."""
        runs, began = 0, time.perf_counter()
        while runs == 0 or time.perf_counter() - began < 0.5:
            self.train()
            runs += 1
        steps = runs * EPOCHS * SPEC.steps_per_epoch * self.settings
        self.microseconds.append((time.perf_counter() - began) / steps * 1e6)


def peak_memory() -> float:
    """GiB: the accelerator's peak, or this process's on CPU (so far: it never falls)."""
    stats = jax.devices()[0].memory_stats() if jax.default_backend() != "cpu" else None
    peak = (
        stats["peak_bytes_in_use"]
        if stats
        else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    )
    return peak / 2**30


def matmul_rate() -> float:
    """GFLOP/s of 1024^3 float32 products, all devices at once, best of five."""
    count, n = jax.device_count(), 1024
    program = lanes.Program(lambda a, _: (a @ a) / n, count, 1)
    a = program.pad(np.ones((count, n, n), np.float32))
    jax.block_until_ready(program(a, ()))
    best = float("inf")
    for _ in range(5):
        began = time.perf_counter()
        for _ in range(10):
            out = program(a, ())
        jax.block_until_ready(out)
        best = min(best, time.perf_counter() - began)
    return 10 * count * 2 * n**3 / best / 1e9


def grid() -> tuple[dict[str, Any], str]:
    """The grid suite's figures and their table."""
    table = make_table()
    seeds = jnp.arange(SEEDS, dtype=jnp.uint32)
    initial = jax.jit(training.make_initial(SPEC))(seeds, table)
    sizes = [Size(n, table, initial) for n in SIZES]
    for _ in range(_REPEATS.value):
        for size in sizes:
            size.measure()
    weights = sum(a[0].size for a in jax.tree.leaves(initial))
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
                "useful_gflops": 6 * weights * BATCH / median / 1e3,
            }
        )
    pairs = zip(sizes[-1].microseconds, sizes[1].microseconds, strict=True)
    result = {
        "suite": "grid",
        "backend": jax.default_backend(),
        "devices": [str(d.device_kind) for d in jax.devices()],
        "machine": platform.processor() or platform.machine(),
        "versions": sweep.versions(),
        "revision": sweep.revision(),
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


def run() -> None:
    if _SUITE.value != "grid":
        raise UserError(f"--suite={_SUITE.value!r} is unknown: choose grid.")
    if not _OUT.value:
        raise UserError("--out is needed: a folder for grid.json and grid.md.")
    result, text = grid()
    out = pathlib.Path(_OUT.value)
    store.write_text(out / "grid.json", json.dumps(result, indent=1))
    store.write_text(out / "grid.md", text + "\n")
    print(text)


if __name__ == "__main__":
    common.start(run)
