"""``vfljax attack``, ``vfljax.attack`` and ``vfljax.attack_wire``: attacks on what is already trained."""

from __future__ import annotations

import functools
import pathlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

import vfljax
from vfljax.api.arguments import Options, Path, Whole, checked
from vfljax.api.flags import refuse_others, taken
from vfljax.errors import UserError, argument

if TYPE_CHECKING:
    from vfljax.api.loading import Sweep
    from vfljax.scheduling.work import Outcome


@checked
def attack(
    workdir: Path,
    attacks: Sequence[str] | Mapping[str, Any] = (),
    *,
    data_dir: Path | None = None,
    unfinished: bool = False,
    drop: Sequence[str] = (),
    plugin: Sequence[str] = (),
    launcher: str = "inline",
    jobs: Whole = 0,
    launcher_options: Options | None = None,
    say: Callable[[str], None] = print,
) -> Sweep:
    """Attacks the trials of a stored sweep, writes the report, and returns the sweep with the new rows.

    Args:
      workdir: the folder of a sweep.
      attacks: names of attacks, or in Python a mapping of names to options, as in a config; by default the
        sweep's own.
      data_dir: where the data is now, if it has moved.
      unfinished: attack what there is of a sweep that is not finished.
      drop: remove the rows of these attacks, and run none.
      plugin: a Python file, or the name of a module, with attacks of your own, which are named 'file:row'.
      launcher: where attacks are run; see ``vfljax sweep``.
      jobs: jobs at once of local, slurm and ray; see ``vfljax sweep``.
      launcher_options: KEY=VALUE of the launcher; see ``vfljax sweep``.
      say: is given each line of progress, and at the end what the report says.

    Raises:
      UserError: for unknown attacks, a sweep that is not finished, and data that has changed.
    """
    from vfljax.api.loading import load
    from vfljax.scheduling import launchers, running

    folder = pathlib.Path(workdir)
    for source in plugin:
        vfljax.plugins.use(source)
    if drop:
        if attacks:
            what = argument("drop"), " runs no attack"
            raise UserError(what, remedy=("leave ", argument("attacks"), " out"))
        running.drop_attacks(folder, drop)
        say(running.report(folder))
        return load(folder)
    moved = None if data_dir is None else str(data_dir)
    attack_stored = functools.partial(
        _attack_stored, folder.absolute(), attacks or None, moved, unfinished
    )
    start = launchers.opened(launcher, jobs, launcher_options or {})
    if start is None:
        (outcome,) = attack_stored(say)
    else:
        # what cannot be attacked is refused here
        running.stored_plan(folder, data_dir=moved, unfinished=unfinished)
        copy = launchers.copy_of(attack_stored, folder, plugin)
        outcome = launchers.launched(start, copy, say)
    say(running.report(folder))
    outcome.check()
    return load(folder)


def _attack_stored(
    folder: pathlib.Path,
    attacks: Any,
    data_dir: str | None,
    unfinished: bool,
    say: Callable[[str], None] = print,
) -> list[Outcome]:
    """Attacks a stored sweep, but writes no report."""
    from vfljax.scheduling import running

    plan = running.stored_plan(folder, data_dir=data_dir, unfinished=unfinished)
    return [running.attack_stored(plan, folder, attacks, say)]


