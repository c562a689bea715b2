"""Attack a finished sweep, or what any federation exchanged, without training anything.

    vfljax attack --workdir=runs/quickstart --attacks=passive,norm
    vfljax attack --wire=run0.npz,run1.npz,run2.npz --workdir=runs/wire  # recorded elsewhere
    vfljax attack --workdir=runs/quickstart --drop=norm      # removes what is stored of it

Attacks named in the sweep's config run with its options, others with published defaults. An attack
that cannot run on the sweep is skipped, with the reason. Finished attacks are not run again. An attack whose
rule has changed since is run anew, and its earlier rows are kept and shown as such.

A recorded exchange is a file of arrays (analysis/wire_format.md), and each run of the federation is a seed.
With --after, the same runs under a defense, the report says what the defense changes.
"""

from __future__ import annotations

import pathlib

from vfljax.cli.common import LAUNCHER, PROFILE, Flag, Options
from vfljax.errors import UserError

RESUMES = True
FLAGS = (
    Flag("workdir", "folder of a sweep", path=True),
    Flag("attacks", "comma-separated names; default: the sweep's own", ()),
    Flag("data_dir", "where the data is now, if it has moved", path=True),
    Flag("unfinished", "attack what there is of a sweep that is not finished", False),
    Flag(
        "wire", "a recorded exchange, a file or folder; several runs between commas", (), path=True
    ),
    Flag("after", "of a wire: the same runs under a defense", (), path=True),
    Flag("federation", "of a wire: with a top model (split), or without one (no_split)", "split"),
    Flag("known", "of a wire: labels that attackers know; 0: 40, or two a class", 0, least=0),
    Flag("utility", "of a wire: test accuracy (AUC of rare classes), of all runs or one each", ()),
    Flag("alone", "of a wire: the same of the label party without the others", ()),
    Flag("after_utility", "of a wire: the same of the runs under a defense", ()),
    Flag("drop", "remove the rows of these attacks, and run none", ()),
    *LAUNCHER,
    PROFILE,
)

OF_WIRES = ("after", "federation", "known", "utility", "alone", "after_utility")
OF_SWEEPS = (*("data_dir", "unfinished", "drop"), *("launcher", "jobs", "launcher_options"))


def run(options: Options) -> None:
    """Run the attacks and write the report again."""
    from vfljax.launching import chosen, running

    wire = options["wire"].present
    for name in OF_SWEEPS if wire else OF_WIRES:
        if options[name].present:
            kind = "a stored sweep" if wire else "a recorded exchange, --wire"
            raise UserError(f"--{name} is of {kind}: leave it out.")
    if wire:
        _attack_wire(options)
        return
    workdir = options.folder
    attacks = options.attacks or None
    if options.drop:
        if attacks:
            raise UserError("--drop runs no attack: leave --attacks out.")
        running.drop_attacks(workdir, options.drop)
        print(running.report(workdir))
        return
    plan = running.stored_plan(workdir, data_dir=options.data_dir, unfinished=options.unfinished)
    with chosen(options.launcher, options.jobs, options.launcher_options, options.plugin) as make:
        outcome = running.attack_stored(plan, workdir, attacks, make)
        print(running.report(workdir))
    outcome.check()


def _attack_wire(options: Options) -> None:
    """Attack the recordings that the flags name, and print the report."""
    from vfljax.auditing import wires
    from vfljax.launching import running

    folder = pathlib.Path(options.required("workdir", "the folder that the attacks are written to"))
    asked = wires.WireRequest(
        runs=tuple(options.wire),
        after=tuple(options.after),
        federation=options.federation,
        known=options.known,
        attacks=tuple(options.attacks),
        **{name: tuple(getattr(options, name)) for name in wires.UTILITIES},
    )
    if wires.attack(asked, folder, options.line):
        print(running.report(folder))
