"""What an audit says: before it begins, of what it chose, and in its report's notes."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vfljax.auditing.request import Request
from vfljax.auditing.survey import Look
from vfljax.datasets.core import Dataset
from vfljax.datasets.table_errors import one_line
from vfljax.sweep.progress import clock

SHOWN = 5  # names in a sentence
LOUD = 2  # telling columns that have a sentence of their own
DROPPED = "left out, as drop= asks"  # how a loader's note on what was dropped begins


def counted(count: int, what: str) -> str:
    """'1 column', '3 columns'."""
    return f"{count:,} {what}" + "s" * (count != 1)


def few(names: Iterable[str]) -> str:
    """'a, b, c and 4 more'."""
    names = list(names)
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def class_counts(dataset: Dataset) -> list[tuple[str, int]]:
    """(class, rows), the most frequent first."""
    counts = np.bincount(dataset.labels, minlength=dataset.num_classes)
    order = np.argsort(-counts, kind="stable")
    return [(dataset.classes[c] if dataset.classes else str(c), int(counts[c])) for c in order]


def preamble(request: Request, seen: Look, config: Mapping[str, Any], defenses: int) -> str:
    """What was seen, and what is going to be done, for a terminal."""
    dataset = seen.dataset
    rows = len(dataset.labels)
    classes = [f"{one_line(name)} {n:,} ({n / rows:.1%})" for name, n in class_counts(dataset)]
    more = ", ..." if len(classes) > 6 else ""
    known = max((o["known"] for o in config["attacks"].values() if "known" in o), default=0)
    lines = [
        f"{dataset.name}: {rows:,} rows, {dataset.num_classes} classes: {', '.join(classes[:6])}{more}",
        *(
            f"  {party}: {counted(len(some), 'column')}"
            + ", and the labels" * (party == request.label_party)
            for party, some in seen.owners.items()
        ),
        f"  attackers: {', '.join(request.attacking)}, who know {known} labels; federation: "
        f"{request.federation}",
        *(f"  {note}" for note in table_notes(seen)),
        *(f"  note: {note}" for note in dataset.notes if not note.startswith(DROPPED)),
        f"The audit attacks the undefended federation, tries {counted(defenses, 'defense')} in a pilot, and "
        f"audits them on {counted(request.seeds, 'seed')}: as many as there is time for in "
        f"{clock(request.budget)} (--budget). The undefended federation alone takes a minute or two where its "
        "programs were never compiled.",
    ]
    return "\n".join(lines)


def table_notes(seen: Look) -> list[str]:
    """What a person should know of the table before anything is trained."""
    classes = seen.dataset.num_classes
    out = [one.sentence(classes) for one in seen.telling[:LOUD]]
    rest = [f"{one.column} ({one.party}) {one.figure:.2f}" for one in seen.telling[LOUD:]]
    if rest:
        out.append(f"Telling by themselves too: {few(rest)}.")
    if seen.telling:
        drop = shlex.quote(f"--option=drop={','.join(one.column for one in seen.telling[:SHOWN])}")
        out.append(f"To leave such columns out: {drop}")
    if seen.nobody:
        out.append(f"Nobody owns {few(seen.nobody)}: left out.")
    out += [
        f"No column of {party} varies: it has nothing to attack with." for party in seen.constant
    ]
    return [one_line(sentence) for sentence in out]


def notes_of(seen: Look, refused: Mapping[str, str]) -> list[str]:
    """Notes on the table, and on the defenses that cannot be tried on it."""
    out = table_notes(seen)
    if refused:
        whys = "; ".join(f"{name} ({one_line(why)})" for name, why in refused.items())
        out.append(f"Not applicable here: {whys}")
    return out


def notes_on(
    strengths: Mapping[str, Sequence[float]], left_out: Sequence[str], request: Request
) -> list[str]:
    """Notes on what was chosen and what was left out."""
    what = (
        f"left out for want of time: {', '.join(left_out)}; the same call with a larger --budget has them"
        if left_out
        else "nothing was left out for want of time"
    )
    if not strengths:
        return [f"No defense was audited within {clock(request.budget)} (--budget): {what}."]
    counts = sorted({len(values) for values in strengths.values() if values})
    each = " to ".join(str(count) for count in dict.fromkeys(counts[:1] + counts[-1:]))
    return [
        f"{counted(len(strengths), 'defense')}"
        + f", {each} strengths each" * bool(counts)
        + f"; {what}.",
        f"Strengths are those around which a pilot of one seed lost {request.max_cost:.3g} of validation "
        "accuracy. The pilot was not attacked, so no leak chose them.",
    ]


def chosen(strengths: Mapping[str, Sequence[float]], left_out: Sequence[str]) -> str:
    """What the last stage is going to train, for a terminal."""
    lines = [
        f"  {name}: " + (", ".join(f"{value:g}" for value in values) or "no strength to choose")
        for name, values in strengths.items()
    ]
    lines = ["strengths to audit:", *lines] if lines else ["no defense is audited"]
    lines += [f"left out for want of time: {', '.join(left_out)}"] if left_out else []
    return "\n".join(lines)


def ending(config: Mapping[str, Any], spent: float, budget: float) -> str:
    """How the audit ended, and what it left out."""
    tried = len(config["grid"]) - 1
    left = [note for note in config["notes"] if "left out for want of time" in note]
    if not tried:
        return (
            f"No defense was audited: {clock(spent)} of {clock(budget)} went to the undefended federation. The "
            "same command with a larger --budget goes on."
        )
    return "\n".join(
        [f"audited: {counted(tried, 'defense')} in {clock(spent)} of {clock(budget)}", *left]
    )
