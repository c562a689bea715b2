"""How much one sweep may ask for: counts that are refused before anything of them is built.

A grid of three axes of a thousand values is a short line of a config and 10^9 trials. So sizes are
counted by products of the lengths of axes (``lengths``), and what is beyond a limit is refused in one
line. What the counts need of memory and disk is estimated by ``vfljax.sweep.size``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from vfljax.errors import Field, UserError
from vfljax.machine import bytes_text
from vfljax.sweep.records import as_axis, written

LIFT = Field("beyond_limits", ", or lift all limits by `vfljax sweep --beyond_limits`")


@dataclasses.dataclass(frozen=True)
class SizeLimits:
    """The most that is planned of each. The defaults are far above any sweep that somebody will read,
    and about where planning alone takes minutes, or the machine's memory."""

    trials: float = 50_000  # 160 times the quickstart's; each is planned one by one
    seeds: float = 10_000  # intervals shrink by their root; each divides and orders all rows
    epochs: float = 1_000_000  # of a trial or a teacher; each stands in every row of results
    parties: float = 1_000  # each has a network of its own in every program
    programs: float = 500  # each compiles for some seconds to minutes
    attack_points: float = 10_000  # forms of attacks and points of knobs, run on every trial
    attack_steps: float = 10_000_000  # 400 times the published 25 x 1,024
    attack_numbers: float = 1_000_000  # any other number of an attack: a count, a width, a batch
    free: float = 1.0  # share of the free memory, and of the free disk, that may be needed

    @classmethod
    def none(cls) -> SizeLimits:
        """No limits: what --beyond_limits asks for, and what a stored sweep is read with."""
        return cls(**{field.name: math.inf for field in dataclasses.fields(cls)})

    def check(self, limit: str, field: str, value: float) -> None:
        """Raise UserError where the number ``field`` of the config is above the limit of that name."""
        most = getattr(self, limit)
        if value > most:
            raise UserError(
                (Field(field), f"={written(value)} is beyond the limit of {most:,}"),
                remedy=("choose at most that", LIFT),
            )

    def check_count(self, limit: str, count: int, axes: Mapping[str, int], what: str) -> None:
        """Raise UserError where ``count``, the product of ``axes`` (values by field), is above the limit
        of that name; the message names the longest axis."""
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
        """Raise UserError where ``who`` needs more bytes of ``what`` than are free."""
        if needed > self.free * free:
            raise UserError(
                f"{who} needs about {bytes_text(needed)} of {what} and {bytes_text(free)} is free",
                remedy=(remedy, LIFT),
            )


LIMITS = SizeLimits()


def lengths(field: str, values: Mapping[str, Any]) -> dict[str, int]:
    """How many values each entry of a group of axes names, by its field."""
    return {f"{field}.{name}": len(as_axis(value)) for name, value in values.items()}


def chain_lengths(method: str, chain: Mapping[str, Any]) -> dict[str, int]:
    """The same of every knob and option of a method, by its field; what is no group of values, which is
    refused where it is parsed, counts nothing."""
    axes: dict[str, int] = {}
    for defense, values in chain.items():
        if defense != "model" and isinstance(values, Mapping):
            axes |= lengths(f"grid.{method}.{defense}", values)
    return axes
