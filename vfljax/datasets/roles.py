"""Which column of a user's table is what: label, groups, features, or left out.

What enters: a table's column names and what the user named. What leaves: ``Roles``, or one clear line
for a name that is in no column, or in two roles.
"""

from __future__ import annotations

import difflib
import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from vfljax.datasets.faults import Place, one_line
from vfljax.errors import UserError, unknown

INDEX = "__index_level_"  # pandas writes an unnamed index so


class Roles(NamedTuple):
    label: str
    groups: str
    features: dict[str, str]  # name -> what the user says it is: "number", "category" or ""
    dropped: tuple[str, ...]  # by the user


def _absent(option: str, name: str, names: Sequence[str], place: Place) -> UserError:
    if len(names) > 24:  # a message, not the whole header
        near = difflib.get_close_matches(name, names, n=1)
        names = list(dict.fromkeys([*near, *names[:12], "..."]))
    return UserError(f"{place.name}: {unknown(f'column in {option}=', name, names)}{place.hint}")


def roles_of(
    place: Place,
    names: Sequence[str],
    label: str,
    groups: str,
    drop: Sequence[str],
    categorical: Sequence[str],
    numeric: Sequence[str],
) -> Roles:
    """Which column is what; raises UserError for a name that is in no column, or in two roles."""
    label, groups = _name("label", label), _name("groups", groups)
    dropped = _matching("drop", drop, names, place)
    for option, one in (("label", label), ("groups", groups)):
        if one not in names and (one or option == "label"):
            raise _absent(option, one, names, place)
        if one and one in dropped:
            raise UserError(f"{option}={one!r} is also in drop=: take it out of one.")
    if label == groups:
        raise UserError(f"label={label!r} is also groups=: name another column.")
    words = _matching("categorical", categorical, names, place)
    numbers = _matching("numeric", numeric, names, place)
    if words & numbers:
        raise UserError(f"column {min(words & numbers)!r} is in categorical= and in numeric=.")
    features = {
        one: "category" if one in words else "number" if one in numbers else ""
        for one in names
        if one not in dropped | {label, groups} and not one.startswith(INDEX)
    }
    if not features:
        raise UserError(
            f"{place.name}: no feature column is left beside {label!r}: drop fewer columns."
        )
    return Roles(label, groups, features, tuple(one for one in names if one in dropped))


def _name(option: str, value: Any) -> str:
    """A column's name as it stands in the table; a number is the name of a column called so."""
    if value is None or isinstance(value, bool):
        raise UserError(f"{option}={value!r}: give the name of a column.")
    return one_line(value)


def _matching(option: str, patterns: Any, names: Sequence[str], place: Place) -> set[str]:
    named: set[str] = set()
    several = isinstance(patterns, Iterable) and not isinstance(patterns, str)
    for pattern in patterns if several else [patterns]:
        pattern = _name(option, pattern)
        hit = {pattern} & set(names) or set(fnmatch.filter(names, pattern))
        if not hit:
            raise _absent(option, pattern, names, place)
        named |= hit
    return named


def same_columns(
    test: Sequence[str], test_name: str, names: Sequence[str], place: Place, roles: Roles
) -> None:
    """Raise UserError unless ``test`` has every column that is used and none that ``names`` lacks."""
    used = [roles.label, *([roles.groups] if roles.groups else []), *roles.features]
    lacks = [one for one in used if one not in set(test)]
    more = [one for one in test if one not in set(names)]
    if lacks or more:
        says = [f"lacks {', '.join(map(repr, lacks[:5]))}"] if lacks else []
        says += [f"has also {', '.join(map(repr, more[:5]))}"] if more else []
        raise UserError(
            f"{test_name} {' and '.join(says)}: give it the columns of {place.name}, in any order."
        )
