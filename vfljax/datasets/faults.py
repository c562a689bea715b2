"""What messages about a user's file share: one line whatever the file holds."""

from __future__ import annotations

import contextlib
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.errors import UserError

MOST_COLUMNS = 100_000


def shown(value: Any) -> str:
    """A value of a file as a message quotes it: one line, at most 40 characters."""
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def one_line(text: Any) -> str:
    """A name as it can stand in a message: single spaces, nothing unprintable."""
    return "".join(c if c.isprintable() else "\ufffd" for c in " ".join(str(text).split()))


class Place(NamedTuple):
    """Where a table's faults are: the name of its file, and which of the file's rows are left."""

    name: str
    rows: np.ndarray | None = None  # [R] from 0; None: all
    hint: str = ""  # what may be wrong where a column is not there

    def row(self, index: int) -> int:
        """A row's number in the file, from 1."""
        return 1 + int(index if self.rows is None else self.rows[index])

    def fault(self, column: str, what: str, remedy: str) -> UserError:
        """One line: file, column, what is wrong (with its row), and what to do."""
        return UserError(f"{self.name}: column {column!r} {what}: {remedy}.")


def alike(text: str) -> str:
    """What a reader sees of a text, in one case: equal for texts that differ in case, in spaces, in
    characters without a width, or in how an accent is composed.

    >>> alike("Caf\u00e9  A\u200b") == alike("cafe\u0301 a")
    True
    """
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf")
    return " ".join(text.split()).casefold()


def too_wide(place: str, count: int) -> UserError:
    """Too many columns."""
    return UserError(
        f"{place} has {count:,} columns, more than {MOST_COLUMNS:,}: choose some, or correct the "
        "delimiter."
    )


def unpermitted(place: Any) -> UserError:
    """A file or folder that exists and may not be read."""
    return UserError(f"{one_line(place)} may not be read: check its permissions.")


@contextlib.contextmanager
def permitted() -> Iterator[None]:
    """Any look at a folder or file that is not allowed becomes one line that names it."""
    try:
        yield
    except PermissionError as error:
        raise unpermitted(error.filename or "a file of the data set") from error


def damaged(place: str, error: Exception) -> UserError:
    """What a reader met in a file that is not what its name says."""
    if isinstance(error, PermissionError):
        return unpermitted(place)
    return UserError(
        f"{place} cannot be read ({one_line(error)[:160]}): it is damaged, cut off or of another "
        "format; write it again."
    )


def all_different(names: Sequence[str], place: str) -> None:
    """Raises UserError for the first name that stands twice."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise UserError(f"{place}: two columns are named {name!r}: rename one.")
        seen.add(name)
