"""Enter a defense into LeakBench, break an entry, and check what entries store.

    python -m launch.leakbench --data=digits --entry=mine.json --plugin=mine.py --workdir=runs/mine
    python -m launch.leakbench --data=digits --entry=mine.json --attacks=theirs:flip --plugin=theirs.py \\
        --by=NAME --how="what it does" --workdir=runs/mine
    python -m launch.leakbench --verify

The first trains every strength of the entry, chooses by cost alone, attacks with AutoLeak and writes the scores
into the entry's file; several entries between commas share a sweep, and without --entry all of --entries are
run. The second runs further attacks, and records where they read more than known ones. An entry is data: only
plugins that the command names are run, and --verify runs none. Rules: analysis/applications/leakbench.md.
"""

from __future__ import annotations

import pathlib
from typing import get_args

import vfljax
from vfljax.cli.common import OWN_ROWS, PROFILE, Flag, Options
from vfljax.errors import UserError, unknown

RESUMES = True
FLAGS = (
    Flag("data", "the data set: digits, breast_cancer, spambase, default_credit, ..."),
    Flag("data_dir", "where the data is, config.data.dir", "", path=True),
    Flag("entry", "files of entries, between commas; default: all of --entries", (), path=True),
    Flag("entries", "folder of entries", "analysis/leakbench/entries", path=True),
    Flag("workdir", "folder of the sweep; the same command continues it", path=True),
    Flag("attacks", "further attacks than AutoLeak's, to break the entry", ()),
    Flag("by", "who breaks the entry", ""),
    Flag("how", "what the further attacks do, in a sentence", ""),
    Flag("verify", "check the files of the entries, without running anything", False),
    Flag("plugin", f"{OWN_ROWS}, which entries and --attacks name 'file:row'", []),
    PROFILE,
)


def run(options: Options) -> None:
    """Run entries, break them, or check their files."""
    from analysis.leakbench import bench, entry_files

    files = [pathlib.Path(name) for name in options.entry]
    files = files or sorted(pathlib.Path(options.entries).glob("*.json"))
    if not files:
        raise UserError(f"--entries={options.entries} holds no entry: give a folder of *.json.")
    loaded = [entry_files.read(file) for file in files]
    if options.verify:
        for file, entry in zip(files, loaded, strict=True):
            entry_files.check(entry, file.parent)
        print(f"{len(loaded)} entries are sound")
        return
    if len({entry.name for entry in loaded}) < len(loaded):
        raise UserError("--entry names two entries of one name: rename a file.")
    if options.required("data", "a data set of LeakBench") not in (
        known := get_args(entry_files.Data)
    ):
        raise unknown("--data", options.data, known)
    fields = {"data.dir": options.data_dir} if options.data_dir else {}
    place = bench.Bench(
        data=options.data,
        config=vfljax.config.from_file(f"configs/leakbench.py:{options.data}", fields),
        workdir=pathlib.Path(options.required("workdir", "the folder of the entries' sweeps")),
        command=options.line,
    )
    by = options.required("by", "who breaks the entry") if options.attacks else ""
    for file, entry in zip(files, place.run(loaded), strict=True):
        if options.attacks:
            before, entry = entry, place.attack(entry, options.attacks, by, options.how)
            boards = len({b.board for b in entry.broken[len(before.broken) :]})
            print(f"{entry.name}: the attacks read more than is known on {boards} boards")
        for score in entry.results[options.data].scores:
            of, read = score.board, f"{x.leak:.2f}" if (x := score.reading) else score.outcome
            kind = f"{of.federation}, {of.known} labels{', malicious' * of.malicious}"
            print(f"{entry.name}: {kind}, at {score.gain:.0%} of the gain: {read}")
        entry_files.write(file, entry)
        print(f"written: {file}")
