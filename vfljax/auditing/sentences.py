"""The texts of an audit: what it found in the table, for the terminal and for its report."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

import numpy as np

from vfljax import tasks
from vfljax.auditing.suite import KNOWN
from vfljax.auditing.survey import COPY, RevealingColumn, Survey, above_chance
from vfljax.datasets import describing
from vfljax.datasets.core import Dataset
from vfljax.datasets.strata import noun, stratified
from vfljax.datasets.table_errors import one_line
from vfljax.report.words import count, listed
from vfljax.sweep.grid import configurations, parse

MOST_NAMES = 5  # most names in a sentence
AS_MUCH = 0.01  # a column predicts as well as all columns if its leak is at most this below theirs
EACH = 2  # revealing columns that get a sentence of their own
MOST_CLASSES = 6  # most classes that the terminal lists


def found_in(table: Survey, label_party: str) -> list[str]:
    """Returns the lines that a terminal shows of a table: its rows and classes, and the columns of each party.

    Args:
      table: the survey of the table.
      label_party: who has the labels.
    """
    dataset = table.dataset
    labels = describing.numbers(dataset) if dataset.num_classes == 1 else _classes(dataset)
    return [
        f"{dataset.name}: {len(dataset.labels):,} rows, {labels}",
        *(
            f"  {party}: {count(len(columns), 'column')}"
            + ", and the labels" * (party == label_party)
            for party, columns in table.owners.items()
        ),
    ]


def _classes(dataset: Dataset) -> str:
    """Returns the number of classes, and the share of the most frequent ones."""
    rows = len(dataset.labels)
    counts = np.bincount(dataset.labels, minlength=dataset.num_classes)
    names = dataset.classes or [*map(str, range(dataset.num_classes))]
    classes = [
        f"{one_line(names[c])} {counts[c]:,} ({counts[c] / rows:.1%})"
        for c in np.argsort(-counts, kind="stable")
    ]
    more = ", ..." if len(classes) > MOST_CLASSES else ""
    return f"{dataset.num_classes} classes: {', '.join(classes[:MOST_CLASSES])}{more}"


def preamble(table: Survey, config: Mapping[str, Any]) -> list[str]:
    """Returns the lines that a terminal shows before the audit begins.

    Args:
      table: the survey of the table.
      config: of the whole audit.
    """
    known = max((o["known"] for o in config["attacks"].values() if "known" in o), default=0)
    names_of = config["parties"]["names"]  # the party with the labels is the last
    attackers = listed([names_of[party] for (party,) in config["attackers"]], MOST_NAMES)
    defenses, strengths = len(config["grid"]) - 1, len(configurations(parse(config))) - 1
    return [
        *found_in(table, names_of[-1]),
        f"  attackers: {attackers}, who know {known} labels; federations: "
        f"{', '.join(config['federations'])}",
        *(f"  {note}" for note in config["notes"]),
        *(f"  note: {note}" for note in table.dataset.notes),
        f"undefended and {count(defenses, 'defense')} at {count(strengths, 'operating point')}, "
        f"{count(config['seeds'], 'seed')}",
    ]


def known_note(dataset: Dataset, known: int) -> list[str]:
    """Returns why attackers know fewer labels than by default; [] where they do not.

    Args:
      dataset: the table.
      known: the labels that they know.
    """
    if known >= KNOWN:
        return []
    kind, dataset = noun(dataset), stratified(dataset)
    counts = np.bincount(dataset.labels, minlength=dataset.num_classes)
    rarest = int(counts.argmin())
    name = one_line(dataset.classes[rarest]) if dataset.classes else str(rarest)
    return [
        f"Attackers know {known} labels and not {KNOWN}: of {kind} {name}, which has "
        f"{count(int(counts[rarest]), 'row')}, they know no more than half of the training rows. "
        "known asks for another number."
    ]


def revealing(found: RevealingColumn, classes: int) -> str:
    """Returns what a person should check about a column that reveals the labels.

    Args:
      found: the column.
      classes: C.
    """
    does = (
        f"ranks the labels with {'AUC' if classes == 2 else 'concordance'} {found.leak:.2f}"
        if classes <= 2
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
    labels = (of for of in table.dataset.sources if of.read_as == "label" and of.note)
    notes = [f"The label {of.name} is {of.note}." for of in labels]
    notes += [revealing(column, table.dataset.num_classes) for column in warned[:EACH]]
    if warned:
        dropped = [name for name in table.options["drop"] if name not in table.unowned]
        drop = ",".join([*dropped, *(column.column for column in warned[:MOST_NAMES])])
        notes.append(f"To leave such columns out: {shlex.quote(f'--option=drop={drop}')}")
    if table.reach:
        figures = ", ".join(f"{who} {figure:.3f}" for who, figure in table.reach.items())
        classes = table.dataset.num_classes
        scale = tasks.of(classes).scale(classes).removeprefix("leak ")
        notes.append(
            f"How well columns predict the labels ({scale} of gradient boosting on all labels, "
            f"cross-validated): {figures}."
        )
    others = [column for column in found if column not in warned[:EACH]]
    if others:
        rest = listed(
            [f"{column.column} ({column.party}) {column.leak:.2f}" for column in others], MOST_NAMES
        )
        notes.append(f"Columns that predict the labels well by themselves: {rest}.")
    if table.sparse:
        notes.append(
            f"Gradient boosting leaves out columns of few numbers: {listed(table.sparse, MOST_NAMES)}."
        )
    if table.unowned:
        notes.append(f"No party owns {listed(table.unowned, MOST_NAMES)}: left out.")
    notes += [
        f"No column of {party} varies: it has nothing to attack with." for party in table.constant
    ]
    return [one_line(note) for note in notes]


def refused_note(refused: Mapping[str, str]) -> list[str]:
    """Returns a note on the defenses that cannot be tried, with each reason of ``refused`` once; [] if none."""
    names: dict[str, list[str]] = {}
    for name, reason in refused.items():
        names.setdefault(one_line(reason).removeprefix("is ").removesuffix("."), []).append(name)
    reasons = "; ".join(f"{listed(of)} ({reason})" for reason, of in names.items())
    return [f"Not applicable here: {reasons}."] if refused else []
