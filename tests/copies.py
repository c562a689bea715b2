"""Runs copies of a command whose units are made up, and ends one of them at a random moment.

    python -m tests.copies --trials=200                 # one of three copies is killed
    python -m tests.copies --signal=TERM
    python -m tests.copies --locks=0                    # on a file system without locks

Queue, claims, failures, saves and folders are those of a sweep (``vfljax.scheduling.work``), but making a unit
is to wait some milliseconds for each of its rows, and to save them. ``tests.kills`` does the same with real
sweeps, and takes long. All other copies must end with status 0, every unit must hold its own rows, none may
be stored twice, and nothing may be left of unfinished work; without locks, both may happen and do no harm.
"""

from __future__ import annotations

import argparse
import collections
import errno
import fcntl
import os
import pathlib
import random
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from typing import Any

from tests.kills import MADE, end, forked, left_over, note_units, wait
from vfljax import store
from vfljax.api import console
from vfljax.attacks import TABLE
from vfljax.config import Config
from vfljax.scheduling import work
from vfljax.store import header as headers

SHARDS, ROWS = 8, 3
CONFIG = Config().stored
SPAN = 0.5  # seconds that the copies take together


def header() -> dict[str, Any]:
    """Returns the header of a sweep of a few shards, with attacks that wait for each other."""
    names = [f"{number:05d}" for number in range(SHARDS)]
    return {
        **{"schema": store.SCHEMA, "config": CONFIG, "earlier": [], "plugins": {}},
        **{"checksum": "", "identity": "", "pretrained": {}, "reader": 1, "switches": {}},
        "trials": SHARDS,
        "shards": [
            {"name": name, "group": f"g{number % 3}", "trials": [number], "capacity": 1, "stage": 0}
            for number, name in enumerate(names)
        ],
        "blocks": [names[: SHARDS // 2], names[SHARDS // 2 :]],
        "attacks": {
            key: {
                **{"status": "ok", "attack": "norm", "rule": TABLE["norm"].rule, "label": key},
                **{"cost": cost, "skip_settled": True},
            }
            for key, cost in (("a", 0), ("b", 1), ("c", 2), ("d", 2))
        },
        "local_only": [{"attackers": [0], "points": [[1, 1]], "seeds": [s]} for s in (0, 1)],
    }


class Maker:
    """Stands for ``work._Maker``."""

    def __init__(
        self, begun: work.Begun, queue: work.Queue, pool: Any = None, may: work.May = work.anything
    ) -> None:
        del pool
        self.may = may
        self.begun, self.queue, self.workdir, self.program = begun, queue, begun.workdir, ""

    def doing(self) -> str:
        return "writing rows"

    def make(self, units: Sequence[store.Unit]) -> None:
        for unit in units:
            self._make(unit)

    def _make(self, unit: store.Unit) -> None:
        self.program = unit.program
        for name in unit.needs:
            store.verify_unit(self.workdir, name)
        rows = store.read_partial_rows(self.workdir, unit.name)
        assert rows == rows_of(unit.name)[: len(rows)], "it resumes from what another unit saved"
        while len(rows) < ROWS:
            time.sleep(random.uniform(0.0, 0.01))
            rows = rows_of(unit.name)[: len(rows) + 1]
            store.write_partial_rows(self.workdir, unit.name, rows)
        store.write_rows(self.workdir, unit.name, rows)

    def close(self) -> None:
        pass


def rows_of(unit: str) -> list[dict[str, Any]]:
    """Returns the rows of a unit."""
    return [{"unit": unit, "row": row} for row in range(ROWS)]


def start(workdir: pathlib.Path, delay: float, locks: bool) -> int:
    """Starts a copy after a delay. Returns its process."""

    def run() -> int:
        random.seed()
        time.sleep(delay)
        signal.signal(signal.SIGTERM, console._interrupt)
        note_units(workdir)
        setattr(work, "_Maker", Maker)  # noqa: B010 - it is of another type
        work.POLL = 0.02
        if not locks:
            fcntl.flock = _unable
        with store.leading(workdir):
            begun = work.Begun(Any, workdir, headers.begin(workdir, header()))
            store.clear_failures(workdir)
        status = 2 if work.work(begun, say).given_up else 0
        with store.leading(workdir):
            return status

    workdir.mkdir(exist_ok=True)
    return forked(run, workdir / "said.log")


def say(line: str) -> None:
    print(line, flush=True)


def _unable(*arguments: Any) -> None:
    raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))


def faults(workdir: pathlib.Path, locks: bool) -> list[str]:
    """Returns what is wrong with a sweep that has ended."""
    lines = []
    for unit in store.units_of(store.read_header(workdir)):
        try:
            found = store.read_rows(workdir, [unit.name]).to_pylist()
        except store.Damaged as error:
            found = [{"error": str(error)}]
        if found != rows_of(unit.name):
            lines.append(f"{unit.name}: {found}")
    log = workdir / MADE
    made = collections.Counter(log.read_text().split() if log.exists() else ())
    twice = [unit for unit, count in made.items() if count > 1 and not unit.startswith("partial")]
    lines += [f"{unit} was made {made[unit]} times" for unit in twice if locks]
    return lines + (left_over(workdir) if locks else [])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--copies", type=int, default=3)
    parser.add_argument("--signal", choices=("KILL", "TERM", "INT"), default="KILL")
    parser.add_argument("--locks", type=int, choices=(0, 1), default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    number, rng, bad = signal.Signals[f"SIG{given.signal}"], random.Random(given.seed), 0
    struck = collections.Counter[int]()
    with tempfile.TemporaryDirectory() as folder:
        for place in range(given.trials):
            workdir = pathlib.Path(folder) / str(place)
            delays = [rng.uniform(0.0, 0.1) for _ in range(given.copies)]
            copies = [start(workdir, delay, bool(given.locks)) for delay in delays]
            time.sleep(rng.uniform(0.0, SPAN))
            struck[end(copies.pop(rng.randrange(len(copies))), number)] += 1
            others = [wait(copy) for copy in copies]
            lines = [f"a copy ended with {status}" for status in others if status]
            lines += faults(workdir, bool(given.locks))
            if lines:
                print(f"{place}: {lines}\n{(workdir / 'said.log').read_text()}", flush=True)
            bad += bool(lines)
    print(
        f"{bad} of {given.trials} sweeps went wrong; what got the signal ended with {dict(struck)}"
    )
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
