"""How often verdicts are false where the truth is known.

A figure is a beta variable of known mean and spread, so it is bounded as a leak is. Those of one seed are
correlated by a normal copula: a hard split is hard for every attack, and for an attack on every configuration.
``WORLDS`` are the ways in which the figures may be worse than that. ``vfljax.report.verdicts`` judges them by
the functions that judge sweeps. Everything is one array [runs, points, attacks, seeds] at a time.

The truth is that of the number that is judged: the mean over seeds of what the strongest attack of each run
reads. It exceeds every single attack's mean, by more if there are more attacks and if they spread more. Hence
all attacks on a configuration are shifted by a constant, found from other draws, so that the mean of their
maximum is what the truth says; likewise the local-only learners.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from vfljax.report import verdicts
from vfljax.report.limits import Floats, half_row
from vfljax.report.verdicts import Verdict

AWAY = 0.6
"""What the local-only learners read."""
BEHIND = 0.02
"""By how much less than they all attacks but the strongest read."""
CORRELATION = 0.5
"""Between attacks on a seed, of the normal variables behind the figures."""
ROWS = 1000
"""Judged rows: enough that the seeds' spread counts, not the least one."""
CHUNK, CENTERING = 20, 100
"""Runs that are judged at once, and others from which the constants are found."""
POINTS = 4
"""Configurations of a simulated sweep, all at the truth that is judged."""


class Cell(NamedTuple):
    """One line of a table: what is simulated."""

    seeds: int
    attacks: int
    learners: int  # local-only learners, the best of which counts on each seed
    spread: float  # standard deviation over seeds


class World(NamedTuple):
    """How figures are drawn around their means."""

    unequal: float = 0.0  # standard deviation of the logarithm of an attack's spread
    uneven: float = 0.0  # likewise of a configuration's
    leader: float = 1.0  # by which the spread of the strongest attack is larger
    erratic: float = 0.0  # share of the attacks whose spread is five times as large
    fails: float = 0.0  # how often the strongest attack reads nothing on a seed
    each: bool = False  # whether every attack fails as often, on seeds of its own
    successes: bool = False  # whether the truth is the mean without failures
    single: bool = False  # whether the truth is each attack's own mean: nothing is shifted
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
EDGE = AWAY + verdicts.EXCESS
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
NOISE = Truth(AWAY, 0.9, LEAKS, Verdict.PROTECTS, True)
"""Every attack reads what every learner reads; in the world ``SINGLE`` the strongest of many exceeds it."""
SINGLE = World(single=True)


def draw(
    random: np.random.Generator, means: ArrayLike, cell: Cell, runs: int, spreads: ArrayLike = 1.0
) -> Floats:
    """Returns figures [runs, points, attacks, seeds] in (0, 1] of true means [points, attacks].

    Half of what is drawn for an attack is the same at all points.

    Args:
      random: the generator.
      means: true means.
      cell: seeds and spread.
      runs: repetitions.
      spreads: by which the spread of each figure is larger.
    """
    means = np.asarray(means, np.float64)
    shape = (runs, *means.shape, cell.seeds)
    of_seed = random.standard_normal((runs, 1, 1, cell.seeds))
    of_attack = random.standard_normal((runs, 1, means.shape[1], cell.seeds))
    single = (of_attack + random.standard_normal(shape)) / np.sqrt(2)
    z = np.sqrt(CORRELATION) * of_seed + np.sqrt(1 - CORRELATION) * single
    sd = np.broadcast_to(cell.spread * np.asarray(spreads), means.shape)
    sd = np.minimum(sd, 0.5 * np.sqrt(means * (1 - means)))
    figures = np.empty(shape)
    grid = np.linspace(-5.5, 5.5, 221)
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


