"""The report's tables: headers and rows of text, rendered from assessments and stored rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from matplotlib.figure import Figure

from vfljax import attacks as attack_table
from vfljax import store
from vfljax.report import captions, findings, guarantees, stored_rows, words
from vfljax.report.assessed import Assessed, Assessment
from vfljax.report.candidates import Strongest
from vfljax.report.configurations import FIGURES, titles
from vfljax.report.estimates import NO_LIMITS, Estimate
from vfljax.report.stored_rows import FEDERATIONS, KINDS, StoredRows, Table
from vfljax.sweep.experiment import Experiment


class Section(NamedTuple):
    """One table of the report; a new one is an entry of ``sections``, or of a caller's ``Extra``."""

    title: str
    caption: str  # paragraphs, an empty line between them
    table: Table


Draw = Callable[[], Figure]


class Extra(NamedTuple):
    """What the caller of a report adds to it, such as a paper's table (``vfljax.papers``) or figure."""

    sections: tuple[Section, ...] = ()
    draw: Draw | None = None


NO_EXTRA = Extra()
Extend = Callable[[store.StoredSweep, Experiment], Extra]
KNOWLEDGE = (
    "The strongest of all attacks that know at most so many labels, and of the local-only baseline "
    "with as many; excess: over that baseline."
)
UNPUBLISHED = (
    "Where the strongest attack is in no paper: it takes the defense into account, or learns from what "
    "crossed the wire. Published: the strongest of the published attacks run here, or the local-only baseline. "
    "What the strongest reads more has limits as the change to undefended has."
)
CONFIGURATIONS = (
    "Mean over seeds. Attacks, on rows whose labels they do not know, and the strongest: "
)
SECONDS = (
    "Wall-clock seconds of the machine that ran it, the slowest attack first. Runs of an attack include those "
    "on its baselines. Of the programs of training only the epochs are counted, of an attack everything."
)


def sections(assessed: Assessed, permuted: float, extra: Sequence[Section] = ()) -> list[Section]:
    """Returns every table of the report that has rows.

    Args:
      assessed: a sweep with its rows.
      permuted: share of the training rows whose labels were permuted.
      extra: the caller's sections.
    """
    rows, scale = assessed.rows, assessed.reference.scale
    verdicts = captions.strongest_attack(assessed, permuted)
    allowed = guarantees.caption(assessed), guarantees.bound_table(assessed)
    every = (
        ("Strongest attacks and verdicts", verdicts, verdict_rows(assessed)),
        ("Strongest attack by the number of known labels", KNOWLEDGE, knowledge_rows(assessed)),
        ("Published attacks and attackers who know the defense", UNPUBLISHED, _published(assessed)),
        *extra,
        ("Label DP: what epsilon bounds, what attacks reached", *allowed),
        ("All configurations", f"{CONFIGURATIONS}{scale}.", configuration_rows(assessed)),
        ("Attacks", "", attack_rows(rows)),
        ("Seconds of training and of each attack", SECONDS, seconds_rows(rows)),
    )
    return [section for section in map(Section._make, every) if section.table[1]]


# a column of a table of assessments: its title, and its cell for an assessment and its strongest attack
Column = tuple[str, Callable[[Assessment, Strongest], object]]
CONFIGURATION: list[Column] = [
    ("configuration", lambda a, s: a.label),
    ("federation", lambda a, s: FEDERATIONS[a.federation]),
]
LEAKS = "leaks (at least to at most)"


def _table(columns: Sequence[Column], members: Iterable[Assessment]) -> Table:
    """Returns a table with a row for every assessment that has a strongest attack."""
    attacked = [(a, a.strongest) for a in members if a.strongest is not None]
    rows = [[str(cell(*pair)) for _, cell in columns] for pair in attacked]
    return [title for title, _ in columns], rows


