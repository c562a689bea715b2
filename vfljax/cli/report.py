"""Write report.html and the figures of a sweep again, from what is stored.

vfljax report --workdir=runs/quickstart
vfljax report --workdir=runs/quickstart --out=analysis/results/quickstart  # tables.md, leaks.csv
vfljax report --workdir=runs/quickstart --times  # seconds of training and of each attack, alone
"""

from __future__ import annotations

import pathlib

from vfljax.cli.common import REQUIREMENTS, Flag, Options, requirement
from vfljax.errors import UserError, shown

RESUMES = False
FLAGS = (
    Flag("workdir", "folder of a sweep", path=True),
    Flag("out", "also write every table (Markdown) and the frontier here", path=True),
    Flag("times", "print what training and each attack took, and write nothing", False),
    *REQUIREMENTS,
    Flag("unfinished", "report what there is of a sweep that is not finished", False),
)


def run(options: Options) -> None:
    """Print and write the report of a stored sweep."""
    from vfljax import load
    from vfljax.launching import running
    from vfljax.papers import reproduction
    from vfljax.report import page, tables, terminal

    workdir = options.folder
    require = requirement(options)
    sweep = load(workdir)
    if not sweep.results.num_rows:
        raise UserError(f"{workdir} has no finished trials yet: run `vfljax sweep` again.")
    if not options.unfinished:
        sweep.require_finished()
    if options.times:
        print(f"{terminal.fitted(tables.seconds(sweep))}\n{tables.SECONDS}")
        return
    if options.out and pathlib.Path(options.out).is_file():
        raise UserError(f"--out={options.out} is a file: name a folder.")
    print(running.report(workdir))
    if options.out:
        page.excerpt(workdir, pathlib.Path(options.out), reproduction.extend)
        print(f"tables and figure: {shown(options.out)}")
    require(workdir)
