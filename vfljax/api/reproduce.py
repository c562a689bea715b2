"""``vfljax reproduce``: a paper's table, run and compared with the printed numbers."""

from __future__ import annotations

import importlib
import pathlib
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from vfljax.api.arguments import Path, checked
from vfljax.errors import UserError, argument, packaged, short_path, unknown

if TYPE_CHECKING:
    from configs.papers.tables import Run
    from vfljax.papers.comparisons import Compared


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
        raise unknown(argument("table"), table, known)
    by_slug = {reproduction.slug(name): runs for name, runs in known[table].items()}
    name = next(iter(by_slug)) if dataset is None else reproduction.slug(dataset)
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
    extend: Any = None,
    command: str = "vfljax.reproduce",
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
      extend: makes what the report adds on the paper; None: the comparison of ``vfljax.papers``.
      command: the command that the report names as the sweep's origin.
      say: is given each line of progress, and at the end the comparison.

    Returns:
      The sweep's folder, and its comparisons with printed numbers.

    Raises:
      UserError: for a table, data set or variant that is not known, and for another sweep in ``workdir``.
    """
    from vfljax.api.loading import load
    from vfljax.launching.running import attack_stored, finish, stored_plan
    from vfljax.papers import comparisons, reproduction
    from vfljax.report import page, terminal
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
    page.present(folder, extend or reproduction.extend)
    reproduces = experiment.reproduces
    assert reproduces is not None  # of every config in tables(), by a test
    compared = [
        figure._replace(run=run.rule) for figure in reproduction.compare(load(folder), reproduces)
    ]
    if compared:
        say(terminal.fitted(comparisons.table(compared)))
    took = time.monotonic() - began
    say(f"{took:.0f} s; figures and every attack: {short_path(folder)}/report.html")
    return folder, compared


def command(*, list_tables: bool = False, **options: Any) -> None:
    """Run a paper's table and compare ours with the printed numbers.

        vfljax reproduce --table=gafm/2 --dataset=spambase --data_dir=DIR
        vfljax reproduce --table=gafm/2 --dataset=spambase --variant=minmax --data_dir=DIR
        vfljax reproduce --table=gafm/2 --data_dir=DIR --attacks=residual,probe,spectral
        vfljax reproduce --list      # every table and figure: time and needs

    The first trains or resumes, in --workdir, and prints our mean over seeds with its 95 % interval, the
    printed value and its spread, the difference, and a verdict (vfljax.papers.agreement has the rule).
    --attacks adds attacks to those of the paper, for claims about the strongest attack.

    What all runs show of the papers is in a checkout: `python -m launch.reproduce` has --status, --record and
    --write too, and draws figures in the papers' form.

    Args:
      list_tables: print every table: what it needs, and how long it takes.
    """
    if list_tables:
        print_list()
    elif "table" in options:
        reproduce(**options)
    else:
        raise UserError("give --table or --list; see --help.")
