"""A sweep as one call: what ``launch.sweep`` and notebooks do.

What enters: a config and a folder. What leaves: the finished sweep, read from that folder.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from vfljax import contract, store
from vfljax.attacking.run import attack_sweep
from vfljax.report import page
from vfljax.sweep.experiment import Experiment, parse
from vfljax.sweep.train import train_sweep


def run_sweep(
    config: Mapping[str, Any] | Experiment,
    workdir: str | os.PathLike[str],
    *,
    command: str = "vfljax.run_sweep",
    say: Callable[[str], None] = print,
) -> store.Sweep:
    """Train a grid of settings, attack every one of them, write tables and report; return the sweep.

    What is stored in ``workdir`` already is not done again: the same call continues a sweep that was
    stopped or killed. Call ``vfljax.use_this_machine()`` first, before JAX's first computation, for all
    cores and a cache of compiled programs.

    Args:
      config: a mapping of the fields of ``vfljax.config.DEFAULT``, such as a config file's
        ``get_config()`` returns; fields that it lacks have their defaults. Or an ``Experiment``.
      workdir: the folder of the sweep, new or of the same config.
      command: what the report says the sweep was made by.
      say: is given each line of what is being done.

    Raises:
      UserError: for a config that means nothing, data that cannot be read, another sweep in ``workdir``,
        or too little memory or disk; of one line that says what to do.
    """
    folder = pathlib.Path(workdir)
    finish(config if isinstance(config, Experiment) else parse(config), folder, command, say)
    page.write(folder)
    return store.load(folder)


def finish(
    experiment: Experiment,
    workdir: pathlib.Path,
    command: str,
    say: Callable[[str], None] = print,
) -> None:
    """Train and attack what is not stored yet, and write the whole tables; without a report."""
    contract.check_plugins(experiment.points, experiment.static_options)
    plan = train_sweep(experiment, workdir, command, say)
    attack_sweep(plan, workdir, say=say)
    store.export(workdir)
