"""Which names and texts of a config may be planned: what a terminal, a figure and a file system can show.

A sweep trains for hours before its report writes ``figures/heat_<method>.png`` with the method in its title, so
a name that cannot be a file's, or that matplotlib reads as a formula, is refused before. Letters of any
script are fine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vfljax.errors import UserError

# of a method's name: file systems take 255 bytes, prefix and suffix included
LONGEST, MOST_BYTES = 60, 200
LONGEST_TITLE = 200
FORBIDDEN = "/\\$"  # a folder's separators, and what begins a formula in a figure


def check_name(what: str, name: Any, longest: int = LONGEST) -> None:
    """Refuse a name that is no short printable text; ``what`` says whose it is."""
    check_text(what, name)
    remedy = f"choose printable characters without {' '.join(FORBIDDEN)}, blanks inside it only"
    if not name or name != name.strip() or any(c in FORBIDDEN for c in name):
        raise UserError(f"{what} {_short(name)} cannot be a file's name: {remedy}.")
    if len(name) > longest or len(name.encode()) > MOST_BYTES:
        raise UserError(
            f"{what} {_short(name)} has {len(name)} characters ({len(name.encode())} bytes): choose at "
            f"most {longest} ({MOST_BYTES} bytes)."
        )


def check_text(what: str, text: Any, allowed: str = "") -> None:
    """Refuse what is no text, or holds characters that cannot be printed, but for those ``allowed``."""
    if not isinstance(text, str):
        raise UserError(f"{what} {text!r} is no text: put it between quotation marks.")
    bad = next((c for c in text if not c.isprintable() and c not in allowed), "")
    if bad:
        raise UserError(
            f"{what} {_short(text)} holds the character {bad!a}, which cannot be printed: leave "
            "it out."
        )


def check_distinct(field: str, values: Sequence[Any]) -> None:
    """Refuse an axis that names a value twice: its trials would be trained, and counted, twice. As
    numbers, 1 and 1.0 are one value; True is another.

    >>> check_distinct("training.momentum", (0, 0.9))
    >>> check_distinct("training.momentum", (0, 0.0))
    Traceback (most recent call last):
    vfljax.errors.UserError: config.training.momentum names 0.0 twice: leave one of them out.
    """
    seen = set()
    for value in values:
        key = _key(value)
        if key in seen:
            raise UserError(f"config.{field} names {value!r} twice: leave one of them out.")
        seen.add(key)


def _key(value: Any) -> Any:
    """A hashable value that is equal for equal values of an axis."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in value.items())
    return isinstance(value, bool), value


def _short(text: str) -> str:
    return repr(text if len(text) <= LONGEST else f"{text[:LONGEST]}...")
