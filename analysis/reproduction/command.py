"""The command ``python -m launch.reproduce``, which also writes what all runs show of the papers."""

from __future__ import annotations

import pathlib
import shlex
from typing import Any

from analysis.reproduction import running
from configs.papers.tables import TABLES
from vfljax.api.flags import Command
from vfljax.errors import UserError, argument, packaged

STORED = pathlib.Path("analysis/results/reproduction")
PAGES = pathlib.Path("analysis/results/papers")


def run(
    *,
    list_tables: bool = False,
    status: bool = False,
    record: bool = False,
    write: bool = False,
    **options: Any,
) -> None:
    """Run a paper's table, compare ours with the printed numbers, and write what all runs show of the papers.

        python -m launch.reproduce --table=gafm/2 --dataset=spambase --data_dir=DIR
        python -m launch.reproduce --table=gafm/2 --dataset=spambase --variant=minmax --data_dir=DIR
        python -m launch.reproduce --table=gafm/2 --data_dir=DIR --attacks=residual,probe,spectral
        python -m launch.reproduce --workdir=DIR    # its report again, with its paper's figure
        python -m launch.reproduce --list      # every table and figure: time and needs
        python -m launch.reproduce --status    # how each of the 869 printed numbers stands
        python -m launch.reproduce --write     # the pages of analysis/results/papers again

    The first trains or resumes, in --workdir, and prints our mean over seeds with its 95 % interval, the
    printed value and its spread, the difference, and a verdict (analysis.reproduction.agreement has the rule).
    --attacks adds attacks to those of the paper, for claims about the strongest attack. --record keeps the
    comparison, a few KB, where --status and --write read it.

    Args:
      list_tables: print every table: what it needs, and how long it takes.
      status: print how each printed number stands.
      record: keep the comparison in analysis/results/reproduction.
      write: write the pages of analysis/results/papers again.
    """
    from analysis.reproduction import reproduction_page

    if record and "table" not in options:
        what = argument("record"), " keeps the comparison of a table"
        raise UserError(what, remedy=("give ", argument("table"), " too"))
    if list_tables:
        running.print_list()
    elif status:
        _print_status()
    elif "table" in options:
        workdir, compared = running.reproduce(**options)
        if record:
            print(f"kept: {reproduction_page.keep(STORED, workdir, compared)}*")
    elif "workdir" in options:
        _report_again(pathlib.Path(options["workdir"]))
    elif not write:
        raise UserError("give --table, --workdir, --list, --status or --write; see --help.")
    if write:
        _write_pages()


COMMAND = Command(run, (running.reproduce,), resumes=True, names={"list_tables": "list"})


def _print_status() -> None:
    from analysis.reproduction import coverage, reproduction_page
    from vfljax.report import terminal

    covered = coverage.coverage(reproduction_page.stored(packaged(STORED)))
    for table in (coverage.differing(covered), coverage.table(covered)):
        print(f"{terminal.aligned([*table], table.to_numpy().tolist())}\n")


def _report_again(workdir: pathlib.Path) -> None:
    from analysis.reproduction import paper_figures
    from vfljax import load
    from vfljax.report import page

    load(workdir).require_finished()
    print(page.present(workdir, paper_figures.extend))


def _write_pages() -> None:
    from analysis.reproduction import reproduction_page

    for name, text in reproduction_page.pages(STORED, command_line).items():
        (PAGES / name).parent.mkdir(exist_ok=True)
        (PAGES / name).write_text(text)
        print(f"written: {PAGES / name}")
    for name, figure in reproduction_page.scatters(STORED).items():
        figure.savefig(STORED / name)
        print(f"written: {STORED / name}")


def command_line(table: str, dataset: str, variant: str = "") -> str:
    """Returns the command line of a run; "" where no config makes the table."""
    from analysis.reproduction import our_figures

    if dataset not in TABLES.get(table, {}):
        return ""
    words = [f"--table={table}", f"--dataset={our_figures.slug(dataset)}"]
    words += [f"--variant={variant}"] * bool(variant)
    return f"python -m launch.reproduce {shlex.join(words)} --data_dir=DIR"
