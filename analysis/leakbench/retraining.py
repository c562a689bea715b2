"""Makes the scores of entries anew from the entries alone, and compares them with those of their authors.

An entry whose scores agree is given those that were made anew, with a ``Verified`` record. A score that was
typed in therefore never remains: it disagrees, or is replaced.
"""

from __future__ import annotations

import datetime
import platform
from collections.abc import Sequence
from typing import NamedTuple

import jax
import msgspec

from analysis.leakbench.bench import Bench
from analysis.leakbench.breaking import array_name
from analysis.leakbench.entry_files import Entry, Result, Score, Verified, digest
from vfljax import machine

FOLDER = "retrained"
"""The folder below a bench's that retraining alone writes, so that no sweep of an author is read."""
TOLERANCE = 0.01
"""The largest difference of a leak or a utility. On one machine with the same versions there is none; another
machine moves the last bits of a training, and with them few rows."""
FIGURES = ("local_only", "utility", "alone")  # of a score, beside its leak


class Difference(NamedTuple):
    """The first disagreement of scores that were made anew with the stored ones."""

    place: str  # ``breaking.array_name``
    what: str
    stored: object
    anew: object


class Compared(NamedTuple):
    """The comparison of an entry's scores with those that were made anew."""

    entry: Entry  # with the scores made anew and their record if they agree
    difference: float  # the largest of a leak or a utility
    disagrees: Difference | None


def compare(stored: Sequence[Score], anew: Sequence[Score]) -> tuple[float, Difference | None]:
    """Returns the largest difference of a leak or a utility, and the first disagreement.

    Args:
      stored: the scores of the author.
      anew: those of the same places that were made anew.
    """
    largest, first = 0.0, None
    for before, after in zip(stored, anew, strict=True):
        assert before.place == after.place, "entries are checked before"
        pairs = [("outcome", before.outcome, after.outcome), ("knobs", before.knobs, after.knobs)]
        found = [Difference(array_name(*before.place), *x) for x in pairs if x[1] != x[2]]
        leaks = (score.reading and score.reading.leak for score in (before, after))
        figures = [("leak", *leaks)]
        figures += [(name, getattr(before, name), getattr(after, name)) for name in FIGURES]
        for name, old, new in figures:
            away = abs(old - new) if old is not None and new is not None else float(old != new)
            if not found:  # figures of two strengths are not compared
                largest = max(largest, away)
            if away > TOLERANCE:
                found.append(Difference(array_name(*before.place), name, old, new))
        first = first or next(iter(found), None)
    return largest, first


def made_anew(place: Bench, entries: Sequence[Entry]) -> list[Compared]:
    """Trains and attacks entries from their methods alone, and compares the scores with the stored ones.

    Args:
      place: of the entries; its sweeps are not read, but those that were made anew and stopped are continued.
      entries: with results on the data set.

    Raises:
      UserError: whatever ``Bench.run`` raises.
    """
    bare = [msgspec.structs.replace(entry, results={}, broken=()) for entry in entries]
    retrained = place._replace(workdir=place.workdir / FOLDER).run(bare)
    return [
        _compared(place, entry, anew.results[place.data])
        for entry, anew in zip(entries, retrained, strict=True)
    ]


def _compared(place: Bench, entry: Entry, anew: Result) -> Compared:
    stored = entry.results[place.data]
    difference, disagrees = compare(stored.scores, anew.scores)
    if stored.plugins != anew.plugins:  # of the file beside the entry, and of the one that was used
        disagrees = Difference("every place", "plugins", stored.plugins, anew.plugins)
    if disagrees:
        return Compared(entry, difference, disagrees)
    record = Verified(
        date=f"{datetime.date.today()}",
        revision=anew.revision,
        machine=f"{platform.machine()}, processor {machine.processor()}, {jax.default_backend()}",
        tolerance=TOLERANCE,
        difference=round(difference, 5),
        sha256=digest(anew.scores),
    )
    results = {**entry.results, place.data: msgspec.structs.replace(anew, verified=record)}
    return Compared(msgspec.structs.replace(entry, results=results), difference, None)
