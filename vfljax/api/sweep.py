"""``vfljax sweep`` and ``vfljax.run_sweep``: a grid of trials that is trained, attacked and reported."""

from __future__ import annotations

import functools
import os
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import vfljax
from vfljax.api.arguments import Options, Path, Whole, checked
from vfljax.api.flags import taken
from vfljax.api.report import requirement
from vfljax.errors import UserError, argument

if TYPE_CHECKING:
    from vfljax.api.loading import Sweep
    from vfljax.config import Config
    from vfljax.scheduling.work import Outcome


@checked
def run_sweep(
    config: Any,
    workdir: Path,
    *,
    decide: bool | None = None,
    confirm: bool = False,
    verbose: bool = False,
    beyond_limits: bool = False,
    plugin: Sequence[str] = (),
    launcher: str = "inline",
    jobs: Whole = 0,
    launcher_options: Options | None = None,
    command: str = "vfljax.run_sweep",
    say: Callable[[str], None] = print,
) -> Sweep:
    """Trains and attacks a grid of trials, writes tables and ``workdir/report.html``, and returns the sweep.

    Parts that are stored in ``workdir`` are not done again: the same call continues a sweep that was
    stopped or killed. Call ``vfljax.use_this_machine()`` first, before JAX's first computation, for all
    cores and a cache of compiled programs.

    Args:
      config: a config file, such as configs/quickstart.py, or FILE:VARIANT. In Python also a mapping of the
        fields of ``vfljax.config.DEFAULT``, or a ``vfljax.config.Config``. None continues what is stored in
        the folder.
      workdir: the folder of the sweep: new, or the one to continue.
      decide: train and attack the leading points again on 4 to 12 seeds of their own, under every attack that
        applies, to decide what to switch on; by default what the config says.
      confirm: judge what is switched on, or nearest to be, again on fresh seeds.
      verbose: say what the answers rest on too, as the report does.
      beyond_limits: plan sizes that are refused otherwise.
      plugin: a Python file, or the name of a module, with defenses or attacks of your own, which configs name
        'file:row'.
      launcher: where shards are trained and attacked: inline, in this process; local, in processes of this
        machine, and slurm, in a job array, by submitit (extra 'launch'); ray, in tasks of a Ray cluster
        (extra 'ray').
      jobs: jobs at once of local, slurm and ray; 0: a process a core, 16 tasks of an array, as many as Ray's
        cluster has room for.
      launcher_options: KEY=VALUE of submitit's executors, such as slurm_partition=gpu, timeout_min=240,
        gpus_per_node=1, mem_gb=32; of ray, address=HOST:PORT, num_cpus=2, num_gpus=1.
      command: the command that the report names as the sweep's origin.
      say: is given each line of progress, and at the end what the report says.

    Raises:
      UserError: for an invalid config, data that cannot be read, another sweep in ``workdir``, or too
        little memory or disk. The error is one line that says what to do.
    """
    from vfljax.api.loading import load
    from vfljax.auditing import deciding
    from vfljax.scheduling import launchers, running
    from vfljax.scheduling.work import begin

    experiment, folder, command = experiment_for(
        config, workdir, beyond_limits=beyond_limits, plugin=plugin, command=command
    )
    deciding_too = experiment.decide if decide is None else decide
    if deciding_too:
        deciding.check(experiment)
    make = functools.partial(_make, experiment, folder.absolute(), command, deciding_too, confirm)
    start = launchers.opened(launcher, jobs, launcher_options or {})
    if start is None:
        outcomes = make(say)
    else:
        begin(experiment, folder, command, say)  # what cannot be trained is refused here
        outcomes = [launchers.launched(start, launchers.copy_of(make, folder, plugin), say)]
    say(running.report(folder, verbose))
    for outcome in outcomes:
        outcome.check()
    return load(folder)


def _make(
    experiment: Config,
    folder: pathlib.Path,
    command: str,
    decide: bool,
    confirm: bool,
    say: Callable[[str], None] = print,
) -> list[Outcome]:
    """Makes a sweep, its decision and its confirmation, but no report."""
    from vfljax.auditing import deciding
    from vfljax.scheduling import running

    outcomes = [running.finish(experiment, folder, command, say)]
    if decide:
        outcomes += deciding.decide(folder, command, say)
    if confirm:
        outcomes.append(running.confirm(folder, command, say))
    return outcomes


