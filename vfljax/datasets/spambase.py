"""UCI Spambase: 4,601 e-mails, 57 columns, 1 = spam (39.4 %), from ``<folder>/spambase.data``.

Format: comma-separated numbers, no header, the label last. Get it from the UCI repository.
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets.column_types import Rule, source
from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.files import find
from vfljax.datasets.reading import read
from vfljax.datasets.table_errors import fault, place_of

ROWS, COLUMNS = 4601, 57
FILE = "spambase.data"


def spambase(folder: str) -> Dataset:
    """Read Spambase; every fault of the file is one clear line."""
    path = find(folder, f"the folder that holds UCI's {FILE}", [FILE])
    frame = read(str(path), ",", header=False).frame
    if frame.shape != (ROWS, COLUMNS + 1):
        has = f"has {frame.shape[0]} rows of {frame.shape[1]} values"
        raise fault(
            path, f"{has}, UCI's has {ROWS} of {COLUMNS + 1}: it is cut off or not Spambase"
        )
    place, rule = place_of({str(path): ROWS}), Rule(missing=())  # every number is there
    columns = [source([frame[name]], place.at(name), rule, "number") for name in frame]
    values = np.stack([np.asarray(column.numbers) for column in columns], 1)
    return Dataset(
        "spambase", values[:, :-1].astype(np.float32), classes(str(path), values[:, -1], 2), 2
    )
