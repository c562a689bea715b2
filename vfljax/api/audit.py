"""``vfljax.audit``: the audit of a user's table."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vfljax.api.arguments import Options, Path, checked
from vfljax.api.data import of_loader
from vfljax.errors import Field, UserError, argument, user_path

if TYPE_CHECKING:
    from vfljax.api.loading import Sweep


@checked
def audit(
    table: Any,
    *,
    label: str,
    parties: Mapping[str, Sequence[str]] | str,
    workdir: Path,
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
    options: Options | None = None,
    command: str = "vfljax.audit",
    say: Callable[[str], None] = print,
) -> Sweep:
    """Audits a table: what leaks of its labels, to which party, and which defense to switch on.

    Args:
      table: the table's file: CSV or other delimited text, Parquet, .npz. In Python also a pandas ``DataFrame``
        or a ``pyarrow.Table``, which is written to ``workdir/table.parquet`` without its index.
      label: the column that holds the labels.
      parties: who owns which columns: 'bank: AGE; telco: PAY_*', or a .json; in Python also a mapping.
      workdir: folder of the audit: new, or the one to continue.
      label_party: who has the labels; the first party by default.
      federation: with a top model (split), without one (no_split), or both.
      attackers: who attacks, each alone: telco,shop; default: all but the label party.
      known: labels that attackers know; by default 40, or two a class.
      budget: how long it may take: 90s, 10m, 2h.
      max_leak: the most that may leak, on the report's scale, such as 0.6; by default any.
      max_cost: the most test accuracy or AUC that a defense may cost; 1: any.
      keep_gain: the share of the gain over the label party alone that is to be kept.
      seeds: seeds of each configuration; 3 if time is short.
      confirm: judge what is recommended again, on three fresh seeds.
      canaries: audit claimed epsilons with labels that are coins.
      options: name=value of the table's loader, such as drop=ID; see vfljax data.
      command: the command that the report names as the audit's origin.
      say: is given each line of progress, and at the end what the report says.

    Returns:
      The audit's own sweep; ``workdir/report.html`` is its report.

    Raises:
      UserError: of one line, as ``vfljax audit`` prints it.
    """
    from vfljax.api.loading import load
    from vfljax.auditing import request
    from vfljax.auditing.stages import audit as run_audit
    from vfljax.auditing.survey import written_frame
    from vfljax.launching import running

    given, folder = dict(locals()), pathlib.Path(workdir)

    def renamed(field: Field) -> Field:
        """Returns the argument that a message calls by a flag of `vfljax audit`."""
        flag, _, entry = request.flag_of(field).removeprefix("--").partition("=")
        name = {"data": "table", "option": "options"}.get(flag, flag)
        known = flag and name in given
        return argument(f"{name}.{entry}" if entry else name) if known else field

    try:
        owners = request.parties_of(parties) if isinstance(parties, str) else _tuples(parties)
        is_file = isinstance(table, str | os.PathLike)
        asked = request.Request(
            data=str(
                user_path(table, argument("table")) if is_file else written_frame(table, folder)
            ),
            parties=owners,
            label_party=next(iter(owners), "") if label_party is None else label_party,
            attackers=tuple(attackers),
            budget=request.seconds_of(budget) if isinstance(budget, str) else budget,
            max_leak=max_leak,
            fewest_seeds=min(3, seeds),
            options=of_loader("table", options or {}),
            **{name: given[name] for name in request.AS_GIVEN},
        )
        run_audit(asked, folder, command, say)
    except UserError as error:
        raise error.renamed(renamed) from error
    say(running.report(folder))
    return load(folder)


def _tuples(parties: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    for name, columns in parties.items():
        listed = isinstance(columns, Iterable) and not isinstance(columns, str)
        if not listed or not all(isinstance(column, str) for column in columns):
            what = argument("parties"), f"={{{name!r}: {columns!r}}}"
            raise UserError(what, remedy="give a list of names or globs")
    return {name: tuple(columns) for name, columns in parties.items()}
