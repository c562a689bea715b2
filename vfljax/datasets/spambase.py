"""UCI Spambase: 4,601 e-mails, 57 columns, 1 = spam (39.4 %), from ``<folder>/spambase.data``.

Format: comma-separated numbers, no header, the label last. Get it from the UCI repository.
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.files import find
from vfljax.datasets.table_errors import fault, reading

ROWS, COLUMNS = 4601, 57
FILE = "spambase.data"


def spambase(folder: str) -> Dataset:
    """Read Spambase; every fault of the file is one clear line."""
    path = find(folder, f"the folder that holds UCI's {FILE}", [FILE])
    with reading(path), path.open() as file:
        values = np.loadtxt(file, delimiter=",", ndmin=2)
    if values.shape != (ROWS, COLUMNS + 1):
        has = f"has {values.shape[0]} rows of {values.shape[1]} values"
        raise fault(
            path, f"{has}, UCI's has {ROWS} of {COLUMNS + 1}: it is cut off or not Spambase"
        )
    with np.errstate(over="ignore"):
        wrong = ~np.isfinite(values.astype(np.float32)).all(axis=1)
    if wrong.any():
        raise fault(path, "has a value that is no finite number", row=int(np.argmax(wrong)) + 1)
    return Dataset(
        "spambase", values[:, :-1].astype(np.float32), classes(str(path), values[:, -1], 2), 2
    )
