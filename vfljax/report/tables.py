"""The report's tables: headers and rows of text, rendered from assessments."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from vfljax import store
from vfljax.report import attack_tables, captions, findings, guarantees, words
from vfljax.report.assessed import Assessed
from vfljax.report.candidates import Strongest
from vfljax.report.configurations import FIGURES, titles
from vfljax.report.estimates import Estimate, Interval
from vfljax.report.stored_rows import FEDERATIONS, Table
from vfljax.sweep.experiment import Experiment


class Section(NamedTuple):
    """One table of the report."""

    title: str
    caption: str  # paragraphs, an empty line between them
    table: Table


class Extra(NamedTuple):
    """What the caller of a report adds to it, such as a paper's table and figure (``vfljax.papers``)."""

    sections: tuple[Section, ...] = ()
    draw: Callable[[], Figure | None] = lambda: None


Extend = Callable[[store.Sweep, Experiment], Extra]


def no_extra(sweep: store.Sweep, experiment: Experiment) -> Extra:
    """Returns an ``Extra`` that adds nothing."""
    del sweep, experiment
    return Extra()


def sections(assessed: Assessed, permuted: float, extra: Sequence[Section] = ()) -> list[Section]:
    """Returns every table of the report that has rows.

    Args:
      assessed: a sweep with its rows.
      permuted: share of the training rows whose labels were permuted.
      extra: the caller's sections.
    """
    rows = assessed.rows
    assert rows is not None
    every = [
        Section(
            "Strongest attacks and verdicts",
            captions.strongest_attack(assessed, permuted),
            verdict_rows(assessed),
        ),
        Section(
            "Strongest attack by the number of known labels",
            "The strongest of all attacks that know at most so many labels, and of the local-only baseline "
            "with as many; excess: over that baseline.",
            knowledge_rows(assessed),
        ),
        Section(
            "Published attacks and attackers who know the defense",
            captions.UNPUBLISHED,
            unpublished_rows(assessed),
        ),
        *extra,
        Section(
            "Label DP: what epsilon bounds, what attacks reached",
            guarantees.caption(assessed),
            guarantees.bound_table(assessed),
        ),
        Section(
            "All configurations",
            "Mean over seeds. Attack columns: top-1 success on all training rows; strongest: "
            f"{assessed.reference.scale}.",
            configuration_rows(assessed),
        ),
        Section("Attacks", "", attack_tables.attack_rows(rows)),
        Section(
            "Seconds of training and of each attack",
            attack_tables.SECONDS,
            attack_tables.seconds_rows(rows),
        ),
    ]
    return [section for section in every if section.table[1]]


def verdict_rows(assessed: Assessed) -> Table:
    """The strongest attack on every configuration in every federation, and the verdict."""
    header = [
        *("configuration", "federation", "verdict", "leaks (at least to at most)"),
        *("strongest attack", "by folds", "excess over local-only", "change to undefended"),
        *(f"change of {assessed.reference.utility}", "gain kept", "cost", "operating point"),
        *("advantage over chance", "null band"),
    ]
    oracle = any(a.oracle for a in assessed.assessments)
    chance, rows = assessed.reference.chance, []
    for a in assessed.attacked:
        strongest = a.strongest
        assert strongest is not None
        advantage = (strongest.leak.mean - chance) / (1 - chance)
        null = f"{strongest.attack.null:.3f}" + ("" if strongest.informative else ", not above")
        cells = [
            *(a.label, FEDERATIONS[a.federation], words.verdict_text(a), str(a.leak)),
            *(strongest.name, _by_folds(strongest), a.excess.signed, a.change.signed),
            *(str(a.cost), str(a.kept.share), words.cost_text(a), "chosen" if a.chosen else ""),
            *(f"{advantage:.3f}", null),
        ]
        cells += [f"{a.oracle.leak} {a.oracle.name}" if a.oracle else "-"] * oracle
        rows.append(cells)
    return header + ["strongest oracle"] * oracle, rows


def _by_folds(strongest: Strongest) -> str:
    """'0.912, 3 of 5 folds'"""
    return f"{_figure(strongest.fold_leak, '')}, {strongest.folds} of {strongest.seeds} folds"


def _figure(value: float, sign: str) -> str:
    return "-" if math.isnan(value) else f"{value:{sign}.3f}"


def knowledge_rows(assessed: Assessed) -> Table:
    """The strongest attack with every number of known labels, where there are several."""
    counts = sorted({known for a in assessed.assessments for known in a.by_knowledge})
    header = ["configuration", "federation", *(f"{known} labels" for known in counts)]
    if len(counts) < 2:
        return header, []
    rows = []
    for a in assessed.assessments:
        strongest = [a.by_knowledge.get(known) for known in counts]
        cells = [f"{s.leak} {s.name}, excess {s.excess.signed}" if s else "-" for s in strongest]
        if any(strongest):
            rows.append([a.label, FEDERATIONS[a.federation], *cells])
    return header, rows


