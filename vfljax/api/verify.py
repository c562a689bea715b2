"""``vfljax verify``: the check of a sweep's files."""

from __future__ import annotations

import collections
import pathlib

from vfljax.api.arguments import Path, checked
from vfljax.errors import UserError


@checked
def verify(workdir: Path) -> None:
    """Check every file of a sweep by its checksum: what is sound, what is damaged, what a rerun will redo.

        vfljax verify --workdir=runs/quickstart

    Nothing is changed. The exit status is 0 where everything that is there is sound, and 2 where something
    is damaged or may not be read. Delete what is damaged, and `vfljax sweep --workdir=DIR` makes it again.

    Args:
      workdir: the folder of a sweep.

    Raises:
      UserError: if a part is damaged, or may not be read.
    """
    from vfljax import store
    from vfljax.report.judged_sweep import CONFIRMED
    from vfljax.store.check import DAMAGED, UNREADABLE

    folder = pathlib.Path(workdir)
    counts: collections.Counter[str] = collections.Counter()
    damaged, unreadable = [], []
    for finding in store.inspect(folder):
        counts[finding.state] += 1
        damaged += [finding] if finding.state == DAMAGED else []
        unreadable += [finding] if finding.state == UNREADABLE else []
        print(f"{finding.state:15s} {finding.unit}" + f" ({finding.why})" * bool(finding.why))
    print(", ".join(f"{count} {state}" for state, count in counts.items()))
    if damaged:
        raise UserError(
            f"{folder} is damaged in {len(damaged)} of {counts.total()} parts, first {damaged[0].unit} "
            f"({damaged[0].why}): delete them, and `vfljax sweep --workdir={folder}` makes them again."
        )
    if unreadable:
        first = f"first {unreadable[0].unit}"
        what = f"{folder}: {len(unreadable)} of {counts.total()} parts may not be read, {first}"
        raise UserError(what, remedy=f"ask their owner, who may `chmod -R g+rwX {folder}`")
    for line in store.load(folder).unfinished:
        print(f"not finished: {line}; `vfljax sweep --workdir={folder}` continues")
    if (folder / CONFIRMED).is_dir():  # a sweep of its own, with its own remedy
        print(f"{folder / CONFIRMED}:")
        verify(folder / CONFIRMED)
