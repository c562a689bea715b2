"""Run a paper's table and put ours beside the printed numbers.

    python -m launch.reproduce --table=gafm/2 --dataset=spambase --data_dir=DIR
    python -m launch.reproduce --table=gafm/2 --dataset=spambase --variant=minmax --data_dir=DIR
    python -m launch.reproduce --table=gafm/2 --data_dir=DIR --attacks=residual,probe,spectral
    python -m launch.reproduce --list      # every table and figure: time and needs
    python -m launch.reproduce --status    # how each of the 549 printed numbers stands
    python -m launch.reproduce --write     # analysis/REPRODUCTION.md again, from stored files

The first trains or resumes, in --workdir, and prints our mean over seeds with its 95 % interval, the printed
value and its spread, the difference, and a verdict (vfljax.papers.agreement has the rule). --attacks attacks
further than the paper does, for the worst case that stands beside its claims. --record keeps the comparison,
a few KB, where --status and --write read it.
"""

from __future__ import annotations

import importlib
import pathlib
import shlex
import time
from typing import TYPE_CHECKING

from absl import flags

from configs.papers.tables import TABLES, Run
from launch import common
from vfljax.errors import UserError, unknown

if TYPE_CHECKING:
    from vfljax.papers.comparisons import Compared
    from vfljax.sweep.experiment import Experiment

STORED = pathlib.Path("analysis/results/reproduction")
PAGE = pathlib.Path("analysis/REPRODUCTION.md")

_TABLE = flags.DEFINE_string("table", None, "paper and number: gafm/2, gafm/C.1, kdk/figure6")
_DATASET = flags.DEFINE_string("dataset", None, "a data set of the table; default: its first")
_VARIANT = flags.DEFINE_string(
    "variant", "", "a named variant of the config; default: the published"
)
_WORKDIR = flags.DEFINE_string("workdir", None, "folder of the sweep; default: runs/papers/NAME")
_DATA_DIR = flags.DEFINE_string("data_dir", "", "where the data is, config.data.dir")
_ATTACKS = flags.DEFINE_list("attacks", None, "further attacks than the config's, by name")
_LIST = flags.DEFINE_bool("list", False, "print every table: what it needs, and how long it takes")
_STATUS = flags.DEFINE_bool("status", False, "print how each printed number stands")
_RECORD = flags.DEFINE_bool("record", False, f"keep the comparison in {STORED}")
_WRITE = flags.DEFINE_bool("write", False, f"write {PAGE} again from what is kept")


def run() -> None:
    from vfljax import store
    from vfljax.papers import coverage, reproduction_page
    from vfljax.report import terminal

    if _LIST.value:
        print(terminal.aligned(*_listed()))
    elif _STATUS.value:
        print(
            terminal.aligned(*coverage.table(coverage.coverage(reproduction_page.stored(STORED))))
        )
    elif _TABLE.value:
        _reproduce(_chosen(_TABLE.value, _DATASET.value, _VARIANT.value))
    elif not _WRITE.value:
        raise UserError("give --table, --list, --status or --write; see --help.")
    if _WRITE.value:
        store.write_text(PAGE, reproduction_page.text(STORED, _command))
        print(f"written: {PAGE}")


def _listed() -> tuple[list[str], list[list[str]]]:
    from vfljax import papers

    header = ["table", "data set", "numbers", "needs", "device", "hours", "variants"]
    rows = []
    for table, datasets in TABLES.items():
        for dataset, runs in datasets.items():
            first = runs[0]
            count = len(papers.numbers_of(table, dataset))
            row = [table, dataset, str(count or ""), first.data, first.device, f"{first.hours:g}"]
            rows.append([*row, ", ".join(run.rule for run in runs[1:])])
    return header, rows


