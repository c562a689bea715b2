"""``vfljax.audit``: the audit of a data frame, or of a table's file, in one call."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pyarrow.parquet as pq

from vfljax import store
from vfljax.auditing.request import PARTIES, WORKDIR, Request, argument_of, parties_of, seconds_of
from vfljax.auditing.stages import FRAME
from vfljax.auditing.stages import audit as run_audit
from vfljax.datasets.reading import arrow_of
from vfljax.errors import UserError
from vfljax.report import page


def audit(
    table: Any,
    *,
    label: str,
    parties: Mapping[str, Sequence[str]] | str,
    workdir: str | os.PathLike[str],
    label_party: str | None = None,
    federation: str = "split",
    attackers: Sequence[str] = (),
    known: int = 0,
    budget: float | str = "10m",
    max_leak: float | None = None,
    max_cost: float = 1.0,
    keep_gain: float = 0.5,
    seeds: int = 5,
    confirm: bool = False,
    canaries: bool = False,
    options: Mapping[str, Any] | None = None,
    say: Callable[[str], None] = print,
) -> store.Sweep:
    """Audits a table: what leaks of its labels, to which party, and which defense to switch on.

    It does what ``vfljax audit`` does.

    Args:
      table: a pandas ``DataFrame``, a ``pyarrow.Table``, or the path of a file. A frame is written to
        ``workdir/table.parquet``, without its index.
      label: the column of the labels.
      parties: who owns which columns, {"bank": ["AGE"], "telco": ["PAY_*"]}, by name or glob.
      workdir: where the audit is written; the same call continues one that was stopped.
      label_party: the party that has the labels; the first one by default.
      federation: "split", "no_split" or "both".
      attackers: the parties that attack, each alone; all but the label party by default.
      known: labels that attackers know; 0 is 40, or two a class.
      budget: seconds, or a text such as "10m".
      max_leak: the most that may leak, on the report's scale; None allows any, and verdicts decide.
      max_cost: the most test utility (accuracy or AUC) that a defense may cost; 1 allows any.
      keep_gain: the share of what the federation gains over the label party alone that is to be kept.
      seeds: of each configuration.
      confirm: whether what is recommended is judged on three fresh seeds.
      canaries: whether claimed epsilons are audited, in training of its own.
      options: of the table's loader (``vfljax.datasets.user_table.table``).
      say: is given each line of what is being done.

    Returns:
      The audit's own sweep; ``workdir/report.html`` is its report.

    Raises:
      UserError: of one line, as ``vfljax audit`` prints it.
    """
    folder = pathlib.Path(workdir)
    try:
        owners = parties_of(parties) if isinstance(parties, str) else _tuples(parties)
        is_file = isinstance(table, str | os.PathLike)
        request = Request(
            data=str(table if is_file else _written(table, folder)),
            label=label,
            parties=owners,
            label_party=next(iter(owners), "") if label_party is None else label_party,
            federation=federation,
            attackers=tuple(attackers),
            known=known,
            budget=seconds_of(budget) if isinstance(budget, str) else float(budget),
            max_leak=max_leak,
            max_cost=max_cost,
            keep_gain=keep_gain,
            seeds=seeds,
            confirm=confirm,
            canaries=canaries,
            options=dict(options or {}),
        )
        run_audit(request, folder, "vfljax.audit", say)
    except UserError as error:  # there are no flags here
        raise UserError(error.line(argument_of)) from error
    page.write(folder)
    return store.load(folder)


def _tuples(parties: Mapping[str, Sequence[str]]) -> dict[str, tuple[str, ...]]:
    for name, columns in parties.items():
        if isinstance(columns, str):
            what = f"={{{name!r}: {columns!r}}}"
            raise UserError((PARTIES, what), remedy="give a list of names or globs")
    return {name: tuple(columns) for name, columns in parties.items()}


def _written(frame: Any, folder: pathlib.Path) -> pathlib.Path:
    """Writes the frame to a file of the audit; a file that is there must hold the same."""
    path, arrow = folder / FRAME, arrow_of(frame, "the frame")
    if path.exists():
        stored = pq.read_table(path)
        # Arrow takes two NaN for different values, pandas for one missing value
        if not (stored.equals(arrow) or stored.to_pandas().equals(arrow.to_pandas())):
            raise UserError(
                f"{folder} holds an audit of another frame",
                remedy=("choose another ", WORKDIR, ". Nothing was changed"),
            )
        return path
    folder.mkdir(parents=True, exist_ok=True)
    store.write_table(path, arrow)
    return path
