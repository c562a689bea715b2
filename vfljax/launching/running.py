"""What commands and notebooks do with a sweep: run it, forecast it, and work on the folder of a stored one."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import jax

from vfljax import contract, papers, store
from vfljax.attacking.cost_estimate import ATTACKING, AttackCosts, attack_costs
from vfljax.attacking.run import attack_sweep
from vfljax.errors import UserError
from vfljax.launching import INLINE, Way
from vfljax.papers import reproduction
from vfljax.report import fresh, page, terminal
from vfljax.report.judged import CONFIRMED
from vfljax.store.check import DAMAGED
from vfljax.sweep import profile, programs, size
from vfljax.sweep.experiment import (
    Experiment,
    changed,
    experiment_of,
    parse,
    parse_stored,
    with_knob,
)
from vfljax.sweep.forecast import TRAINING, TrainingCost, ready, training_costs
from vfljax.sweep.limits import LIMITS, SizeLimits
from vfljax.sweep.plan import Plan, make_plan
from vfljax.sweep.progress import clock, spoken
from vfljax.sweep.selection import FOLDER as SELECTION
from vfljax.sweep.selection import select
from vfljax.sweep.train import header, plan_of, planned, train_sweep


def check(experiment: Experiment) -> None:
    """Checks, before anything is trained, what the parser of configs cannot check: plugins against their
    contract, and the paper's table that the sweep reproduces.

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
    """Trains and attacks what is not stored yet, and writes the tables, but no report.

    Args:
      experiment: to be trained and attacked.
      workdir: the folder of the sweep.
      command: the command that makes the sweep, for its header.
      say: is given each line of progress.
      way: trains and attacks, in this process or by jobs elsewhere.

    Returns:
      The plan.
    """
    check(experiment)
    plan = train_sweep(experiment, workdir, command, say, way.train)
    attack_sweep(plan, workdir, say=say, run=way.attack)
    with profile.span("tables"):
        store.export(workdir)
    return plan


def confirm(
    workdir: pathlib.Path, command: str, say: Callable[[str], None] = print, way: Way = INLINE
) -> None:
    """Trains and attacks undefended and what is recommended on fresh seeds, in ``WORKDIR/confirmed``.

    Args:
      workdir: the folder of a sweep that is trained and attacked.
      command: the command that makes the sweep, for its header.
      say: is given each line of progress.
      way: trains and attacks, in this process or by jobs elsewhere.

    Raises:
      UserError: if the folder holds the fresh seeds of another recommendation.
    """
    fields, folder = fresh.fields(workdir), workdir / CONFIRMED
    if fields is None:
        say(fresh.NOTHING)
        return
    experiment = changed(experiment_of(store.load(workdir)), fields)
    stored = store.header_of(folder)
    same = ("grid", "seeds", "first_seed")
    if stored is not None and any(stored["config"][n] != experiment.stored[n] for n in same):
        raise UserError(
            f"{folder} has the fresh seeds of another recommendation",
            remedy="remove that folder, and the same command makes it anew",
        )
    finish(experiment, folder, command, say, way)


def report(workdir: pathlib.Path) -> str:
    """Writes a sweep's report, with the table of a paper that it reproduces; returns it for a terminal."""
    return page.present(workdir, reproduction.extend)


def forecast(experiment: Experiment, workdir: pathlib.Path) -> str:
    """Returns what ``finish`` would do and how long it would take, in words and tables.

    The time is an estimate: an epoch of each program of training and a call of each attack are measured, on
    real data and this machine. Only compiled programs are written, to their cache.

    Args:
      experiment: to be trained and attacked.
      workdir: the folder of the sweep, which may hold a part of it.

    Raises:
      UserError: if ``finish`` would raise one, or the plan does not fit into memory.
    """
    stored = store.header_of(workdir)
    check(experiment)
    before = programs.compile_seconds("tracing"), programs.compile_seconds()
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
    tracing = programs.compile_seconds("tracing") - before[0]
    compiling = programs.compile_seconds() - before[1]
    lines.append(_total(plan, trained, attacked, tracing, compiling - tracing))
    return "\n\n".join(line for line in lines if line)


def _total(
    plan: Plan, trained: list[TrainingCost], attacked: AttackCosts, tracing: float, compiled: float
) -> str:
    """Returns the text on the estimate, its parts, and what it leaves out."""
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


# --- the folder of a sweep before and after it is trained ---


def experiment_for(
    config: Mapping[str, Any] | None,
    workdir: pathlib.Path,
    command: str,
    *,
    beyond_limits: bool = False,
) -> tuple[Experiment, str]:
    """Returns the experiment of a config, or the stored one, and the command that made it.

    Args:
      config: the fields of a config; None for the sweep that is stored in ``workdir``.
      workdir: the folder of the sweep.
      command: the present command, which makes the sweep of a new config.
      beyond_limits: whether sizes are allowed that are refused otherwise.

    Raises:
      UserError: for an invalid config, and if no sweep is stored.
    """
    if config is not None:
        return parse(config, SizeLimits.none() if beyond_limits else LIMITS), command
    stored = store.header_of(workdir)
    if stored is None:
        raise UserError(
            f"{workdir} holds no sweep: give a --config, for example configs/quickstart.py."
        )
    return parse_stored(stored["config"]), stored["command"]


