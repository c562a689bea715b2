"""Attack a finished sweep, without training anything.

    vfljax attack --workdir=runs/quickstart --attacks=passive,norm
    vfljax attack --workdir=runs/quickstart --drop=norm      # removes what is stored of it

Attacks named in the sweep's config run with its options, others with published defaults. An attack
that cannot run on the sweep is skipped, with the reason. Finished attacks are not run again. Where an attack's
rule has changed since (its rule number), what is stored stays as it is, and --renew_rules attacks anew.
"""

from __future__ import annotations

from vfljax.cli.common import LAUNCHER, PROFILE, Flag, Options
from vfljax.errors import UserError

RESUMES = True
FLAGS = (
    Flag("workdir", "folder of a sweep"),
    Flag("attacks", "comma-separated names; default: the sweep's own", ()),
    Flag("data_dir", "where the data is now, if it has moved"),
    Flag("unfinished", "attack what there is of a sweep that is not finished", False),
    Flag(
        "renew_rules",
        "attack anew what an earlier rule attacked; its rows are kept and shown as such",
        False,
    ),
    Flag("drop", "remove the rows of these attacks, and run none", ()),
    *LAUNCHER,
    PROFILE,
)


def run(options: Options) -> None:
    """Run the attacks and write the report again."""
    from vfljax.launching import chosen, running

    workdir = options.folder
    attacks = options.attacks or None
    if options.drop:
        if attacks or options.renew_rules:
            raise UserError("--drop runs no attack: leave --attacks and --renew_rules out.")
        running.drop_attacks(workdir, options.drop)
        print(running.report(workdir))
        return
    plan = running.stored_plan(
        workdir, attacks, data_dir=options.data_dir, unfinished=options.unfinished
    )
    where = options.launcher, options.jobs, options.launcher_options, options.plugin
    with chosen(*where, attacks) as way:
        running.attack_stored(plan, workdir, attacks, way, renew_rules=options.renew_rules)
        print(running.report(workdir))
