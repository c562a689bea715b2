"""Train a grid of settings, attack every one of them, and report.

    python -m launch.sweep --config=configs/quickstart.py --workdir=runs/quickstart
    python -m launch.sweep --config=configs/quickstart.py --workdir=runs/ten --config.seeds=10
    python -m launch.sweep --config=CONFIG --workdir=DIR --select_delta
    python -m launch.sweep --config=CONFIG --workdir=DIR --plugin=mine.py   # which the config names "mine:row"
    python -m launch.sweep --config=CONFIG --workdir=DIR --dry_run    # says what it would take
    python -m launch.sweep --config=CONFIG --workdir=DIR --launcher=slurm --launcher_options=slurm_partition=gpu
    python -m launch.sweep --workdir=DIR                   # goes on with what is there
    python -m launch.sweep --workdir=DIR --mend            # likewise, and makes what is damaged again

The same command again continues a sweep that was stopped or killed, and ends with the same table. The exit
status is 0 where all is done, 2 after a mistake, 130 on Ctrl-C and 143 on SIGTERM, which save what is trained.
With --launcher=local, slurm or ray other processes train and attack the shards, in the same WORKDIR, which all
of them must see; a shard that fails three times is left out, and named at the end.
What is written: results.parquet and .csv (one row a setting), attacks.parquet and .csv, report.html,
figures/*.png, and per shard the final weights and the exchange; see vfljax.store.load.
"""

from __future__ import annotations

import pathlib
import time
from typing import TYPE_CHECKING

from absl import flags
from ml_collections import config_flags

from launch import common
from vfljax.errors import UserError

if TYPE_CHECKING:
    from vfljax.sweep.experiment import Experiment

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
_PLUGIN = common.define_plugin("which the config names 'file:row'")
_LAUNCHER = common.define_launcher()
_MEND = flags.DEFINE_bool(
    "mend",
    False,
    "set aside what is damaged in WORKDIR (to WORKDIR/damaged) and make it again; see launch.verify",
)


_DRY_RUN = flags.DEFINE_bool(
    "dry_run",
    False,
    "train and write nothing: print programs, shards, memory, disk, attacks and an estimated time",
)


def run() -> None:
    from vfljax.launching.running import check, finish, forecast
    from vfljax.papers import reproduction
    from vfljax.report import page
    from vfljax.sweep import size
    from vfljax.sweep.experiment import with_knob
    from vfljax.sweep.plan import make_plan
    from vfljax.sweep.selection import select

    if not _WORKDIR.value:
        raise UserError(
            "--workdir is needed: python -m launch.sweep --config=configs/quickstart.py "
            "--workdir=runs/quickstart"
        )
    workdir = pathlib.Path(_WORKDIR.value)
    began = time.monotonic()
    common.use_plugins(_PLUGIN.value)
    experiment, command = _asked(workdir)
    common.say_unsealed(workdir)
    if _DRY_RUN.value:
        if _MEND.value or _SELECT_DELTA.value:
            raise UserError("--dry_run changes nothing: leave --mend and --select_delta out.")
        print(forecast(experiment, workdir))
        return
    if _MEND.value:
        _mend(workdir)
    with common.launched(_LAUNCHER, _PLUGIN.value) as way:
        if _SELECT_DELTA.value:  # in this process
            check(experiment)
            size.needs(make_plan(experiment), workdir)  # refuses before anything is trained
            chosen = select(experiment, workdir, command)
            experiment = with_knob(experiment, "gafm", "delta", chosen.delta)
        finish(experiment, workdir, command, way=way)
        took = time.monotonic() - began
        print(page.present(workdir, reproduction.extend))
        print(f"sweep, compiles and attacks included: {took:.0f} s")


def _asked(workdir: pathlib.Path) -> tuple[Experiment, str]:
    """The experiment of --config, or the one that is stored, and the command it was made with."""
    from vfljax import store
    from vfljax.sweep.experiment import parse, parse_stored
    from vfljax.sweep.limits import LIMITS, Limits

    if _CONFIG.value is not None:
        limits = Limits.none() if _BEYOND_LIMITS.value else LIMITS
        return parse(_CONFIG.value, limits), common.command()
    if not (workdir / "sweep.json").exists() and not (workdir / "sweep.copy.json").exists():
        raise UserError(
            f"{workdir} holds no sweep: give a --config, for example configs/quickstart.py."
        )
    if _SELECT_DELTA.value:
        raise UserError("--select_delta needs a --config: a stored sweep has its Delta.")
    header = store.read_header(workdir)
    return parse_stored(header["config"]), header["command"]


def _mend(workdir: pathlib.Path) -> None:
    from vfljax import store

    with store.writing(workdir):
        damaged = store.mend(workdir)
    for unit, _, why in damaged:
        print(f"set aside: {unit} ({why})")
    if not damaged:
        print(f"nothing in {workdir} is damaged")


if __name__ == "__main__":
    common.start(run, resumes=True)
