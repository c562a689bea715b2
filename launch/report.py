"""Write report.html and the figures of a sweep again, from what is stored.

python -m launch.report --workdir=runs/quickstart
"""

from __future__ import annotations

import pathlib

from absl import flags

from launch import common
from vfljax import report, store
from vfljax.errors import UserError

_WORKDIR = flags.DEFINE_string("workdir", None, "folder of a sweep")


def run() -> None:
    if not _WORKDIR.value:
        raise UserError("--workdir is needed: the folder of a sweep made by launch.sweep.")
    workdir = pathlib.Path(_WORKDIR.value)
    if not store.load(workdir).results.num_rows:
        raise UserError(f"{workdir} has no finished settings yet: run launch.sweep again.")
    print(report.present(workdir))


if __name__ == "__main__":
    common.start(run)