@checked
def attack_wire(
    wire: Sequence[Path | Mapping[str, Any]],
    workdir: Path,
    *,
    after: Sequence[Path | Mapping[str, Any]] = (),
    federation: str = "split",
    known: Whole = 0,
    bins: Whole = 0,
    attacks: Sequence[str] = (),
    utility: Sequence[float] = (),
    alone: Sequence[float] = (),
    after_utility: Sequence[float] = (),
    after_epsilon: Annotated[float, msgspec.Meta(ge=0)] = 0.0,
    budget: float | str | None = 0,
    command: str = "vfljax.attack_wire",
    say: Callable[[str], None] = print,
) -> Sweep:
    """Attacks a recorded exchange of any federation, and returns a sweep.

    Args:
      wire: a recorded exchange, a file or folder, or several runs. In Python also the arrays of
        ``vfljax.datasets.wire`` by name, which are written to ``workdir``.
      workdir: the folder that the attacks are written to; the same call continues one that was stopped.
      after: the same runs under a defense.
      federation: of a wire: with a top model (split), or without one (no_split).
      known: of a wire: labels that attackers know; 0: 40, or two a class.
      bins: of a wire whose labels are numbers: how many classes their quantiles make.
      attacks: names of attacks; by default those of an audit (``vfljax.suite``) that apply.
      utility: of a wire: test accuracy (AUC of rare classes, R² of numbers), of all runs or one each.
      alone: of a wire: the same of the label party without the others.
      after_utility: of a wire: the same of the runs under a defense.
      after_epsilon: of a wire: the ε of label differential privacy that the defense claims, to be audited from
        below on half of the rows; 0: none.
      budget: of a wire: how long it may take, such as 90s, 10m or 1h30m; 0: without a limit. What is begun is
        finished, and the same call continues.
      command: the command that the report names as the sweep's origin.
      say: is given each line of progress, and at the end what the report says.

    Raises:
      UserError: for recordings or arguments that are not valid.
    """
    from vfljax.api.audit import seconds_of
    from vfljax.api.loading import load
    from vfljax.auditing import suite, wires
    from vfljax.scheduling import running

    end, folder = time.monotonic() + seconds_of(budget), pathlib.Path(workdir)
    runs = wires.written(wire, folder / "wire.npz", bins)
    defended = wires.written(after, folder / "after.npz", bins)
    for name, value in {"after_utility": after_utility, "after_epsilon": after_epsilon}.items():
        if value and not defended:
            remedy = ("give ", argument("after"), ", or leave it out")
            raise UserError("is of no recording", field=argument(name), remedy=remedy)
    methods = {suite.UNDEFENDED: runs, wires.DEFENDED: defended}
    utilities = {suite.UNDEFENDED: utility, wires.DEFENDED: after_utility}
    knobs = {wires.DEFENDED: {"epsilon": after_epsilon}} if after_epsilon else {}
    request = wires.WireRequest(
        methods={
            name: (
                wires.Recorded(paths, wires.Utilities(tuple(utilities[name])), knobs.get(name, {})),
            )
            for name, paths in methods.items()
            if paths or name == suite.UNDEFENDED
        },
        remarks=dict.fromkeys(knobs, wires.CLAIMED),
        observed=bool(knobs),
        federation=federation,
        known=known,
        bins=bins,
        attacks=tuple(attacks),
        alone=wires.Utilities(tuple(alone)),
    )
    if wires.attack(request, folder, command, say, lambda unit: time.monotonic() < end):
        say(running.report(folder))
    return load(folder)


def command(**options: Any) -> None:
    """Attack a finished sweep, or what any federation exchanged, without training anything.

        vfljax attack --workdir=runs/quickstart --attacks=joint,ranks
        vfljax attack --wire=run0.npz,run1.npz,run2.npz --workdir=runs/wire  # recorded elsewhere
        vfljax attack --workdir=runs/quickstart --drop=joint     # removes what is stored of it

    Attacks named in the sweep's config run with its options, others with published defaults. An attack that
    cannot run on the sweep is skipped, with the reason. Finished attacks are not run again. An attack whose
    rule has changed since is run anew, and its earlier rows are kept and shown as such.

    A recorded exchange is a file of arrays (analysis/reference/wire_format.md), and each run of the federation
    is a seed. With --after, the same runs under a defense, the report says what the defense changes.
    """
    line = options.pop("command")
    if "wire" in options:
        given = taken(attack_wire, options)
        refuse_others(attack, options, "a stored sweep", "leave it out")
        attack_wire(**given, command=line)
    else:
        given = taken(attack, options)
        remedy = ("leave it out, or give ", argument("wire"))
        refuse_others(attack_wire, options, "a recorded exchange", remedy)
        attack(**given)
