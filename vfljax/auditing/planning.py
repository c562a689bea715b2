"""Chooses the defenses, and their operating points, for which an audit has time.

The choice rests on the measured times of finished stages and, if there is time for a pilot, on the accuracies
of the pilot. Nothing is trained here, and no leak is read.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence, Sized
from typing import NamedTuple

import pandas as pd

from vfljax import defenses
from vfljax.attacking.view import PLACES
from vfljax.config import Goal
from vfljax.report import costs as report_costs
from vfljax.report import fresh, rows
from vfljax.report.judged import knobs_of, members_of
from vfljax.store import StoredSweep
from vfljax.sweep.grid import experiment_of

TOGETHER = 16  # honest trials in a call of an attack, beside as many malicious; fewer take as long
MARGIN, QUICK_MARGIN = 1.2, 1.1  # factors on an estimate after a pilot, and without one
LATER = 0.75  # overhead of each of several programs, as a share of the first one's; measured
REPORT = 15.0  # seconds that the report takes
FEWEST, MOST = 2, 5  # operating points of each defense
ENOUGH = 5  # defenses: if a pilot would leave time for fewer, there is no pilot


class Times(NamedTuple):
    """How long a stage took, in seconds, and how much it trained."""

    train: float
    attack: float
    attack_compiling: float
    programs: int
    trials: int
    running: float  # seconds of training all trials, without compiling

    @property
    def overhead(self) -> float:
        """Seconds per program, besides training."""
        return max(self.train - self.running, 0.0) / max(self.programs, 1)

    @property
    def each(self) -> float:
        """Seconds of training per trial."""
        return self.running / max(self.trials, 1)

    @property
    def attacking(self) -> float:
        """Seconds of attacks without compiling, for one call of every attack variant."""
        return max(self.attack - self.attack_compiling, 0.1 * self.attack)


class Cost(NamedTuple):
    """The cost of one operating point in the pilot."""

    value: float  # of the knob; nan for a defense without one
    loss: float  # of validation utility, the largest over federations; inf if training diverged


def values_of(name: str) -> tuple[float, ...]:
    """Returns the operating points of a defense that a pilot tries, from weak to strong."""
    strengths = defenses.TABLE[name].strengths
    return () if strengths is None else strengths.values


def pilot_defenses(
    applicable: Sequence[str], left: float, undefended: Times, seeds: int
) -> list[str]:
    """Returns the first defenses for which there is time.

    There is time for a defense if a pilot can try all its operating points, and the audit FEWEST of them
    afterwards. The estimate has no margin, because ``choose`` decides again by the times of the pilot.

    Args:
      applicable: defenses in the order in which they are tried.
      left: seconds of the budget.
      undefended: the times of the first stage.
      seeds: of the audit.
    """
    fitting = 0
    for count in range(1, len(applicable) + 1):
        names = applicable[:count]
        trials = 1 + sum(max(len(values_of(name)), 1) for name in names)
        running = undefended.each * trials
        train = LATER * undefended.overhead * count + running
        pilot = undefended._replace(train=train, programs=count, trials=trials, running=running)
        counts = {name: min(FEWEST, len(values_of(name))) for name in names}
        after = seconds(counts, {"undefended": undefended, "pilot": pilot}, seeds, margin=1.0)
        if pilot.train + after <= left:
            fitting = count
    return list(applicable[:fitting])


def without_pilot(
    applicable: Sequence[str], left: float, undefended: Times, seeds: int
) -> dict[str, list[float]]:
    """Returns the first defenses for which there is time without a pilot, and of each the second and fourth
    operating point.

    Args:
      applicable, left, undefended, seeds: as for ``pilot_defenses``.
    """
    chosen: dict[str, list[float]] = {}
    train = LATER * undefended.overhead * undefended.programs + undefended.running
    # the estimate takes an overhead such as a pilot would have measured
    times = {"undefended": undefended, "pilot": undefended._replace(train=train)}
    for name in applicable:
        more = {**chosen, name: [*values_of(name)[1 : 2 * FEWEST : 2]]}
        if seconds({n: len(v) for n, v in more.items()}, times, seeds, QUICK_MARGIN) > left:
            break
        chosen = more
    return chosen


def affordable_seeds(defenses_on: Callable[[int], Sized], seeds: int, fewest: int) -> int:
    """Returns ``fewest`` if there is time for more defenses on so few seeds, else ``seeds``.

    Args:
      defenses_on: gives the defenses for which there is time, by the number of seeds.
      seeds: the requested number.
      fewest: the least number that suffices.
    """
    fewest = min(fewest, seeds)
    return fewest if len(defenses_on(fewest)) > len(defenses_on(seeds)) else seeds


def costs(pilot: StoredSweep, goal: Goal) -> tuple[dict[str, list[Cost]], float]:
    """Returns the cost of each operating point of every defense, from weak to strong, and the validation
    utility that an operating point may lose: the least over federations."""
    _, trials, facts = rows.read(pilot, experiment_of(pilot))
    bare = trials[trials["defenses"] == ""]
    first, place = bare["configuration"].iloc[0], ["federation", "seed"]
    bare, facts = bare[bare["configuration"] == first], facts._replace(goal=goal)
    allowed = min(
        float(report_costs.costs(of, pd.Index([first]), facts)["allowed_loss"].iloc[0])
        for _, of in bare.groupby("federation")
    )
    undefended = bare.set_index(place)["validation_utility"]
    paired = trials.join(undefended, on=place, rsuffix="_undefended")
    losses = paired["validation_utility_undefended"] - paired["validation_utility"]
    losses = losses.fillna(math.inf)  # training diverged
    most = losses.groupby(trials["configuration"]).max()
    chains = trials.drop_duplicates("configuration").set_index("configuration")["defenses"]
    knobs, out = knobs_of(trials), {}
    for number, chain in chains.items():
        for name in members_of(chain):
            strengths = defenses.TABLE[name].strengths
            value = knobs[number][f"{name}.{strengths.knob}"] if strengths else math.nan
            out.setdefault(name, []).append(Cost(float(value), float(most[number])))
    return out, allowed


def candidates(name: str, tried: Sequence[Cost], max_cost: float) -> list[float]:
    """Returns a defense's operating points in the order in which they are worth auditing.

    The strongest that kept the accuracy comes first. Then come the value between it and the next stronger
    one, that next one, and weaker ones. If none kept the accuracy, they go from weak to strong.

    Args:
      name: of the defense; without a knob it has no operating point to choose.
      tried: what each operating point cost in the pilot, from weak to strong.
      max_cost: the accuracy that a defense may cost.
    """
    strengths = defenses.TABLE[name].strengths
    if strengths is None:
        return []
    values = [cost.value for cost in tried]
    last = max((k for k, cost in enumerate(tried) if cost.loss <= max_cost), default=None)
    if last is None:
        return list(dict.fromkeys(values))

    def middle(k: int) -> float:
        return between(values[k], values[k + 1], strengths.whole)

    stronger = [middle(last), values[last + 1]] if last + 1 < len(values) else []
    weaker = [values[last - 1], middle(last - 1), *values[: last - 1][::-1]] if last else []
    return list(dict.fromkeys([values[last], *stronger, *weaker]))


def between(a: float, b: float, whole: bool) -> float:
    """Returns the geometric mean, to two digits or as a whole number.

    Args:
      a: an operating point.
      b: the next one.
      whole: whether the knob counts something.

    >>> between(0.01, 0.1, False), between(6.0, 12.0, True)
    (0.032, 8.0)
    """
    middle = math.sqrt(a * b)
    return float(round(middle)) if whole else float(f"{middle:.2g}")


def seconds(
    counts: Mapping[str, int], times: Mapping[str, Times], seeds: int, margin: float = MARGIN
) -> float:
    """Returns the estimated seconds of the audit's own sweep.

    Args:
      counts: number of operating points of each defense.
      times: of the stages so far, "undefended" and perhaps "pilot".
      seeds: of the audit.
      margin: factor on the estimate, besides REPORT.
    """
    undefended, pilot = times["undefended"], times.get("pilot", times["undefended"])
    configurations = 1 + sum(max(count, 1) for count in counts.values())
    # the undefended stage has one configuration in every federation
    trials = configurations * max(undefended.trials, 1)
    training = pilot.overhead * max(len(counts), 1) + pilot.each * trials
    calls = max(1.0, configurations * seeds / TOGETHER)
    return margin * (training + undefended.attacking * calls) + REPORT


def confirming(times: Mapping[str, Times], seeds: int) -> float:
    """Returns the estimated seconds to train and attack undefended and one defense on the fresh seeds.

    Attacks compile again if the fresh seeds need more ``PLACES`` than those of the audit.

    Args:
      times: of the stages so far, "undefended" and perhaps "pilot".
      seeds: of the audit.
    """
    undefended, pilot = times["undefended"], times.get("pilot", times["undefended"])
    trials = 2 * undefended.trials * fresh.SEEDS / seeds
    shared = -(-seeds // PLACES) == -(-(seeds + fresh.SEEDS) // PLACES)
    attacking = undefended.attacking if shared else undefended.attack
    return MARGIN * (2 * pilot.overhead + pilot.each * trials + attacking)


def choose(
    pilot: Mapping[str, Sequence[Cost]],
    max_cost: float,
    left: float,
    times: Mapping[str, Times],
    seeds: int,
) -> dict[str, list[float]]:
    """Chooses as many operating points of each defense as there is time for.

    If there is no time even for FEWEST of each, defenses are left out: first those of which no operating
    point kept the accuracy in the pilot, then the last ones.

    Args:
      pilot: the cost of each operating point of each defense.
      max_cost: the accuracy that a defense may cost.
      left: seconds of the budget.
      times: of the stages so far.
      seeds: of the audit.

    Returns:
      The operating points of each defense that is not left out, from weak to strong.
    """
    order = {name: candidates(name, tried, max_cost) for name, tried in pilot.items()}
    kept = {name: any(cost.loss <= max_cost for cost in tried) for name, tried in pilot.items()}
    names = list(pilot)

    def fits(most: int) -> bool:
        counts = {name: min(most, len(order[name])) for name in names}
        return seconds(counts, times, seeds) <= left

    while names and not fits(FEWEST):
        hopeless = [name for name in names if not kept[name]]
        names.remove((hopeless or names)[-1])
    count = max((n for n in range(FEWEST, MOST + 1) if fits(n)), default=FEWEST)

    # from weak to strong: if a defense lists falling values, its larger values are weaker
    falling = {name for name in names if values_of(name)[:1] > values_of(name)[-1:]}
    return {name: sorted(order[name][:count], reverse=name in falling) for name in names}
