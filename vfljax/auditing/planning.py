"""Which strengths of which defenses an audit has time for, from measured times and from a pilot's accuracies.

What enters: ``Times`` of finished stages, and what every strength cost in the pilot. What leaves: the strengths
to be audited, those that are left out, and sentences on both. Nothing is trained here, and no leak is read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vfljax import defenses
from vfljax.report import summary
from vfljax.store import Sweep

BLOCK = 32  # settings that one call attacks, however few there are (``attacking.run.BLOCK``)
MARGIN = 1.2  # on every estimate
LATER = 0.75  # a program takes, of the first one's overhead, where there are several; measured
REPORT = 15.0  # seconds
STRENGTHS = (2, 5)  # of each defense: at least, at most


class Times(NamedTuple):
    """How long a stage took, in seconds, and what it did."""

    train: float
    attack: float
    attack_compiling: float
    programs: int
    settings: int
    running: float  # seconds of training, compilers apart, of all settings

    @property
    def overhead(self) -> float:
        """Seconds for each program beside training."""
        return max(self.train - self.running, 0.0) / max(self.programs, 1)

    @property
    def each(self) -> float:
        """Seconds of training for each setting."""
        return self.running / max(self.settings, 1)

    @property
    def attacking(self) -> float:
        """Seconds of attacks beside compiling: one block of every form."""
        return max(self.attack - self.attack_compiling, 0.1 * self.attack)


class Cost(NamedTuple):
    """What one strength cost in the pilot."""

    value: float  # of the knob; nan where the defense has no strength
    loss: (
        float  # validation accuracy, less than undefended's; of federations the most; inf: diverged
    )


def values_of(name: str) -> tuple[float, ...]:
    """The strengths of a defense that a pilot tries."""
    strengths = defenses.TABLE[name].strengths
    return () if strengths is None else strengths.values


def pilot_defenses(good: Sequence[str], left: float, undefended: Times, seeds: int) -> list[str]:
    """The first of the defenses that there is time for: to try all their strengths in a pilot, and to audit
    the fewest strengths of them afterwards. Without a margin: ``choose`` decides again, by what the pilot
    took."""
    fitting = 0
    for count in range(1, len(good) + 1):
        tried = 1 + sum(max(len(values_of(name)), 1) for name in good[:count])
        running = undefended.each * tried
        train = LATER * undefended.overhead * count + running
        pilot = undefended._replace(train=train, programs=count, settings=tried, running=running)
        counts = {name: min(STRENGTHS[0], len(values_of(name))) for name in good[:count]}
        after = seconds(counts, {"undefended": undefended, "pilot": pilot}, seeds)
        if pilot.train + (after - REPORT) / MARGIN + REPORT <= left:
            fitting = count
    return list(good[:fitting])


def costs(pilot: Sweep) -> dict[str, list[Cost]]:
    """Of every defense of the pilot: its strengths from weak to strong, and what each cost."""
    points = summary.points(pilot)
    plain = next(point.validated for point in points if not point.defended)
    out: dict[str, list[Cost]] = {}
    for point in points:
        for name in point.defenses:
            strengths = defenses.TABLE[name].strengths
            value = point.knobs[f"{name}.{strengths.knob}"] if strengths else math.nan
            lost = [plain[k][s] - got for k, by in point.validated.items() for s, got in by.items()]
            # nan where either diverged
            most = float(np.max(np.nan_to_num(lost, nan=math.inf)))
            out.setdefault(name, []).append(Cost(value, most))
    return out


def candidates(name: str, tried: Sequence[Cost], max_cost: float) -> list[float]:
    """Strengths in the order in which they are worth auditing: the strongest that kept the accuracy, what
    lies between it and the next, that next, and then weaker ones; from the weakest where none did. []:
    the defense has no strength."""
    strengths = defenses.TABLE[name].strengths
    if strengths is None:
        return []
    values = [one.value for one in tried]
    kept = [place for place, one in enumerate(tried) if one.loss <= max_cost]
    if not kept:
        order = [*values]
    else:
        last = kept[-1]
        order = [values[last]]
        if last + 1 < len(values):
            order += [between(values[last], values[last + 1], strengths.whole), values[last + 1]]
        for place in range(last - 1, -1, -1):
            order += [values[place]]
            if place == last - 1:
                order += [between(values[place], values[last], strengths.whole)]
    return list(dict.fromkeys(order))


def between(a: float, b: float, whole: bool) -> float:
    """The geometric mean, to two digits; a whole number where the knob counts.

    >>> between(0.01, 0.1, False), between(6.0, 12.0, True)
    (0.032, 8.0)
    """
    middle = math.sqrt(a * b)
    return float(round(middle)) if whole else float(f"{middle:.2g}")


def seconds(counts: Mapping[str, int], times: Mapping[str, Times], seeds: int) -> float:
    """How long the audit's own stage takes with so many strengths of each defense."""
    undefended, pilot = times["undefended"], times.get("pilot", times["undefended"])
    points = 1 + sum(max(count, 1) for count in counts.values())
    settings = points * max(undefended.settings, 1)  # undefended has one point in every federation
    training = pilot.overhead * max(len(counts), 1) + pilot.each * settings
    blocks = max(1.0, points * seeds / BLOCK)
    return MARGIN * (training + undefended.attacking * blocks) + REPORT


def choose(
    pilot: Mapping[str, Sequence[Cost]],
    max_cost: float,
    left: float,
    times: Mapping[str, Times],
    seeds: int,
) -> tuple[dict[str, list[float]], list[str]]:
    """The strengths of each defense for which there is time, weak to strong, and the defenses for which
    there is none. As many strengths of each as fit; where not even the fewest do, the defenses that kept
    no accuracy in the pilot go first, then the last ones."""
    order = {name: candidates(name, tried, max_cost) for name, tried in pilot.items()}
    kept = {name: any(one.loss <= max_cost for one in tried) for name, tried in pilot.items()}
    names, without = list(pilot), []

    def counts(most: int) -> dict[str, int]:
        return {name: min(most, len(order[name])) for name in names}

    while names and seconds(counts(STRENGTHS[0]), times, seeds) > left:
        hopeless = [name for name in names if not kept[name]]
        without.append((hopeless or names)[-1])
        names.remove(without[-1])
    most = [
        n for n in range(STRENGTHS[0], STRENGTHS[1] + 1) if seconds(counts(n), times, seeds) <= left
    ]
    count = max(most, default=STRENGTHS[0])
    chosen = {}
    for name in names:
        some, strengths = order[name][:count], defenses.TABLE[name].strengths
        rising = strengths is None or strengths.values[0] < strengths.values[-1]
        chosen[name] = sorted(some, reverse=not rising)
    return chosen, without
