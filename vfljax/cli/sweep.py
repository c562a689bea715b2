"""Train a grid of configurations, attack every trial, and report.

    vfljax sweep --config=configs/quickstart.py --workdir=runs/quickstart
    vfljax sweep --config=configs/quickstart.py --workdir=runs/ten --config.seeds=10
    vfljax sweep --config=CONFIG --workdir=DIR --plugin=mine.py   # which the config names "mine:row"
    vfljax sweep --config=CONFIG --print_config             # every field, its default and what it means
    vfljax sweep --config=CONFIG --workdir=DIR --dry_run    # prints what it would take
    vfljax sweep --config=CONFIG --workdir=DIR --launcher=slurm --launcher_options=slurm_partition=gpu
    vfljax sweep --workdir=DIR                   # continues what is there
    vfljax sweep --workdir=DIR --mend            # likewise, and makes what is damaged again
    vfljax sweep --workdir=DIR --confirm         # judges what is recommended again, on three fresh seeds

The same command again continues a sweep that was stopped or killed, and ends with the same table. The exit
status is 0 where all is done, 2 after a mistake, 130 on Ctrl-C and 143 on SIGTERM, which save what is trained.
Several copies of the command may run in one WORKDIR and divide the work. With --launcher=local, slurm or ray
other processes do so, in the same WORKDIR, which all of them must see; a part that fails three times is left
out, and named at the end.
It writes results.parquet and .csv (one row per trial), attacks.parquet and .csv, report.html, figures/*.png,
and per shard the final weights and the exchange; see vfljax.store.load.
"""

from __future__ import annotations

import pathlib
import time

import vfljax
from vfljax.cli.common import CHANGES, LAUNCHER, PROFILE, REQUIREMENTS, Flag, Options, requirement
from vfljax.errors import UserError

RESUMES = True
FLAGS = (
    Flag("config", "a config file, such as configs/quickstart.py, or FILE:VARIANT"),
    CHANGES,
    Flag("workdir", "folder of the sweep: new, or the one to continue", path=True),
    Flag("confirm", "judge what is recommended again, on three fresh seeds", False),
    Flag("beyond_limits", "plan sizes that are refused otherwise", False),
    Flag("mend", "set aside what is damaged, in WORKDIR/damaged, and make it again", False),
    Flag("dry_run", "train nothing: print trials, programs, shards, memory, disk, attacks", False),
    Flag("print_config", "train nothing: print every field, its value and its default", False),
    *REQUIREMENTS,
    *LAUNCHER,
    PROFILE,
)


def run(options: Options) -> None:
    """Train, attack and report the sweep of a config, or continue the stored one."""
    from vfljax.launching import chosen, running

    if options.print_config:
        folder = pathlib.Path(options.workdir or ".")
        experiment, _ = running.experiment_for(options.config, folder, "", beyond_limits=True)
        print(vfljax.config.described(experiment.stored))
        return
    example = "configs/quickstart.py --workdir=runs/quickstart"
    workdir = pathlib.Path(options.required("workdir", f"for example --config={example}"))
    began = time.monotonic()
    require = requirement(options)
    experiment, command = running.experiment_for(
        options.config, workdir, options.line, beyond_limits=options.beyond_limits
    )
    if options.dry_run:
        if options.mend or options.confirm:
            raise UserError("--dry_run changes nothing: leave --mend and --confirm out.")
        print(running.counted(experiment, workdir))
        return
    if options.mend:
        running.mend(workdir)
    with chosen(options.launcher, options.jobs, options.launcher_options, options.plugin) as make:
        outcomes = [running.finish(experiment, workdir, command, make=make)]
        if options.confirm:
            outcomes.append(running.confirm(workdir, command, make=make))
        took = time.monotonic() - began
        print(running.report(workdir))
        print(f"sweep, compiles and attacks included: {took:.0f} s")
    for outcome in outcomes:
        outcome.check()
    require(workdir)
