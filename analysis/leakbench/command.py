"""The command ``python -m launch.leakbench``."""

from __future__ import annotations

import pathlib
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, get_args

import vfljax
from vfljax.api.arguments import Path, checked
from vfljax.api.console import profiled
from vfljax.api.flags import Command
from vfljax.errors import UnmetError, UserError, argument, short_path, unknown

if TYPE_CHECKING:
    from analysis.leakbench.bench import Bench
    from analysis.leakbench.entry_files import Data, Entry

Files = Mapping[pathlib.Path, "Entry"]


@checked
def run(
    data: Any = None,
    *,
    data_dir: Path | None = None,
    entry: Sequence[Path] = (),
    entries: Path | None = None,
    workdir: Path | None = None,
    attacks: Sequence[str] = (),
    scores: Path | None = None,
    readers: Path | None = None,
    by: str = "",
    how: str = "",
    exchange: Path | None = None,
    verify: bool = False,
    retrain: bool = False,
    plugin: Sequence[str] = (),
    command: str,
) -> None:
    """Enter a defense into LeakBench, break an entry, and check what entries store.

        python -m launch.leakbench --data=digits --entry=flips.json --plugin=flips.py \\
            --workdir=runs/flips_digits
        python -m launch.leakbench --data=digits --entry=FILE --attacks=theirs:flip --plugin=theirs.py \\
            --by=NAME --how="what it does" --workdir=runs/broken
        python -m launch.leakbench --data=digits --entry=FILE --exchange=FOLDER --workdir=runs/exchange
        python -m launch.leakbench --data=digits --entry=FILE --break=SCORES --by=NAME --how="what it does"
        python -m launch.leakbench --data=digits --entry=FILE --readers=nearest_mean.py --by=NAME \\
            --how="what it does" --workdir=runs/read
        python -m launch.leakbench --verify
        python -m launch.leakbench --verify --retrain --data=digits --entry=FILE --workdir=runs/anew

    The first trains every strength of the entry, chooses by cost alone, attacks with AutoLeak and writes the
    scores into the entry's file; several entries between commas share a sweep, and without --entry all of
    --entries are run. The second runs further attacks, and records where they read more than known ones. The
    third writes what crossed between the parties at the chosen strengths, the fourth scores what somebody
    read from that, and the fifth what the functions of a file read (analysis/guide/write_a_reader.md). --verify
    checks stored entries and scores the files of breaks again; with --retrain it makes the scores anew. An
    entry is data: only plugins and readers that the command names are run. Rules:
    analysis/applications/leakbench.md.

    Args:
      data: the data set: digits, breast_cancer, spambase, default_credit, ...
      data_dir: where the data is, config.data.dir.
      entry: files of entries, between commas; default: all of --entries.
      entries: folder of the entries among which ranks are given; default: those of this checkout.
      workdir: folder of the sweep; the same command continues it.
      attacks: further attacks than AutoLeak's, to break the entry.
      scores: an .npz file of scores of each row, to break the entry.
      readers: a Python file of functions that read labels, to break the entry.
      by: who breaks the entry.
      how: what the attack does, in a sentence.
      exchange: folder that the recorded exchanges are written to.
      verify: check the files of the entries, without training anything.
      retrain: with --verify, make the scores on --data anew from the entries alone.
      plugin: a Python file, or the name of a module, with defenses or attacks of your own, which entries and
        --attacks name 'file:row'.
      command: the command that the report names as the sweep's origin.
    """
    from analysis.leakbench import bench, entry_files, tables

    others = tables.ENTRIES if entries is None else pathlib.Path(entries)
    for source in plugin:
        vfljax.plugins.use(source)
    named = [pathlib.Path(name) for name in entry]
    named = named or sorted(others.glob("*.json"))
    if not named:
        what, remedy = "holds no entry", "give a folder of *.json"
        raise UserError(what, field=argument("entries"), value=str(others), remedy=remedy)
    files = {file: entry_files.read(file) for file in named}
    if len({each.name for each in files.values()}) < len(named):
        what = argument("entry"), " names two entries of one name"
        raise UserError(what, remedy="rename a file")
    breaks = bool(attacks) or scores is not None or readers is not None
    for name, value, what in (
        ("data", data or (verify and not retrain), "a data set of LeakBench"),
        ("workdir", workdir or verify or scores, "the folder of the entries' sweeps"),
        ("workdir", workdir or not retrain, "the folder of the sweeps that are made anew"),
        ("by", by or not breaks, "who breaks the entry"),
        ("how", how or not breaks, "what the attack does, in a sentence"),
        ("verify", verify or not retrain, "it is what --retrain is of"),
        ("entry", len(named) == 1 or not (scores or readers), "the one entry that is broken"),
    ):
        if not value:
            raise UserError("is needed", field=argument(name), remedy=what)
    if data is not None and data not in (known := get_args(entry_files.Data)):
        raise unknown(argument("data"), data, known)
    config = _config(data, data_dir) if data else {}
    if verify:
        _verify(files, data, config)
    if verify and not retrain:
        return
    assert data is not None, "it was needed above"
    place = bench.Bench(data, config, pathlib.Path(workdir or ""), command)
    if retrain:
        _retrain(place, files)
    elif scores is not None:
        _break(place, files, pathlib.Path(scores), by, how)
        _show_ranks(files, others, data)
    elif readers is not None:
        _break_by_readers(place, files, pathlib.Path(readers), by, how)
        _show_ranks(files, others, data)
    elif exchange is not None:
        from analysis.leakbench import exchanges

        for each in files.values():
            for index in exchanges.rebuild(place, each, pathlib.Path(exchange)):
                print(f"written: {short_path(index)}")
    else:
        _run(place, files, attacks, by, how)
        _show_ranks(files, others, data)


