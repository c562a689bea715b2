"""Run a paper's table and compare ours with the printed numbers.

    vfljax reproduce --table=gafm/2 --dataset=spambase --data_dir=DIR
    vfljax reproduce --table=gafm/2 --dataset=spambase --variant=minmax --data_dir=DIR
    vfljax reproduce --table=gafm/2 --data_dir=DIR --attacks=residual,probe,spectral
    vfljax reproduce --list      # every table and figure: time and needs

The first trains or resumes, in --workdir, and prints our mean over seeds with its 95 % interval, the printed
value and its spread, the difference, and a verdict (vfljax.papers.agreement has the rule). --attacks adds
attacks to those of the paper, for claims about the strongest attack.

What all runs show of the papers is in a checkout: `python -m launch.reproduce` has --status, --record and
--write too, and draws figures in the papers' form.
"""

from __future__ import annotations

import importlib
import pathlib
import time
from typing import TYPE_CHECKING

from vfljax.cli.common import Flag, Options
from vfljax.errors import UserError, packaged, shown, unknown

if TYPE_CHECKING:
    from configs.papers.tables import Run
    from vfljax.papers.comparisons import Compared
    from vfljax.report.tables import Extend

RESUMES = True
OF_A_CHECKOUT = (
    Flag("status", "print how each printed number stands", False),
    Flag("record", "keep the comparison in analysis/results/reproduction", False),
    Flag("write", "write analysis/REPRODUCTION.md and its pages again", False),
)
"""Flags that `python -m launch.reproduce` has in a checkout, and this command refuses."""
FLAGS = (
    Flag("table", "paper and number: gafm/2, gafm/C.1, kdk/figure6"),
    Flag("dataset", "a data set of the table; default: its first"),
    Flag("variant", "a named variant of the config; default: the published", ""),
    Flag("workdir", "folder of the sweep; default: runs/papers/NAME", path=True),
    Flag("data_dir", "where the data is, config.data.dir", "", path=True),
    Flag("attacks", "further attacks than the config's, by name", ()),
    Flag("list", "print every table: what it needs, and how long it takes", False),
    *OF_A_CHECKOUT,
)


def run(options: Options) -> None:
    """Run a table, or list all of them."""
    from vfljax.papers import reproduction

    for name in (flag.name for flag in OF_A_CHECKOUT if options[flag.name].value):
        raise UserError(
            f"--{name} needs a checkout of vfljax: give the same flags to `python -m launch.reproduce` there."
        )
    if options.list:
        print_list()
    elif options.table:
        run_table(options, reproduction.extend)
    else:
        raise UserError("give --table or --list; see --help.")


def tables() -> dict[str, dict[str, tuple[Run, ...]]]:
    """Return the runs by table and data set."""
    packaged("configs/papers/tables.py")  # outside a checkout they are imported from vfljax's copy
    try:
        from configs.papers.tables import TABLES
    except ModuleNotFoundError as error:
        raise UserError(
            "the module configs of this folder hides that of vfljax: run this command in another one."
        ) from error
    return TABLES


def print_list() -> None:
    """Print every table with what it needs."""
    from vfljax import papers
    from vfljax.report import terminal

    header = ["table", "data set", "numbers", "needs", "device", "hours", "variants"]
    rows = []
    for table, datasets in tables().items():
        for dataset, runs in datasets.items():
            first = runs[0]
            count = len(papers.numbers_of(table, dataset))
            row = [table, dataset, str(count or ""), first.data, first.device, f"{first.hours:g}"]
            rows.append([*row, ", ".join(run.rule for run in runs[1:])])
    print(terminal.aligned(header, rows))


def _chosen(table: str, dataset: str | None, variant: str) -> Run:
    """Return the run that the flags name."""
    from vfljax.papers import reproduction

    known = tables()
    if table not in known:
        raise unknown("--table", table, known)
    by_slug = {reproduction.slug(name): runs for name, runs in known[table].items()}
    name = next(iter(by_slug)) if dataset is None else reproduction.slug(dataset)
    if name not in by_slug:
        raise unknown(f"data set of {table}", dataset or "", by_slug)
    runs = {run.rule: run for run in by_slug[name]}
    if variant not in runs:
        raise unknown(f"variant of {table} on {name}", variant, [r for r in runs if r] or ["none"])
    return runs[variant]


def run_table(options: Options, extend: Extend) -> tuple[pathlib.Path, list[Compared]]:
    """Train or resume the run that the flags name, write its report, and print ours and the printed numbers.

    Args:
      options: with --table.
      extend: makes what the report adds on the paper.

    Returns:
      The sweep's folder, and its comparisons with printed numbers.
    """
    from vfljax import load
    from vfljax.launching.running import attack_stored, finish, stored_plan
    from vfljax.papers import comparisons, reproduction
    from vfljax.report import page, terminal
    from vfljax.sweep.grid import experiment_of, parse

    began, run = time.monotonic(), _chosen(options.table, options.dataset, options.variant)
    config = importlib.import_module(f"configs.papers.{run.config}").get_config(run.variant)
    if options.data_dir:
        config["data"]["dir"] = options.data_dir
    experiment = parse(config)
    workdir = pathlib.Path(options.workdir or f"runs/papers/{experiment.name}")
    if (workdir / "sweep.json").exists():
        name = experiment_of(load(workdir)).name
        if name != experiment.name:
            raise UserError(
                f"{workdir} holds the sweep {name!r} and not {experiment.name!r}: give another --workdir."
            )
    finish(experiment, workdir, options.line).check()
    if options.attacks:
        attack_stored(stored_plan(workdir), workdir, options.attacks).check()
    page.present(workdir, extend)
    reproduces = experiment.reproduces
    assert reproduces is not None  # of every config in tables(), by a test
    compared = [
        figure._replace(run=run.rule) for figure in reproduction.compare(load(workdir), reproduces)
    ]
    if compared:
        print(terminal.fitted(comparisons.table(compared)))
    print(
        f"{time.monotonic() - began:.0f} s; figures and every attack: {shown(workdir)}/report.html"
    )
    return workdir, compared
