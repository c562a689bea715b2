"""Check every file of a sweep by its checksum: what is sound, what is damaged, what a rerun will redo.

    vfljax verify --workdir=runs/quickstart

Nothing is changed. The exit status is 0 where everything that is there is sound, and 2 where something
is damaged; `vfljax sweep --workdir=DIR --mend` then sets that aside and makes it again. The sweep
that chose GAFM's Delta (--select_delta) is checked too.
"""

from __future__ import annotations

import collections
import pathlib

from vfljax.cli import common
from vfljax.errors import UserError

RESUMES = False


def define(options: common.Options) -> None:
    """Define the flags of the command."""
    options.add("workdir", "folder of a sweep")


def run(options: common.Options, command: str) -> None:
    """Print the state of every part of a sweep, and of the one that selected Delta."""
    del command  # nothing is made
    workdir = pathlib.Path(common.required(options, "workdir", common.SWEEP))
    _verify(workdir)
    for folder in sorted(path.parent for path in workdir.glob("*/sweep.json")):
        print(f"{folder}:")  # a sweep of its own, with its own remedy
        _verify(folder)


def _verify(workdir: pathlib.Path) -> None:
    """Print the state of every part of one sweep; raise UserError if one is damaged."""
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
        print(f"not finished: {line}; `vfljax sweep --workdir={workdir}` continues")
