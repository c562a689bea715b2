"""``vfljax.partitioned_table``: a table with its label, and the parties that own its columns."""

from __future__ import annotations

import json
import os
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vfljax.api.arguments import Options, Whole, checked
from vfljax.api.data import of_loader
from vfljax.errors import Field, UserError, argument, unknown, user_path

if TYPE_CHECKING:
    from vfljax.auditing.survey import PartitionedTable

PARTIES = argument("parties")
EXAMPLE = "'bank: LIMIT_BAL, AGE; telco: PAY_*, BILL_*'"


@checked
def partitioned_table(
    data: Any,
    label: str | int,
    parties: Mapping[str, Any] | str,
    *,
    label_party: str | None = None,
    task: str = "classification",
    bins: Whole = 0,
    label_range: Sequence[float] = (),
    option: Options | None = None,
    options: Options | None = None,
) -> PartitionedTable:
    """Returns a table with its label, and the parties that own its columns, for ``vfljax.audit`` and
    ``vfljax.audit_trees``. The table itself is read by the audit.

    Args:
      data: the table's file: CSV or other delimited text, Parquet, .npz. In Python also a pandas ``DataFrame``
        or a ``pyarrow.Table``, which an audit writes to ``workdir/table.parquet`` without its index.
      label: the column that holds the labels.
      parties: who owns which columns, by name or glob, "*" being the rest: 'bank: AGE; telco: PAY_*', or the
        path of a .json file of names and lists; in Python also such a mapping. Columns that no party owns are
        left out.
      label_party: who has the labels; the first party by default.
      task: what the label is: classes (classification), or numbers as they are (regression).
      bins: of a label of numbers: how many classes its quantiles make of it; 2: above the median or not.
      label_range: of a label of numbers: low,high, the bounds to which it is clipped. Label differential
        privacy needs them, and they must come from what is known of the label, not from the table.
      option: name=value of the table's loader, such as drop=ID; see vfljax data.
      options: options of pandas.read_csv or read_parquet, as JSON: {"sep": ";", "decimal": ","}.

    Raises:
      UserError: in one line, for bad arguments.
    """
    if data is None or (isinstance(data, str) and not data):
        remedy = "give a file (CSV, Parquet or .npz) or a data frame"
        raise UserError("is needed", field=argument("data"), remedy=remedy)
    if label == "":
        remedy = "give the name of the column that holds the labels"
        raise UserError("is empty", field=argument("label"), remedy=remedy)
    owners = parties_of(parties)
    holder = _label_party(label_party, owners)
    if "label" in (option or {}):
        remedy = ("name the column by ", argument("label"))
        raise UserError((argument("option"), " names a label"), remedy=remedy)

    from vfljax import tasks
    from vfljax.auditing.survey import PartitionedTable

    if task not in tasks.TABLE:
        raise unknown(argument("task"), task, tasks.TABLE)
    own = {name: of for name, of in {"options": options, "bins": bins}.items() if of}
    own |= {"task": task} if task != "classification" else {}
    is_file = isinstance(data, str | os.PathLike)
    return PartitionedTable(
        data=str(user_path(data, argument("data"))) if is_file else data,
        label=str(label),
        parties=owners,
        label_party=holder,
        options=of_loader("table", {**(option or {}), **own}),
        label_range=tuple(label_range),
    )


def _label_party(name: Any, parties: Mapping[str, Any]) -> str:
    if name is not None and name not in parties:
        raise unknown(("party in ", argument("label_party")), name, parties)
    holder = next(iter(parties)) if name is None else name
    for party, columns in parties.items():
        if not columns and party != holder:
            what = f" gives {party!r} no columns"
            raise UserError((PARTIES, what), remedy="name some, or leave the party out")
    return holder


def parties_of(parties: Any) -> dict[str, tuple[str, ...]]:
    """Returns the columns of each party, from a mapping, a text, or the path of a JSON file.

    >>> parties_of("bank: LIMIT_BAL, AGE; telco: PAY_*")
    {'bank': ('LIMIT_BAL', 'AGE'), 'telco': ('PAY_*',)}
    """
    from vfljax.sweep.grid import check_text

    if isinstance(parties, Mapping):
        entries = [*parties.items()]
    elif isinstance(parties, str) and parties.strip().lower().endswith(".json"):
        entries = _read_parties(user_path(parties.strip(), PARTIES))
    elif isinstance(parties, str) and parties.strip():
        entries = [_entry(part) for part in parties.split(";") if part.strip()]
    else:
        remedy = f"say who owns which columns, such as {EXAMPLE}"
        raise UserError(field=PARTIES, value=parties, remedy=remedy)
    owners: dict[str, tuple[str, ...]] = {}
    for name, columns in entries:
        try:
            check_text(Field("parties", "the party's name"), name)
        except UserError as error:
            raise UserError((PARTIES, ": ", *error.parts)) from error
        if name in owners:
            remedy = "give each party one entry"
            raise UserError((PARTIES, f" names {name!r} twice"), remedy=remedy)
        listed = isinstance(columns, Iterable) and not isinstance(columns, str | bytes | Mapping)
        columns = [*columns] if listed else [None]
        if not all(isinstance(column, str | int | np.integer) for column in columns):
            remedy = "give each party a list of names or globs"
            raise UserError((PARTIES, f" has no list of columns of {name!r}"), remedy=remedy)
        owners[name] = tuple(map(str, columns))
    if len(owners) < 2:
        what = f" names {len(owners)} party"
        remedy = f"give two or more, parted by semicolons, such as {EXAMPLE}"
        raise UserError((PARTIES, what), remedy=remedy)
    return owners


def _entry(text: str) -> tuple[str, tuple[str, ...]]:
    name, colon, columns = text.partition(":")
    if not colon:
        what = f": {text.strip()!r} has no colon after the party's name"
        raise UserError((PARTIES, what), remedy=f"write {EXAMPLE}")
    return name.strip(), tuple(filter(None, map(str.strip, columns.split(","))))


def _read_parties(path: pathlib.Path) -> list[tuple[Any, Any]]:
    """Returns the entries of a JSON file of parties, those of one name too."""
    try:
        value = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_Pairs)
    except (OSError, ValueError, RecursionError) as error:
        why = " ".join(str(error).split())[:160]
        what = f"={path} cannot be read ({why})"
        raise UserError((PARTIES, what), remedy="give a JSON file") from error
    if not isinstance(value, _Pairs):
        remedy = 'give an object {"bank": ["AGE"], "telco": ["PAY_*"]}'
        raise UserError((PARTIES, f"={path} is no object"), remedy=remedy)
    return [*value]


class _Pairs(list):
    """The pairs of a JSON object, of which several may have one name."""
