"""A sweep as one call: what ``vfljax sweep`` and notebooks do.

What enters: a config and a folder. What leaves: the finished sweep, read from that folder.
"""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import jax

from vfljax import contract, papers, store
from vfljax.attacking.cost_estimate import ATTACKING, AttackCosts, attack_costs
from vfljax.attacking.run import attack_sweep
from vfljax.launching import INLINE, Way
from vfljax.papers import reproduction
from vfljax.report import page, terminal
from vfljax.sweep import profile, programs, size
from vfljax.sweep.experiment import Experiment, parse
from vfljax.sweep.forecast import TRAINING, TrainingCost, ready, training_costs
from vfljax.sweep.plan import Plan
from vfljax.sweep.progress import clock, spoken
from vfljax.sweep.train import header, planned, train_sweep


def run_sweep(
    config: Mapping[str, Any] | Experiment,
    workdir: str | os.PathLike[str],
    *,
    command: str = "vfljax.run_sweep",
    say: Callable[[str], None] = print,
) -> store.Sweep:
    """Train a grid of trials, attack every one of them, write tables and report; return the sweep.

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
    page.write(folder, reproduction.extend)
    return store.load(folder)


def check(experiment: Experiment) -> None:
    """Checks, before anything is trained, what the parser of configs cannot: plugins against their
    contract, and the paper's table that the sweep is a run of.

    Raises:
      ContractError, UserError: one line that says what to do.
    """
    contract.check_plugins(experiment.defense_values, experiment.static_options)
    papers.check(experiment.reproduces)


def finish(
    experiment: Experiment,
    workdir: pathlib.Path,
    command: str,
    say: Callable[[str], None] = print,
    way: Way = INLINE,
) -> Plan:
    """Train and attack what is not stored yet, and write the whole tables; without a report.

    Args:
      experiment: what is trained and attacked.
      workdir: the folder of the sweep.
      command: what the sweep is made by.
      say: is given each line of what is being done.
      way: how, in this process or by jobs elsewhere.

    Returns:
      The plan.
    """
    check(experiment)
    plan = train_sweep(experiment, workdir, command, say, way.train)
    attack_sweep(plan, workdir, say=say, run=way.attack)
    with profile.span("tables"):
        store.export(workdir)
    return plan


def forecast(experiment: Experiment, workdir: pathlib.Path) -> str:
    """Returns what ``finish`` would do and how long it would take, in words and tables.

    The time is an estimate: an epoch of each program of training and a call of each attack are measured, on
    real data and this machine. Nothing is written but compiled programs, to their cache.

    Args:
      experiment: what would be trained and attacked.
      workdir: the folder of the sweep, which may hold a part of it.

    Raises:
      UserError: where ``finish`` would raise one, and for a plan that does not fit into memory.
    """
    stored = store.header_of(workdir)
    check(experiment)
    before = programs.tracing_seconds(), programs.compile_seconds()
    plan, needs = planned(experiment, workdir)
    if stored is not None:
        store.refuse_another(workdir, stored, header(plan, ""))
    shards = size.unfinished(plan, workdir)
    plan = ready(plan)
    trained, samples = training_costs(plan, shards)
    attacked = attack_costs(plan, workdir, shards, samples)
    left = sum(len(shard.trials) for shard in shards)
    trials = sum(len(group.trials) for group in plan.groups)
    lines = [
        f"{trials} trials in {len(plan.groups)} programs on {jax.device_count()} "
        f"{jax.default_backend()} devices, {len(shards)} shards to train: {needs}"
    ]
    if stored is not None:
        lines.append(f"{trials - left} of them are trained already, in {workdir}")
    if trained:
        lines.append(terminal.aligned(TRAINING, [cost.cells for cost in trained]))
    rows = [cost.cells for cost in attacked.costs]
    table = [terminal.aligned(ATTACKING, rows, left=2)] if rows else []
    skipped = [f"skipped {label}: {why}" for label, why in attacked.skipped.items()]
    lines.append("\n".join(table + skipped))
    tracing, compiling = (
        programs.tracing_seconds() - before[0],
        programs.compile_seconds() - before[1],
    )
    lines.append(_total(plan, trained, attacked, tracing, compiling - tracing))
    return "\n\n".join(line for line in lines if line)


def _total(
    plan: Plan, trained: list[TrainingCost], attacked: AttackCosts, tracing: float, compiled: float
) -> str:
    """The estimate, what it is made of, and what it leaves out."""
    parts = {
        "training": sum(cost.seconds for cost in trained),
        "attacks": sum(cost.seconds for cost in attacked.costs),
        f"{attacked.fits} regressions on the host": attacked.fitting,
        "tracing programs": tracing,
        "compiling attacks of many steps": sum(cost.compiling for cost in attacked.costs),
    }
    shares = ", ".join(f"{name} {spoken(s)}" for name, s in parts.items() if s)
    teachers = 0 if plan.table.scores is None else len(plan.table.scores)
    out = ["reading compiled programs", "writing files", "the report"]
    out = [f"{teachers} teachers"] * bool(teachers) + ["codebooks"] * bool(plan.codebooks) + out
    return (
        f"about {clock(sum(parts.values()))}: {shares or 'nothing is left to do'}\n"
        f"An estimate, from an epoch of each program and a call of each attack, measured just now on this "
        f"machine; without {', '.join(out[:-1])} and {out[-1]}.\n"
        f"Programs were compiled for {spoken(compiled)} and are kept for the sweep. Nothing else was written."
    )
