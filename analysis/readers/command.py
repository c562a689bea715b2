"""The command ``python -m analysis.readers``."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence

import vfljax
from vfljax.api.arguments import Path, checked
from vfljax.api.flags import Command
from vfljax.errors import UserError, argument


@checked
def run(
    readers: Path,
    workdir: Sequence[Path],
    *,
    margin: float = 0.01,
    every: bool = False,
    data_dir: Path | None = None,
    plugin: Sequence[str] = (),
) -> None:
    """Try functions that read labels against all attacks and learners that a sweep has stored.

        python -m analysis.readers --readers=analysis/readers/graphs.py --workdir=runs/quickstart

    Each reader is run on each trained trial, for every draw of the known labels, and scored as attacks are. The
    command prints the cells, configurations in a panel, in which a reader's mean gain over the strongest stored
    attack or local-only learner of each run is above --margin, with the gain of each seed.
    analysis/guide/write_a_reader.md describes readers.

    Args:
      readers: a Python file whose functions of a view, known rows and a number of classes are readers.
      workdir: folders of sweeps that have been attacked, between commas.
      margin: the gain that counts.
      every: print all cells, also those that no reader wins.
      data_dir: where the data is now, if it has moved.
      plugin: a Python file, or the name of a module, with defenses or attacks of the sweeps.
    """
    import pandas as pd

    from analysis.readers import cells, protocol

    for source in plugin:
        vfljax.plugins.use(source)
    if not workdir:
        remedy = "give folders of sweeps"
        raise UserError("is needed", field=argument("workdir"), remedy=remedy)
    found = protocol.readers_of(pathlib.Path(readers))
    folder = None if data_dir is None else str(data_dir)
    # a cell says nothing of the sweep's progress, which goes to the same terminal
    tables = [cells.cells(pathlib.Path(each), found, folder) for each in workdir]
    table, place = pd.concat(tables, ignore_index=True), ["sweep", "label", "panel"]
    won = table.query("gain > @margin")
    shown = table if every else won
    if len(shown):
        print(cells.text(shown))
    total, count = (of.groupby(place).ngroups for of in (table, won))
    print(f"{len(found)} readers win by more than {margin:g} in {count} of {total} cells")


COMMAND = Command(run)
