"""Check every file of a sweep by its checksum: what is sound, what is damaged, what a rerun will redo.

    python -m launch.verify --workdir=runs/quickstart

Nothing is changed. The exit status is 0 where everything that is there is sound, and 2 where something
is damaged; `python -m launch.sweep --workdir=DIR --mend` then sets that aside and makes it again. The sweep
that chose GAFM's Delta (--select_delta) is checked too.
"""

from __future__ import annotations

import collections
import pathlib

from absl import flags

from launch import common
from vfljax.errors import UserError

_WORKDIR = flags.DEFINE_string("workdir", None, "folder of a sweep")


def run() -> None:
    from vfljax.sweep.selection import FOLDER as SELECTION

    if not _WORKDIR.value:
        raise UserError("--workdir is needed: the folder of a sweep made by launch.sweep.")
    workdir = pathlib.Path(_WORKDIR.value)
    selection = workdir / SELECTION
    _verify(workdir)
    if selection.is_dir():  # a sweep of its own, with its own remedy
        print(f"{selection}:")
        _verify(selection)


def _verify(workdir: pathlib.Path) -> None:
    """Print the state of every part of one sweep; raises UserError where one is damaged."""
    from vfljax import store
    from vfljax.store import check

    counts: collections.Counter[str] = collections.Counter()
    damaged = []
    for finding in store.inspect(workdir):
        counts[finding.state] += 1
        if finding.state == check.DAMAGED:
            damaged.append(finding)
        print(f"{finding.state:14s} {finding.unit}" + f" ({finding.why})" * bool(finding.why))
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    if damaged:
        raise UserError(
            f"{workdir} is damaged in {len(damaged)} of {counts.total()} parts, first {damaged[0].unit} "
            f"({damaged[0].why}): {store.remedy(workdir)} sets them aside and makes them again."
        )
    for line in store.load(workdir).unfinished:
        print(f"not finished: {line}; `python -m launch.sweep --workdir={workdir}` goes on")


if __name__ == "__main__":
    common.start(run)
