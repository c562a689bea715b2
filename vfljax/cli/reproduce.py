"""Run a paper's table and compare ours with the printed numbers.

    vfljax reproduce --table=gafm/2 --dataset=spambase --data_dir=DIR
    vfljax reproduce --table=gafm/2 --dataset=spambase --variant=minmax --data_dir=DIR
    vfljax reproduce --table=gafm/2 --data_dir=DIR --attacks=residual,probe,spectral
    vfljax reproduce --list      # every table and figure: time and needs
    vfljax reproduce --status    # how each of the 549 printed numbers stands
    vfljax reproduce --write     # analysis/REPRODUCTION.md and its pages again, from stored files

The first trains or resumes, in --workdir, and prints our mean over seeds with its 95 % interval, the printed
value and its spread, the difference, and a verdict (vfljax.papers.agreement has the rule). --attacks adds
attacks to those of the paper, for claims about the strongest attack. --record keeps the comparison, a few KB,
where --status and --write read it.
"""

from __future__ import annotations

import importlib
import pathlib
import shlex
import time
from typing import TYPE_CHECKING

from vfljax.cli.common import Flag, Options
from vfljax.errors import UserError, packaged, shown, unknown

if TYPE_CHECKING:
    from configs.papers.tables import Run

RESUMES = True
STORED = pathlib.Path("analysis/results/reproduction")
PAGES = pathlib.Path("analysis")
FLAGS = (
    Flag("table", "paper and number: gafm/2, gafm/C.1, kdk/figure6"),
    Flag("dataset", "a data set of the table; default: its first"),
    Flag("variant", "a named variant of the config; default: the published", ""),
    Flag("workdir", "folder of the sweep; default: runs/papers/NAME", path=True),
    Flag("data_dir", "where the data is, config.data.dir", "", path=True),
    Flag("attacks", "further attacks than the config's, by name", ()),
    Flag("list", "print every table: what it needs, and how long it takes", False),
    Flag("status", "print how each printed number stands", False),
    Flag("record", f"keep the comparison in {STORED}", False),
    Flag("write", f"write {PAGES}/REPRODUCTION.md and its pages again", False),
)


def run(options: Options) -> None:
    """Run a table, or print or write what the flags ask for."""
    from vfljax.papers import coverage, reproduction_page
    from vfljax.report import terminal

    if options.list:
        print(terminal.aligned(*_listed()))
    elif options.status:
        compared = reproduction_page.stored(packaged(STORED))
        covered = coverage.coverage(compared)
        print(f"{terminal.aligned(*coverage.differing(covered))}\n")
        print(terminal.aligned(*coverage.table(covered)))
    elif options.table:
        _reproduce(options, _chosen(options.table, options.dataset, options.variant))
    elif not options.write:
        raise UserError("give --table, --list, --status or --write; see --help.")
    if options.write:
        for name, text in reproduction_page.pages(STORED, _command).items():
            (PAGES / name).parent.mkdir(exist_ok=True)
            (PAGES / name).write_text(text)
            print(f"written: {PAGES / name}")
        for name, figure in reproduction_page.scatters(STORED).items():
            figure.savefig(STORED / name)
            print(f"written: {STORED / name}")


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


def _listed() -> tuple[list[str], list[list[str]]]:
    from vfljax import papers

    header = ["table", "data set", "numbers", "needs", "device", "hours", "variants"]
    rows = []
    for table, datasets in tables().items():
        for dataset, runs in datasets.items():
            first = runs[0]
            count = len(papers.numbers_of(table, dataset))
            row = [table, dataset, str(count or ""), first.data, first.device, f"{first.hours:g}"]
            rows.append([*row, ", ".join(run.rule for run in runs[1:])])
    return header, rows


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


def _reproduce(options: Options, run: Run) -> None:
    from vfljax import load
    from vfljax.launching import INLINE
    from vfljax.launching.running import attack_stored, finish
    from vfljax.papers import comparisons, reproduction, reproduction_page
    from vfljax.report import page, terminal
    from vfljax.sweep.experiment import experiment_of, parse

    began = time.monotonic()
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
    plan = finish(experiment, workdir, options.line)
    if options.attacks:
        attack_stored(plan, workdir, options.attacks, INLINE)
    page.present(workdir, reproduction.extend)
    reproduces = experiment.reproduces
    assert reproduces is not None  # of every config in tables(), by a test
    compared = [
        figure._replace(run=run.rule) for figure in reproduction.compare(load(workdir), reproduces)
    ]
    if compared:
        print(terminal.aligned(*comparisons.table(compared)))
    print(
        f"{time.monotonic() - began:.0f} s; figures and every attack: {shown(workdir)}/report.html"
    )
    if options.record:
        reproduction_page.keep(STORED, workdir, compared)
        print(f"kept: {STORED / experiment.name}*")


def _command(table: str, dataset: str, variant: str = "") -> str:
    """Return the command of a run; "" where no config makes the table."""
    from vfljax.papers import reproduction

    if dataset not in tables().get(table, {}):
        return ""
    words = [f"--table={table}", f"--dataset={reproduction.slug(dataset)}"]
    words += [f"--variant={variant}"] * bool(variant)
    return f"python -m launch.reproduce {shlex.join(words)} --data_dir=DIR"
