"""LeakBench as tables: ``boards.csv`` of the stored entries, and the tables of earlier versions of AutoLeak.

    python -m analysis.leakbench.tables             writes analysis/leakbench/boards.csv
    python -m analysis.leakbench.tables --release   writes analysis/leakbench/releases/VERSION as well
    python -m analysis.leakbench.tables --since=1.0 prints the leaks that differ from a release's, and counts
    python -m analysis.leakbench.tables --since=1.0 --until=2.0     does so for two releases

``boards.csv`` has a row for each entry, board and share of the gain. There is none while no entry has results
of this version of AutoLeak. Nothing is run. A release holds that table and the suite of its version. It is kept
for good: the command refuses to write one that is there.
"""

from __future__ import annotations

import argparse
import io
import json
import pathlib
import shutil
from collections.abc import Sequence
from typing import Any

import msgspec
import numpy as np
import pandas as pd

from analysis.leakbench import entry_files
from analysis.leakbench.autoleak import SUITE, autoleak
from analysis.leakbench.boards import GAINS
from analysis.leakbench.entry_files import Entry
from analysis.leakbench.ranking import Standing, rankings
from vfljax import store
from vfljax.errors import UserError, short_path

HERE = pathlib.Path(__file__).parent
ENTRIES, BOARDS_CSV, RELEASES = HERE / "entries", HERE / "boards.csv", HERE / "releases"
PLACE = ["data", "federation", "known", "malicious", "gain", "entry"]
MOVED = 0.02  # smaller differences of leak are not listed


def rows(entries: Sequence[Entry]) -> pd.DataFrame:
    """Returns a row for each entry, board and share of the gain, of results of this version of AutoLeak.

    ``leak`` with its limits and ``by_seed`` is what AutoLeak reads, ``best_known_leak`` what any attack does.
    ``knobs``, ``by_seed`` and ``flags`` are JSON. Figures are empty where ``outcome`` is not "scored", and
    ``rank`` where there is none, as at shares other than the first. ``verified`` is the date on which the
    scores were made anew, empty if they stand on their author's word.

    Args:
      entries: as they are stored.
    """
    out = []
    for ranking in rankings(entries):
        ranks = ranking.ranks
        for line in ranking.lines:
            for standing in line:
                first = standing.score.gain == GAINS[0]
                rank = ranks.get(standing.entry.name) if first else None
                place = {"data": ranking.data, **msgspec.to_builtins(ranking.board)}
                out.append({**place, **_row(standing, rank, standing.entry.results[ranking.data])})
    table = pd.DataFrame(out)
    return table.astype({"rank": "Int64"}) if len(table) else table


def _row(standing: Standing, rank: int | None, result: entry_files.Result) -> dict[str, Any]:
    entry, score, reading = standing.entry, standing.score, standing.score.reading
    best, broken = standing.best or (None, None)
    lower, upper = (reading and reading.limits) or (None, None)
    return {
        "gain": score.gain,
        "entry": entry.name,
        "rank": rank,
        "outcome": score.outcome,
        "knobs": _json(score.knobs),
        "leak": reading and reading.leak,
        "leak_lower": lower,
        "leak_upper": upper,
        "by_seed": _json(reading.by_seed if reading else ()),
        "attack": reading and reading.attack,
        "variant": reading and reading.variant,
        "best_known_leak": best and best.leak,
        "broken_by": broken and broken.by,
        "local_only": score.local_only,
        "certain": score.certain,
        "utility": score.utility if reading else None,
        "alone": score.alone,
        "kept": score.kept,
        "verdict": score.verdict,
        "flags": _json(score.flags),
        "verified": result.verified and result.verified.date,
        "autoleak": result.autoleak,
        "revision": result.revision,
        "date": result.date,
        **{f"version.{name}": version for name, version in sorted(result.versions.items())},
    }


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode() if value else ""


def text(entries: Sequence[Entry]) -> str:
    """Returns the table of ``rows`` as CSV, "" without a row."""
    table = rows(entries)
    return table.to_csv(index=False, lineterminator="\n") if len(table) else ""