def verdict_rows(assessed: Assessed) -> Table:
    """Returns the strongest attack on every configuration in every federation, and the verdict."""
    chance = assessed.reference.chance
    columns: list[Column] = [
        *CONFIGURATION,
        ("verdict", lambda a, s: words.verdict_text(a)),
        (LEAKS, lambda a, s: a.leak),
        ("strongest attack", lambda a, s: s.name),
        # '0.912, 3 of 5 folds'
        (
            "by folds",
            lambda a, s: f"{Estimate(s.fold_leak, NO_LIMITS)}, {s.folds} of {s.seeds} folds",
        ),
        ("excess over local-only", lambda a, s: a.excess.signed),
        ("change to undefended", lambda a, s: a.change.signed),
        (f"change of {assessed.reference.utility}", lambda a, s: a.cost),
        ("gain kept", lambda a, s: a.kept.share),
        ("cost", lambda a, s: words.cost_text(a)),
        ("operating point", lambda a, s: "chosen" if a.chosen else ""),
        ("advantage over chance", lambda a, s: f"{(s.leak.mean - chance) / (1 - chance):.3f}"),
        (
            "null band",
            lambda a, s: f"{s.attack.null:.3f}" + ("" if s.informative else ", not above"),
        ),
    ]
    if any(a.oracle for a in assessed.assessments):
        columns.append(("strongest oracle", lambda a, s: _named(a.oracle)))
    return _table(columns, assessed.attacked)


def method_rows(assessed: Assessed) -> Table:
    """Returns undefended, then the assessment that represents each method, the most useful first."""
    utility = assessed.reference.utility
    columns: list[Column] = [
        *(CONFIGURATION if len(assessed.federations) > 1 else CONFIGURATION[:1]),
        ("verdict", lambda a, s: words.outcome(a) if a.configuration.defended else "-"),
        (f"leaks ({assessed.reference.scale})", lambda a, s: words.figure(a.leak)),
        ("without the federation", lambda a, s: words.brief(s.local_only)),
        ("gain kept", lambda a, s: words.if_known(words.share(a.kept.share), a)),
        ("cost", lambda a, s: words.if_known(words.cost_text(a), a)),
        (utility, lambda a, s: words.if_known(words.absolute(a.utility), a)),
    ]
    bare = [a for f in assessed.federations if (a := assessed.undefended(f)) is not None]
    return _table(columns, [*bare, *assessed.methods])


def _named(strongest: Strongest | None) -> str:
    return f"{strongest.leak} {strongest.name}" if strongest else "-"


def knowledge_rows(assessed: Assessed) -> Table:
    """Returns the strongest attack for each number of known labels; no rows if there is only one number."""
    counts = sorted({known for a in assessed.assessments for known in a.by_knowledge})
    header = ["configuration", "federation", *(f"{known} labels" for known in counts)]
    rows = []
    for a in assessed.assessments if len(counts) > 1 else ():
        strongest = [a.by_knowledge.get(known) for known in counts]
        if any(strongest):
            cells = [f"{_named(s)}, excess {s.excess.signed}" if s else "-" for s in strongest]
            rows.append([a.label, FEDERATIONS[a.federation], *cells])
    return header, rows


def _published(assessed: Assessed) -> Table:
    """Returns the strongest attack in papers and of all, on defended configurations where they differ."""
    columns: list[Column] = [
        *CONFIGURATION,
        ("strongest published attack", lambda a, s: a.published and a.published.name),
        (LEAKS, lambda a, s: a.published and a.published.leak),
        ("strongest attack", lambda a, s: s.name),
        (LEAKS, lambda a, s: a.leak),
        ("reads more by", lambda a, s: a.unpublished.signed),
        ("which is", lambda a, s: findings.more_in_words(a.unpublished)),
    ]
    differing = [
        a
        for a in assessed.assessments
        if a.published and a.strongest and a.published.name != a.strongest.name
    ]
    return _table(columns, [a for a in differing if a.configuration.defended])


def configuration_rows(assessed: Assessed) -> Table:
    """Returns a row for every configuration: utility, leak of every attack, and the strongest attack.

    Columns without a figure are left out.
    """
    every = assessed.configurations
    columns: list[tuple[str, list[str]]] = []
    for name, part in ("accuracy", [c.accuracy for c in every]), ("AUC", [c.auc for c in every]):
        for kind in dict.fromkeys(kind for c in every for kind in c.accuracy):
            columns.append((f"{name} {kind}", [str(x.get(kind, "-")) for x in part]))
    for key, title in titles(key for c in every for key in c.attacks).items():
        attacked = [c.attacks.get(key) for c in every]
        columns.append((title, [str(figures["leak"]) if figures else "-" for figures in attacked]))
    for federation in FEDERATIONS:
        on = {a.configuration.number: a for a in assessed.attacked_on(federation)}
        members = [on.get(c.number) for c in every]
        leaks = [
            f"{a.leak} {_short_name(a.strongest)}" if a and a.strongest else "-" for a in members
        ]
        excesses = [a.excess.signed if a else "-" for a in members]
        columns.append((f"strongest ({KINDS[federation]})", leaks))
        columns.append((f"excess ({KINDS[federation]})", excesses))
    columns = [column for column in columns if any(cell != "-" for cell in column[1])]
    labels = [c.label + (f" ({c.diverged} diverged)" if c.diverged else "") for c in every]
    cells = zip(labels, *(column for _, column in columns), strict=True)
    return ["configuration", *(title for title, _ in columns)], list(map(list, cells))


