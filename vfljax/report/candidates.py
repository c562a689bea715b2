"""The attacks among which the strongest is looked for, as figures by seed."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from vfljax.types import AttackIdentity

Floats = NDArray[np.float64]


class Candidate(NamedTuple):
    """One of the attacks among which the strongest is looked for."""

    name: str  # with what tells it from the others: federation and knobs
    brief: str = ""  # without who attacked
    identity: AttackIdentity | None = None  # None of the local-only baseline
    null: float = math.nan  # what its scores reach under permuted labels, 95 % of the time


LOCAL_ONLY = Candidate(name="local-only baseline", brief="local-only baseline")


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """The attacks on one configuration in one federation, and the local-only baseline.

    Figures are in [0, 1], on one scale (leak AUC, or balanced top-1), NaN where a seed has none. The baseline
    is a candidate too, so that the strongest attack of all seeds is never below it. NaN on all seeds of
    ``local_only`` means that it was not scored.
    """

    attacks: tuple[Candidate, ...]
    leaks: Floats  # [attacks, seeds]
    selects: Floats  # [attacks, seeds], of other rows; read with fewer than 3 seeds only
    local_only: Floats  # [seeds]
    local_only_selects: Floats  # [seeds]
    rows: int  # m of ``intervals.figure_limit``
    seeds: tuple[int, ...]
    baseline: Candidate = LOCAL_ONLY

    def __post_init__(self) -> None:
        shape = (len(self.attacks), len(self.seeds))
        if self.leaks.shape != shape or self.selects.shape != shape:
            raise ValueError(
                f"{shape[0]} attacks and {shape[1]} seeds for leaks {self.leaks.shape} and selects "
                f"{self.selects.shape}: one row an attack, one column a seed"
            )

    @property
    def has_local_only(self) -> bool:
        """Whether the local-only baseline was scored."""
        return bool(np.isfinite(self.local_only).any())

    @property
    def everyone(self) -> tuple[Candidate, ...]:
        """The attacks and, where it was scored, the local-only baseline."""
        return (*self.attacks, self.baseline) if self.has_local_only else self.attacks

    @property
    def all_leaks(self) -> Floats:
        """[attacks or one more, seeds]."""
        return with_local_only(self.leaks, self.local_only) if self.has_local_only else self.leaks

    @property
    def all_selects(self) -> Floats:
        """[attacks or one more, seeds]."""
        return (
            with_local_only(self.selects, self.local_only_selects)
            if self.has_local_only
            else self.selects
        )


def candidates_of(
    names: Sequence[str],
    leaks: ArrayLike,
    local_only: ArrayLike,
    rows: int,
    selects: ArrayLike = (),
) -> Candidates:
    """Returns ``Candidates`` from anything like arrays.

    Args:
      names: of the attacks.
      leaks: [attacks, seeds].
      local_only: [seeds].
      rows: judged rows of the rarest class.
      selects: [attacks, seeds]; without them the figures are the same on all rows.
    """
    figures, baseline = np.asarray(leaks, np.float64), np.asarray(local_only, np.float64)
    chosen = figures if np.size(selects) == 0 else np.asarray(selects, np.float64)
    attacks = tuple(Candidate(name, name) for name in names)
    return Candidates(
        attacks=attacks,
        leaks=figures,
        selects=chosen,
        local_only=baseline,
        local_only_selects=baseline,
        rows=rows,
        seeds=tuple(range(len(baseline))),
    )


def with_local_only(leaks: Floats, local_only: Floats) -> Floats:
    """The attacks and, last, the local-only baseline; it is no candidate where the training diverged."""
    trained = np.isfinite(leaks).any(axis=-2)
    row = np.where(trained, local_only, np.nan)[..., None, :]
    return np.concatenate([leaks, row], axis=-2)
