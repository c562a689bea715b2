"""The grid of an audit of boosted trees, read from a config such as ``configs/trees.py``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax.auditing.suite import UNDEFENDED
from vfljax.config import combinations, returned
from vfljax.errors import Field, UserError, check, unknown
from vfljax.federation.trees import ALL, OWN, Boosting

CONFIG = "configs/trees.py"
LIMITS: Mapping[str, tuple[float, float]] = {
    "rounds": (1, 10_000),
    "depth": (1, 16),
    "learning_rate": (1e-6, 1),
    "alone": (0, 10_000),
    "cover": (0, 1),
    "epsilon": (0, np.inf),
}
"""The least and the largest value of each field of ``Boosting`` that a config may name."""
WHOLE = ("rounds", "depth", "alone")
UNDEFENDED_FIELDS = ("rounds", "depth", "learning_rate")  # the others are defenses
TOLD_OWN = "told_own"
"""The method, of an audit of parties that are told all nodes, in which they are told their own."""


class Grid(NamedTuple):
    """The federations that an audit grows, as a config names them."""

    base: Boosting
    points: Mapping[str, Sequence[Mapping[str, float]]]  # by method, fields of ``Boosting``

    def boosting(self, method: str, knobs: Mapping[str, float]) -> Boosting:
        """Returns how the trees of an operating point of a method grow, and what is told of them."""
        boosting = self.base._replace(**knobs)
        return boosting._replace(told=OWN) if method == TOLD_OWN else boosting

    @property
    def every(self) -> list[Boosting]:
        """How the trees of all operating points grow."""
        return [self.boosting(m, knobs) for m, points in self.points.items() for knobs in points]

    @property
    def shape(self) -> tuple[int, int]:
        """The most rounds, and the most levels, of any operating point."""
        return max(b.rounds for b in self.every), max(b.depth for b in self.every)


def grid_of(source: str, told: str = OWN) -> Grid:
    """Returns the grid of a config file such as ``configs/trees.py``, with the undefended federation first, and
    then, if parties are told all nodes, ``TOLD_OWN``.

    Args:
      source: the path of a Python file, or of one that comes with vfljax.
      told: which nodes passive parties are told, one of ``federation.trees.TOLD``.

    Raises:
      UserError: for a file that is missing or raises, and for fields and values that ``Boosting`` has not.
    """
    values = returned(source)
    for name in values:
        if name not in ("boosting", "grid"):
            raise unknown(f"field of {source}", name, ("boosting", "grid"))
    base = Boosting(**_fields("boosting", values.get("boosting", {}), UNDEFENDED_FIELDS))
    base = base._replace(told=told)
    points = {UNDEFENDED: [{}], **({TOLD_OWN: [{}]} if told == ALL else {})}
    methods = values.get("grid", {})
    if not isinstance(methods, Mapping):
        remedy = "give {method: {field: values}}"
        raise UserError("is no group", field=Field("grid"), value=methods, remedy=remedy)
    for method, axes in methods.items():
        taken = method in (UNDEFENDED, TOLD_OWN)
        if taken or not re.fullmatch(r"\w+", str(method)):
            what = "is a name that every audit gives" if taken else "is no name"
            remedy = "choose another" if taken else "choose letters, digits and _"
            raise UserError(what, field=Field("grid"), value=method, remedy=remedy)
        points[method] = combinations(_fields(f"grid.{method}", axes), f"grid.{method}")
    grid = Grid(base, points)
    for method, of in points.items():
        for knobs in of:
            where = "boosting" if method == UNDEFENDED else f"grid.{method}"
            boosting = grid.boosting(method, knobs)
            for name, (low, high) in LIMITS.items():
                field, value = Field(f"{where}.{name}"), getattr(boosting, name)
                check(field, value, low, high, whole=name in WHOLE, infinite=name == "epsilon")
            if boosting.alone >= boosting.rounds:
                remedy = f"give fewer than the {boosting.rounds} rounds"
                field = Field(f"{where}.alone")
                raise UserError("leaves no round", field=field, value=boosting.alone, remedy=remedy)
    return grid


def _fields(place: str, values: Any, allowed: Sequence[str] = tuple(LIMITS)) -> dict[str, Any]:
    """Returns a group of a config whose names are fields of ``Boosting``."""
    if not isinstance(values, Mapping):
        remedy = "give {field: value}"
        raise UserError("is no group", field=Field(place), value=values, remedy=remedy)
    for name in values:
        if name not in allowed:
            raise unknown((Field(place),), name, allowed)
    return dict(values)