def _chosen(table: str, dataset: str | None, variant: str) -> Run:
    """The run that the flags name; refuses what nobody published and what has no such variant."""
    from vfljax.papers import reproduction

    if table not in TABLES:
        raise unknown("--table", table, TABLES)
    by_slug = {reproduction.slug(name): runs for name, runs in TABLES[table].items()}
    name = next(iter(by_slug)) if dataset is None else reproduction.slug(dataset)
    if name not in by_slug:
        raise unknown(f"data set of {table}", dataset or "", by_slug)
    runs = {run.rule: run for run in by_slug[name]}
    if variant not in runs:
        raise unknown(f"variant of {table} on {name}", variant, [r for r in runs if r] or ["none"])
    return runs[variant]


def _experiment(run: Run, data_dir: str) -> Experiment:
    from vfljax.sweep.experiment import changed, parse

    module = importlib.import_module(f"configs.papers.{run.config}")
    experiment = parse(module.get_config(run.variant))
    return changed(experiment, {"data.dir": data_dir}) if data_dir else experiment


def _reproduce(run: Run) -> None:
    from vfljax import store
    from vfljax.attacking.run import attack_sweep
    from vfljax.launching.running import finish
    from vfljax.papers import comparisons, reproduction
    from vfljax.report import page, terminal

    began = time.monotonic()
    experiment = _experiment(run, _DATA_DIR.value)
    workdir = pathlib.Path(_WORKDIR.value or f"runs/papers/{experiment.name}")
    if (workdir / "sweep.json").exists():
        _check_same(workdir, experiment)
    plan = finish(experiment, workdir, common.command())
    if _ATTACKS.value:
        attack_sweep(plan, workdir, _ATTACKS.value)
        store.export(workdir)
    page.write(workdir, reproduction.extend)
    sweep = store.load(workdir)
    reproduces = experiment.reproduces
    assert reproduces is not None  # of every config in TABLES, by a test
    compared = [c._replace(run=run.rule) for c in reproduction.compare(sweep, reproduces)]
    if compared:
        print(terminal.aligned(*comparisons.table(compared)))
    print(f"{time.monotonic() - began:.0f} s; figures and every attack: {workdir}/report.html")
    if _RECORD.value:
        _keep(workdir, compared)


def _check_same(workdir: pathlib.Path, experiment: Experiment) -> None:
    """Refuse the sweep of another config."""
    from vfljax import store
    from vfljax.sweep.experiment import experiment_of

    stored = experiment_of(store.load(workdir)).name
    if stored != experiment.name:
        raise UserError(
            f"{workdir} holds the sweep {stored!r} and not {experiment.name!r}: give another --workdir."
        )


def _keep(workdir: pathlib.Path, compared: list[Compared]) -> None:
    from vfljax import store
    from vfljax.papers import comparisons, leaks, reproduction_page
    from vfljax.report import page, summary

    sweep = store.load(workdir)
    name = sweep.config["name"]
    STORED.mkdir(parents=True, exist_ok=True)
    if compared:
        store.write_text(STORED / f"{name}.csv", comparisons.text(compared))
    figure = workdir / "figures" / f"{page.PAPER}.png"
    if figure.exists():
        store.write_bytes(STORED / f"{name}.png", figure.read_bytes())
    table = sweep.config["reproduces"]["table"]
    rows = leaks.leak_rows(table, summary.points(sweep))
    store.write_text(STORED / f"{name}{reproduction_page.LEAKS}", leaks.text(rows))
    print(f"kept: {STORED / name}*")


def _command(table: str, dataset: str, variant: str = "") -> str:
    """The command of a run; "" where no config makes the table."""
    from vfljax.papers import reproduction

    if dataset not in TABLES.get(table, {}):
        return ""
    words = [f"--table={table}", f"--dataset={reproduction.slug(dataset)}"]
    words += [f"--variant={variant}"] * bool(variant)
    return f"python -m launch.reproduce {shlex.join(words)} --data_dir=DIR"


if __name__ == "__main__":
    common.start(run, resumes=True)
