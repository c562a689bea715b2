"""Train a grid of settings, attack every one of them, and report.

    python -m launch.sweep --config=configs/quickstart.py --workdir=runs/quickstart
    python -m launch.sweep --config=configs/quickstart.py --workdir=runs/ten --config.seeds=10
    python -m launch.sweep --config=CONFIG --workdir=DIR --select_delta

The same command again continues a sweep that was stopped or killed, and ends with the same table.
What is written: results.parquet and .csv (one row a setting), attacks.parquet and .csv, report.html,
figures/*.png, and per shard the final weights and the exchange; see vfljax.store.load.
"""

from __future__ import annotations

import pathlib
import time

from absl import flags
from ml_collections import config_flags

from launch import common
from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.errors import UserError
from vfljax.report import page
from vfljax.sweep import size
from vfljax.sweep.experiment import parse, with_knob
from vfljax.sweep.limits import LIMITS, Limits
from vfljax.sweep.plan import make_plan
from vfljax.sweep.selection import select
from vfljax.sweep.train import train_sweep

_CONFIG = config_flags.DEFINE_config_file(
    "config", None, "a config file, e.g. configs/quickstart.py; fields by --config.field=value"
)
_WORKDIR = flags.DEFINE_string("workdir", None, "folder of the sweep: new, or the one to continue")
_SELECT_DELTA = flags.DEFINE_bool(
    "select_delta",
    False,
    "first choose GAFM's Delta on a tenth of the training rows (in WORKDIR/select_delta), then use it "
    "in every arm with gafm",
)
_BEYOND_LIMITS = flags.DEFINE_bool(
    "beyond_limits", False, "plan sizes that are refused otherwise; see vfljax.sweep.limits"
)


def run() -> None:
    if _CONFIG.value is None or not _WORKDIR.value:
        raise UserError(
            "--config and --workdir are needed: python -m launch.sweep "
            "--config=configs/quickstart.py --workdir=runs/quickstart"
        )
    workdir = pathlib.Path(_WORKDIR.value)
    began = time.monotonic()
    experiment = parse(_CONFIG.value, Limits.none() if _BEYOND_LIMITS.value else LIMITS)
    if _SELECT_DELTA.value:
        size.needs(make_plan(experiment), workdir)  # refuses before anything is trained
        chosen = select(experiment, workdir, common.command())
        experiment = with_knob(experiment, "gafm", "delta", chosen.delta)
    plan = train_sweep(experiment, workdir, common.command())
    attack_sweep(plan, workdir)
    store.export(workdir)
    took = time.monotonic() - began
    print(page.present(workdir))
    print(f"sweep, compiles and attacks included: {took:.0f} s")


if __name__ == "__main__":
    common.start(run)