def with_selected_delta(experiment: Experiment, workdir: pathlib.Path, command: str) -> Experiment:
    """Returns the experiment with the Delta of gafm that is selected on a tenth of its rows.

    Args:
      experiment: of the sweep.
      workdir: the folder of the sweep.
      command: the command that makes the sweep, for its header.
    """
    check(experiment)
    size.needs(make_plan(experiment), workdir)  # refuses before anything is trained
    return with_knob(experiment, "gafm", "delta", select(experiment, workdir, command).delta)


def mend(workdir: pathlib.Path) -> None:
    """Sets the damaged parts of a sweep's folder aside, and prints their names."""
    with store.writing(workdir):
        damaged = store.mend(workdir)
    for unit, _, why in damaged:
        print(f"set aside: {unit} ({why})")
    if not damaged:
        print(f"nothing in {workdir} is damaged")


def verify(workdir: pathlib.Path) -> None:
    """Prints the state of every part of a sweep, of the one that selected its Delta, and of its fresh seeds.

    Raises:
      UserError: if a part is damaged.
    """
    counts: collections.Counter[str] = collections.Counter()
    damaged = []
    for finding in store.inspect(workdir):
        counts[finding.state] += 1
        damaged += [finding] if finding.state == DAMAGED else []
        print(f"{finding.state:14s} {finding.unit}" + f" ({finding.why})" * bool(finding.why))
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    if damaged:
        raise UserError(
            f"{workdir} is damaged in {len(damaged)} of {counts.total()} parts, first {damaged[0].unit} "
            f"({damaged[0].why}): {store.remedy(workdir)} sets them aside and makes them again."
        )
    for line in store.load(workdir).unfinished:
        print(f"not finished: {line}; `vfljax sweep --workdir={workdir}` continues")
    for name in (SELECTION, CONFIRMED):  # sweeps of their own, with their own remedies
        if (workdir / name).is_dir():
            print(f"{workdir / name}:")
            verify(workdir / name)


def stored_plan(
    workdir: pathlib.Path,
    attacks: Iterable[str] | Mapping[str, Any] | None,
    *,
    data_dir: str | None = None,
    unfinished: bool = False,
) -> Plan:
    """Plans a stored sweep as it was trained, to be attacked.

    Args:
      workdir: the folder of the sweep.
      attacks: names of the attacks that will be run, or a mapping of names to options; None for the sweep's
        own.
      data_dir: where the data are now, if they have moved.
      unfinished: whether a sweep that is not finished is planned too.

    Raises:
      UserError: if the sweep is not finished, or the data have changed since.
    """
    sweep = store.load(workdir)
    if sweep.results.num_rows < sweep.header["trials"] and not unfinished:
        sweep.require_finished()
    experiment = experiment_of(sweep)
    if data_dir is not None:
        experiment = changed(experiment, {"data.dir": data_dir})
    # planned as it was trained: other attacks would need other federations
    asked = experiment if attacks is None else experiment.with_attacks(attacks)
    check(asked)
    plan = plan_of(experiment, sweep.header)
    why = store.difference(sweep.header, header(plan, ""))
    if why:
        raise UserError(
            f"the data of {workdir} has changed since it was trained ({why}): give the same data by "
            "--data_dir."
        )
    return plan


def attack_stored(
    plan: Plan,
    workdir: pathlib.Path,
    attacks: Iterable[str] | Mapping[str, Any] | None,
    way: Way,
    *,
    renew_rules: bool = False,
    say: Callable[[str], None] = print,
) -> None:
    """Runs those attacks on a stored sweep that are not stored yet, and writes its tables.

    Args:
      plan: of the stored sweep.
      workdir: the folder of the sweep.
      attacks: names of those that are run, or a mapping of names to options; None for the sweep's own.
      way: attacks, in this process or by jobs elsewhere.
      renew_rules: as for ``attack_sweep``.
      say: is given each line of progress.
    """
    attack_sweep(plan, workdir, attacks, say, renew_rules, way.attack)
    store.export(workdir)


def drop_attacks(workdir: pathlib.Path, names: Collection[str]) -> None:
    """Removes attacks from a stored sweep, prints their labels, and writes the tables.

    Args:
      workdir: the folder of the sweep.
      names: as for ``store.drop``.

    Raises:
      UserError: for a name of which nothing is stored.
    """
    store.read_header(workdir)
    with store.writing(workdir):
        try:
            print(f"dropped: {', '.join(store.drop(workdir, names))}")
        finally:  # a call that was killed may not have done this
            store.export(workdir)
    for line in store.load(workdir).unfinished:
        print(f"not finished: {line}; `vfljax sweep --workdir={workdir}` continues")
