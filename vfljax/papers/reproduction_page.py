"""REPRODUCTION.md: the papers and our runs, from the small files that ``launch.reproduce --record`` stores.

It holds the coverage of the printed numbers, the claims of the papers, what differs and which variants were
tried, and a table for every run.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Sequence

from vfljax import store
from vfljax.papers import PAPERS, claims, comparisons, coverage, evidence, paper_of
from vfljax.papers.agreement import LEVEL, Status
from vfljax.papers.comparisons import Compared
from vfljax.papers.coverage import Covered
from vfljax.report import page, stored_rows, tables
from vfljax.report.assessment import assess
from vfljax.sweep.experiment import experiment_of

LEAKS = "_leaks.csv"
Command = Callable[[str, str, str], str]
"""(table, data set, variant) -> the command line of a run, "" where there is none."""
HEAD = """# The papers, reproduced

This page is written by `python -m launch.reproduce --write` from the files in `analysis/results/reproduction/`,
and nothing in it is typed by hand but the wording of the claims. Each of those files is made by the command
that stands beside its table, with `--record`.

A number **agrees** or **differs** if it was run at the published setting with several seeds. Where a paper
prints a spread over runs, this is Welch's t-test at 5 % with both spreads and both counts, otherwise our 95 %
interval, either half a printed unit wider. "About .5" is **shown** without a verdict. Where the data or a GPU
is not at hand, a smaller network or a sample of the rows was run: it bears on **claims only** and is compared
with no number. **Not run** means that the config is complete: most need data or a GPU that was not at hand,
and a few (GAFM's Tables D.3 and D.6 on IMDB) need an hour or less of two cores.
`python -m launch.reproduce --list` says what each needs.
"""


CLAIMED = """\
Each claim is in the paper's sense and our words. Where a paper prints numbers, **for**, **against**
and **open** say where a paired difference over seeds and its 95 % interval lie. Where it prints none, lines
name the sweep that they are of, and means over seeds are held against a threshold of ours, without an
interval: with two or three seeds this is a hint. Runs that are reduced or of a sample are named as such, bear
on the order of methods only, and prove nothing about the published setting."""

DIFFERING = """Most variants were tried because the main form differed. That one agrees shows what would make
a number as printed. It does not show that the authors ran it, and of several tries one agrees sooner by chance.
The turned readings of Table D.3 (`oriented`) were added after the first two had differed."""


def stored(folder: pathlib.Path) -> list[Compared]:
    """Returns every comparison in the folder, by file name."""
    files = sorted(f for f in folder.glob("*.csv") if not f.name.endswith(LEAKS))
    return [compared for file in files for compared in comparisons.read(file)]


def keep(folder: pathlib.Path, workdir: pathlib.Path, compared: Sequence[Compared]) -> None:
    """Stores what the page needs of a sweep: its comparison, its figure and its leaks.

    Args:
      folder: where ``stored`` reads comparisons.
      workdir: the folder of the sweep, with its report.
      compared: the sweep's numbers and the printed ones.
    """
    sweep = store.load(workdir)
    experiment = experiment_of(sweep)
    assert experiment.reproduces is not None, "the sweep is of no paper's table"
    name = experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    if compared:
        store.write_text(folder / f"{name}.csv", comparisons.text(compared))
    figure = workdir / "figures" / f"{page.PAPER}.png"
    if figure.exists():
        store.write_bytes(folder / f"{name}.png", figure.read_bytes())
    found = assess(stored_rows.read(sweep, named=False))
    rows = evidence.leak_rows(experiment.reproduces.table, found)
    store.write_text(folder / f"{name}{LEAKS}", evidence.leaks_text(rows))


def text(folder: pathlib.Path, command: Command) -> str:
    """Returns the page.

    Args:
      folder: holds the stored comparisons, leaks and figures.
      command: gives the command line of a run.
    """
    compared = stored(folder)
    covered = coverage.coverage(compared)
    stored_evidence = evidence.Evidence(
        compared=compared,
        leaks={
            f.name.removesuffix(LEAKS): evidence.read_leaks(f) for f in folder.glob(f"*{LEAKS}")
        },
    )
    header, rows = coverage.table(covered)
    commands = (command(row[0], row[1], "") for row in rows)
    rows = [[*row, line and f"`{line}`"] for row, line in zip(rows, commands, strict=True)]
    lines = [HEAD, "## How the printed numbers stand", "", _sum(covered), ""]
    lines += [*tables.markdown([*header, "command"], rows), ""]
    lines += ["## The claims of the papers", "", CLAIMED, "", *_claims(stored_evidence)]
    lines += ["## Figures in the papers' form", "", *_figures(folder)]
    lines += ["## What differs", "", DIFFERING, "", *_differs(covered)]
    lines += ["## What cannot be compared", "", *_not_comparable(covered)]
    lines += ["## Every number that was run", "", *_every(compared, command)]
    return "\n".join(lines).rstrip() + "\n"


def _claims(stored_evidence: evidence.Evidence) -> list[str]:
    """Every claim with its evidence."""
    lines: list[str] = []
    for paper, title in PAPERS.items():
        lines += [f"### {title}", ""]
        for claim, weigh in claims.CLAIMS[paper].items():
            weighed = [f"- **{w.support}**: {w.text}" for w in weigh(stored_evidence)]
            lines += [f"*{claim}*", "", *(weighed or ["- not run."]), ""]
    return lines


def _figures(folder: pathlib.Path) -> list[str]:
    """Every stored figure; diamonds in them are printed numbers."""
    names = sorted(f.name for f in folder.glob("*.png"))
    shown = [f"![{name}](results/{folder.name}/{name})" for name in names]
    return [line for image in shown or ["None was drawn yet."] for line in (image, "")]


def _sum(covered: Sequence[Covered]) -> str:
    count = coverage.counts(covered)
    judged = count[Status.AGREES] + count[Status.DIFFERS]
    return (
        f"Of {count.total()} printed numbers {judged} were run at the published setting and judged: "
        f"{count[Status.AGREES]} agree and {count[Status.DIFFERS]} differ, where chance alone would make up "
        f"to {LEVEL * judged:.0f} differ. {count[Status.SHOWN]} more are shown without a verdict, "
        f"{count[Status.CLAIMS]} were run smaller and bear on claims only, {count[Status.NOT_RUN]} "
        f"were not run, and {count[Status.NOT_COMPARABLE]} cannot be compared."
    )


def _differs(covered: Sequence[Covered]) -> list[str]:
    """Each number that differs, and all variants of it that were run."""
    lines = []
    for entry in covered:
        if entry.status is Status.DIFFERS and entry.main is not None:
            setting, figure, ours, printed, *_ = comparisons.row(entry.main)
            number = entry.number
            where = f"{number.table}, {number.dataset}, {setting}, {figure}"
            tried = "; ".join(f"`{v.variant}` {_short(v)}" for v in entry.variants)
            variants = f" Variants tried: {tried}." if tried else ""
            lines.append(f"- {where}: {ours}, published {printed}.{variants}")
    return [*(lines or ["Nothing that was run."]), ""]


def _short(compared: Compared) -> str:
    ours = compared.agreement
    assert ours is not None  # variants are at the published setting
    return f"{ours.mean:.3f} ({ours.low:.3f} to {ours.high:.3f}, {ours.status})"


def _not_comparable(covered: Sequence[Covered]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for entry in covered:
        if entry.status is Status.NOT_COMPARABLE:
            where = f"{entry.number.table} {entry.number.dataset}".strip()
            by_reason.setdefault(entry.reason, []).append(f"{where} ({entry.number.id})")
    return [*(f"- {reason}: {', '.join(where)}." for reason, where in by_reason.items()), ""]


def _every(compared: Sequence[Compared], command: Command) -> list[str]:
    """A table for every run."""
    groups: dict[tuple[str, str, str, str, str], list[Compared]] = {}
    for c in compared:
        key = (c.number.table, c.number.dataset, c.scale, c.variant, c.run)
        groups.setdefault(key, []).append(c)
    lines = []
    for (table, dataset, scale, variant, run), members in sorted(groups.items()):
        words = [scale] * (scale != "full") + [f"variant {variant}"] * bool(variant)
        seeds = max(len(c.ours) for c in members)
        lines += [f"### {table}, {dataset}{': ' if words else ''}{', '.join(words)}", ""]
        lines += [f"{PAPERS[paper_of(table)]}. {seeds} seeds. `{command(table, dataset, run)}`", ""]
        lines += [*tables.markdown(*comparisons.table(members)), ""]
    return lines
