"""How each of the 869 printed numbers compares with our runs; each number counts once.

Only runs without a variant decide a number's status. An equivalent variant shows which rule would give the
printed number. It is listed with the other variants that were tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

import pandas as pd

from analysis.reproduction import causes, papers
from analysis.reproduction.agreement import JUDGED, Status, after_correction
from analysis.reproduction.comparisons import Compared
from analysis.reproduction.papers import Number

Key = TypeVar("Key")
Member = TypeVar("Member")


def grouped(members: Iterable[Member], key: Callable[[Member], Key]) -> dict[Key, list[Member]]:
    """Returns the members by key; keys and members keep the order in which they come.

    Args:
      members: of all groups.
      key: gives the group of a member.
    """
    out: dict[Key, list[Member]] = {}
    for member in members:
        out.setdefault(key(member), []).append(member)
    return out


class Covered(NamedTuple):
    """A printed number, its status, and our comparisons with it."""

    number: Number
    status: Status
    main: Compared | None  # without a variant, or else a smaller run; None if not run
    variants: tuple[Compared, ...]  # those at full scale with a variant
    remains: bool = False  # whether its difference remains after the correction for all numbers
    explained: causes.Explained | None = None  # only for DIFFERS


def coverage(stored: Iterable[Compared]) -> list[Covered]:
    """Returns an entry for each printed number, in the papers' order."""
    runs = grouped((run for run in stored if run.ours), lambda run: run.number.id)
    covered = [_covered(number, runs.get(number.id, [])) for number in papers.numbers()]
    judged = {e.number.id: e.main.agreement for e in covered if e.main and e.status in JUDGED}
    corrected = after_correction([ours.p for ours in judged.values() if ours is not None])
    remains = dict(zip(judged, corrected, strict=True))
    for place, (number, status, _, variants, *_) in enumerate(covered):
        if status is Status.DIFFERS:
            found = causes.explained(number.id, variants, remains[number.id])
            covered[place] = covered[place]._replace(remains=remains[number.id], explained=found)
    return covered


def _covered(number: Number, runs: Sequence[Compared]) -> Covered:
    full = [run for run in runs if run.scale == "full"]
    main = next((run for run in full if not run.variant), None)
    smaller = next((run for run in runs if run.scale != "full"), None)
    if number.incomparable:
        status = Status.NOT_COMPARABLE
    elif main is not None and main.agreement is not None:
        status = main.agreement.status
    else:
        main, status = smaller, Status.CLAIMS if smaller is not None else Status.NOT_RUN
    variants = tuple(run for run in full if run.variant)
    return Covered(number=number, status=status, main=main, variants=variants)


def counts(covered: Iterable[Covered]) -> Counter[Status]:
    """Returns how many numbers have each status."""
    return Counter(entry.status for entry in covered)


def table(covered: Sequence[Covered]) -> pd.DataFrame:
    """Returns a frame of text: a row per table and data set with its counts, and a row of sums."""
    groups = grouped(covered, lambda entry: (entry.number.table, entry.number.dataset))
    rows = [_row(*key, counts(members), "") for key, members in groups.items()]
    header = ["table", "data set", *(status.value for status in Status), "numbers"]
    return pd.DataFrame([*rows, _row("all", "", counts(covered), "0")], columns=header)


def _row(table: str, dataset: str, count: Counter[Status], none: str) -> list[str]:
    cells = (str(count[status] or none) for status in Status)
    return [table, dataset, *cells, str(count.total())]


def differing(covered: Iterable[Covered]) -> pd.DataFrame:
    """Returns a frame of text: a row per number that differs, with its cause and what shows it."""
    rows = []
    for number, found in ((entry.number, entry.explained) for entry in covered):
        if found is not None:
            where = [number.id, number.table, number.dataset, number.defense, number.figure]
            rows.append([*where, found.cause.value, found.variant or found.reason])
    header = ["number", "table", "data set", "defense", "figure", "cause", "shown by"]
    return pd.DataFrame(rows, columns=header)
