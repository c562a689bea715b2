"""What commands and notebooks do with a sweep: run it, and work on the folder of a stored one."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import jax

from vfljax import store
from vfljax.attack_runs import run
from vfljax.attack_runs.bundles import Begun
from vfljax.attack_runs.jobs import planned
from vfljax.attack_runs.planning import extended
from vfljax.config import Config, changed
from vfljax.errors import UserError, unknown
from vfljax.report import controls, fresh, page, terminal
from vfljax.report.judged_sweep import CONFIRMED
from vfljax.report.sweep_answers import judge_sweep
from vfljax.scheduling.work import May, Outcome, Say, anything, begin, check_contracts, work
from vfljax.store.units import ATTACK, LOCAL_ONLY
from vfljax.sweep import profile, size, train
from vfljax.sweep.grid import experiment_of
from vfljax.sweep.plan import Plan
from vfljax.sweep.progress import heartbeat


def finish(
    experiment: Config,
    workdir: pathlib.Path,
    command: str,
    say: Say = print,
    may: May = anything,
    stages: Sequence[Config] = (),
) -> Outcome:
    """Trains and attacks what is not stored yet, and writes the tables, but no report.

    Args:
      experiment: to be trained and attacked.
      command: the command that makes the sweep, for its header.
      may: whether a unit may still be begun.
      stages: parts of the experiment whose units are made first, each a config that has the one before.

    Raises:
      UserError: for what cannot be trained, and if no shard could be.
    """
    begun = begin(experiment, workdir, command, say, stages)
    return exported(workdir, work(begun, say, may), say)


def exported(workdir: pathlib.Path, outcome: Outcome, say: Say) -> Outcome:
    """Writes the tables of a sweep whose units were made, and returns the outcome of that."""
    with (
        heartbeat(say, lambda: "writing the tables"),
        store.leading(workdir),
        profile.span("tables"),
    ):
        if not store.export(workdir):  # there is nothing to report
            outcome.check()
    return outcome


def confirm(workdir: pathlib.Path, command: str, say: Say = print) -> Outcome:
    """Trains and attacks undefended and what is switched on, or nearest to be, on fresh seeds, in
    ``WORKDIR/confirmed``.

    Args:
      workdir: the folder of a sweep that is trained and attacked.
      command: the command that makes the sweep, for its header.

    Raises:
      UserError: if the folder holds the fresh seeds of another configuration.
    """
    fields = fresh.fields(workdir)
    if fields is None:
        say(fresh.NOTHING)
        return Outcome({})
    folder = workdir / CONFIRMED
    experiment = _within(workdir, folder, fields, "the fresh seeds")
    return finish(experiment, folder, command, say)


def control(workdir: pathlib.Path, command: str, say: Say = print) -> list[Outcome]:
    """Trains and attacks undefended and what is switched on, or nearest to be, on permuted labels, in
    ``WORKDIR/controls``.

    Args:
      workdir: the folder of a sweep that is trained and attacked.
      command: the command that makes the sweep, for its header.

    Raises:
      UserError: if the folder holds the controls of another configuration.
    """
    found, outcomes = judge_sweep(workdir), []
    for name in controls.CONTROLS:
        folder, fields = workdir / controls.FOLDER / name, controls.fields(found, name)
        say(f"a control, labels {controls.LABELS[name]}:")
        experiment = _within(workdir, folder, fields, "a control")
        outcomes.append(finish(experiment, folder, command, say))
    return outcomes


def _within(
    workdir: pathlib.Path, folder: pathlib.Path, fields: Mapping[str, Any], what: str
) -> Config:
    """Returns the config of a sweep in the folder of another one, whose config differs in some fields.

    Raises:
      UserError: if the folder holds ``what``, such as "a control", of another configuration.
    """
    stored = store.header_of(folder)
    if stored is not None:  # an answer that these seeds have closed would ask for fewer
        fields = {**fields, "seeds": stored["config"]["seeds"]}
    experiment = changed(experiment_of(store.load(workdir)), fields)
    if stored is not None and not _extends(experiment.stored, stored["config"]):
        raise UserError(
            f"{folder} has {what} of another configuration",
            remedy="remove that folder, and the same command makes it anew",
        )
    return experiment


def _extends(config: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
    """Returns whether a config has a stored one's first seed, and all of its points."""
    grid = config["grid"]
    points = all(grid.get(name) == chain for name, chain in stored["grid"].items())
    return points and config["first_seed"] == stored["first_seed"]


def report(workdir: pathlib.Path, verbose: bool = False) -> str:
    """Writes a sweep's report; returns it for a terminal, with what the answers rest on if ``verbose``."""
    return page.present(workdir, verbose=verbose)


