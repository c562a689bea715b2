"""Attack a finished sweep, without training anything.

    python -m launch.attack --workdir=runs/quickstart --attacks=passive,norm

Attacks named in the sweep's config run with its options, others with published defaults. An attack
the sweep cannot serve is skipped, saying why. Finished attacks are not run again.
"""

from __future__ import annotations

import pathlib

from absl import flags

from launch import common
from vfljax import attacking, lab, report, store, sweep
from vfljax.datasets.core import checksum, identity
from vfljax.errors import UserError

_WORKDIR = flags.DEFINE_string("workdir", None, "folder of a sweep")
_ATTACKS = flags.DEFINE_list("attacks", None, "comma-separated names; default: the sweep's own")
_DATA_DIR = flags.DEFINE_string("data_dir", None, "where the data is now, if it has moved")


def run() -> None:
    if not _WORKDIR.value:
        raise UserError("--workdir is needed: the folder of a sweep made by launch.sweep.")
    workdir = pathlib.Path(_WORKDIR.value)
    header = store.read_header(workdir)
    config = header["config"]
    if _DATA_DIR.value is not None:
        config["data"]["dir"] = _DATA_DIR.value
    made = lab.prepare(config)
    values = checksum(made.dataset)
    own = identity(made.dataset, values)
    if values != header["checksum"] or header.get("identity", own) != own:
        raise UserError(
            f"the data of {workdir} has changed since it was trained: give the same data by --data_dir."
        )
    sweep.enable_compile_cache(workdir)
    attacking.run(made, workdir, _ATTACKS.value)
    store.export(workdir)
    print(report.present(workdir))


if __name__ == "__main__":
    common.start(run)
