"""UCI Spambase: 4,601 e-mails, 57 columns, 1 = spam (39.4 %), from ``<folder>/spambase.data``.

Format: comma-separated numbers, no header, the label last. Get it from the UCI repository.
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.files import find
from vfljax.datasets.table import read_frame
from vfljax.datasets.table_errors import fault, reading

ROWS, COLUMNS = 4601, 57
FILE = "spambase.data"


def spambase(folder: str) -> Dataset:
    """Read Spambase; every fault of the file is one clear line."""
    path = find(folder, f"the folder that holds UCI's {FILE}", [FILE])
    frame = read_frame(str(path), {"sep": ",", "header": None})
    if frame.shape != (ROWS, COLUMNS + 1):
        has = f"has {frame.shape[0]} rows of {frame.shape[1]} values"
        raise fault(
            path, f"{has}, UCI's has {ROWS} of {COLUMNS + 1}: it is cut off or not Spambase"
        )
    with reading(path):
        values = frame.to_numpy(np.float64)
    if not np.isfinite(values).all():  # every number is there
        row, column = np.argwhere(~np.isfinite(values))[0]
        raise fault(path, "has no number", row=int(row) + 1, column=str(column))
    return Dataset(
        "spambase", values[:, :-1].astype(np.float32), classes(str(path), values[:, -1], 2), 2
    )
