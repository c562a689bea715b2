"""UCI Spambase: 4,601 e-mails, 57 columns, 1 = spam (39.4 %), from ``<folder>/spambase.data``.

Format: comma-separated numbers, no header, the label last. Get it from the UCI repository.
"""

from __future__ import annotations

import pathlib

import numpy as np

from vfljax.datasets.columns_of import Rule, source
from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.delimited import read_text
from vfljax.datasets.faults import Place
from vfljax.errors import UserError

ROWS, COLUMNS = 4601, 57
FILE = "spambase.data"


def spambase(folder: str) -> Dataset:
    """Read Spambase; every fault of the file is one clear line."""
    if not folder:
        raise UserError(f"data.dir is empty: give the folder that holds {FILE} (UCI Spambase).")
    path = pathlib.Path(folder) / FILE
    if not path.parent.is_dir():
        raise UserError(f"data.dir={folder!r} is not a folder: give the one that holds {FILE}.")
    if not path.is_file():
        raise UserError(f"{path} is missing: put UCI's {FILE} there, or correct data.dir.")
    table = read_text(str(path), ",", header=False, file_encoding="utf-8")
    if (table.num_rows, table.num_columns) != (ROWS, COLUMNS + 1):
        raise UserError(
            f"{path} has {table.num_rows} rows of {table.num_columns} values, UCI's has {ROWS} of "
            f"{COLUMNS + 1}: the file is truncated or not Spambase; fetch it again."
        )
    place, rule = Place(str(path)), Rule(missing=())  # every number is there
    columns = [source(place, name, table[name], rule, "number") for name in table.column_names]
    values = np.stack([np.asarray(column.numbers) for column in columns], 1)
    return Dataset(
        "spambase", values[:, :-1].astype(np.float32), classes(str(path), values[:, -1], 2), 2
    )
