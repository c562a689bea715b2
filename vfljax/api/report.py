"""``vfljax report``: the report of a stored sweep, and what pipelines require of it."""

from __future__ import annotations

import math
import pathlib
from collections.abc import Callable, Sequence

from vfljax.api.arguments import Path, checked
from vfljax.errors import UnmetError, UserError, argument, short_path, unknown


@checked
def requirement(
    fail_above: float | None = None, fail_verdict: Sequence[str] = ()
) -> Callable[[pathlib.Path], None]:
    """Returns ``require(workdir)``, which raises UnmetError if the sweep there does not meet the requirements.

    Args:
      fail_above: exit with status 3 if more may leak by the answer on some panel, or if it is open.
      fail_verdict: likewise if what is to be switched on has one of these verdicts, such as cannot_say,unclear,
        or if nothing is to be switched on.
    """
    from vfljax.report import requirements

    for name in fail_verdict:
        if name not in requirements.NAMES:
            raise unknown(("verdict of ", argument("fail_verdict")), name, requirements.NAMES)
    refused = {requirements.NAMES[name] for name in fail_verdict}
    most = math.nan if fail_above is None else fail_above

    def require(workdir: pathlib.Path) -> None:
        if sentence := requirements.unmet(workdir, most, refused):
            raise UnmetError(sentence)

    return require


@checked
def report(
    workdir: Path,
    *,
    out: Path | None = None,
    times: bool = False,
    unfinished: bool = False,
    verbose: bool = False,
    fail_above: float | None = None,
    fail_verdict: Sequence[str] = (),
    say: Callable[[str], None] = print,
) -> None:
    """Write report.html and the figures of a sweep again, from what is stored.

        vfljax report --workdir=runs/quickstart
        vfljax report --workdir=runs/quickstart --out=analysis/results/quickstart  # its tables as CSV
        vfljax report --workdir=runs/quickstart --times  # seconds of training and of each attack, alone

    Args:
      workdir: the folder of a sweep.
      out: also write every table (CSV) and the frontier to this folder.
      times: print what training and each attack took, and write nothing.
      unfinished: report what there is of a sweep that is not finished.
      verbose: say what the answers rest on too.
      fail_above: exit with status 3 if more may leak by the answer on some panel, or if it is open.
      fail_verdict: likewise if what is to be switched on has one of these verdicts, such as cannot_say,unclear,
        or if nothing is to be switched on.
      say: is given the answers and verdicts, or the table of times.

    Raises:
      UserError: if no trial is finished, or the sweep is not and ``unfinished`` is False.
      UnmetError: if the sweep does not meet the requirements.
    """
    from vfljax import store
    from vfljax.api.loading import load
    from vfljax.report import page, tables, terminal
    from vfljax.scheduling import running

    require, folder = requirement(fail_above, fail_verdict), pathlib.Path(workdir)
    sweep = load(folder)
    if not sweep.results.num_rows:
        raise UserError(f"{folder} has no finished trials yet: run `vfljax sweep` again.")
    if not unfinished:
        sweep.require_finished()
    if times:
        table = tables.seconds(sweep.results, store.attack_summary(folder))
        say(f"{terminal.fitted(table)}\n{tables.SECONDS}")
        return
    if out is not None and pathlib.Path(out).is_file():
        value = short_path(out)
        raise UserError("is a file", field=argument("out"), value=value, remedy="name a folder")
    say(running.report(folder, verbose))
    if out is not None:
        page.excerpt(folder, pathlib.Path(out))
        say(f"tables and figure: {short_path(out)}")
    require(folder)
