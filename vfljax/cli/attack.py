"""Attack a finished sweep, without training anything.

    vfljax attack --workdir=runs/quickstart --attacks=passive,norm

Attacks named in the sweep's config run with its options, others with published defaults. An attack
that cannot run on the sweep is skipped, with the reason. Finished attacks are not run again. Where an attack's
rule has changed since (its rule number), what is stored stays as it is, and --renew_rules attacks anew.
"""

from __future__ import annotations

from vfljax.cli import common

RESUMES = True


def define(options: common.Options) -> None:
    """Define the flags of the command."""
    options.add("workdir", "folder of a sweep")
    options.add("attacks", "comma-separated names; default: the sweep's own", ())
    options.add("data_dir", "where the data is now, if it has moved")
    options.add("unfinished", "attack what there is of a sweep that is not finished", False)
    options.add(
        "renew_rules",
        "attack anew what an earlier rule attacked; its rows are kept and shown as such",
        False,
    )
    common.define_launcher(options)
    common.define_profile(options)


def run(options: common.Options) -> None:
    """Run the attacks and write the report again."""
    from vfljax.launching import chosen, running

    workdir = options.folder
    attacks = options.attacks or None
    plan = running.stored_plan(
        workdir, attacks, data_dir=options.data_dir, unfinished=options.unfinished
    )
    where = options.launcher, options.jobs, options.launcher_options, options.plugin
    with chosen(*where, attacks) as way:
        running.attack_stored(plan, workdir, attacks, way, renew_rules=options.renew_rules)
        print(running.report(workdir))
