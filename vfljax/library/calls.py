"""What makes a sweep: ``vfljax.run_sweep`` and ``vfljax.audit``."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vfljax.auditing import frames
from vfljax.auditing.request import PARTIES, Request, argument_of, parties_of, seconds_of
from vfljax.auditing.stages import audit as run_audit
from vfljax.errors import UserError
from vfljax.launching import running
from vfljax.library.sweeps import Sweep, load
from vfljax.report import page
from vfljax.sweep.experiment import Experiment, parse


def run_sweep(
    config: Mapping[str, Any] | Experiment,
    workdir: str | os.PathLike[str],
    *,
    command: str = "vfljax.run_sweep",
    say: Callable[[str], None] = print,
) -> Sweep:
    """Trains a grid of trials, attacks every one of them, and writes tables and report.

    What is stored in ``workdir`` already is not done again: the same call continues a sweep that was
    stopped or killed. Call ``vfljax.use_this_machine()`` first, before JAX's first computation, for all
    cores and a cache of compiled programs.

    Args:
      config: a mapping of the fields of ``vfljax.config.DEFAULT``, such as a config file's
        ``get_config()`` returns; fields that it lacks have their defaults. Or an ``Experiment``.
      workdir: the folder of the sweep, new or of the same config.
      command: what the report says the sweep was made by.
      say: is given each line of what is being done.

    Returns:
      The sweep; ``workdir/report.html`` is its report.

    Raises:
      UserError: for a config that means nothing, data that cannot be read, another sweep in ``workdir``,
        or too little memory or disk. The error is one line that says what to do.
    """
    folder = pathlib.Path(workdir)
    experiment = config if isinstance(config, Experiment) else parse(config)
    running.finish(experiment, folder, command, say)
    running.report(folder)
    return load(folder)


def audit(
    table: Any,
    *,
    label: str,
    parties: Mapping[str, Sequence[str]] | str,
    workdir: str | os.PathLike[str],
    label_party: str | None = None,
    federation: str = "split",
    attackers: Sequence[str] = (),
    known: int = 0,
    budget: float | str = "10m",
    max_leak: float | None = None,
    max_cost: float = 1.0,
    keep_gain: float = 0.5,
    seeds: int = 5,
    confirm: bool = False,
    canaries: bool = False,
    options: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = print,
) -> Sweep:
    """Audits a table: what leaks of its labels, to which party, and which defense to switch on.

    It does what ``vfljax audit`` does.

    Args:
      table: a pandas ``DataFrame``, a ``pyarrow.Table``, or the path of a file. A frame is written to
        ``workdir/table.parquet``, without its index.
      label: the column of the labels.
      parties: who owns which columns, {"bank": ["AGE"], "telco": ["PAY_*"]}, by name or glob.
      workdir: where the audit is written; the same call continues one that was stopped.
      label_party: the party that has the labels; the first one by default.
      federation: "split", "no_split" or "both".
      attackers: the parties that attack, each alone; all but the label party by default.
      known: labels that attackers know; 0 is 40, or two a class.
      budget: seconds, or a text such as "10m".
      max_leak: the most that may leak, on the report's scale; None allows any, and verdicts decide.
      max_cost: the most test utility (accuracy or AUC) that a defense may cost; 1 allows any.
      keep_gain: the share of what the federation gains over the label party alone that is to be kept.
      seeds: of each configuration.
      confirm: whether what is recommended is judged on three fresh seeds.
      canaries: whether claimed epsilons are audited, in training of its own.
      options: of the table's loader (``vfljax.datasets.user_table.table``).
      say: is given each line of what is being done.

    Returns:
      The audit's own sweep; ``workdir/report.html`` is its report.

    Raises:
      UserError: of one line, as ``vfljax audit`` prints it.
    """
    folder = pathlib.Path(workdir)
    try:
        owners = parties_of(parties) if isinstance(parties, str) else _tuples(parties)
        is_file = isinstance(table, str | os.PathLike)
        request = Request(
            data=str(table if is_file else frames.written(table, folder)),
            label=label,
            parties=owners,
            label_party=next(iter(owners), "") if label_party is None else label_party,
            federation=federation,
            attackers=tuple(attackers),
            known=known,
            budget=seconds_of(budget) if isinstance(budget, str) else float(budget),
            max_leak=max_leak,
            max_cost=max_cost,
            keep_gain=keep_gain,
            seeds=seeds,
            confirm=confirm,
            canaries=canaries,
            options=dict(options or {}),
        )
        run_audit(request, folder, "vfljax.audit", say)
    except UserError as error:  # there are no flags here
        raise UserError(error.line(argument_of)) from error
    page.present(folder)
    return load(folder)


def _tuples(parties: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    for name, columns in parties.items():
        if isinstance(columns, str):
            what = f"={{{name!r}: {columns!r}}}"
            raise UserError((PARTIES, what), remedy="give a list of names or globs")
    return {name: tuple(columns) for name, columns in parties.items()}
