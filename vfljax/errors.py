"""What a user's mistake raises: one line that names the value and the remedy."""

from __future__ import annotations

import difflib
import os
import pathlib
from collections.abc import Iterable

MOST = 40  # names that a message lists all of


class UserError(ValueError):
    """Bad input. Entry points print it as one line and exit with status 2."""


def shown(path: str | os.PathLike[str]) -> str:
    """A path as a message names it: from the current folder on where it lies below, else whole."""
    whole = pathlib.Path(path)
    below = whole.is_absolute() and whole.is_relative_to(pathlib.Path.cwd())
    return str(whole.relative_to(pathlib.Path.cwd()) if below else whole)


def _near(name: str, known: list[str]) -> list[str]:
    """The known name that was probably meant, if any: the same in another case, else a similar one."""
    same = [one for one in known if one.casefold() == name.casefold()]
    return same[:1] or difflib.get_close_matches(name, known, n=1)


def unknown(kind: str, name: object, known: Iterable[str]) -> UserError:
    """The error for a name that is in no table, with the nearest known one; what is no text is no name
    either.

    >>> print(unknown("defense", "nosie", ["kdk", "noise"]))
    unknown defense 'nosie': did you mean 'noise'? choose from kdk, noise.
    """
    known = list(known)
    near = _near(name, known) if isinstance(name, str) else []
    if len(known) > MOST:  # a message, not the whole table
        known = list(dict.fromkeys([*near, *known[: MOST // 2], "..."]))
    hint = f"did you mean {near[0]!r}? " if near else ""
    choice = f"choose from {', '.join(known)}" if known else "there is none"
    return UserError(f"unknown {kind} {name!r}: {hint}{choice}.")
