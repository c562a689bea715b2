"""How well ``choosing``, ``intervals`` and ``judging`` do where the truth is known.

What enters: how many runs, seeds and attacks, the spread over seeds and its correlation between
attacks. What leaves: rows of bias, coverage and rates of verdicts. A figure is a beta variable of known
mean and spread, so it is bounded as a leak is; those of one seed are correlated by a normal copula, for
a hard split is hard for every attack. Everything is one array [runs, attacks, seeds] at a time.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from vfljax.report import choosing, intervals, judging
from vfljax.report.judging import Verdict

Floats = NDArray[np.float64]

AWAY = 0.6
ROWS = 1000
"""Judged rows of the rarest class: enough that the smallest seed spread counts, not the floor."""
CHUNK = 250  # runs at once
SPREADS = (0.01, 0.03, 0.1)
CORRELATIONS = (0.0, 0.5)
SHORTFALL_RUNS = 250
"""Enough for a sentence of a report: the standard error of the largest shortfall is .003."""


class Cell(NamedTuple):
    """One line of a table: what is simulated."""

    seeds: int
    attacks: int
    correlation: float  # between attacks, of the normal variables behind the figures
    spread: float  # standard deviation over seeds


def profiles(cell: Cell) -> dict[str, Floats]:
    """True means [attacks] of attacks on one strength; the strongest leaks .7, or .97.

    Equal attacks are the hardest case for a lower limit, close ones for the shortfall.
    """
    steps = np.linspace(0, 1, cell.attacks)
    return {
        "equal": np.full(cell.attacks, 0.7),
        "close": 0.7 - 2 * cell.spread * steps,
        "clear": np.where(steps == 0, 0.7, 0.55),
        "near 1": 0.97 - 2 * cell.spread * steps,
    }


class World(NamedTuple):
    """A strength and undefended, with what is true of them and what may not be said."""

    leaks: Floats  # [attacks], true means
    undefended: Floats  # [attacks]
    false: tuple[Verdict, ...]  # that would be false
    right: Verdict  # to be hoped for


def worlds(cell: Cell) -> dict[str, World]:
    """Truths at the edge of every verdict, and some in the middle of each; ``AWAY`` stays away."""
    first = np.arange(cell.attacks) == 0

    def led(strongest: float, rest: float = AWAY - 0.02) -> Floats:
        return np.where(first, strongest, rest)

    def level(leak: float) -> Floats:
        return np.full(cell.attacks, leak)

    less = (Verdict.PROTECTS, Verdict.REDUCES)
    none, nothing = (Verdict.DOES_NOTHING,), (Verdict.NOTHING_TO_PROTECT,)
    hidden, edge = Verdict.CANNOT_SAY, AWAY + judging.EXCESS
    return {
        "e = .05": World(led(edge), led(0.9), (Verdict.PROTECTS, *none, *nothing), Verdict.REDUCES),
        "e = .05, all": World(
            level(edge), level(0.9), (Verdict.PROTECTS, *none, *nothing), Verdict.REDUCES
        ),
        "d = 0": World(led(0.8), led(0.8), (*less, *nothing), Verdict.DOES_NOTHING),
        "d = 0, all": World(level(0.8), level(0.8), (*less, *nothing), Verdict.DOES_NOTHING),
        "d = -.02": World(
            led(0.78), led(0.8), (Verdict.PROTECTS, *none, *nothing), Verdict.REDUCES
        ),
        "d = +.02": World(led(0.82), led(0.8), (*less, *none, *nothing), hidden),
        "e = .05, undefended": World(led(edge), led(edge), (*less, *nothing), Verdict.DOES_NOTHING),
        "protected": World(led(AWAY), led(0.9), (*none, *nothing), Verdict.PROTECTS),
        "reduced": World(led(0.75), led(0.9), (Verdict.PROTECTS, *none, *nothing), Verdict.REDUCES),
        "nothing there": World(led(AWAY), led(AWAY), less, Verdict.NOTHING_TO_PROTECT),
    }


def draw(random: np.random.Generator, means: ArrayLike, cell: Cell, runs: int) -> Floats:
    """Figures [runs, len(means), seeds] in (0, 1) of these true means."""
    means = np.asarray(means, np.float64)
    shared = random.standard_normal((runs, 1, cell.seeds))
    single = random.standard_normal((runs, len(means), cell.seeds))
    normal = np.sqrt(cell.correlation) * shared + np.sqrt(1 - cell.correlation) * single
    figures = np.empty_like(normal)
    grid = np.linspace(-5.5, 5.5, 1101)
    for mean in np.unique(means):
        # the beta distribution of that mean and spread; its quantiles from a table
        size = mean * (1 - mean) / cell.spread**2 - 1
        quantiles = special.betaincinv(mean * size, (1 - mean) * size, special.ndtr(grid))
        equal = means == mean
        figures[:, equal] = np.interp(normal[:, equal], grid, quantiles)
    return figures


def _chunks(runs: int) -> Iterator[int]:
    for start in range(0, runs, CHUNK):
        yield min(CHUNK, runs - start)


def choices(cell: Cell, means: Floats, runs: int, random: np.random.Generator) -> dict[str, float]:
    """What becomes of choosing an attack, in means over runs.

    ``bias`` is of the folds' scores for what they picked, ``shortfall`` what the picks lack of the true
    worst case. ``flattery`` is what the highest mean over all seeds has beyond it, chosen where it is
    scored.
    """
    sums = np.zeros(3)
    for count in _chunks(runs):
        leaks = draw(random, means, cell, count)
        folds = choosing.leave_one_out(leaks)
        picked, highest = means[folds.picks], leaks.mean(-1).max(-1)
        errors = (folds.scores - picked, means.max() - picked, highest - means.max())
        sums += [error.mean() * count for error in errors]
    return dict(zip(("bias", "shortfall", "flattery"), map(float, sums / runs)))


def shortfalls(seeds: int, attacks: int, runs: int = SHORTFALL_RUNS) -> dict[float, float]:
    """By how much the folds' figure falls short of the strongest attack's, for each of ``SPREADS``.

    It is the largest mean over ``runs`` runs of any of the ``profiles``, attacks correlated or not.
    """
    random, out = np.random.default_rng(0), {}
    for spread in SPREADS:
        cells = [Cell(seeds, attacks, correlation, spread) for correlation in CORRELATIONS]
        found = (
            choices(cell, means, runs, random)["shortfall"]
            for cell in cells
            for means in profiles(cell).values()
            if np.ptp(means) > 0  # equal attacks fall short of nothing
        )
        out[spread] = max(found, default=0.0)
    return out


def coverage(cell: Cell, means: Floats, runs: int, random: np.random.Generator) -> dict[str, float]:
    """How often the limits are right about the true worst case.

    ``at_least`` and ``at_most`` are ``intervals.worst_limits``, and ``uncorrected`` is the plain lower
    t-limit of the folds' scores. ``margin`` is the median distance from the truth down to the lower limit.
    """
    truth = float(means.max())
    lowers, uppers, plains = [], [], []
    for count in _chunks(runs):
        leaks = draw(random, means, cell, count)
        limits = intervals.worst_limits(leaks, ROWS)
        scores = choosing.leave_one_out(leaks).scores
        error = scores.std(-1, ddof=1) / np.sqrt(cell.seeds)
        plains.append(scores.mean(-1) - special.stdtrit(cell.seeds - 1, intervals.LEVEL) * error)
        lowers.append(limits.lower)
        uppers.append(limits.upper)
    lower, upper, plain = map(np.concatenate, (lowers, uppers, plains))
    return {
        "at_least": float((lower <= truth).mean()),
        "at_most": float((upper >= truth).mean()),
        "uncorrected": float((plain <= truth).mean()),
        "margin": float(np.median(truth - lower)),
    }


def rates(cell: Cell, world: World, runs: int, random: np.random.Generator) -> dict[str, float]:
    """How often each verdict falls; the right one, and the false one that falls most often."""
    means = np.concatenate([world.leaks, world.undefended, [AWAY]])
    found: list[NDArray[np.intp]] = []
    for count in _chunks(runs):
        leaks, undefended, away = np.split(
            draw(random, means, cell, count), [cell.attacks, 2 * cell.attacks], axis=1
        )
        evidence = judging.evidence_on(leaks, undefended, away[:, 0], ROWS)
        found.append(judging.verdict_codes(evidence))
    codes = np.concatenate(found)
    shares = {verdict: float((codes == k).mean()) for k, verdict in enumerate(judging.VERDICTS)}
    return {
        "false": max(shares[verdict] for verdict in world.false),
        "right": shares[world.right],
        **{str(verdict): share for verdict, share in shares.items()},
    }


def strengths(cell: Cell, runs: int, random: np.random.Generator) -> dict[str, float]:
    """Bias and distance of choosing one of five strengths and an attack on it, in means over runs.

    The strengths' strongest attacks leak .7, .69, .68, .67 and .66; all keep the accuracy, and their other
    attacks are close. ``bias`` is of the folds' scores for what they picked, and ``below`` is how far the
    picks leak less than the best strength's strongest attack; negative where worse strengths were picked.
    """
    steps = np.linspace(0, 2 * cell.spread, cell.attacks)
    means = np.linspace(0.7, 0.66, 5)[:, None] - steps  # [strengths, attacks]
    sums = np.zeros(2)
    for count in _chunks(runs):
        figures = draw(random, means.ravel(), cell, count)
        leaks = figures.reshape(count, *means.shape, cell.seeds)
        chosen = choosing.choose_operating_point(leaks, np.zeros((count, len(means), cell.seeds)))
        picked = means[chosen.points, chosen.attacks]
        errors = (chosen.scores - picked, means[-1].max() - picked)
        sums += [error.mean() * count for error in errors]
    return dict(zip(("bias", "below"), map(float, sums / runs)))
