"""How often a whole decision on simulated leaks is right: ``python -m analysis.simulated_decisions``.

Nothing is trained: the leaks of points are drawn from ``simulation`` in place of sweeps. A defense is switched
on if it protects, whatever it costs. Where the truth is at an edge of *protects*, each such decision is false,
and so is *no defense*, because a truth an arbitrarily small step on its other side would make that one false as
often. The rules are those of ``deciding``, and ``whole``: the seeds that explored at a first look, and then the
fresh ones.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportReturnType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import itertools
import math
import pathlib

import numpy as np
import pandas as pd

from analysis import simulation
from analysis.deciding import EXPLORED
from vfljax import store
from vfljax.report import decision, verdicts
from vfljax.report.decision import LOOKS
from vfljax.report.limits import LEVEL, Bools, Floats, half_row
from vfljax.report.verdicts import EXCESS, Verdict

TRUTHS = ("e = .05", "e = e_u / 4", "protected")
RULES = ("whole", "fresh", "pooled", "plain", "explored")
MORE = 0.15
"""What other points leak beyond the one at the truth."""


def simulated(runs: int) -> pd.DataFrame:
    """Returns how often each rule switches a defense on, and how often it says that none protects, by truth,
    number of points and spread, in the first world of ``simulation``.

    ``all`` points have the same truth, or ``one`` has it and the others leak more by ``MORE``. Those of which
    attacks read least on the seeds that explore compete first, ``CANDIDATES`` at a time, until one is switched
    on, some are left open, or all are denied.
    """
    lines = []
    cases = itertools.product(TRUTHS, (False, True), (4, 30), (0.02, 0.05))
    for truth, one, points, spread in cases:
        cell = simulation.Cell(EXPLORED + LOOKS[-1], 10, 12, spread)
        of, random = simulation.TRUTHS[truth], np.random.default_rng([1, round(1000 * spread)])
        world = simulation.WORLDS["equal spreads"]
        leaks, learned, _ = simulation.figures_of(cell, world, of, runs, random, points)
        leaks[:, 2:] = np.minimum(leaks[:, 2:] + MORE * one, 1)
        for rule in RULES:
            switched, none = _simulated_answers(rule, leaks, learned)
            about = {"truth": truth, "of": "one" if one else "all", "points": points}
            about |= {"spread": spread, "rule": rule, "false": Verdict.PROTECTS in of.false}
            rates = {"switched on": switched.mean(), "none protects": none.mean()}
            error = {"error": max(switched.std(), none.std()) / math.sqrt(runs)}
            lines.append(about | rates | error)
    return pd.DataFrame(lines)


def _simulated_answers(rule: str, leaks: Floats, learned: Floats) -> tuple[Bools, Bools]:
    """Returns on which simulated sweeps [runs] a rule switches a point on, and on which it denies all.

    Args:
      rule: of ``RULES``.
      leaks: [runs, 1 + points, attacks, seeds], undefended first, the seeds that explore first.
      learned: [runs, 1, 1, seeds].
    """
    runs, points = len(leaks), leaks.shape[1] - 1
    early, first = slice(0, EXPLORED), 0 if rule == "pooled" else EXPLORED
    reached = leaks[:, 1:, :, early].max(2).mean(-1)  # [runs, points]
    able = np.ones((runs, points), bool)
    switched = np.zeros(runs, bool)
    if rule == "explored":
        order = np.argsort(reached, axis=1)[:, : decision.CANDIDATES]
        shown, _ = _shown(leaks[..., early], learned[..., early], order, 0)
        return shown.any(1), switched
    if rule == "whole":
        order = np.tile(np.arange(points), (runs, 1))
        shown, denied = _shown(leaks[..., early], learned[..., early], order, 2)
        switched, able = shown.any(1), ~denied
    order = np.argsort(np.where(able, reached, np.inf), axis=1)
    looking = ~switched  # no point was switched on, and all before were denied
    for start in range(0, points, decision.CANDIDATES):
        places = order[:, start : start + decision.CANDIDATES]
        competes = np.take_along_axis(able, places, axis=1)
        waits = looking.copy()
        for look in LOOKS:
            seeds = slice(first, EXPLORED + look)
            looks = 0 if rule == "plain" else len(LOOKS)
            shown, denied = _shown(leaks[..., seeds], learned[..., seeds], places, looks, ~competes)
            switched |= shown.any(1) & waits
            waits &= ~shown.any(1) & ~denied.all(1)
        looking &= ~switched & ~waits
    return switched, looking


def _shown(
    leaks: Floats, learned: Floats, places: np.ndarray, looks: int, gone: Bools | bool = False
) -> tuple[Bools, Bools]:
    """Returns which points protect and which are denied at one of some looks, [runs, candidates] both.

    Args:
      leaks: of all points on the seeds of the look, undefended first.
      learned: likewise.
      places: [runs, candidates] of the points that compete.
      looks: 0 corrects for nothing.
      gone: which of them are denied already.
    """
    places = np.concatenate([np.zeros((len(places), 1), int), places + 1], axis=1)
    leaks = np.take_along_axis(leaks, places[..., None, None], axis=1)
    least = half_row(simulation.ROWS)

    def compared(level: float) -> verdicts.Compared:
        return verdicts.compare(leaks, np.isfinite(leaks), learned, learned, least, level)

    of = compared(decision.level(decision.DENYING, looks) if looks else LEVEL)
    denied = (of.excess.lower > EXCESS) | (of.rest.lower > 0) | (of.change.lower > 0)
    denied = denied[:, 1:] | gone
    possible = (~denied).sum(1) + (of.undefended.lower[:, 0] <= EXCESS)
    shown = np.zeros_like(denied)
    for number in {*possible.tolist()}:
        codes = verdicts.verdict_codes(compared(decision.level(number, looks) if looks else LEVEL))
        protects = codes[:, 1:] == verdicts.VERDICTS.index(Verdict.PROTECTS)
        shown |= protects & ~denied & (possible == number)[:, None]
    return shown, denied


def main() -> None:
    parser = argparse.ArgumentParser(description="Repeat whole decisions on simulated sweeps.")
    parser.add_argument("--runs", type=int, default=400, help="simulated sweeps of each truth")
    parser.add_argument("--out", type=pathlib.Path, help="folder of deciding.csv")
    arguments = parser.parse_args()
    table = simulated(arguments.runs).round(3)
    print(table.to_string(index=False))
    if arguments.out:
        store.write_text(arguments.out / "deciding.csv", table.to_csv(index=False))


if __name__ == "__main__":
    main()