def _config(data: str, data_dir: Path | None = None) -> Mapping[str, Any]:
    fields = {} if data_dir is None else {"data.dir": str(data_dir)}
    return vfljax.config.from_file(f"configs/leakbench.py:{data}", fields)


def _run(place: Bench, files: Files, attacks: Sequence[str], by: str, how: str) -> None:
    """Runs entries, and further attacks on them if there are any."""
    for file, done in zip(files, place.run([*files.values()]), strict=True):
        if attacks:
            before, done = done, place.attack(done, attacks, by, how)
            boards = len({b.board for b in done.broken[len(before.broken) :]})
            print(f"{done.name}: the attacks read more than is known on {boards} boards")
        for score in done.results[place.data].scores:
            of, read = score.board, score.outcome
            if score.reading:
                knobs = "".join(f", {name}={value}" for name, value in score.knobs.items())
                read = f"leak {score.reading.leak:.2f}"
                if score.local_only is not None:
                    read += f" ({score.local_only:.2f} without the federation)"
                read += f", utility {score.utility:.3f}{knobs}"
            kind = f"{of.federation}, {of.known} labels{', malicious' * of.malicious}"
            print(f"{done.name}: {kind}, at {score.gain:.0%} of the gain: {read}")
        _write(file, done)


def _write(file: pathlib.Path, entry: Entry) -> None:
    from analysis.leakbench import entry_files

    entry_files.write(file, entry)
    print(f"written: {short_path(file)}")


def _break(place: Bench, files: Files, scores: pathlib.Path, by: str, how: str) -> None:
    """Scores a file, and keeps it beside the entry that it breaks."""
    from analysis.leakbench import breaking, entry_files

    (file, entry), data = next(iter(files.items())), place.data
    entry_files.check(entry, file.parent)
    breaking.figures(entry, data)  # before the data are read
    of = breaking.truth(place.config)
    broken, found = breaking.broken_by(scores, entry, data, of, by, how)
    for (board, gain), reading in found.items():
        known = entry.best_known(data, board, gain)
        before = f"; {known[0].leak:.3f} was known" if known else ""
        print(f"{breaking.array_name(board, gain)}: the scores read {reading.leak:.3f}{before}")
    new = broken.broken[len(entry.broken) :]
    if not new:
        print(
            f"{entry.name} is not broken: the scores read nowhere at least .01 more than is known"
        )
        return
    shutil.copy(scores, file.parent / new[0].scores)  # before the entry that names it
    print(f"{entry.name} is broken at {len(new)} places; {new[0].scores} is kept beside it")
    _write(file, broken)


