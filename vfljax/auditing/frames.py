"""A data frame that is audited, as a file of the audit."""

from __future__ import annotations

import pathlib
from typing import Any

import pyarrow.parquet as pq

from vfljax import store
from vfljax.auditing.request import WORKDIR
from vfljax.auditing.stages import FRAME
from vfljax.datasets.reading import arrow_of
from vfljax.errors import UserError


def written(frame: Any, folder: pathlib.Path) -> pathlib.Path:
    """Writes a data frame to a file of the audit, without its index.

    Args:
      frame: a pandas ``DataFrame`` or a ``pyarrow.Table``.
      folder: of the audit.

    Returns:
      The path of the file.

    Raises:
      UserError: if a file that exists already holds another frame, or ``frame`` is none.
    """
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
