"""Attack a finished sweep, without training anything.

    python -m launch.attack --workdir=runs/quickstart --attacks=passive,norm

Attacks named in the sweep's config run with its options, others with published defaults. An attack
the sweep cannot serve is skipped, saying why. Finished attacks are not run again. Where an attack's rule
has changed since (its rule number), what is stored stays as it is, and --renew_rules attacks anew.
"""

from __future__ import annotations

import pathlib

from absl import flags

from launch import common
from vfljax.errors import UserError

_WORKDIR = flags.DEFINE_string("workdir", None, "folder of a sweep")
_ATTACKS = flags.DEFINE_list("attacks", None, "comma-separated names; default: the sweep's own")
_DATA_DIR = flags.DEFINE_string("data_dir", None, "where the data is now, if it has moved")

_UNFINISHED = flags.DEFINE_bool(
    "unfinished", False, "attack what there is of a sweep that is not finished"
)
_RENEW_RULES = flags.DEFINE_bool(
    "renew_rules",
    False,
    "attack anew what an earlier rule of an attack attacked; the earlier rows are kept and shown as such",
)
_LAUNCHER = common.define_launcher()
_PLUGIN = common.define_plugin("which --attacks or the sweep name 'file:row'")


def run() -> None:
    from vfljax import datasets, store
    from vfljax.attacking.run import attack_sweep
    from vfljax.datasets.core import checksum, identity
    from vfljax.launching.running import check
    from vfljax.papers import reproduction
    from vfljax.report import page
    from vfljax.sweep.experiment import changed, experiment_of
    from vfljax.sweep.plan import make_plan

    if not _WORKDIR.value:
        raise UserError("--workdir is needed: the folder of a sweep made by launch.sweep.")
    workdir = pathlib.Path(_WORKDIR.value)
    common.use_plugins(_PLUGIN.value)
    sweep = store.load(workdir)
    common.say_unsealed(workdir)
    if sweep.results.num_rows < sweep.header["settings"] and not _UNFINISHED.value:
        sweep.require_finished()
    experiment = experiment_of(sweep)
    if _DATA_DIR.value is not None:
        experiment = changed(experiment, {"data.dir": _DATA_DIR.value})
    # planned as it was trained: other attacks would need other federations
    asked = experiment if _ATTACKS.value is None else experiment.with_attacks(_ATTACKS.value)
    check(asked)
    data = experiment.data
    with store.explained(sweep.header, datasets.reader_of(data.name, data.dir)):
        plan = make_plan(experiment)
    values = checksum(plan.dataset)
    now = {"checksum": values, "identity": identity(plan.dataset, values)}
    why = store.difference(sweep.header, {**now, "reader": plan.dataset.reader})
    if why:
        raise UserError(
            f"the data of {workdir} has changed since it was trained ({why}): give the same data by "
            "--data_dir."
        )
    with common.launched(_LAUNCHER, _PLUGIN.value, _ATTACKS.value) as way:
        attack_sweep(plan, workdir, _ATTACKS.value, renew_rules=_RENEW_RULES.value, run=way.attack)
        store.export(workdir)
        print(page.present(workdir, reproduction.extend))


if __name__ == "__main__":
    common.start(run, resumes=True)