def _break_by_readers(place: Bench, files: Files, readers: pathlib.Path, by: str, how: str) -> None:
    """Writes the scores of each reader of a file to the bench's folder, and scores them as any file."""
    import numpy as np

    from analysis.leakbench import breaking, entry_files
    from analysis.readers import protocol

    found = protocol.readers_of(readers)
    (file, entry), folder = next(iter(files.items())), place.workdir / "readers"
    breaking.figures(entry, place.data)  # before anything is trained
    folder.mkdir(parents=True, exist_ok=True)
    for name, reader in found.items():
        scores = folder / f"{entry.name}.{name}.npz"
        np.savez_compressed(scores, **breaking.arrays_by(name, reader, place, entry))
        print(f"{name}: its scores are in {short_path(scores)}")
        _break(place, {file: entry_files.read(file)}, scores, by, how)


def _show_ranks(files: Files, folder: pathlib.Path, data: Data) -> None:
    """Prints the ranks of entries on a data set's boards beside all of a folder, and what they were before."""
    from analysis.leakbench import breaking, entry_files, ranking, tables
    from analysis.leakbench.autoleak import autoleak
    from analysis.leakbench.boards import GAINS

    now = {entry.name: entry_files.read(file) for file, entry in files.items()}
    version = autoleak().version
    others = [each for each in tables.stored(folder) if each.name not in now]
    others = [e for e in others if data in e.results and e.results[data].autoleak == version]
    if len(now) == 1 and not any(e.method for e in others):  # undefended has no rank
        of = f"in {short_path(folder)} has scores of AutoLeak {version} on {data}"
        print(f"{next(iter(now))} has no rank: no other entry {of}")
        return
    before = {
        b.board: b.ranks for b in ranking.rankings([*others, *files.values()]) if b.data == data
    }
    for board in ranking.rankings([*others, *now.values()]):
        for name in (name for name in now if board.data == data and name in board.ranks):
            was = before.get(board.board, {}).get(name)
            earlier = "" if was is None else f", had {was}"
            place = breaking.array_name(board.board, GAINS[0])
            print(f"{place}: {name} has rank {board.ranks[name]} of {len(board.ranks)}{earlier}")


def _verify(files: Files, data: Data | None, config: Mapping[str, Any]) -> None:
    """Checks the files of entries, and scores the files of their breaks again where the data are at hand."""
    from analysis.leakbench import breaking, entry_files
    from vfljax.datasets import EMBEDDED

    for file, entry in files.items():
        entry_files.check(entry, file.parent)
    broken: set[Data] = {b.data for each in files.values() for b in each.broken if b.scores}
    for name in sorted(broken):
        of_name = config if name == data else _config(name)
        if name not in EMBEDDED and not of_name["data"]["dir"]:
            print(f"breaks on {name} are not scored again: give --data={name} and --data_dir")
            continue
        of = breaking.truth(of_name)
        count = sum(breaking.score_again(e, f.parent, name, of) for f, e in files.items())
        print(f"{count} breaks on {name} read what they record")
    print(f"{len(files)} entries are sound")


def _retrain(place: Bench, files: Files) -> None:
    """Makes the scores of entries anew, and writes those that agree with the stored ones.

    Raises:
      UserError: if no entry has scores on the data set.
      UnmetError: if an entry's do not agree.
    """
    from analysis.leakbench import retraining

    refused = []
    files = {file: entry for file, entry in files.items() if place.data in entry.results}
    if not files:
        what = "names no entry with scores on this data set"
        raise UserError(what, field=argument("data"), value=place.data, remedy="run one first")
    made = retraining.made_anew(place, [*files.values()])
    for file, each in zip(files, made, strict=True):
        name = f"{each.entry.name} on {place.data}"
        if wrong := each.disagrees:
            print(
                f"{name} disagrees: {wrong.place}, {wrong.what}: {wrong.stored} is stored, {wrong.anew} made"
            )
            refused.append(each.entry.name)
        else:
            print(f"{name} is verified: the largest difference is {each.difference:.5f}")
            _write(file, each.entry)
    if refused:
        what = f"scores on {place.data} could not be made anew: {', '.join(refused)}"
        raise UnmetError(what, remedy="they stand as they are, not verified")


COMMAND = Command(run, (profiled,), resumes=True, names={"scores": "break"})
