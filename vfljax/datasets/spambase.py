"""UCI Spambase: 4,601 e-mails, 57 columns, 1 = spam (39.4 %), from ``<folder>/spambase.data``.

Format: comma-separated numbers, no header, the label last. Get it from the UCI repository.
"""

from __future__ import annotations

import pathlib

import numpy as np

from vfljax.datasets.core import Dataset, classes
from vfljax.datasets.faults import unpermitted
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
    try:
        lines = path.read_text(encoding="ascii").splitlines()
    except PermissionError as error:
        raise unpermitted(path) from error
    except (UnicodeDecodeError, OSError) as error:
        raise UserError(
            f"{path} cannot be read as text ({error}): fetch UCI's file again."
        ) from error
    lines = [line for line in lines if line.strip()]
    values = np.empty((len(lines), COLUMNS + 1))
    for number, line in enumerate(lines):
        fields = line.split(",")
        if len(fields) != COLUMNS + 1:
            raise UserError(
                f"{path} line {number + 1} has {len(fields)} values, not {COLUMNS + 1}: the file is "
                "cut off or not Spambase; fetch it again."
            )
        try:
            if "_" in line:  # which Python reads within a number
                raise ValueError("a number holds '_'")
            values[number] = [float(field) for field in fields]
        except ValueError as error:
            raise UserError(f"{path} line {number + 1}: {error}; fetch the file again.") from error
    if len(values) != ROWS:
        raise UserError(
            f"{path} has {len(values)} rows, UCI's has {ROWS}: the file is truncated or not "
            "Spambase; fetch it again."
        )
    with np.errstate(over="ignore"):
        features = values[:, :-1].astype(np.float32)
    finite = np.isfinite(features).all(1) & np.isfinite(values[:, -1])
    if not finite.all():
        row = int(np.argmin(finite))
        raise UserError(
            f"{path} line {row + 1} holds a value that is not finite in float32; fetch it again."
        )
    return Dataset("spambase", features, classes(str(path), values[:, -1], 2), 2)
