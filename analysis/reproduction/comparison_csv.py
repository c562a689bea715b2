"""The CSV of a sweep's comparisons with printed numbers, which ``python -m launch.reproduce --record`` stores.

It holds no verdicts: they are computed from its figures, without the sweep.
"""

from __future__ import annotations

import csv
import io
import pathlib
from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from analysis.reproduction import papers
from analysis.reproduction.comparisons import Compared
from vfljax.errors import UserError

COLUMNS = (
    *("id", "table", "dataset", "variant", "scale", "defense", "attack", "split", "metric"),
    *("setting", "printed", "point", "federation", "figure", "ours", "run"),
)
Row = TypeVar("Row")


def text(compared: Iterable[Compared]) -> str:
    """Returns a CSV with one row per measured number and our figure of each seed."""
    rows = []
    for c in compared:
        if c.ours:
            ours = " ".join(f"{value:.6g}" for value in c.ours)
            values = {**c.number._asdict(), **c._asdict(), "setting": c.setting, "ours": ours}
            rows.append([values[name] for name in COLUMNS])
    return csv_text(COLUMNS, rows)


def csv_text(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Returns the text of a CSV file.

    Args:
      header: the titles of its columns.
      rows: the cells of each row.
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([header, *rows])
    return out.getvalue()


def read(path: pathlib.Path) -> list[Compared]:
    """Returns the comparisons in a file that ``text`` wrote; raises as ``read_rows`` for any other file."""
    by_id = {number.id: number for number in papers.numbers()}

    def parsed(row: dict[str, str]) -> Compared:
        texts = {name: row[name] for name in Compared._fields if name in row}
        ours = tuple(map(float, row["ours"].split()))
        return Compared(**{**texts, "number": by_id[row["id"]], "ours": ours})

    return read_rows(path, COLUMNS, parsed)


def read_rows(
    path: pathlib.Path, columns: Sequence[str], parse: Callable[[dict[str, str]], Row]
) -> list[Row]:
    """Returns the parsed rows of a CSV file.

    Args:
      path: the file.
      columns: those that the file must have, in this order.
      parse: makes a record from a row's texts by column.

    Raises:
      UserError: if the columns differ, or a row cannot be parsed; the message has its line.
    """
    header, *rows = list(csv.reader(io.StringIO(path.read_text()))) or [[]]
    if tuple(header) != tuple(columns):
        raise UserError(
            f"{path} is no table of `python -m launch.reproduce --record`: its columns must be {columns}."
        )
    records = []
    for place, row in enumerate(rows, 2):
        try:
            records.append(parse(dict(zip(columns, row, strict=True))))
        except (KeyError, ValueError) as error:
            raise UserError(
                f"{path}, line {place}: {error}: make it again by `python -m launch.reproduce --record`."
            ) from None
    return records