@checked
def experiment_for(
    config: Any,
    workdir: Path = ".",
    *,
    beyond_limits: bool = False,
    plugin: Sequence[str] = (),
    command: str = "",
) -> tuple[Config, pathlib.Path, str]:
    """Returns the experiment of the arguments of ``run_sweep``, its folder, and the command that made it.

    Without a config they are those of the sweep that is stored in the folder.
    """
    from ml_collections import ConfigDict

    from vfljax import store
    from vfljax.config import Config
    from vfljax.sweep.grid import parse

    folder = pathlib.Path(workdir)
    for source in plugin:
        vfljax.plugins.use(source)
    if isinstance(config, Config):
        return config, folder, command
    if isinstance(config, str | os.PathLike):
        config = vfljax.config.from_file(os.fspath(config))
    elif isinstance(config, ConfigDict):
        config = config.to_dict()
    if config is not None and not isinstance(config, Mapping):
        what = f" is of type {type(config).__name__}"
        remedy = "give a mapping of fields, or the path of a config file"
        raise UserError((argument("config"), what), remedy=remedy)
    if config is not None:
        return parse(config, beyond_limits=beyond_limits), folder, command
    stored = store.header_of(folder)
    if stored is None:
        what = f"{folder} holds no sweep: give a --config, for example configs/quickstart.py."
        raise UserError(what)
    vfljax.plugins.check_in_use(stored, folder)
    return parse(stored["config"], beyond_limits=True), folder, stored["command"]


def command(*, dry_run: bool = False, print_config: bool = False, **options: Any) -> None:
    """Train a grid of configurations, attack every trial, and report.

        vfljax sweep --config=configs/quickstart.py --workdir=runs/quickstart
        vfljax sweep --config=configs/quickstart.py --workdir=runs/ten --config.seeds=10
        vfljax sweep --config=CONFIG --workdir=DIR --plugin=mine.py   # which the config names "mine:row"
        vfljax sweep --config=CONFIG --print_config             # every field, its default and what it means
        vfljax sweep --config=CONFIG --workdir=DIR --dry_run    # prints what it would take
        vfljax sweep --config=CONFIG --workdir=DIR --launcher=slurm --launcher_options=slurm_partition=gpu
        vfljax sweep --workdir=DIR                   # continues what is there
        vfljax sweep --workdir=DIR --decide          # decides on seeds of their own, under every attack
        vfljax sweep --workdir=DIR --confirm         # judges what is switched on again, on fresh seeds

    The same command again continues a sweep that was stopped or killed, and ends with the same table. The
    exit status is 0 where all is done, 2 after a mistake, 3 if --fail_above or --fail_verdict is not met,
    130 on Ctrl-C and 143 on SIGTERM, which save what is trained. Several copies of the command may run in
    one WORKDIR and divide the work. With --launcher=local, slurm or ray other processes do so, in the same
    WORKDIR, which all of them must see; a part that fails three times is left out, and named at the end. It
    writes results.parquet and .csv (one row per trial), attacks.parquet and .csv, report.html,
    figures/*.png, and per shard the final weights and the exchange; see vfljax.load.

    Args:
      dry_run: train nothing: print trials, programs, shards, memory, disk, attacks.
      print_config: train nothing: print every field, its value and its default.
    """
    began, options = time.monotonic(), {"config": None, **options}
    if print_config:
        experiment, *_ = experiment_for(**{**taken(experiment_for, options), "beyond_limits": True})
        print(vfljax.config.described(experiment.stored))
        return
    if dry_run:
        from vfljax.scheduling import running

        for name in (name for name in ("confirm", "decide") if options.get(name)):
            what = argument("dry_run"), " changes nothing"
            raise UserError(what, remedy=("leave ", argument(name), " out"))
        experiment, folder, _ = experiment_for(**taken(experiment_for, options))
        print(running.counted(experiment, folder))
        return
    require = requirement(**taken(requirement, options))
    sweep = run_sweep(**options)
    print(f"sweep, compiles and attacks included: {time.monotonic() - began:.0f} s")
    require(sweep.workdir)
