"""The strength of each defense that keeps the accuracy and leaks least; the rule is ``choosing``'s.

What enters: the points of a sweep. What leaves: a ``Choice`` for every arm and federation. Each fold chooses
strength and attack on the other seeds, accuracy included, and scores on one; the strength that is named
is chosen on all seeds. With fewer than 3 seeds halves of the rows take the folds' place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from vfljax.report import choosing
from vfljax.report.confidence import Interval, interval
from vfljax.report.summary import Point, undefended


def keeps(max_cost: float) -> str:
    """When a strength keeps the accuracy, in words."""
    return (
        f"its accuracy on validation rows is at most {_cost(max_cost)} below undefended's in the mean over "
        f"seeds, and at most {_cost(2 * max_cost)} by the upper limit of that loss at "
        f"{choosing.LOSS_LEVEL:.0%}; a seed that diverged counts as the majority guess"
    )


def _cost(value: float) -> str:
    """'0.02', and every digit where there are more."""
    return f"{value:.2f}" if round(value, 2) == value else f"{value:g}"


class Choice(NamedTuple):
    """One arm's strength in one federation, and its gain and price on seeds that it was not chosen on."""

    arm: str
    federation: str
    point: Point | None  # chosen on all seeds; None: no strength keeps the accuracy
    folds: int  # how many folds chose it
    seeds: int  # how many folds there are; 0 where there were too few seeds for any
    leak: float  # mean of the folds' scores, each by the strength and attack that it chose
    excess: float  # that less staying away
    change: float  # that less undefended's worst case
    accuracy_change: Interval  # of the folds' strengths, on test rows

    @property
    def chosen(self) -> str:
        """By whom: '3 of 5 folds', or that there were too few seeds for folds."""
        return f"{self.folds} of {self.seeds} folds" if self.seeds else "halves of the rows"


def choices(
    all_points: Sequence[Point], majority: float, max_cost: float = choosing.MEAN_LOSS
) -> list[Choice]:
    """Per arm and federation: among the points that keep validation accuracy
    (``choosing.keeps_accuracy``), the one whose strongest attack leaks least. Empty without an undefended
    point. ``majority`` is the accuracy that counts for a seed that diverged, and ``max_cost`` what
    ``config.goal`` allows."""
    plain = undefended(all_points)
    if plain is None:
        return []
    return [
        _choice(arm, federation, members, plain, majority, max_cost)
        for arm in dict.fromkeys(p.arm for p in all_points if p.defended)
        for federation in plain.worst
        # where it is not trained nothing was to be chosen
        if (members := [p for p in all_points if p.arm == arm and federation in p.validation])
    ]


def _choice(
    arm: str,
    federation: str,
    members: Sequence[Point],
    plain: Point,
    majority: float,
    max_cost: float,
) -> Choice:
    """Of the points ``members`` of an arm that is trained in this federation."""
    nothing = Choice(arm, federation, None, 0, 0, math.nan, math.nan, math.nan, interval([]))
    attacked = [p for p in members if federation in p.worst]
    if not attacked:
        return nothing
    of_plain, all_seeds = plain.worst[federation], plain.worst[federation].seeds
    trained = [p.validated[federation].keys() for p in (plain, *attacked)]
    shared = [s for s in all_seeds if all(s in seeds for seeds in trained)]
    places = [all_seeds.index(seed) for seed in shared]
    leaks, selects = (
        _stacked([getattr(p.worst[federation].candidates, name)[:, places] for p in attacked])
        for name in ("all_leaks", "all_selects")
    )
    losses = choosing.accuracy_losses(
        _by_seed([p.validated for p in attacked], federation, shared),
        _by_seed([plain.validated], federation, shared)[0],
        majority,
    )
    enough = choosing.enough_seeds(leaks)
    chosen = (
        choosing.choose_strength(leaks, losses, max_cost)
        if enough
        else choosing.strength_by_halves(leaks, selects, losses, max_cost)
    )
    if chosen.strength == choosing.NOBODY:
        return nothing
    costs = choosing.accuracy_losses(
        _by_seed([p.by_seed for p in attacked], federation, shared),
        _by_seed([plain.by_seed], federation, shared)[0],
        majority,
    )
    picked = [(fold, column) for column, fold in enumerate(chosen.strengths) if fold >= 0]
    away = of_plain.candidates.away[places]
    return Choice(
        *(arm, federation, attacked[int(chosen.strength)]),
        *(int(chosen.folds), len(shared) if enough else 0),
        interval(chosen.scores).mean,
        interval(chosen.scores - away).mean,
        interval(chosen.scores - np.array(of_plain.case.by_seed)[places]).mean,
        interval(-costs[pick] for pick in picked),
    )


def _stacked(figures: Sequence[np.ndarray]) -> np.ndarray:
    """[strengths, candidates, seeds]: NaN for the attacks that a strength has less than others."""
    most = max(len(of_strength) for of_strength in figures)
    return np.stack(
        [
            np.pad(of_strength, ((0, most - len(of_strength)), (0, 0)), constant_values=np.nan)
            for of_strength in figures
        ]
    )


def _by_seed(
    accuracies: Sequence[dict[str, dict[int, float]]], federation: str, seeds: Sequence[int]
) -> np.ndarray:
    """[strengths, seeds]"""
    return np.array([[of[federation][seed] for seed in seeds] for of in accuracies])
