"""The limits of a new sweep: its size, its names, and no axis with a value twice.

A grid of three axes of a thousand values is a short line of a config and 10^9 trials. Sizes are therefore
computed from the lengths of axes, and checked before anything is built. A sweep trains for hours before its
report writes ``figures/heat_<method>.png`` with the method in its title. A name is therefore refused if no
file can have it, or if matplotlib reads it as a formula. Letters of any script are fine.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax.errors import Field, UserError
from vfljax.machine import bytes_text
from vfljax.sweep.records import as_axis, written

# characters and bytes of a method's name; file systems allow 255 bytes, with prefix and suffix
LONGEST, MOST_BYTES = 60, 200
LONGEST_TITLE = 200
FORBIDDEN = "/\\$"  # separators of folders, and the sign that begins a formula in a figure
LIFT = Field("beyond_limits", ", or lift all limits by `vfljax sweep --beyond_limits`")


@dataclasses.dataclass(frozen=True)
class SizeLimits:
    """The largest sizes of a new sweep. The defaults are far above any sweep whose report somebody reads.
    They are about where planning alone takes minutes, or exhausts the machine's memory."""

    trials: float = 50_000  # 160 times the quickstart's; each is planned one by one
    seeds: float = 10_000  # intervals shrink by their root; each seed splits and orders all rows
    epochs: float = 1_000_000  # of a trial or a teacher; every row of results lists a loss for each
    parties: float = 1_000  # each has a network of its own in every program
    programs: float = 500  # each compiles for some seconds to minutes
    attack_points: float = 10_000  # attack variants times points of knobs, run on every trial
    attack_steps: float = 10_000_000  # 400 times the published 25 x 1,024
    attack_numbers: float = 1_000_000  # any other number of an attack: a count, a width, a batch
    free: float = 1.0  # share of the free memory, and of the free disk, that may be needed

    @classmethod
    def none(cls) -> SizeLimits:
        """No limits: what --beyond_limits asks for, and what a stored sweep is read with."""
        return cls(**{field.name: math.inf for field in dataclasses.fields(cls)})

    def check(self, limit: str, field: str, value: float) -> None:
        """Raise UserError for a number that is above its limit.

        Args:
          limit: its name.
          field: of the config.
          value: the number.
        """
        most = getattr(self, limit)
        if value > most:
            what = (Field(field), f"={written(value)} is beyond the limit of {most:,}")
            raise UserError(what, remedy=("choose at most that", LIFT))

    def check_count(self, limit: str, count: int, axes: Mapping[str, int], what: str) -> None:
        """Raise UserError for a count that is above its limit; the message names the longest axis.

        Args:
          limit: its name.
          count: the product of the lengths of all axes.
          axes: the length of each axis, by field.
          what: a word for what is counted, such as "trials".
        """
        most = getattr(self, limit)
        if count > most:
            longest = max(axes, key=lambda field: axes[field])
            raise UserError(
                f"has {written(axes[longest])} values, and all axes together make {written(count)} {what}, "
                f"beyond the limit of {most:,}",
                field=longest,
                remedy=("give fewer values", LIFT),
            )

    def check_free(self, who: str, what: str, needed: float, free: float, remedy: str) -> None:
        """Raise UserError for work that needs more bytes than are free.

        Args:
          who: the work, for the message.
          what: "memory" or "disk".
          needed: bytes that the work needs.
          free: bytes that are free.
          remedy: how to need less.
        """
        if needed > self.free * free:
            raise UserError(
                f"{who} needs about {bytes_text(needed)} of {what} and {bytes_text(free)} is free",
                remedy=(remedy, LIFT),
            )


LIMITS = SizeLimits()


def lengths(field: str, values: Mapping[str, Any]) -> dict[str, int]:
    """Returns how many values each axis names, by its field.

    Args:
      field: the config's group of these axes.
      values: the values of each axis, by its name in the group.
    """
    return {f"{field}.{name}": len(as_axis(value)) for name, value in values.items()}


def check_name(what: str, name: Any, longest: int = LONGEST) -> None:
    """Refuses a name that is not a short printable text, or that no file can have.

    Args:
      what: the thing with that name.
      name: the name.
      longest: characters.
    """
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
    """Refuses a value that is not a text, or that has characters that cannot be printed.

    Args:
      what: the thing with that text.
      text: the text.
      allowed: unprintable characters that it may have all the same.
    """
    if not isinstance(text, str):
        raise UserError(f"{what} {text!r} is no text: put it between quotation marks.")
    bad = next((c for c in text if not c.isprintable() and c not in allowed), "")
    if bad:
        held = f"{what} {_short(text)} holds the character {bad!a}, which cannot be printed"
        raise UserError(held, remedy="leave it out")


def check_distinct(field: str, values: Sequence[Any]) -> None:
    """Refuse an axis that names a value twice: its trials would be trained, and counted, twice.

    1 and 1.0 are the same value; True is a different value.

    Args:
      field: of the config.
      values: of the axis.

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
