"""What commands do with the folder of a sweep before and after it is trained."""

from __future__ import annotations

import collections
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from vfljax import store
from vfljax.attacking.run import attack_sweep
from vfljax.errors import UserError
from vfljax.launching.running import check
from vfljax.launching.scheduler import Way
from vfljax.store.check import DAMAGED
from vfljax.sweep import size
from vfljax.sweep.experiment import (
    Experiment,
    changed,
    experiment_of,
    parse,
    parse_stored,
    with_knob,
)
from vfljax.sweep.limits import LIMITS, SizeLimits
from vfljax.sweep.plan import Plan, make_plan
from vfljax.sweep.selection import FOLDER as SELECTION
from vfljax.sweep.selection import select
from vfljax.sweep.train import header, plan_of


def experiment_for(
    config: Mapping[str, Any] | None,
    workdir: pathlib.Path,
    command: str,
    *,
    beyond_limits: bool = False,
) -> tuple[Experiment, str]:
    """Return the experiment of a config, or the stored one, and the command that made it.

    Args:
      config: the fields of a config; None for the sweep that is stored in ``workdir``.
      workdir: the folder of the sweep.
      command: the present command, which makes the sweep of a new config.
      beyond_limits: whether sizes are planned that are refused otherwise.

    Raises:
      UserError: for a config that cannot be meant, and where no sweep is stored.
    """
    if config is not None:
        return parse(config, SizeLimits.none() if beyond_limits else LIMITS), command
    if not (workdir / "sweep.json").exists() and not (workdir / "sweep.copy.json").exists():
        raise UserError(
            f"{workdir} holds no sweep: give a --config, for example configs/quickstart.py."
        )
    record = store.read_header(workdir)
    return parse_stored(record["config"]), record["command"]


def with_selected_delta(experiment: Experiment, workdir: pathlib.Path, command: str) -> Experiment:
    """Return the experiment with the Delta of gafm that is selected on a tenth of its rows."""
    check(experiment)
    size.needs(make_plan(experiment), workdir)  # refuses before anything is trained
    return with_knob(experiment, "gafm", "delta", select(experiment, workdir, command).delta)


def mend(workdir: pathlib.Path, say: Callable[[str], None] = print) -> None:
    """Set aside what is damaged in a sweep's folder."""
    with store.writing(workdir):
        damaged = store.mend(workdir)
    for unit, _, why in damaged:
        say(f"set aside: {unit} ({why})")
    if not damaged:
        say(f"nothing in {workdir} is damaged")


def verify(workdir: pathlib.Path, say: Callable[[str], None] = print) -> None:
    """Describe the state of every part of a sweep, and of the one that selected its Delta.

    Raises:
      UserError: if a part is damaged.
    """
    counts: collections.Counter[str] = collections.Counter()
    damaged = []
    for finding in store.inspect(workdir):
        counts[finding.state] += 1
        if finding.state == DAMAGED:
            damaged.append(finding)
        say(f"{finding.state:14s} {finding.unit}" + f" ({finding.why})" * bool(finding.why))
    say(", ".join(f"{count} {state}" for state, count in counts.items()))
    if damaged:
        raise UserError(
            f"{workdir} is damaged in {len(damaged)} of {counts.total()} parts, first {damaged[0].unit} "
            f"({damaged[0].why}): {store.remedy(workdir)} sets them aside and makes them again."
        )
    for line in store.load(workdir).unfinished:
        say(f"not finished: {line}; `vfljax sweep --workdir={workdir}` continues")
    if (workdir / SELECTION).is_dir():  # a sweep of its own, with its own remedy
        say(f"{workdir / SELECTION}:")
        verify(workdir / SELECTION, say)


def stored_plan(
    workdir: pathlib.Path,
    attacks: Sequence[str] | None,
    *,
    data_dir: str | None = None,
    unfinished: bool = False,
) -> Plan:
    """Plan a stored sweep as it was trained, to be attacked.

    Args:
      workdir: the folder of the sweep.
      attacks: names of the attacks that will be run; None for the sweep's own.
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
    attacks: Sequence[str] | None,
    way: Way,
    *,
    renew_rules: bool = False,
) -> None:
    """Run what is missing of the attacks on a stored sweep, and write its whole tables."""
    attack_sweep(plan, workdir, attacks, renew_rules=renew_rules, run=way.attack)
    store.export(workdir)


def refuse_other(workdir: pathlib.Path, experiment: Experiment) -> None:
    """Raise UserError if the folder holds the sweep of a config of another name."""
    if not (workdir / "sweep.json").exists():
        return
    name = experiment_of(store.load(workdir)).name
    if name != experiment.name:
        raise UserError(
            f"{workdir} holds the sweep {name!r} and not {experiment.name!r}: give another --workdir."
        )
