"""What commands and notebooks do with a sweep: run it, count it, and work on the folder of a stored one."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

import jax
import pandas as pd
import pyarrow as pa

from vfljax import contract, papers, store
from vfljax.attacking.jobs import COLUMNS, plan_variant
from vfljax.attacking.run import attack_sweep
from vfljax.config import Config, changed
from vfljax.errors import UserError
from vfljax.launching import INLINE, Way
from vfljax.machine import bytes_text
from vfljax.papers import reproduction
from vfljax.report import fresh, page, terminal
from vfljax.report.judged import CONFIRMED
from vfljax.store.check import DAMAGED
from vfljax.sweep import profile, size
from vfljax.sweep.grid import defense_values, experiment_of, parse
from vfljax.sweep.plan import Plan, divided_as, recorded
from vfljax.sweep.train import header, plan_of, planned, train_sweep
from vfljax.sweep.variants import static_options


def check(experiment: Config) -> None:
    """Checks, before anything is trained, what the parser of configs cannot check: plugins against their
    contract, and the paper's table that the sweep reproduces.

    Raises:
      ContractError, UserError: one line that says what to do.
    """
    contract.check_plugins(defense_values(experiment), static_options(experiment))
    papers.check(experiment.reproduces)


def finish(
    experiment: Config,
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


def counted(experiment: Config, workdir: pathlib.Path) -> str:
    """Returns what ``finish`` would train and attack: programs, trials, shards, attacks, memory and disk.

    Nothing is trained and nothing is written.

    Args:
      experiment: to be trained and attacked.
      workdir: the folder of the sweep, which may hold a part of it.

    Raises:
      UserError: if ``finish`` would raise one, or the plan does not fit into memory.
    """
    stored = store.header_of(workdir)
    check(experiment)
    plan, needs = planned(experiment, workdir)
    if stored is not None:
        store.refuse_another(workdir, stored, header(plan, ""))
        plan = divided_as(plan, stored)
    todo = size.unfinished(plan, workdir)
    every, left = (sum(len(s.trials) for s in shards) for shards in (plan.shards, todo))
    lines = [
        f"{every} trials in {len(plan.groups)} programs on {jax.device_count()} "
        f"{jax.default_backend()} devices, {len(todo)} shards to train: {needs}"
    ]
    if stored is not None:
        lines.append(f"{every - left} of them are trained already, in {workdir}")
    programs = []
    for number, group in enumerate(plan.groups):
        shards = [shard for shard in plan.shards if shard.group == number]
        disk = bytes_text(sum(size.bytes_of(plan, shard) for shard in shards))
        counts = (str(len(group.trials)), str(len(shards)), str(shards[0].capacity), disk)
        programs.append([group.name, *counts])
    head = ("program", "trials", "shards", "trials at a time", "disk")
    lines.append(terminal.aligned(head, programs))
    attacked, skipped = [], []
    sweep = _as_trained(plan, workdir)
    for variant in plan.attack_variants:
        found = plan_variant(variant, recorded(plan), sweep)
        if found.skipped:
            skipped.append(f"skipped {variant.label}: {found.skipped}")
        else:
            federations = ", ".join(dict.fromkeys(group.federation for group in found.jobs))
            attacked.append([variant.label, federations, str(found.trials)])
    if attacked:
        lines.append(terminal.aligned(("attack", "federations", "runs"), attacked, left=2))
    return "\n\n".join([*lines, *(["\n".join(skipped)] if skipped else [])])


def _as_trained(plan: Plan, workdir: pathlib.Path) -> store.StoredSweep:
    """Returns a sweep whose results are those of the plan's trials, as if all had been trained."""
    names = [plan.groups[shard.group].name for shard in plan.shards]
    shards = [{"name": s.name, "group": g} for s, g in zip(plan.shards, names, strict=True)]
    trained = pd.concat(
        plan.groups[shard.group].trials.iloc[list(shard.trials)].assign(shard=shard.name)
        for shard in plan.shards
    )
    results = trained.sort_values("trial").assign(status="ok", member=0)[COLUMNS]
    table = pa.Table.from_pandas(results, preserve_index=False)
    return store.StoredSweep(workdir, {"shards": shards}, table, pa.table({}))


# --- the folder of a sweep before and after it is trained ---


def experiment_for(
    config: Mapping[str, Any] | None,
    workdir: pathlib.Path,
    command: str,
    *,
    beyond_limits: bool = False,
) -> tuple[Config, str]:
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
        return parse(config, beyond_limits=beyond_limits), command
    stored = store.header_of(workdir)
    if stored is None:
        raise UserError(
            f"{workdir} holds no sweep: give a --config, for example configs/quickstart.py."
        )
    return parse(stored["config"], beyond_limits=True), stored["command"]


def mend(workdir: pathlib.Path) -> None:
    """Sets the damaged parts of a sweep's folder aside, and prints their names."""
    with store.writing(workdir):
        damaged = store.mend(workdir)
    for unit, _, why in damaged:
        print(f"set aside: {unit} ({why})")
    if not damaged:
        print(f"nothing in {workdir} is damaged")


def verify(workdir: pathlib.Path) -> None:
    """Prints the state of every part of a sweep, and of its fresh seeds.

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
    if (workdir / CONFIRMED).is_dir():  # a sweep of its own, with its own remedies
        print(f"{workdir / CONFIRMED}:")
        verify(workdir / CONFIRMED)


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
