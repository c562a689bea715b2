"""How each of the 549 printed numbers compares with our runs; each counts once.

Only runs without a variant count: a variant that agrees shows what would make a number as printed, and is
listed with the others that were tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from vfljax import papers
from vfljax.papers import Number
from vfljax.papers.agreement import Status
from vfljax.papers.comparisons import Compared

STATEMENTS = (
    *("asr_relative_or_absolute_drop", "accuracy_drop_points", "mean_accuracy_drop_points"),
    *("auc_drop", "random_guess_asr", "asr"),
)  # metrics of statements about several numbers
# why a number cannot be compared, and of which numbers that holds; the first that does
INCOMPARABLE: dict[str, Callable[[Number], bool]] = {
    "quoted from another paper, not measured in this one": lambda n: n.id == "sun-035",
    "a statement about several numbers of other tables; judged as a claim": lambda n: (
        n.metric in STATEMENTS
    ),
    "contradicts the paper's own tables, and which run is meant is not said": lambda n: (
        n.table.endswith("/text") and n.uncertain
    ),
    "one of several settings is meant, and which is not said": lambda n: any(
        name.startswith(("alpha_d_any", "alpha_d_m")) for name in n.setting
    ),
    "k = 3 of two classes is impossible": lambda n: (
        n.dataset == "Criteo" and n.defense == "kdk" and n.setting.get("k", 2) > 2
    ),
}


class Covered(NamedTuple):
    """A number, its status, and the comparisons that it is of."""

    number: Number
    status: Status
    reason: str  # why it is not comparable
    main: Compared | None
    variants: tuple[Compared, ...]  # at the published setting, each under another named rule


def coverage(stored: Iterable[Compared]) -> list[Covered]:
    """Returns an entry for each printed number, in the papers' order."""
    runs: dict[str, list[Compared]] = {}
    for compared in stored:
        if compared.ours:
            runs.setdefault(compared.number.id, []).append(compared)
    return [_covered(number, runs.get(number.id, [])) for number in papers.numbers()]


def _covered(number: Number, runs: Sequence[Compared]) -> Covered:
    full = [run for run in runs if run.scale == "full"]
    main = next((run for run in full if not run.variant), None)
    smaller = next((run for run in runs if run.scale != "full"), None)
    reason = next((why for why, holds in INCOMPARABLE.items() if holds(number)), "")
    if reason:
        status = Status.NOT_COMPARABLE
    elif main is not None and main.agreement is not None:
        status = main.agreement.status
    else:
        main, status = smaller, Status.CLAIMS if smaller is not None else Status.NOT_RUN
    variants = tuple(run for run in full if run.variant)
    return Covered(number=number, status=status, reason=reason, main=main, variants=variants)


def counts(covered: Iterable[Covered]) -> Counter[Status]:
    """Returns how many numbers have each status."""
    return Counter(entry.status for entry in covered)


def table(covered: Sequence[Covered]) -> tuple[list[str], list[list[str]]]:
    """Returns header and rows of text: a row a table and data set, and their sum."""
    groups: dict[tuple[str, str], list[Covered]] = {}
    for entry in covered:
        groups.setdefault((entry.number.table, entry.number.dataset), []).append(entry)
    rows = [_row(*key, counts(members), "") for key, members in groups.items()]
    header = ["table", "data set", *(status.value for status in Status), "numbers"]
    return header, [*rows, _row("all", "", counts(covered), "0")]


def _row(table: str, dataset: str, count: Counter[Status], none: str) -> list[str]:
    cells = (str(count[status] or none) for status in Status)
    return [table, dataset, *cells, str(count.total())]