def counted(experiment: Config, workdir: pathlib.Path) -> str:
    """Returns what ``finish`` would do, in counts and bytes. Nothing is trained or written.

    Args:
      experiment: to be trained and attacked.
      workdir: the folder of the sweep, which may hold a part of it.

    Raises:
      UserError: if ``finish`` would raise one, or the plan does not fit into memory.
    """
    stored = store.header_of(workdir)
    check_contracts(experiment)
    plan, needs = train.planned(experiment, workdir)
    if stored is not None:
        store.refuse_another(workdir, stored, train.header(plan, ""))
    left = {shard.name for shard in size.unfinished(plan, workdir)}
    rows = [
        [
            group.name,
            f"{len(group.trials):,}",
            f"{group.weights:,}",
            f"{sum(shard.group == number for shard in plan.shards):,}",
            f"{sum(shard.group == number and shard.name in left for shard in plan.shards):,}",
        ]
        for number, group in enumerate(plan.groups)
    ]
    attacked = [
        [each.label, str(len(each.knobs)), each.skipped or "runs"]
        for each in planned(plan, experiment)
    ]
    trials = sum(len(group.trials) for group in plan.groups)
    parts = [
        f"{trials} trials in {len(plan.groups)} programs on {jax.device_count()} "
        f"{jax.default_backend()} devices, {len(left)} shards to train: {needs}",
        terminal.aligned(("program", "trials", "weights", "shards", "to train"), rows),
        terminal.aligned(("attack", "points", "runs or is skipped"), attacked) if attacked else "",
    ]
    return "\n\n".join(filter(None, parts))


# --- the folder of a sweep before and after it is trained ---


def stored_plan(
    workdir: pathlib.Path, *, data_dir: str | None = None, unfinished: bool = False
) -> Plan:
    """Plans a stored sweep as it was trained, to be attacked.

    Args:
      data_dir: where the data are now, if they have moved.
      unfinished: whether a sweep that is not trained whole is planned too.

    Raises:
      UserError: if the sweep is not finished, or the data have changed since.
    """
    sweep = store.load(workdir)
    if sweep.results.num_rows < sweep.header["trials"] and not unfinished:
        sweep.require_finished()
    experiment = experiment_of(sweep)
    if data_dir is not None:
        experiment = changed(experiment, {"data.dir": data_dir})
    plan = train.plan_of(experiment, sweep.header)
    why = store.difference(sweep.header, train.header(plan, ""))
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
    say: Say = print,
    may: May = anything,
) -> Outcome:
    """Runs those attacks on a stored sweep that are not stored yet, and writes its tables.

    Args:
      plan: of the stored sweep.
      attacks: names of those that are run, on all trials, or a mapping of names to options; None for the
        sweep's own.
      may: whether a unit may still be begun.
    """
    experiment = plan.experiment
    asked = experiment if attacks is None else experiment.with_attacks(attacks)
    check_contracts(asked)
    run.check_plugins(asked, workdir)
    variants = planned(plan, asked)
    for each in variants:
        if each.skipped:
            say(f"skipped {each.label}: {each.skipped}")
    with store.leading(workdir):
        settling = attacks is None and experiment.skip_settled and not experiment.reproduces
        header = extended(store.read_header(workdir), plan, variants, settling)
        header = store.write(workdir, header)
        store.clear_failures(workdir)
    keys = {each.key for each in variants}

    def asked_for(unit: store.Unit) -> bool:
        of_these = unit.kind == LOCAL_ONLY or (unit.kind == ATTACK and unit.of in keys)
        return of_these and may(unit)

    return exported(workdir, work(Begun(plan, workdir, header), say, asked_for), say)


def drop_attacks(workdir: pathlib.Path, names: Collection[str]) -> None:
    """Removes attacks from a stored sweep, prints their labels, and writes the tables.

    Args:
      names: names of attacks ("direct"), or labels of single variants ("direct/most_negative").

    Raises:
      UserError: for a name of which nothing is stored.
    """
    with store.leading(workdir):
        header = store.read_header(workdir)
        entries = header["attacks"]
        known = dict.fromkeys(t for e in entries.values() for t in (e["attack"], e["label"]))
        for name in names:
            if name not in known:
                raise unknown("attack", name, known, f" No other is stored in {workdir}.")
        gone = {key: e for key, e in entries.items() if {e["attack"], e["label"]} & {*names}}
        rest = {key: entry for key, entry in entries.items() if key not in gone}
        store.write(workdir, {**header, "attacks": rest})  # from here on they count as removed
        for key in gone:
            shutil.rmtree(workdir / ATTACK / key, ignore_errors=True)
            shutil.rmtree(workdir / "partial" / ATTACK / key, ignore_errors=True)
        store.export(workdir)
    print(f"dropped: {', '.join(entry['label'] for entry in gone.values())}")
    for line in store.load(workdir).unfinished:
        print(f"not finished: {line}; `vfljax sweep --workdir={workdir}` continues")
