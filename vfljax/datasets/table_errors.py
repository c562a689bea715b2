"""Makes the errors for faults of files: one line that says what is wrong, where, and what to do."""

from __future__ import annotations

import collections
import contextlib
import json
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from vfljax.errors import Field, Text, UserError

MOST_COLUMNS = 100_000
AGAIN = "fetch the file again"
UNREADABLE = ("may not be read", "check its permissions")
NAMELESS = re.compile(r" *'?<[^<>]* object at 0x[0-9a-f]+>'?")  # a stream, in place of its name


def fault(
    file: Any, what: Text, remedy: Text = AGAIN, *, line: int = 0, row: int = 0, column: str = ""
) -> UserError:
    """Returns the error ``FILE line 3, column 'a' is ...: do this.``

    Args:
      file: its path, or what messages call it.
      what: what is wrong, beginning with a verb.
      remedy: what to do.
      line: number of the line, from 1; 0 is none.
      row: number of the row, from 1, if no line is given; 0 is none.
      column: its name; "" is none.
    """
    place = one_line(file) + (f" line {line}" if line else f" row {row}" if row else "")
    if column:
        place += f"{',' if line or row else ':'} column {column!r}"
    what, remedy = (one_line(t) if isinstance(t, str) else t for t in (what, remedy))
    return UserError((f"{place} ", *([what] if isinstance(what, str) else what)), remedy=remedy)


@contextlib.contextmanager
def reading(file: Any, remedy: Text = AGAIN) -> Iterator[None]:
    """Turns any exception that a library raises over a file into a ``fault`` of the file.

    Decoders of damaged files raise nearly every type of exception there is. A missing package, too little
    memory and a missing permission have their own messages.

    Args:
      file: as of ``fault``.
      remedy: what to do about any other exception.
    """
    try:
        yield
    except UserError:
        raise
    except ImportError as error:
        package = (error.name or str(error)).split(".")[0]
        raise fault(file, f"needs the package {package}", f"install it ({error})") from error
    except PermissionError as error:
        raise fault(file, *UNREADABLE) from error
    except MemoryError as error:
        raise fault(file, "does not fit in memory", "read fewer rows or columns") from error
    except Exception as error:
        why = f"{type(error).__name__}: {NAMELESS.sub('', str(error))[:200]}"
        raise fault(file, f"cannot be read ({why})", remedy) from error


@contextlib.contextmanager
def permitted() -> Iterator[None]:
    """Turns a PermissionError into a ``fault`` of the folder or file that may not be read."""
    try:
        yield
    except PermissionError as error:
        raise fault(error.filename or "a file of the data set", *UNREADABLE) from error


def quoted(value: Any) -> str:
    """Returns a value of a file as messages quote it: in one line, cut to 40 characters."""
    text = str(value)
    return repr(text if len(text) <= 40 else text[:37] + "...")


def printable(line: str) -> str:
    """Returns a line with each unprintable character, such as a line break, as U+FFFD."""
    return "".join(c if c.isprintable() else "\ufffd" for c in line)


def one_line(text: Any) -> str:
    """Returns a name for messages, in Unicode's composed form (NFC), with single spaces and without
    unprintable characters."""
    return printable(" ".join(unicodedata.normalize("NFC", str(text)).split()))


def alike(text: str) -> str:
    """Returns a form of a text that is equal for texts that look alike: that differ only in case, in spaces,
    in characters without a width (zero bytes are among them), in dashes, in quotes around it, in a period at
    its end, or in how an accent is composed.

    >>> alike("Caf\u00e9  A\u200b") == alike("cafe\u0301 a")
    True
    >>> alike("non\u2013smoker"), alike(chr(0) + "yes")
    ('non-smoker', 'yes')
    >>> alike("<=50K.")
    '<=50k'
    """
    text = unicodedata.normalize("NFKC", text)
    text = "".join(c for c in text if unicodedata.category(c) != "Cf" and c != "\0")
    text = "".join("-" if unicodedata.category(c) == "Pd" else c for c in text)
    bare = " ".join(text.split()).casefold()
    return bare.strip("\"'`").rstrip(".") or bare


def narrow(file: Any, columns: int) -> None:
    """Raises UserError for more than ``MOST_COLUMNS`` columns.

    Args:
      file: as of ``fault``.
      columns: their number.
    """
    if columns > MOST_COLUMNS:
        what = f"has {columns:,} columns, more than {MOST_COLUMNS:,}"
        raise fault(file, what, "choose some, or correct the delimiter")


def all_different(names: Sequence[str], file: Any, hint: Text = ()) -> None:
    """Raises UserError if columns have the same name; it names the most frequent name.

    Args:
      names: of all columns.
      file: as of ``fault``.
      hint: a further sentence.
    """
    if len(set(names)) < len(names):
        name = collections.Counter(names).most_common(1)[0][0]
        raise UserError((f"{file}: two columns are named {name!r}: rename one.", *hint))


def csv_option(**options: Any) -> tuple[str | Field, ...]:
    """Returns the parts of a message that give options of ``pandas.read_csv``: ``options={"sep": ";"}``."""
    written = json.dumps(options, ensure_ascii=False)
    return (Field("data.options.options", "options"), f"={written}")