def figures_of(
    cell: Cell,
    world: World,
    truth: Truth,
    runs: int,
    random: np.random.Generator,
    points: int = POINTS,
) -> tuple[Floats, Floats, Floats]:
    """Returns leaks [runs, 1 + points, attacks, seeds], the best learner's [runs, 1, 1, seeds] and the true
    means of the strongest [1 + points].

    The first point is undefended. Where attacks fail, the truth includes failures, unless the world is judged
    by its successes: a deployment is one run, on which the leader most often does not fail.
    """
    strongest = np.array([truth.undefended] + [truth.leaks] * points)
    rest = strongest[:, None] if truth.all else np.full((1 + points, 1), AWAY - BEHIND)
    means = np.repeat(np.minimum(rest, strongest[:, None]), cell.attacks, axis=1)
    means[:, 0] = strongest
    spreads = np.exp(world.unequal * random.standard_normal(cell.attacks))
    spreads = spreads * np.exp(world.uneven * random.standard_normal((1 + points, 1)))
    spreads[:, random.random(cell.attacks) < world.erratic] *= 5
    spreads[:, 0] *= world.leader
    of_learners = np.full((1 + points, cell.learners), AWAY)
    means = np.concatenate([means, of_learners], axis=1)
    spreads = np.concatenate([spreads, np.ones_like(of_learners)], axis=1)
    every = draw(random, means, cell, runs + CENTERING, spreads)
    if world.rows:
        every = random.binomial(world.rows, np.clip(every, 0, 1)) / world.rows
    leaks, learned = np.split(every, [cell.attacks], axis=2)
    learned = learned[:, :1].max(axis=2, keepdims=True)

    def failed(leaks: Floats) -> Floats:
        # at all points at once, as a hard split is hard for an attack on every configuration
        failing = cell.attacks if world.each else 1
        lost = random.random((len(leaks), 1, failing, cell.seeds)) < world.fails
        leaks = leaks.copy()
        leaks[:, :, :failing] = np.where(lost, 0.5, leaks[:, :, :failing])
        return leaks

    if world.fails and not world.successes:
        leaks = failed(leaks)
    if not world.single:
        leaks = _centered(leaks, strongest[:, None, None], runs)
        learned = _centered(learned, AWAY, runs)
    leaks, learned = leaks[:runs], learned[:runs]
    if world.fails and world.successes:
        leaks = failed(leaks)
    return leaks, learned, strongest


def _centered(figures: Floats, means: ArrayLike, runs: int) -> Floats:
    """Returns figures [runs + CENTERING, points, attacks, seeds] shifted by a constant for each point, so that
    the means [points, 1, 1] of their maxima are given; the constants are found without the first runs."""
    found = figures[runs:].max(axis=2, keepdims=True).mean(axis=(0, 3), keepdims=True)
    return np.clip(figures + np.asarray(means) - found, 0, 1)


def rates(
    cell: Cell, world: World, truth: Truth, runs: int, random: np.random.Generator
) -> dict[str, float]:
    """Returns how often verdicts fall on the points at the truth: the right one, and the false ones.

    ``false_more`` is the rate of verdicts that it still leaks, where that is false. ``false_less`` is the
    largest rate of false verdicts that assert one thing: that it protects, that there is nothing to protect, or
    that it leaks less. ``false`` is the larger of both, and ``error`` its standard error over sweeps, whose
    points share their seeds.
    """
    found: list[NDArray[np.intp]] = []
    least = half_row(world.rows or ROWS)
    for count in _chunks(runs):
        leaks, learned, _ = figures_of(cell, world, truth, count, random)
        compared = verdicts.compare(leaks, np.isfinite(leaks), learned, learned, least)
        found.append(verdicts.verdict_codes(compared)[:, 1:])
    codes = np.concatenate(found)
    leaks_not = {*LEAKS} <= {*truth.false}
    # of "still leaks, less" the first half alone may be false
    lessened = () if leaks_not and Verdict.UNCLEAR not in truth.false else LESS
    claims = ((Verdict.PROTECTS,), (Verdict.NOTHING_TO_PROTECT,), lessened)

    def by_sweep(claim: tuple[Verdict, ...]) -> Floats:
        """The share of each sweep's points with one of these verdicts, [runs]."""
        return np.isin(codes, [verdicts.VERDICTS.index(v) for v in claim]).mean(axis=1)

    more = by_sweep(LEAKS if leaks_not else ())
    less = max((by_sweep(tuple({*c} & {*truth.false})) for c in claims), key=np.mean)
    false = max(more, less, key=np.mean)
    return {
        "false": float(false.mean()),
        "error": float(false.std(ddof=1) / np.sqrt(runs)),
        "false_more": float(more.mean()),
        "false_less": float(less.mean()),
        "right": float(by_sweep((truth.right,)).mean()),
    }
