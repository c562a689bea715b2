"""The command ``python -m launch.leakbench``."""

from __future__ import annotations

import pathlib
from collections.abc import Sequence
from typing import Any, get_args

import vfljax
from vfljax.api.arguments import Path, checked
from vfljax.api.console import profiled
from vfljax.api.flags import Command
from vfljax.errors import UserError, argument, unknown


@checked
def run(
    data: Any = None,
    *,
    data_dir: Path | None = None,
    entry: Sequence[Path] = (),
    entries: Path = "analysis/leakbench/entries",
    workdir: Path | None = None,
    attacks: Sequence[str] = (),
    by: str = "",
    how: str = "",
    verify: bool = False,
    plugin: Sequence[str] = (),
    command: str,
) -> None:
    """Enter a defense into LeakBench, break an entry, and check what entries store.

        python -m launch.leakbench --data=digits --entry=mine.json --plugin=mine.py --workdir=runs/mine
        python -m launch.leakbench --data=digits --entry=mine.json --attacks=theirs:flip --plugin=theirs.py \\
            --by=NAME --how="what it does" --workdir=runs/mine
        python -m launch.leakbench --verify

    The first trains every strength of the entry, chooses by cost alone, attacks with AutoLeak and writes the
    scores into the entry's file; several entries between commas share a sweep, and without --entry all of
    --entries are run. The second runs further attacks, and records where they read more than known ones. An
    entry is data: only plugins that the command names are run, and --verify runs none. Rules:
    analysis/applications/leakbench.md.

    Args:
      data: the data set: digits, breast_cancer, spambase, default_credit, ...
      data_dir: where the data is, config.data.dir.
      entry: files of entries, between commas; default: all of --entries.
      entries: folder of entries.
      workdir: folder of the sweep; the same command continues it.
      attacks: further attacks than AutoLeak's, to break the entry.
      by: who breaks the entry.
      how: what the further attacks do, in a sentence.
      verify: check the files of the entries, without running anything.
      plugin: a Python file, or the name of a module, with defenses or attacks of your own, which entries and
        --attacks name 'file:row'.
      command: the command that the report names as the sweep's origin.
    """
    from analysis.leakbench import bench, entry_files

    for source in plugin:
        vfljax.plugins.use(source)
    files = [pathlib.Path(name) for name in entry]
    files = files or sorted(pathlib.Path(entries).glob("*.json"))
    if not files:
        what, remedy = "holds no entry", "give a folder of *.json"
        raise UserError(what, field=argument("entries"), value=str(entries), remedy=remedy)
    loaded = [entry_files.read(file) for file in files]
    if verify:
        for file, each in zip(files, loaded, strict=True):
            entry_files.check(each, file.parent)
        print(f"{len(loaded)} entries are sound")
        return
    if len({each.name for each in loaded}) < len(loaded):
        what = argument("entry"), " names two entries of one name"
        raise UserError(what, remedy="rename a file")
    for name, value, what in (
        ("data", data, "a data set of LeakBench"),
        ("workdir", workdir, "the folder of the entries' sweeps"),
        ("by", by or not attacks, "who breaks the entry"),
    ):
        if not value:
            raise UserError("is needed", field=argument(name), remedy=what)
    if data not in (known := get_args(entry_files.Data)):
        raise unknown(argument("data"), data, known)
    fields = {} if data_dir is None else {"data.dir": str(data_dir)}
    place = bench.Bench(
        data=data,
        config=vfljax.config.from_file(f"configs/leakbench.py:{data}", fields),
        workdir=pathlib.Path(workdir or ""),
        command=command,
    )
    for file, done in zip(files, place.run(loaded), strict=True):
        if attacks:
            before, done = done, place.attack(done, attacks, by, how)
            boards = len({b.board for b in done.broken[len(before.broken) :]})
            print(f"{done.name}: the attacks read more than is known on {boards} boards")
        for score in done.results[data].scores:
            of, read = score.board, f"{x.leak:.2f}" if (x := score.reading) else score.outcome
            kind = f"{of.federation}, {of.known} labels{', malicious' * of.malicious}"
            print(f"{done.name}: {kind}, at {score.gain:.0%} of the gain: {read}")
        entry_files.write(file, done)
        print(f"written: {file}")


COMMAND = Command(run, (profiled,), resumes=True)