def stored(folder: pathlib.Path = ENTRIES) -> list[Entry]:
    """Returns the entries of a folder in the order of their names."""
    return [entry_files.read(path) for path in sorted(folder.glob("*.json"))]


def moved(before: pd.DataFrame, now: pd.DataFrame) -> pd.DataFrame:
    """Returns the places whose leak differs by more than ``MOVED`` between two tables of ``rows``.

    Args:
      before: the earlier table, as it was written.
      now: the later one, likewise.

    Returns:
      A row for each place, with ``leak`` and ``attack`` of both, their difference ``moved``, and ``strength``:
      whether the "same" strength was chosen, or "another".
    """
    both = before.merge(now, on=PLACE, suffixes=("_before", "_now"))
    both["moved"] = both["leak_now"] - both["leak_before"]
    knobs = both[["knobs_before", "knobs_now"]].fillna("{}").map(json.loads)
    same = [one == other for one, other in zip(*(knobs[name] for name in knobs), strict=True)]
    both["strength"] = np.where(same, "same", "another")
    columns = ["leak_before", "leak_now", "moved", "strength", "attack_before", "attack_now"]
    return pd.DataFrame(both.loc[both["moved"].abs() > MOVED, [*PLACE, *columns]])


def counted(table: pd.DataFrame) -> pd.DataFrame:
    """Returns how many places of ``moved`` there are, and how far they moved, by data set, number of known
    labels, strength and direction."""
    directed = table.assign(to=np.where(table["moved"] > 0, "up", "down"))
    moves = directed.groupby(["data", "known", "strength", "to"])["moved"]
    return pd.DataFrame({"size": moves.size(), "min": moves.min(), "max": moves.max()})


def _made(entries: Sequence[Entry]) -> str:
    """Returns ``text``. Raises UserError if it has no row."""
    table = text(entries)
    if not table:
        what = f"no entry has results of AutoLeak {autoleak().version}"
        raise UserError(what, remedy="run python -m launch.leakbench --data=NAME --workdir=DIR")
    return table


def release(entries: Sequence[Entry], releases: pathlib.Path = RELEASES) -> pathlib.Path:
    """Writes the table and the suite of this version to a folder, and returns it.

    Args:
      entries: as they are stored.
      releases: folder of all releases.

    Raises:
      UserError: if the release is there, or no entry has results of this version.
    """
    table = _made(entries)
    folder = releases / autoleak().version
    if folder.exists():
        what = f"{short_path(folder)} is there, and a release is kept for good"
        raise UserError(what, remedy="give autoleak.json the next version")
    whole = folder.with_name(
        f".{folder.name}"
    )  # so that a killed command leaves no part of a release
    whole.mkdir(parents=True, exist_ok=True)
    store.write_bytes(whole / BOARDS_CSV.name, table.encode())
    shutil.copy(SUITE, whole / SUITE.name)
    return whole.rename(folder)


def main() -> None:
    """Write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    versions = sorted(p.name for p in RELEASES.iterdir() if p.is_dir())
    parser.add_argument("--release", action="store_true")
    parser.add_argument("--since", choices=versions)
    parser.add_argument("--until", choices=versions, help="default: the stored entries")
    options, entries = parser.parse_args(), stored()
    if options.until and not options.since:
        parser.error("--until is of --since: give both")
    try:
        now = "" if options.until else _made(entries)
        if options.since:
            before, after = (
                RELEASES / each / BOARDS_CSV.name if each else io.StringIO(now)
                for each in (options.since, options.until)
            )
            table = moved(pd.read_csv(before), pd.read_csv(after))
            counts = counted(table).to_string(float_format="%.2f")
            print(table.to_csv(index=False), counts, sep="\n")
            return
        store.write_bytes(BOARDS_CSV, now.encode())
        print(f"written: {short_path(BOARDS_CSV)}")
        if options.release:
            print(f"written: {short_path(release(entries))}")
    except UserError as error:
        raise SystemExit(f"error: {error}") from error


if __name__ == "__main__":
    main()
