"""The pages on papers and our runs, rendered from the small files that ``launch.reproduce --record`` stores.

The first page has the verdicts and the counts. Each paper has a page of its own. numbers.csv has every number
that was run, and claims.csv the evidence on each claim. The text is in Jinja2 templates in ``templates``.
"""

from __future__ import annotations

import datetime
import json
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jinja2
import pandas as pd
from matplotlib.figure import Figure

from analysis.reproduction import (
    causes,
    claims,
    comparison_csv,
    comparisons,
    coverage,
    evidence,
    scatter,
)
from analysis.reproduction.agreement import MARGIN, Status
from analysis.reproduction.comparisons import Compared
from analysis.reproduction.coverage import grouped
from analysis.reproduction.papers import PAPERS, paper_of
from vfljax import store
from vfljax.report import page, tables
from vfljax.report.sweep_answers import judge_stored
from vfljax.report.templates import templates
from vfljax.sweep import train
from vfljax.sweep.grid import experiment_of

LEAKS = "_leaks.csv"
RUNS = "runs.json"  # of every stored comparison, when, by which versions and where it was run
PROVENANCE = ("date", "revision", "python", "jax", "numpy", "backend", "machine")
FIRST, NUMBERS, CLAIMS = "README.md", "numbers.csv", "claims.csv"
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
    rows = evidence.leak_rows(experiment.reproduces.table, judge_stored(sweep, experiment))
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
    """Returns the text of every page, by its name.

    Args:
      folder: holds the stored comparisons, leaks and figures.
      command: gives the command line of a run.
    """
    compared = stored(folder)
    leaks = {f.name.removesuffix(LEAKS): evidence.read_leaks(f) for f in folder.glob(f"*{LEAKS}")}
    found = evidence.Evidence(compared=compared, leaks=leaks)
    covered = coverage.coverage(compared)
    weighed = [(claim, claim.weigh(found)) for claim in claims.claims()]
    values: dict[str, Any] = {
        "papers": PAPERS,
        "covered": _by_paper(covered),
        "claims": weighed,
        "figures": sorted(f.name for f in folder.glob("*.png")),
        "everything": covered,
        "origins": causes.RELEASED_RUNS,
        "margin": MARGIN,
        "Status": Status,
        "counts": coverage.counts,
        "table": coverage.table,
        "markdown": tables.markdown,
    }
    environment = templates().overlay(loader=jinja2.FileSystemLoader(TEMPLATES))
    names = {FIRST: "first.md"} | {f"{paper}.md": f"{paper}.md" for paper in PAPERS}
    text = {
        page: environment.get_template(name).render(values).rstrip() + "\n"
        for page, name in names.items()
    }
    frames = {NUMBERS: _numbers(compared, covered, command), CLAIMS: _claims(weighed)}
    return text | {name: frame.to_csv(index=False) for name, frame in frames.items()}


def _by_paper(covered: Sequence[coverage.Covered]) -> dict[str, list[coverage.Covered]]:
    return grouped(covered, lambda entry: paper_of(entry.number.table))


def _numbers(
    compared: Sequence[Compared], covered: Sequence[coverage.Covered], command: Command
) -> pd.DataFrame:
    """Returns a row for every comparison of a run, with the cause if the number differs."""
    explained = {entry.number.id: entry.explained for entry in covered}
    rows = []
    for c in sorted(compared, key=lambda c: (c.number.table, c.number.dataset, c.scale, c.variant)):
        cause = None if c.variant or c.scale != "full" else explained.get(c.number.id)
        rows.append(
            {
                **{"number": c.number.id, "table": c.number.table, "data set": c.number.dataset},
                **{"scale": c.scale, "variant": c.variant, "seeds": len(c.ours)},
                **comparisons.table([c]).iloc[0],
                "cause": "" if cause is None else cause.cause.value,
                "cause shown by": "" if cause is None else cause.variant or cause.reason,
                "command": command(c.number.table, c.number.dataset, c.run),
            }
        )
    return pd.DataFrame(rows)


def _claims(weighed: Iterable[tuple[claims.Claim, Sequence[claims.Weighed]]]) -> pd.DataFrame:
    """Returns a row for every piece of evidence on a claim; claims of ours have no place in a paper."""
    rows = [
        [claim.paper, claim.text, claim.place, str(found.support), found.text]
        for claim, pieces in weighed
        for found in pieces
    ]
    return pd.DataFrame(rows, columns=["paper", "claim", "place", "support", "evidence"])
