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
from vfljax import attacking, lab, report, selection, store, sweep
from vfljax.errors import UserError

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


def run() -> None:
    if _CONFIG.value is None or not _WORKDIR.value:
        raise UserError(
            "--config and --workdir are needed: python -m launch.sweep "
            "--config=configs/quickstart.py --workdir=runs/quickstart"
        )
    workdir = pathlib.Path(_WORKDIR.value)
    began = time.monotonic()
    config = _CONFIG.value
    if _SELECT_DELTA.value:
        lab.prepare(config)  # refuses a bad config before anything is trained
        config = selection.with_delta(
            config, selection.run(config, workdir, common.command()).delta
        )
    made = sweep.run(config, workdir, common.command())
    attacking.run(made, workdir)
    store.export(workdir)
    took = time.monotonic() - began
    print(report.present(workdir))
    print(f"sweep, compiles and attacks included: {took:.0f} s")


if __name__ == "__main__":
    common.start(run)
