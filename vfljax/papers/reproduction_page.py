"""REPRODUCTION.md: the papers beside our runs, from small stored files alone.

What enters: the folder that ``launch.reproduce --record`` writes to, one CSV a sweep (``reproduction.read``)
and one of its leaks. What leaves: a page with the standing of every printed number, the claims of the
papers, what differs and which variants were tried, and each table beside ours.
"""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Iterable, Sequence

from vfljax import store
from vfljax.papers import PAPERS, claims, coverage, reproduction
from vfljax.papers.agreement import AGREES, DIFFERS, LEVEL
from vfljax.papers.coverage import Standing
from vfljax.papers.reproduction import Compared
from vfljax.report import page, summary, tables

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


DIFFERING = """Most variants were tried because the main form differed. That one agrees shows what would make
a number as printed. It does not show that the authors ran it, and of several tries one agrees sooner by chance.
The turned readings of Table D.3 (`oriented`) were added after the first two had differed."""


def stored(folder: pathlib.Path) -> list[Compared]:
    """Every comparison in the folder, by file name."""
    files = sorted(f for f in folder.glob("*.csv") if not f.name.endswith(LEAKS))
    return [one for file in files for one in reproduction.read(file)]


def keep(folder: pathlib.Path, workdir: pathlib.Path, compared: Sequence[Compared]) -> None:
    """Store what the page needs of a sweep: its comparison, its figure and its leaks.

    Args:
      folder: where ``stored`` reads comparisons.
      workdir: the folder of the sweep, with its report.
      compared: the sweep's numbers and the printed ones.
    """
    sweep = store.load(workdir)
    name = sweep.config["name"]
    folder.mkdir(parents=True, exist_ok=True)
    if compared:
        store.write_text(folder / f"{name}.csv", reproduction.text(compared))
    figure = workdir / "figures" / f"{page.PAPER}.png"
    if figure.exists():
        store.write_bytes(folder / f"{name}.png", figure.read_bytes())
    rows = reproduction.leaks(summary.points(sweep))
    store.write_text(folder / f"{name}{LEAKS}", tables.csv_text(*rows))


def text(folder: pathlib.Path, command: Command) -> str:
    """The page."""
    compared = stored(folder)
    standings = coverage.standings(compared)
    lines = [HEAD, "## How the printed numbers stand", "", _sum(standings), ""]
    lines += [*_markdown(*_tables(standings, command)), ""]
    lines += ["## The claims of the papers", "", claims.HEAD, ""]
    lines += claims.text(claims.Evidence(compared, _leaks(folder)))
    lines += ["## Figures in the papers' form", "", *_figures(folder)]
    lines += ["## What differs", "", DIFFERING, "", *_differs(standings)]
    lines += ["## What cannot be compared", "", *_not_comparable(standings)]
    lines += ["## Every number that was run", "", *_every(compared, command)]
    return "\n".join(lines).rstrip() + "\n"


def _figures(folder: pathlib.Path) -> list[str]:
    """Every stored figure; diamonds in them are printed numbers."""
    names = sorted(f.name for f in folder.glob("*.png"))
    shown = [f"![{name}](results/{folder.name}/{name})" for name in names]
    return [line for image in shown or ["None was drawn yet."] for line in (image, "")]


def _leaks(folder: pathlib.Path) -> dict[str, list[dict[str, str]]]:
    return {f.name.removesuffix(LEAKS): claims.read_leaks(f) for f in folder.glob(f"*{LEAKS}")}


def _sum(standings: Sequence[Standing]) -> str:
    count = coverage.counts(standings)
    judged = count[AGREES] + count[DIFFERS]
    return (
        f"Of {count.total()} printed numbers {judged} were run at the published setting and judged: "
        f"{count[AGREES]} agree and {count[DIFFERS]} differ, where chance alone would make up to "
        f"{LEVEL * judged:.0f} differ. {count[coverage.SHOWN]} more are shown without a verdict, "
        f"{count[coverage.CLAIMS]} were run smaller and bear on claims only, {count[coverage.NOT_RUN]} "
        f"were not run, and {count[coverage.NOT_COMPARABLE]} cannot be compared."
    )


def _tables(standings: Sequence[Standing], command: Command) -> tuple[list[str], list[list[str]]]:
    header, rows = coverage.status(standings)
    lines = [command(row[0], row[1], "") for row in rows]
    out = [[*row, f"`{line}`" if line else ""] for row, line in zip(rows, lines, strict=True)]
    return [*header, "command"], out


def _differs(standings: Sequence[Standing]) -> list[str]:
    """Each number that differs, and all variants of it that were run."""
    lines = []
    for one in standings:
        if one.says != DIFFERS or one.main is None:
            continue
        row = reproduction.row(one.main)
        line = f"- {one.number.table}, {one.number.dataset}, {row[0]}, {row[1]}: {row[2]}, published {row[3]}."
        tried = [f"`{v.variant}` {_short(v)}" for v in one.variants]
        lines.append(line + (f" Variants tried: {'; '.join(tried)}." if tried else ""))
    return [*(lines or ["Nothing that was run."]), ""]


def _short(compared: Compared) -> str:
    verdict = compared.verdict
    assert verdict is not None
    return f"{verdict.mean:.3f} ({verdict.low:.3f} to {verdict.high:.3f}, {verdict.says})"


def _not_comparable(standings: Iterable[Standing]) -> list[str]:
    by_reason: dict[str, list[str]] = {}
    for one in standings:
        if one.says == coverage.NOT_COMPARABLE:
            where = f"{one.number.table} {one.number.dataset}".strip()
            by_reason.setdefault(one.why, []).append(f"{where} ({one.number.id})")
    return [*(f"- {why}: {', '.join(where)}." for why, where in by_reason.items()), ""]


def _every(compared: Sequence[Compared], command: Command) -> list[str]:
    groups: dict[tuple[str, str, str, str, str], list[Compared]] = {}
    for one in compared:
        key = (one.number.table, one.number.dataset, one.scale, one.variant, one.run)
        groups.setdefault(key, []).append(one)
    lines = []
    for (table, dataset, scale, variant, run), members in sorted(groups.items()):
        paper = PAPERS[table.split("/")[0]]
        words = [
            w for w in (scale if scale != "full" else "", variant and f"variant {variant}") if w
        ]
        seeds = max(len(one.ours) for one in members)
        lines += [f"### {table}, {dataset}{': ' if words else ''}{', '.join(words)}", ""]
        lines += [f"{paper}. {seeds} seeds. `{command(table, dataset, run)}`", ""]
        lines += [*_markdown(*reproduction.table(members)), ""]
    return lines


def _markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return tables.markdown(header, rows)
