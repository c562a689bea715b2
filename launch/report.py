"""Write report.html and the figures of a sweep again, from what is stored.

python -m launch.report --workdir=runs/quickstart
python -m launch.report --workdir=runs/quickstart --out=analysis/results/quickstart  # tables.md, leaks.csv
python -m launch.report --workdir=runs/quickstart --times  # seconds of training and of each attack, alone
"""

from __future__ import annotations

import pathlib

from absl import flags

from launch import common
from vfljax.errors import UserError

_WORKDIR = flags.DEFINE_string("workdir", None, "folder of a sweep")
_OUT = flags.DEFINE_string("out", None, "also write every table (Markdown) and the frontier here")

_TIMES = flags.DEFINE_bool(
    "times", False, "print what training and each attack took, and write nothing"
)
_UNFINISHED = flags.DEFINE_bool(
    "unfinished", False, "report what there is of a sweep that is not finished"
)


def run() -> None:
    from vfljax import store
    from vfljax.papers import reproduction
    from vfljax.report import page, stored_rows, tables, terminal

    if not _WORKDIR.value:
        raise UserError("--workdir is needed: the folder of a sweep made by launch.sweep.")
    workdir = pathlib.Path(_WORKDIR.value)
    sweep = store.load(workdir)
    common.say_unsealed(workdir)
    if not sweep.results.num_rows:
        raise UserError(f"{workdir} has no finished settings yet: run launch.sweep again.")
    if not _UNFINISHED.value:
        sweep.require_finished()
    if _TIMES.value:
        seconds = tables.seconds_rows(stored_rows.read(sweep))
        print(f"{terminal.aligned(*seconds)}\n{tables.SECONDS}")
        return
    if _OUT.value and pathlib.Path(_OUT.value).is_file():
        raise UserError(f"--out={_OUT.value} is a file: name a folder.")
    print(page.present(workdir, reproduction.extend))
    if _OUT.value:
        page.excerpt(workdir, pathlib.Path(_OUT.value), reproduction.extend)
        print(f"tables and figure: {_OUT.value}")


if __name__ == "__main__":
    common.start(run)
