"""The texts of an audit: what it found in the table, what it chose, how it ended, and its report's notes.

In all functions, ``chosen`` holds the values of the knob at which each defense is audited, and ``left_out``
the defenses for which there was no time.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vfljax.auditing.request import Request
from vfljax.auditing.survey import COPY, RevealingColumn, Survey, above_chance
from vfljax.datasets.table_errors import one_line
from vfljax.sweep.progress import clock

SHOWN = 5  # most names in a sentence
AS_MUCH = 0.01  # a column whose leak is at most so much below that of all columns tells as much
EACH = 2  # revealing columns that get a sentence of their own
MOST_CLASSES = 6  # most classes that the terminal lists


def _counted(count: int, noun: str) -> str:
    """Returns '1 column' or '3 columns'."""
    return f"{count:,} {noun}" + "s" * (count != 1)


def _few(names: Iterable[str]) -> str:
    """Returns 'a, b, c, d, e and 4 more'."""
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def preamble(request: Request, table: Survey, config: Mapping[str, Any], defenses: int) -> str:
    """Returns the lines that a terminal shows before the audit begins.

    Args:
      request: of the audit.
      table: the survey of its table.
      config: of the undefended federation under all attacks.
      defenses: how many defenses apply.
    """
    dataset = table.dataset
    rows = len(dataset.labels)
    counts = np.bincount(dataset.labels, minlength=dataset.num_classes)
    names = dataset.classes or [*map(str, range(dataset.num_classes))]
    classes = [
        f"{one_line(names[c])} {counts[c]:,} ({counts[c] / rows:.1%})"
        for c in np.argsort(-counts, kind="stable")
    ]
    more = ", ..." if len(classes) > MOST_CLASSES else ""
    known = max((o["known"] for o in config["attacks"].values() if "known" in o), default=0)
    fresh = ", and what it recommends on fresh ones" * request.confirm
    lines = [
        f"{dataset.name}: {rows:,} rows, {dataset.num_classes} classes: "
        f"{', '.join(classes[:MOST_CLASSES])}{more}",
        *(
            f"  {party}: {_counted(len(columns), 'column')}"
            + ", and the labels" * (party == request.label_party)
            for party, columns in table.owners.items()
        ),
        f"  attackers: {', '.join(request.attacking)}, who know {known} labels; federation: "
        f"{request.federation}",
        *(f"  {note}" for note in table_notes(table)),
        *(f"  note: {note}" for note in dataset.notes),
        f"The audit attacks the undefended federation, tries {_counted(defenses, 'defense')} in a pilot unless "
        f"time is short, and audits them on {_counted(request.seeds, 'seed')}{fresh}: as many as there is time "
        f"for in {clock(request.budget)} (--budget). The undefended federation alone takes minutes where its "
        "programs were never compiled.",
    ]
    return "\n".join(lines)


def revealing(found: RevealingColumn, classes: int) -> str:
    """Returns what a person should check about a column that reveals the labels.

    Args:
      found: the column.
      classes: C.
    """
    does = (
        f"ranks the labels with AUC {found.leak:.2f}"
        if classes == 2
        else f"names the right one of {classes} classes for {found.leak:.0%} of the rows, classes counting "
        "alike"
    )
    doubt = (
        "it all but is the label: leave it out if it is made from it"
        if above_chance(found.leak, classes) >= COPY
        else "leave it out if it is not known before the label is"
    )
    return f"{found.column} ({found.party}) alone {does}: {doubt}."


def table_notes(table: Survey) -> list[str]:
    """Returns what a person should know about the table before anything is trained."""
    found, together = table.revealing, table.reach.get("together", 0.0)
    warned = [column for column in found if column.leak >= together - AS_MUCH]
    notes = [revealing(column, table.dataset.num_classes) for column in warned[:EACH]]
    if warned:
        drop = ",".join(column.column for column in warned[:SHOWN])
        notes.append(f"To leave such columns out: {shlex.quote(f'--option=drop={drop}')}")
    if table.reach:
        figures = ", ".join(f"{who} {figure:.3f}" for who, figure in table.reach.items())
        scale = "AUC" if table.dataset.num_classes == 2 else "balanced top-1"
        notes.append(
            f"What columns tell of the labels ({scale} of gradient boosting on all labels, cross-validated): "
            f"{figures}."
        )
    others = [column for column in found if column not in warned[:EACH]]
    if others:
        rest = _few(f"{column.column} ({column.party}) {column.leak:.2f}" for column in others)
        notes.append(f"Columns that tell much by themselves: {rest}.")
    if table.sparse:
        notes.append(f"Gradient boosting leaves out columns of few numbers: {_few(table.sparse)}.")
    if table.unowned:
        notes.append(f"Nobody owns {_few(table.unowned)}: left out.")
    notes += [
        f"No column of {party} varies: it has nothing to attack with." for party in table.constant
    ]
    return [one_line(note) for note in notes]


def refused_note(refused: Mapping[str, str]) -> list[str]:
    """Returns a note on the defenses that cannot be tried, with the reasons of ``refused``; [] if none."""
    reasons = "; ".join(f"{name} ({one_line(reason)})" for name, reason in refused.items())
    return [f"Not applicable here: {reasons}"] if refused else []


def late_attacks(names: Sequence[str]) -> list[str]:
    """Returns a note on the attacks for which there was no time, [] if there are none."""
    every = f"Attacks left out for want of time: {', '.join(names)}. A larger --budget has them."
    return [every] if names else []


def _left_out(names: Sequence[str]) -> str:
    """Returns the words that say for which defenses there was no time."""
    if not names:
        return "nothing was left out for want of time"
    return f"left out for want of time: {', '.join(names)}; the same call with a larger --budget has them"


def choice_notes(
    chosen: Mapping[str, Sequence[float]],
    left_out: Sequence[str],
    request: Request,
    allowed: float | None,
    seeds: int,
) -> list[str]:
    """Returns the report's notes on what was chosen.

    Args:
      chosen, left_out, request: what is audited, what is not, and the request of the audit.
      allowed: the validation utility that an operating point may lose; None if there was no pilot.
      seeds: on which the defenses are audited.
    """
    rest = _left_out(left_out)
    less = f"For want of time {seeds} seeds in place of {request.seeds}, so that more defenses were audited."
    fewer = [less] if seeds < request.seeds else []
    if not chosen:
        none = f"No defense was audited within {clock(request.budget)} (--budget): {rest}."
        return [none, *fewer]
    counts = sorted({len(values) for values in chosen.values() if values})
    each = " to ".join(str(count) for count in dict.fromkeys(counts[:1] + counts[-1:]))
    points = (
        "the second and the fourth that each defense's row lists, for want of time for a pilot"
        if allowed is None
        else f"those around which a pilot of one seed lost {allowed:.3g} of validation accuracy or AUC"
    )
    count = _counted(len(chosen), "defense") + f", {each} operating points each" * bool(counts)
    return [f"{count}; {rest}.", f"Operating points are {points}. No leak chose them.", *fewer]


def chosen_lines(chosen: Mapping[str, Sequence[float]], left_out: Sequence[str]) -> str:
    """Returns the lines of a terminal on the operating points to audit, and the defenses that are left out.

    Args:
      chosen: the values of the knob at which each defense is audited.
      left_out: defenses for which there was no time.
    """
    lines = [
        f"  {name}: " + (", ".join(f"{value:g}" for value in values) or "no knob to choose")
        for name, values in chosen.items()
    ]
    lines = ["operating points to audit:", *lines] if lines else ["no defense is audited"]
    return "\n".join([*lines, *([_left_out(left_out)] if left_out else [])])


def ending(defenses: int, left_out: Sequence[str], spent: float, budget: float) -> str:
    """Returns the lines of a terminal on how the audit ended.

    Args:
      defenses: the number of audited defenses.
      left_out: defenses for which there was no time.
      spent: seconds that the audit took.
      budget: seconds that the audit was given.
    """
    if not defenses:
        return (
            f"No defense was audited: {clock(spent)} of {clock(budget)} went to the undefended federation. The "
            "same command with a larger --budget goes on."
        )
    lines = [f"audited: {_counted(defenses, 'defense')} in {clock(spent)} of {clock(budget)}"]
    return "\n".join([*lines, *([_left_out(left_out)] if left_out else [])])
