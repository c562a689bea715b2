"""How the 549 printed numbers stand: each counted once.

What enters: every stored comparison (``reproduction.read``). What leaves: for each number a ``Standing``,
and the counts of them that ``launch.reproduce --status`` prints.

    agrees, differs    run at the published setting, several seeds, judged by ``papers.agreement``
    shown              likewise, but the paper says "about", or there was one seed
    claims only        run with fewer rows or epochs or a smaller network: no verdict on a number
    not run            its config is complete and what it needs is not at hand
    not comparable     what is printed cannot be measured by a run of ours; ``INCOMPARABLE`` says why

Only runs without a variant count: a variant that agrees shows what would make a number as printed, and
stands beside the others that were tried.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from vfljax import papers
from vfljax.papers import Number
from vfljax.papers.agreement import AGREES, DIFFERS
from vfljax.papers.reproduction import Compared

SHOWN, CLAIMS, NOT_RUN, NOT_COMPARABLE = "shown", "claims only", "not run", "not comparable"
STANDINGS = (AGREES, DIFFERS, SHOWN, CLAIMS, NOT_RUN, NOT_COMPARABLE)

# why a number cannot be compared, and of which numbers that holds; the first that does
INCOMPARABLE: dict[str, Callable[[Number], bool]] = {
    "quoted from another paper, not measured in this one": lambda n: n.id == "sun-035",
    "a statement about several numbers of other tables; judged as a claim": lambda n: (
        n.metric
        in (
            *("asr_relative_or_absolute_drop", "accuracy_drop_points", "mean_accuracy_drop_points"),
            *("auc_drop", "random_guess_asr", "asr"),
        )
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


class Standing(NamedTuple):
    """One number, how it stands, and the comparison that says so."""

    number: Number
    says: str  # one of ``STANDINGS``
    why: str  # of one that is not comparable
    main: Compared | None
    variants: tuple[Compared, ...]  # at the published setting, each under another named rule


def standings(stored: Iterable[Compared]) -> list[Standing]:
    """One for each printed number, in the papers' order."""
    of: dict[str, list[Compared]] = {}
    for one in stored:
        of.setdefault(one.number.id, []).append(one)
    return [_standing(number, of.get(number.id, [])) for number in papers.numbers()]


def _standing(number: Number, stored: Sequence[Compared]) -> Standing:
    full = [one for one in stored if one.scale == "full" and one.ours]
    variants = tuple(one for one in full if one.variant)
    main = next((one for one in full if not one.variant), None)
    for why, holds in INCOMPARABLE.items():
        if holds(number):
            return Standing(number, NOT_COMPARABLE, why, main, variants)
    if main is not None and main.verdict is not None:
        says = main.verdict.says
        return Standing(number, says if says in (AGREES, DIFFERS) else SHOWN, "", main, variants)
    smaller = next((one for one in stored if one.scale != "full" and one.ours), None)
    if smaller is not None:
        return Standing(number, CLAIMS, "", smaller, variants)
    return Standing(number, NOT_RUN, "", None, variants)


def counts(of: Iterable[Standing]) -> Counter[str]:
    """How many stand how."""
    return Counter(standing.says for standing in of)


def by_table(of: Iterable[Standing]) -> Mapping[tuple[str, str], Counter[str]]:
    """(Table, data set) -> how many of its numbers stand how, in the papers' order."""
    out: dict[tuple[str, str], Counter[str]] = {}
    for standing in of:
        key = (standing.number.table, standing.number.dataset)
        out.setdefault(key, Counter())[standing.says] += 1
    return out


def status(of: Sequence[Standing]) -> tuple[list[str], list[list[str]]]:
    """Header and rows of text: a row a table and data set, and their sum, in which every number is
    counted once."""
    header = ["table", "data set", *STANDINGS, "numbers"]
    rows = [
        [table, dataset, *(str(count[name] or "") for name in STANDINGS), str(count.total())]
        for (table, dataset), count in by_table(of).items()
    ]
    total = counts(of)
    rows.append(["all", "", *(str(total[name]) for name in STANDINGS), str(total.total())])
    return header, rows
