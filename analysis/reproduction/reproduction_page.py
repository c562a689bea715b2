"""The pages on papers and our runs, rendered from the small files that ``launch.reproduce --record`` stores.

The first page has the verdicts and the counts. Each paper has a page of its own. The appendix lists every
number that was run, and what no paper claims. The text is in Jinja2 templates in the folder ``templates``.
"""

from __future__ import annotations

import datetime
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jinja2
from matplotlib.figure import Figure

from analysis.reproduction import causes, claims, comparison_csv, coverage, evidence, scatter
from analysis.reproduction.coverage import grouped
from vfljax import store
from vfljax.papers import PAPERS, comparisons, paper_of
from vfljax.papers.agreement import MARGIN, Status
from vfljax.papers.comparisons import Compared
from vfljax.report import page, tables
from vfljax.report.judged import judged
from vfljax.report.templates import templates
from vfljax.sweep import train
from vfljax.sweep.grid import experiment_of

LEAKS = "_leaks.csv"
RUNS = "runs.json"  # of every stored comparison, when, by which versions and where it was run
PROVENANCE = ("date", "revision", "python", "jax", "numpy", "backend", "machine")
FIRST, APPENDIX = "REPRODUCTION.md", "reproduction/appendix.md"
TEMPLATES = pathlib.Path(__file__).with_name("templates")
Command = Callable[[str, str, str], str]
"""(table, data set, variant) -> the command line of a run, "" where there is none."""


def stored(folder: pathlib.Path) -> list[Compared]:
    """Returns every comparison in the folder, in the order of file names."""
    files = sorted(f for f in folder.glob("*.csv") if not f.name.endswith(LEAKS))
    return [compared for file in files for compared in comparison_csv.read(file)]


def keep(folder: pathlib.Path, workdir: pathlib.Path, compared: Sequence[Compared]) -> pathlib.Path:
    """Stores what the pages need of a sweep: its comparison, its figure and its leaks.

    Args:
      folder: where ``stored`` reads comparisons.
      workdir: the folder of the sweep, with its report.
      compared: the comparisons of the sweep with printed numbers.

    Returns:
      How the paths of all files begin that belong to the sweep.
    """
    sweep = store.load(workdir)
    experiment = experiment_of(sweep)
    assert experiment.reproduces is not None, "the sweep is of no paper's table"
    name = experiment.name
    folder.mkdir(parents=True, exist_ok=True)
    if compared:
        store.write_text(folder / f"{name}.csv", comparison_csv.text(compared))
    figure = workdir / "figures" / f"{page.PAPER}.png"
    if figure.exists():
        store.write_bytes(folder / f"{name}.png", figure.read_bytes())
    rows = evidence.leak_rows(experiment.reproduces.table, judged(sweep, experiment))
    store.write_text(folder / f"{name}{LEAKS}", evidence.leaks_text(rows))
    about = sweep.header | sweep.header["versions"] | {"machine": train.processor_name()}
    about["date"] = f"{datetime.date.today()}"
    file = folder / RUNS
    runs = json.loads(file.read_text()) if file.exists() else {}
    runs[name] = {field: about[field] for field in PROVENANCE}
    store.write_text(file, json.dumps(runs, indent=1, sort_keys=True) + "\n")
    return folder / name


def scatters(folder: pathlib.Path) -> dict[str, Figure]:
    """Returns scatter plots of our figures against printed numbers, by file name, of papers with any run."""
    drawn = {
        f"{paper}_scatter.png": scatter.draw(members)
        for paper, members in _by_paper(coverage.coverage(stored(folder))).items()
    }
    return {name: figure for name, figure in drawn.items() if figure is not None}


def pages(folder: pathlib.Path, command: Command) -> dict[str, str]:
    """Returns the text of every page, by its path below ``analysis``.

    Args:
      folder: holds the stored comparisons, leaks and figures.
      command: gives the command line of a run.
    """
    compared = stored(folder)
    leaks = {f.name.removesuffix(LEAKS): evidence.read_leaks(f) for f in folder.glob(f"*{LEAKS}")}
    found = evidence.Evidence(compared=compared, leaks=leaks)
    covered = coverage.coverage(compared)
    values: dict[str, Any] = {
        "papers": PAPERS,
        "covered": _by_paper(covered),
        "claims": [(claim, claim.weigh(found)) for claim in claims.claims()],
        "figures": sorted(f.name for f in folder.glob("*.png")),
        "runs": list(_runs(compared, command)),
        "everything": covered,
        "origins": causes.RELEASED_RUNS,
        "margin": MARGIN,
        "Status": Status,
        "counts": coverage.counts,
        "table": coverage.table,
        "row": comparisons.row,
        "markdown": tables.markdown,
    }
    environment = templates().overlay(loader=jinja2.FileSystemLoader(TEMPLATES))
    names = {FIRST: "first.md", APPENDIX: "appendix.md"}
    names |= {f"reproduction/{paper}.md": f"{paper}.md" for paper in PAPERS}
    return {
        path: environment.get_template(name).render(values).rstrip() + "\n"
        for path, name in names.items()
    }


def _by_paper(covered: Sequence[coverage.Covered]) -> dict[str, list[coverage.Covered]]:
    return grouped(covered, lambda entry: paper_of(entry.number.table))


def _runs(compared: Sequence[Compared], command: Command) -> Iterator[dict[str, Any]]:
    """Yields title, number of seeds, command and comparisons of every run."""
    groups = grouped(
        compared, lambda c: (c.number.table, c.number.dataset, c.scale, c.variant, c.run)
    )
    for (table, dataset, scale, variant, run), members in sorted(groups.items()):
        words = [scale] * (scale != "full") + [f"variant {variant}"] * bool(variant)
        yield {
            "title": f"{table}, {dataset}{': ' if words else ''}{', '.join(words)}",
            "seeds": max(len(c.ours) for c in members),
            "command": command(table, dataset, run),
            "table": comparisons.table(members),
        }