def _short_name(strongest: Strongest) -> str:
    """Returns the attack's name; that of the local-only baseline lacks the learner."""
    return strongest.attack.brief if strongest.is_local_only else strongest.name


def attack_rows(rows: StoredRows) -> Table:
    """Returns a row for each attack variant: what it was given, its cost, and its own and published steps."""
    header = [
        *("attack", "federation", "known labels", "oracle or diagnostic", "optimizer steps"),
        *("published steps", "seconds", "compiles / shapes of view", "trials"),
    ]
    out = []
    for entry in rows.described.values():
        if entry["status"] == "skipped":
            out.append([entry["label"], "skipped: " + entry["reason"], *[""] * 7])
            continue
        kinds = [k for k in stored_rows.federations_of(entry) if k in rows.kinds_trained]
        known = ", ".join(f"{p['known']:g}" for p in entry["knobs"] if "known" in p) or "0"
        out.append(
            [
                stored_rows.rule_title(entry),
                ", ".join(KINDS[k] for k in kinds) or "none",
                entry.get("labels") or known,
                "yes" if entry.get("oracle") else "no",
                f"{entry['steps']:,}",
                f"{steps_published(entry['attack']):,}",
                f"{entry['seconds']:.1f}",
                f"{entry['compiles']} / {entry['views']}",
                str(entry["trials"]),
            ]
        )
    return header, out


def steps_published(attack: str) -> int:
    """Returns the published attack's optimizer steps; 0 if it trains nothing or is the local-only baseline."""
    return 0 if attack == store.LOCAL_ONLY else attack_table.TABLE[attack].published_steps


def seconds_rows(rows: StoredRows) -> Table:
    """Returns rows for training, each attack variant and all attacks: seconds, runs, milliseconds per run, the
    seconds as a share of training's, and the number of compiled programs."""
    header = ["", "seconds", "runs", "ms a run", "training is 1", "compiles"]
    trained = sum(trial.figures.get("seconds") or 0.0 for trial in rows.trials)

    def line(name: str, seconds: float, runs: int, compiles: str = "") -> list[str]:
        each = f"{1e3 * seconds / runs:.1f}" if runs else "-"
        share = f"{seconds / trained:.2f}" if trained else "-"
        return [name, f"{seconds:.1f}", f"{runs:,}", each, share, compiles]

    ran = [e for e in rows.described.values() if e["status"] != "skipped" and e["trials"]]
    ran.sort(key=lambda entry: -entry["seconds"])
    return header, [
        line("training", trained, len(rows.trials)),
        *(
            line(stored_rows.rule_title(e), e["seconds"], e["rows"], str(e["compiles"]))
            for e in ran
        ),
        line("all attacks", sum(e["seconds"] for e in ran), sum(e["rows"] for e in ran)),
    ]


def leak_rows(assessed: Assessed) -> Table:
    """Returns every attack's figures on every configuration and federation, as means over seeds."""
    header = ["configuration", "attack", "federation", *FIGURES]
    rows = []
    for c in assessed.configurations:
        for key, figures in c.attacks.items():
            values = [figures[name] for name in FIGURES]
            cells = (f"{v.mean:.4f}" if v.count else "" for v in values)
            rows.append([c.label, key.label, key.federation, *cells])
    return header, rows


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns the text of a CSV file.

    Args:
      header: the titles of its columns.
      rows: the cells of each row.
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Returns the lines of a Markdown table.

    Args:
      header: the titles of its columns.
      rows: the cells of each row.
    """
    return [
        "| " + " | ".join(str(cell).replace("|", "/") for cell in row) + " |"
        for row in (header, ["---"] * len(header), *rows)
    ]
