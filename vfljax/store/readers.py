"""Whether a stored sweep and a new one are of one data set, and how to keep an old way of reading it.

What enters: two headers. What leaves: nothing, or why they differ: other values, or a loader that reads
the same files otherwise now. A header that names no version of its reader is of version 1.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from vfljax.errors import UserError


def difference(stored: Mapping[str, Any], header: Mapping[str, Any]) -> str:
    """Why the data sets of two headers differ; '' where they do not."""
    values = stored["checksum"] != header["checksum"]
    if not values and stored.get("identity", header["identity"]) == header["identity"]:
        return ""
    what = "the values of the data set have" if values else "its parts, groups or columns have"
    return _reading(stored, header.get("reader", 1)) or f"data: {what} changed"


def _reading(stored: Mapping[str, Any], reader: int) -> str:
    """How to keep the reading of a header that is of another version than ``reader``; '' of the same."""
    old = stored.get("reader", 1)
    if old == reader:
        return ""
    revision = str(stored.get("revision", "")).rstrip("+")
    maker = f"vfljax at revision {revision}" if revision else "the vfljax that it was made with"
    return (
        f"reading changed: its data set was read by version {old} of the loader, and this is version "
        f"{reader}; to keep the old reading, prepare the data set with {maker} (`vfljax data --prepare=DIR`) "
        "and give DIR in place of the data, or give `vfljax sweep` options of the loader that read so"
    )


@contextlib.contextmanager
def explained(stored: Mapping[str, Any] | None, reader: int) -> Iterator[None]:
    """Adds, to what is refused of a stored sweep's data, what changed since it was read.

    Args:
      stored: the sweep's header; None without one.
      reader: the number of the rules by which the data are read now.
    """
    try:
        yield
    except UserError as error:
        why = _reading(stored, reader) if stored else ""
        if not why:
            raise
        raise UserError(
            f"{error} This was no fault when the sweep was stored, but {why}."
        ) from error
