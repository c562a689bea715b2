"""Run a paper's table, compare ours with the printed numbers, and write what all runs show of the papers.

    python -m launch.reproduce --table=gafm/2 --dataset=spambase --data_dir=DIR
    python -m launch.reproduce --table=gafm/2 --dataset=spambase --variant=minmax --data_dir=DIR
    python -m launch.reproduce --table=gafm/2 --data_dir=DIR --attacks=residual,probe,spectral
    python -m launch.reproduce --workdir=DIR    # the report of a stored sweep again, with its paper's figure
    python -m launch.reproduce --list      # every table and figure: time and needs
    python -m launch.reproduce --status    # how each of the 549 printed numbers stands
    python -m launch.reproduce --write     # the pages of analysis/results/papers again, from stored files

The first trains or resumes, in --workdir, and prints our mean over seeds with its 95 % interval, the printed
value and its spread, the difference, and a verdict (vfljax.papers.agreement has the rule). --attacks adds
attacks to those of the paper, for claims about the strongest attack. --record keeps the comparison, a few KB,
where --status and --write read it.
"""

from __future__ import annotations

import pathlib
import shlex

from vfljax.cli import reproduce
from vfljax.cli.common import Options
from vfljax.errors import UserError, packaged

RESUMES = True
STORED = pathlib.Path("analysis/results/reproduction")
PAGES = pathlib.Path("analysis/results/papers")
FLAGS = reproduce.FLAGS


def run(options: Options) -> None:
    """Run a table, or print or write what the flags ask for."""
    from analysis.reproduction import paper_figures, reproduction_page

    if options.record and not options.table:
        raise UserError("--record keeps the comparison of a table: give --table too.")
    if options.list:
        reproduce.print_list()
    elif options.status:
        _print_status()
    elif options.table:
        workdir, compared = reproduce.run_table(options, paper_figures.extend)
        if options.record:
            print(f"kept: {reproduction_page.keep(STORED, workdir, compared)}*")
    elif options.workdir:
        _report_again(options.folder)
    elif not options.write:
        raise UserError("give --table, --workdir, --list, --status or --write; see --help.")
    if options.write:
        _write_pages()


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
        (PAGES / name).write_text(text)
        print(f"written: {PAGES / name}")
    for name, figure in reproduction_page.scatters(STORED).items():
        figure.savefig(STORED / name)
        print(f"written: {STORED / name}")


def command_line(table: str, dataset: str, variant: str = "") -> str:
    """Returns the command line of a run; "" where no config makes the table."""
    from vfljax.papers import reproduction

    if dataset not in reproduce.tables().get(table, {}):
        return ""
    words = [f"--table={table}", f"--dataset={reproduction.slug(dataset)}"]
    words += [f"--variant={variant}"] * bool(variant)
    return f"python -m launch.reproduce {shlex.join(words)} --data_dir=DIR"