def unpublished_rows(assessed: Assessed) -> Table:
    """The strongest attack of the papers and the strongest of all, where these differ."""
    header = [
        *("configuration", "federation", "strongest published attack"),
        *("leaks (at least to at most)", "strongest attack", "leaks (at least to at most)"),
        *("reads more by", "which is"),
    ]
    rows = []
    for a in assessed.assessments:
        published, strongest = a.published, a.strongest
        if not published or not strongest or not a.configuration.defended:
            continue
        if published.name != strongest.name:
            more = a.unpublished
            rows.append(
                [
                    *(a.label, FEDERATIONS[a.federation], published.name, str(published.leak)),
                    *(strongest.name, str(a.leak), more.signed, findings.more_in_words(more)),
                ]
            )
    return header, rows


class FigureColumn(NamedTuple):
    """A column of the table of all configurations."""

    about: str  # accuracy, AUC, attack, strongest or excess
    title: str
    cells: list[str]
    means: list[str]  # the cells without limits


def configuration_columns(assessed: Assessed) -> list[FigureColumn]:
    """The columns of the table of all configurations, after its labels; those without a figure are left out."""
    every = assessed.configurations
    kinds = list(dict.fromkeys(kind for c in every for kind in c.accuracy))
    out = [
        _column(about, f"{about} {kind}", [figures.get(kind) for figures in by_kind])
        for about, by_kind in (
            ("accuracy", [c.accuracy for c in every]),
            ("AUC", [c.auc for c in every]),
        )
        for kind in kinds
    ]
    for key, title in titles(key for c in every for key in c.attacks).items():
        figures = [c.attacks[key]["success"] if key in c.attacks else None for c in every]
        out.append(_column("attack", title, figures))
    on = {(a.configuration.number, a.federation): a for a in assessed.attacked}
    for federation, title in (("split", "split"), ("no_split", "no split")):
        found = [on.get((c.number, federation)) for c in every]
        names = [_short_name(a.strongest) if a and a.strongest else "" for a in found]
        leaks = [a.leak if a else None for a in found]
        out.append(_column("strongest", f"strongest ({title})", leaks, names))
        excess = [a.excess if a else None for a in found]
        out.append(_column("excess", f"excess ({title})", excess, sign="+"))
    return [column for column in out if any(cell != "-" for cell in column.cells)]


def _short_name(strongest: Strongest) -> str:
    """Its name; of the local-only baseline without the learner."""
    return strongest.attack.brief if strongest.is_local_only else strongest.name


def _column(
    about: str,
    title: str,
    figures: Sequence[Interval | Estimate | None],
    names: Sequence[str] = (),
    sign: str = "",
) -> FigureColumn:
    """A column of these figures, with ``names`` behind them."""
    names = names or [""] * len(figures)

    def text(figure: Interval | Estimate | None) -> str:
        if figure is None:
            return "-"
        return figure.text(sign) if isinstance(figure, Estimate) else str(figure)

    def mean(figure: Interval | Estimate | None) -> str:
        return "-" if figure is None else _figure(figure.mean, sign)

    cells, means = (
        [f"{write(figure)} {name}".strip() for figure, name in zip(figures, names, strict=True)]
        for write in (text, mean)
    )
    return FigureColumn(about, title, cells, means)


def configuration_labels(assessed: Assessed) -> list[str]:
    """The label of every configuration, with how many of its trials diverged."""
    return [
        c.label + (f" ({c.diverged} diverged)" if c.diverged else "")
        for c in assessed.configurations
    ]


def configuration_rows(assessed: Assessed) -> Table:
    """A row for every configuration: utility, success of every attack, and the strongest attack."""
    columns, labels = configuration_columns(assessed), configuration_labels(assessed)
    header = ["configuration", *(column.title for column in columns)]
    return header, list(map(list, zip(labels, *(column.cells for column in columns), strict=True)))


def leak_rows(assessed: Assessed) -> Table:
    """Every attack's figures on every configuration and federation, means over seeds."""
    header = ["configuration", "attack", "federation", *FIGURES]
    rows = []
    for c in assessed.configurations:
        for key, figures in c.attacks.items():
            values = [figures[name] for name in FIGURES]
            cells = (f"{v.mean:.4f}" if v.count else "" for v in values)
            rows.append([c.label, key.label, key.federation, *cells])
    return header, rows


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """The text of a CSV file."""
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a Markdown table."""
    return [
        "| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |"
        for row in (header, ["---"] * len(header), *rows)
    ]
