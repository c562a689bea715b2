"""How well ``choosing``, ``intervals`` and ``judging`` do where the truth is known.

What enters: how many runs, seeds and attacks, and the spread over seeds. What leaves: rows of bias, coverage
and rates of verdicts. A figure is a beta variable of known mean and spread, so it is bounded as a leak is.
Those of one seed are correlated by a normal copula: a hard split is hard for every attack, and for an attack
on every configuration. ``WORLDS`` are the ways in which the figures may be worse than that. Everything is one
array [runs, points, attacks, seeds] at a time.
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
"""Judged rows: enough that the smallest seed spread counts, not the floor."""
CHUNK = 100  # runs at once
SPREADS = (0.01, 0.03, 0.1)
CORRELATIONS = (0.0, 0.5)
BIAS_RUNS = 250
"""Enough for a sentence of a report: the standard error of the largest bias is .003."""
POINTS = 24
"""Configurations of a simulated sweep, half of them at the truth that is judged."""


class Cell(NamedTuple):
    """One line of a table: what is simulated."""

    seeds: int
    attacks: int
    correlation: float  # between attacks, of the normal variables behind the figures
    spread: float  # standard deviation over seeds


class World(NamedTuple):
    """How figures are drawn around their means."""

    unequal: float = 0.0  # standard deviation of the logarithm of an attack's spread
    uneven: float = 0.0  # likewise of a configuration's
    leader: float = 1.0  # by which the spread of the strongest attack is larger
    erratic: float = 0.0  # share of the attacks whose spread is five times as large
    fails: float = 0.0  # how often the strongest attack reads nothing on a seed
    each: bool = False  # whether every attack fails as often, on seeds of its own
    successes: bool = False  # whether the truth is the mean over the other seeds, and not over all
    rows: int = 0  # judged rows whose count is drawn too; 0: none is, and ``ROWS`` are judged


WORLDS = {
    "equal spreads": World(),
    "unequal spreads": World(unequal=0.7),
    "uneven configurations": World(uneven=0.5),
    "leader with twice the spread": World(leader=2.0),
    "leader with 5 times the spread": World(leader=5.0),
    "5 % erratic attacks": World(erratic=0.05),
    "leader fails on one seed in eight": World(fails=0.125),
    "leader fails on one seed in eight, judged by its successes": World(
        fails=0.125, successes=True
    ),
    "every attack fails on one seed in eight, judged by its successes": World(
        fails=0.125, each=True, successes=True
    ),
    "10 classes of 20 rows": World(rows=200),
    "50 rows": World(rows=50),
}


class Truth(NamedTuple):
    """What is true of a configuration and of undefended, and which verdicts would be false."""

    leaks: float  # of the strongest attack on the configuration
    undefended: float
    false: tuple[Verdict, ...]
    right: Verdict  # to be hoped for
    all: bool = False  # whether every attack leaks as much as the strongest


LEAKS = (Verdict.LEAKS_MUCH_LESS, Verdict.LEAKS_LESS, Verdict.LEAKS_AS_BEFORE)
LESS = (Verdict.LEAKS_MUCH_LESS, Verdict.LEAKS_LESS, Verdict.UNCLEAR)
EDGE = AWAY + judging.EXCESS
TRUTHS = {
    "e = .05": Truth(EDGE, 0.9, (Verdict.PROTECTS, *LEAKS), Verdict.UNCLEAR),
    "e = .05, all": Truth(EDGE, 0.9, (Verdict.PROTECTS, *LEAKS), Verdict.UNCLEAR, True),
    "e = e_u / 4": Truth(AWAY + 0.04, AWAY + 0.16, (Verdict.PROTECTS, *LEAKS), Verdict.UNCLEAR),
    "d = 0": Truth(0.8, 0.8, (Verdict.PROTECTS, *LESS), Verdict.LEAKS_AS_BEFORE),
    "d = 0, all": Truth(0.8, 0.8, (Verdict.PROTECTS, *LESS), Verdict.LEAKS_AS_BEFORE, True),
    "d = 0 near 1": Truth(0.98, 0.98, (Verdict.PROTECTS, *LESS), Verdict.LEAKS_AS_BEFORE),
    "d = -.02": Truth(0.78, 0.8, (Verdict.PROTECTS, *LESS), Verdict.LEAKS_AS_BEFORE),
    "d = -.10": Truth(0.8, 0.9, (Verdict.PROTECTS, Verdict.LEAKS_MUCH_LESS), Verdict.LEAKS_LESS),
    "d = -.10 near 1": Truth(
        0.88, 0.98, (Verdict.PROTECTS, Verdict.LEAKS_MUCH_LESS), Verdict.LEAKS_LESS
    ),
    "d = -.02 from 1, all": Truth(
        0.98, 1.0, (Verdict.PROTECTS, *LESS), Verdict.LEAKS_AS_BEFORE, True
    ),
    "d = 0 at 1, all": Truth(1.0, 1.0, (Verdict.PROTECTS, *LESS), Verdict.LEAKS_AS_BEFORE, True),
    "e_u = .05": Truth(EDGE, EDGE, (Verdict.NOTHING_TO_PROTECT, *LESS), Verdict.CANNOT_SAY),
    "protected": Truth(AWAY, 0.9, LEAKS, Verdict.PROTECTS),
    "reduced": Truth(0.72, 0.9, (Verdict.PROTECTS,), Verdict.LEAKS_MUCH_LESS),
    "reduced from 1": Truth(0.85, 0.99, (Verdict.PROTECTS,), Verdict.LEAKS_MUCH_LESS),
    "nothing there": Truth(AWAY, AWAY, (*LESS, *LEAKS), Verdict.NOTHING_TO_PROTECT),
}
"""At the edge of every verdict, and in the middle of some."""


def profiles(cell: Cell) -> dict[str, Floats]:
    """True means [attacks] of attacks on one strength; the strongest leaks .7, or .97.

    Equal attacks are the hardest case for a lower limit, close ones for the bias.
    """
    steps = np.linspace(0, 1, cell.attacks)
    return {
        "equal": np.full(cell.attacks, 0.7),
        "close": 0.7 - 2 * cell.spread * steps,
        "clear": np.where(steps == 0, 0.7, 0.55),
        "near 1": 0.97 - 2 * cell.spread * steps,
    }


def draw(
    random: np.random.Generator, means: ArrayLike, cell: Cell, runs: int, spreads: ArrayLike = 1.0
) -> Floats:
    """Figures [runs, ..., seeds] in (0, 1) of these true means [..., attacks] or [points, attacks].

    Args:
      random: the generator.
      means: true means; with an axis of points half of an attack's spread is the same for all points.
      cell: seeds, correlation and spread.
      runs: repetitions.
      spreads: by which the spread of each figure is larger.
    """
    means = np.asarray(means, np.float64)
    shape = (runs, *means.shape, cell.seeds)

    def normal(*axes: int) -> Floats:
        """Normal variables that are equal along these axes of [points, attacks]."""
        return random.standard_normal(
            [1 if n - 1 in axes else size for n, size in enumerate(shape)]
        )

    one, both = (0,), (0, 1)
    if means.ndim == 1:
        of_seed, single = normal(0), normal()
    else:
        of_seed, single = normal(*both), (normal(*one) + normal()) / np.sqrt(2)
    z = np.sqrt(cell.correlation) * of_seed + np.sqrt(1 - cell.correlation) * single
    sd = np.broadcast_to(cell.spread * np.asarray(spreads), means.shape)
    sd = np.minimum(sd, 0.5 * np.sqrt(means * (1 - means)))
    figures = np.empty(shape)
    grid = np.linspace(-5.5, 5.5, 1101)
    figures[:, means == 1] = 1.0
    for mean, spread in {*zip(means[means < 1].tolist(), sd[means < 1].tolist(), strict=True)}:
        # the beta distribution of that mean and spread; its quantiles from a table
        size = mean * (1 - mean) / spread**2 - 1
        quantiles = special.betaincinv(mean * size, (1 - mean) * size, special.ndtr(grid))
        equal = (means == mean) & (sd == spread)
        figures[:, equal] = np.interp(z[:, equal], grid, quantiles)
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
        picked = means[folds.medians]
        highest = leaks.mean(-1).max(-1)
        errors = (folds.scores - picked, means.max() - picked, highest - means.max())
        sums += [error.mean() * count for error in errors]
    return dict(zip(("bias", "shortfall", "flattery"), map(float, sums / runs)))


def biases(seeds: int, attacks: int, runs: int = BIAS_RUNS) -> dict[float, float]:
    """By how much the highest mean over seeds exceeds the strongest attack's true mean, by ``SPREADS``.

    It is the largest mean over ``runs`` runs of any of the ``profiles``, attacks correlated or not.
    """
    random, out = np.random.default_rng(0), {}
    for spread in SPREADS:
        cells = [Cell(seeds, attacks, correlation, spread) for correlation in CORRELATIONS]
        found = (
            choices(cell, means, runs, random)["flattery"]
            for cell in cells
            for means in profiles(cell).values()
        )
        out[spread] = max(0.0, *found)
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
        limits = intervals.worst_limits(intervals.sample(leaks, ROWS))
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


def figures_of(
    cell: Cell, world: World, truth: Truth, runs: int, random: np.random.Generator
) -> tuple[Floats, Floats, Floats]:
    """Returns leaks [runs, 1 + POINTS, attacks, seeds], the baseline's [runs, 1, 1, seeds] and true means.

    The first point is undefended. Half of the others are at the truth, the rest between it and undefended. A
    leader that fails has the mean that the truth says, failures included unless the world is judged by its
    successes: a deployment is one run, on which the leader most often does not fail.
    """
    steps = np.concatenate([[1.0], np.linspace(0, 1, POINTS - POINTS // 2), np.zeros(POINTS // 2)])
    strongest = truth.leaks + (truth.undefended - truth.leaks) * steps
    rest = strongest[:, None] if truth.all else np.full((len(steps), 1), AWAY - 0.02)
    means = np.repeat(np.minimum(rest, strongest[:, None]), cell.attacks, axis=1)
    means[:, 0] = strongest
    spreads = np.exp(world.unequal * random.standard_normal(cell.attacks))
    spreads = spreads * np.exp(world.uneven * random.standard_normal((len(steps), 1)))
    spreads[:, random.random(cell.attacks) < world.erratic] *= 5
    spreads[:, 0] *= world.leader
    shown = means.copy()
    if world.fails and not world.successes:
        shown[:, 0] = np.minimum((means[:, 0] - world.fails / 2) / (1 - world.fails), 0.999)
    with_away = (
        np.pad(x, ((0, 0), (0, 1)), constant_values=c) for x, c in ((shown, AWAY), (spreads, 1))
    )
    shown, spreads = with_away
    leaks, local_only = np.split(draw(random, shown, cell, runs, spreads), [cell.attacks], axis=2)
    local_only = local_only[:, :1]
    if world.fails:
        # at all points at once, as a hard split is hard for an attack on every configuration
        failing = cell.attacks if world.each else 1
        lost = random.random((runs, 1, failing, cell.seeds)) < world.fails
        leaks[:, :, :failing] = np.where(lost, 0.5, leaks[:, :, :failing])
    if world.rows:
        leaks, local_only = (
            random.binomial(world.rows, np.clip(x, 0, 1)) / world.rows for x in (leaks, local_only)
        )
    return leaks, local_only, means


def rates(
    cell: Cell, world: World, truth: Truth, runs: int, random: np.random.Generator
) -> dict[str, float]:
    """How often each verdict falls on the points at the truth; the right one, and the false ones.

    ``false_more`` is the rate of verdicts that it still leaks, where that is false. ``false_less`` is the
    largest rate of false verdicts that assert one thing: that it protects, that there is nothing to protect, or
    that it leaks less. ``false`` is the larger of both.
    """
    found: list[NDArray[np.intp]] = []
    rows = world.rows or ROWS
    for count in _chunks(runs):
        leaks, local_only, _ = figures_of(cell, world, truth, count, random)
        figures, baseline = (intervals.sample(x, rows) for x in (leaks, local_only))
        codes = judging.verdict_codes(judging.evidence_on(figures, baseline))
        found.append(codes[:, -(POINTS // 2) :])
    codes = np.concatenate(found)
    shares = {verdict: float((codes == k).mean()) for k, verdict in enumerate(judging.VERDICTS)}
    leaks_not = {*LEAKS} <= {*truth.false}
    more = sum(shares[v] for v in LEAKS) if leaks_not else 0.0
    # of "still leaks, less" the first half alone may be false
    lessened = () if leaks_not and Verdict.UNCLEAR not in truth.false else LESS
    claims = ((Verdict.PROTECTS,), (Verdict.NOTHING_TO_PROTECT,), lessened)
    less = max(sum(shares[v] for v in claim if v in truth.false) for claim in claims)
    return {
        "false": max(more, less),
        "false_more": more,
        "false_less": less,
        "right": shares[truth.right],
        **{str(verdict): share for verdict, share in shares.items()},
    }
