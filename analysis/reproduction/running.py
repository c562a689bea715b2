"""A paper's table, run and compared with the printed numbers."""

from __future__ import annotations

import importlib
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from configs.papers.tables import TABLES, Run
from vfljax.api.arguments import Path, checked
from vfljax.errors import UserError, argument, short_path, unknown

if TYPE_CHECKING:
    from analysis.reproduction.comparisons import Compared


def print_list() -> None:
    """Prints every table, the data that it needs, and how long it takes."""
    from analysis.reproduction import papers
    from vfljax.report import terminal

    header = ["table", "data set", "numbers", "needs", "device", "hours", "variants"]
    rows = []
    for table, datasets in TABLES.items():
        for dataset, runs in datasets.items():
            first = runs[0]
            count = len(papers.numbers_of(table, dataset))
            row = [table, dataset, str(count or ""), first.data, first.device, f"{first.hours:g}"]
            rows.append([*row, ", ".join(run.rule for run in runs[1:])])
    print(terminal.aligned(header, rows))


def _chosen(table: str, dataset: str | None, variant: str) -> Run:
    """Returns the run that the flags name."""
    from analysis.reproduction import our_figures

    if table not in TABLES:
        raise unknown(argument("table"), table, TABLES)
    by_slug = {our_figures.slug(name): runs for name, runs in TABLES[table].items()}
    name = next(iter(by_slug)) if dataset is None else our_figures.slug(dataset)
    if name not in by_slug:
        raise unknown(f"data set of {table}", dataset or "", by_slug)
    runs = {run.rule: run for run in by_slug[name]}
    if variant not in runs:
        raise unknown(f"variant of {table} on {name}", variant, [r for r in runs if r] or ["none"])
    return runs[variant]


@checked
def reproduce(
    table: str,
    dataset: str | None = None,
    *,
    variant: str = "",
    workdir: Path | None = None,
    data_dir: Path | None = None,
    attacks: Sequence[str] = (),
    command: str = "launch.reproduce",
    say: Callable[[str], None] = print,
) -> tuple[pathlib.Path, list[Compared]]:
    """Trains or resumes the run of a paper's table, writes its report, and says ours and the printed numbers.

    Args:
      table: paper and number: gafm/2, gafm/C.1, kdk/figure6.
      dataset: a data set of the table; default: its first.
      variant: a named variant of the config; default: the published.
      workdir: folder of the sweep; default: runs/papers/NAME.
      data_dir: where the data is, config.data.dir.
      attacks: further attacks than the config's, by name.
      command: the command that the report names as the sweep's origin.
      say: is given each line of progress, and at the end the comparison.

    Returns:
      The sweep's folder, and its comparisons with printed numbers.

    Raises:
      UserError: for a table, data set or variant that is not known, and for another sweep in ``workdir``.
    """
    from analysis.reproduction import comparisons, our_figures, paper_figures
    from vfljax.api.loading import load
    from vfljax.report import page, terminal
    from vfljax.scheduling.running import attack_stored, finish, stored_plan
    from vfljax.sweep.grid import experiment_of, parse

    began, run = time.monotonic(), _chosen(table, dataset, variant)
    config = importlib.import_module(f"configs.papers.{run.config}").get_config(run.variant)
    if data_dir is not None:
        config["data"]["dir"] = str(data_dir)
    experiment = parse(config)
    folder = pathlib.Path(workdir or f"runs/papers/{experiment.name}")
    if (folder / "sweep.json").exists():
        name = experiment_of(load(folder)).name
        if name != experiment.name:
            what = f"{folder} holds the sweep {name!r} and not {experiment.name!r}"
            raise UserError(what, remedy=("give another ", argument("workdir")))
    finish(experiment, folder, command, say).check()
    if attacks:
        attack_stored(stored_plan(folder), folder, attacks, say=say).check()
    page.present(folder, paper_figures.extend)
    reproduces = experiment.reproduces
    assert reproduces is not None  # of every config in tables(), by a test
    compared = [
        figure._replace(run=run.rule) for figure in our_figures.compare(load(folder), reproduces)
    ]
    if compared:
        say(terminal.fitted(comparisons.table(compared)))
    took = time.monotonic() - began
    say(f"{took:.0f} s; figures and every attack: {short_path(folder)}/report.html")
    return folder, compared
