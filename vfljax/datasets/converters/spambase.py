"""UCI Spambase: 4,601 e-mails, 57 columns, 1 = spam (39.4 %), from ``<folder>/spambase.data``.

Format: comma-separated numbers, no header, the label last. Get it from the UCI repository.
"""

from __future__ import annotations

import numpy as np

from vfljax.datasets.core import Block, Conversion, classes
from vfljax.datasets.files import find
from vfljax.datasets.table_errors import fault, reading

SHAPE = (4601, 58)
FILE = "spambase.data"


def spambase(folder: str) -> Conversion:
    """Reads Spambase.

    Args:
      folder: the folder that holds the file, or the file.
    """
    path = find(folder, f"the folder that holds UCI's {FILE}", [FILE])
    with reading(path):
        values = np.loadtxt(path, delimiter=",", ndmin=2)
    if values.shape != SHAPE:
        what = f"has {values.shape[0]} rows of {values.shape[1]} values, UCI's has 4601 of 58"
        raise fault(path, what, "it is cut off or not Spambase; fetch it again")
    for row in np.flatnonzero(~np.isfinite(values.astype(np.float32)).all(1))[:1]:
        raise fault(path, "has a value that is no finite number", row=int(row) + 1)
    labels = classes(str(path), values[:, -1], 2)
    return Conversion("spambase", 2, [Block(values[:, :-1].astype(np.float32), labels)])
