"""How often a whole decision is right, open and wrong: ``python -m analysis.deciding --workdir=runs/deciding``.

A sweep of 60 seeds is trained for each of ``CASES``, with few points and cheap attacks. Its first 30 seeds are
the truth: a point is good if by their means it protects and keeps the gain. The other 30 seeds are put into a
random order again and again: three explore, by which candidates are chosen, and twelve decide, after each of
the looks. What limits then leave open is judged on some of the other fifteen, as ``--confirm`` does. A decision
to switch on is right if its point is good, *no defense* if none is, *nothing to protect* if undefended's mean
excess is below .05, and *do not federate* if the mean gain is below a point; all else is open. The rules that
are compared differ in the seeds that decide, and in the correction:

    fresh      the twelve, corrected for looks and what is not denied: what ``vfljax`` does
    confirmed  likewise, and where limits leave a point open, that point on as many of the other seeds as are
               likely to settle it: what ``--confirm`` does once
    pooled     the twelve and the three that explored, likewise
    plain      the twelve, uncorrected
    explored   the best point by its verdict on the three seeds that explored, as before there were decisions

All rules judge all points under the same attacks, so that no family is missing. ``--simulate`` trains nothing,
and draws the leaks of points from ``simulation`` in place of sweeps; a defense is then switched on if it
protects, whatever it costs. Where the truth is at an edge of *protects*, each such decision is false, and so is
*no defense*, because a truth an arbitrarily small step on its other side would make that one false as often.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportReturnType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import collections
import itertools
import math
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import vfljax
from analysis import simulation
from vfljax import store
from vfljax.auditing import suite
from vfljax.auditing.deciding import ROUNDS
from vfljax.config import as_axis, from_file
from vfljax.report import decision, verdicts
from vfljax.report.costs import SHOWN_GAIN, Cost
from vfljax.report.decision import LOOKS, Answer, Evidence, Reason, Row
from vfljax.report.frames import Frames, read_frames
from vfljax.report.fresh import seeds_for
from vfljax.report.limits import LEVEL, Bools, Floats, half_row
from vfljax.report.points import points_of
from vfljax.report.verdict_frame import verdict_frame
from vfljax.report.verdicts import EXCESS, Verdict
from vfljax.sweep.grid import experiment_of

SEEDS, TRUTH, EXPLORED, DRAWS = 60, 30, 3, 200
SIMULATED = ("e = .05", "e = e_u / 4", "protected")
RULES = ("fresh", "confirmed", "pooled", "plain", "explored")
SIMULATED_RULES = ("whole", "fresh", "pooled", "plain", "explored")
"""``whole`` is the seeds that explored at a first look, and then the fresh ones."""
MORE = 0.15
"""What other points leak beyond the one at the truth."""
LINEAR = {"probe": {"known": 40, "epoch": (-1, "mean")}, "ranks": {"learner": "lda", "known": 40}}
SPREADING = {**LINEAR, "spreading": {"known": 40}}
# every family that reads networks, at the first variant of an audit's suite, as decisions try them
FIRST = {
    name: {option: as_axis(axis)[0] for option, axis in of.items()}
    for name, of in {**suite.ATTACKS, "clusters": {}, "inner": {}}.items()
}
FIRST["posterior"] |= {"signal": "direction", "epsilon": (0.3, 0.5, 1.0)}  # those of the grid
DIGITS = {
    "undefended": {},
    "kdk": {"kdk": {"epsilon": (0.05, 0.15, 0.3), "k": (2, 3)}},
    "noise": {"noise": {"scale": (3e-3, 1e-2, 3e-2)}},
}
LABEL_DP = {"undefended": {}, "label_dp": {"label_dp": {"epsilon": (0.3, 0.5, 1.0)}}}
NOISE = {"noise": {"noise": {"scale": (1e-2, 3e-2, 1e-1)}}}
SCORE = {
    **suite.trained(
        2,
        data={
            "name": "table",
            "options": {"label": "label"},
            "train": 4000,
            "validation": 1000,
            "test": 2000,
        },
        parties={"passive": 1, "label_features": True, "columns": (("score",), ("a", "b", "c"))},
        training={
            "epochs": 10,
            "batch_size": 128,
            "learning_rate": 3e-3,
            "record": (*range(10),),  # noise that is drawn anew is averaged over all epochs
            "record_rows": 600,
        },
    ),
    "attacks": suite.suited(FIRST, ("split",), suite.KNOWN, 2),
}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "digits": ("configs/quickstart.py", {"grid": DIGITS, "attacks": LINEAR}),
    "digits_spreading": ("configs/quickstart.py", {"grid": DIGITS, "attacks": SPREADING}),
    "breast_cancer": (
        "configs/breast_cancer.py",
        {
            "grid": {
                "undefended": {},
                "kdk": {"kdk": {"epsilon": (0.1, 0.3), "k": 2}},
                "noise": {"noise": {"scale": (1e-2, 1e-1)}},
                "compression": {"compression": {"keep_rate": (0.5, 0.1)}},
            },
            "attacks": LINEAR,
        },
    ),
    "score": ("configs/knowers.py", {**SCORE, "grid": {**LABEL_DP, **NOISE}}),
    "score_label_dp": ("configs/knowers.py", {**SCORE, "grid": LABEL_DP}),
    "synthetic": (
        "configs/knowers.py",
        {
            "parties": {"passive": 1, "label_features": True, "shares": (16, 16)},
            "grid": {
                "undefended": {},
                "label_dp": {"label_dp": {"epsilon": (0.3, 0.5, 1.0, 2.0)}},
                "noise": {"noise": {"scale": (1e-2, 3e-2, 1e-1, 3e-1)}},
            },
            "attacks": {
                **SPREADING,
                "posterior": {"signal": "direction", "columns": "ranks", "epoch": "mean"},
            },
        },
    ),
}
"""A config, and the fields in place of its own."""


def score(path: pathlib.Path) -> None:
    """Writes the table of the case ``score``: a passive party's one column, which alone separates the classes
    by an AUC of .76, and three columns of the label party, which do so together. All four reach .84.

    The label is half positive. A column is normal with a variance of 1 and a mean that is higher by 1, or by
    1 / sqrt(3) in the label party's, where the label is positive.

    It was chosen so that a good point exists: the means were computed for label DP, and a trial of four seeds
    with fewer attacks and recorded epochs, and without noise of .03, came before the sweep. It says how often a
    good point is found where there is one, and not how often real tables have one.
    """
    random = np.random.default_rng(0)
    labels = random.integers(0, 2, 7000)
    shifts = np.array([1, *[3**-0.5] * 3])
    columns = random.normal(size=(7000, 4)) + shifts * labels[:, None]
    table = pd.DataFrame(columns.astype(np.float32), columns=["score", "a", "b", "c"])
    path.parent.mkdir(parents=True, exist_ok=True)
    table.assign(label=labels).to_parquet(path)


def config_of(case: str, workdir: pathlib.Path) -> dict[str, Any]:
    """Returns the config of a case's sweep: honest federations with a top model."""
    path, fields = CASES[case]
    if fields.get("data", {}).get("name") == "table":
        table = workdir / "score.parquet"
        if not table.exists():
            score(table)
        fields = {**fields, "data": {**fields["data"], "dir": str(table.resolve())}}
    return {
        **from_file(path),
        "name": f"deciding: {case}",
        "seeds": SEEDS,
        "known_draws": 2,
        "federations": ("split",),
        "malicious": {"parties": ()},
        "decide": False,
        **fields,
    }


def good(points: list[Row]) -> set[int]:
    """Returns the configurations that protect and keep the gain by the means of their seeds."""
    return {
        v["configuration"]
        for v in points
        if v["defenses"]
        and v["verdict"] != Verdict.IS_UNDEFENDED
        and v["e"] < EXCESS
        and v["c"] < 0
        and v["d"] < 0
        and v["kept"] >= 0
    }


class Judgments:
    """A sweep that is judged on any of its seeds, at any level, at each once."""

    def __init__(self, frames: Frames) -> None:
        self._frames, self.facts = frames, frames.facts
        self._labels = points_of(frames.trials)["label"]
        self._found: dict[tuple[tuple[int, ...], float], list[Row]] = {}

    def of_seeds(self, seeds: np.ndarray, level: float = LEVEL) -> list[Row]:
        """Returns the verdicts on some seeds as rows with the mean of ``kept``, the first contrast of
        ``costs``."""
        key = tuple(sorted(seeds.tolist())), level
        if key not in self._found:
            parts = self._frames.rows, self._frames.trials
            rows, trials = (of[of["seed"].isin(seeds)] for of in parts)
            out = verdict_frame(rows, trials, self.facts, level)
            out = out[out["known"] == self.facts.known]
            out = out.merge(self._labels, left_on="configuration", right_index=True)
            keep = self.facts.goal.keep_gain
            kept = out["utility"] - out["alone"] - keep * out["gain"]
            self._found[key] = out.assign(known_by=True, kept=kept).to_dict("records")
        return self._found[key]

    def on_own(
        self, looks: dict[int, int], first: np.ndarray, own: np.ndarray, level: float
    ) -> list[Row]:
        """Returns the verdicts on points, each on the seeds of its last look, and on undefended.

        Args:
          looks: numbers of seeds of ``own``, by configuration.
          first: seeds that each look has beside these.
          own: seeds, in the order in which they are taken.
          level: of each limit.
        """
        out = []
        for taken in {*looks.values()}:
            rows = self.of_seeds(np.concatenate([first, own[:taken]]), level)
            out += [v for v in rows if looks.get(v["configuration"]) == taken]
            last = taken == max(looks.values())
            out += [v for v in rows if v["undefended"]] if last else []
        return out

    def forget(self) -> None:
        """Frees what was judged."""
        self._found.clear()


def answer(rule: str, judged: Judgments, explored: np.ndarray, own: np.ndarray) -> decision.Decided:
    """Returns what a rule decides, by the seeds that explored and by further ones: first those that are set
    aside for it, until an answer is closed or all looks are taken, then those that confirm."""
    goal, points = judged.facts.goal, judged.of_seeds(explored)
    if rule == "explored":
        return decision.decide(Evidence(points, points, goal))
    count, half = sum(bool(v["defenses"]) for v in points), 2  # a first look spends half
    exploring = judged.of_seeds(explored, decision.level(decision.DENYING, half))
    level = decision.level(decision.possible(exploring, goal, count), half)
    out = decision.decide(Evidence(exploring, judged.of_seeds(explored, level), goal))
    of = None
    looks: dict[int, int] = {}  # the last look at each candidate, by configuration
    for turn in range(ROUNDS):
        if out.closed or (turn and out.reason is not Reason.NEXT):
            break
        joining = decision.next_candidates(out, goal, () if turn else points)
        looks |= {v["configuration"]: 0 for v in joining}
        for look in LOOKS:
            looks = {point: max(before, look) for point, before in looks.items()}
            seeds = explored if rule == "pooled" else explored[:0], own
            level = decision.level(decision.DENYING, len(LOOKS))
            denied = judged.on_own(looks, *seeds, LEVEL if rule == "plain" else level)
            level = decision.level(decision.possible(denied, goal, len(looks)), len(LOOKS))
            level = LEVEL if rule == "plain" else level
            final = judged.on_own(looks, *seeds, level)
            others = [v for v in exploring if v["configuration"] not in looks]
            of = Evidence([*denied, *others], final, goal, stage2=True, level=level)
            out = decision.decide(of)
            if out.closed or out.reason is Reason.NEXT:
                break
    left = own[LOOKS[-1] :]
    if rule == "confirmed" and of and out.reason is Reason.LIMITS and out.leading and len(left):
        fresh, denying = (
            [v for v in rows if v["configuration"] == out.leading["configuration"]]
            for level in (LEVEL, decision.level(decision.DENYING))
            for rows in [judged.of_seeds(left[: seeds_for(out)], level)]
        )
        out = decision.decide(of._replace(fresh=fresh, fresh_denying=denying))
    return out


def outcomes(frames: Frames, draws: int, random: np.random.Generator) -> Iterator[dict[str, Any]]:
    """Yields what each rule decides on each draw of seeds, and whether that is right, open or wrong."""
    every = np.sort(frames.trials["seed"].unique())
    truth, rest = every[:TRUTH], every[TRUTH:]
    judged = Judgments(frames)
    rows = judged.of_seeds(truth)
    is_good = good(rows)
    bare = next(v for v in rows if v["undefended"])
    nothing = bare["undefended_e"] < EXCESS
    for draw in range(draws):
        seeds = random.permutation(rest)
        judged.forget()
        for rule in RULES:
            found = answer(rule, judged, seeds[:EXPLORED], seeds[EXPLORED:])
            said = found.point["label"] if found.point else ""
            if found.answer is Answer.SWITCH_ON:
                right = found.point is not None and found.point["configuration"] in is_good
            elif found.answer is Answer.NOTHING_TO_PROTECT:
                right = nothing
            elif found.answer is Answer.NO_GAIN:
                right = bare["gain"] < SHOWN_GAIN
            else:
                right = not is_good and not nothing
            kind = "open" if not found.closed else "right" if right else "wrong"
            about = {"draw": draw, "rule": rule, "answer": found.answer.value, "point": said}
            taken = [v["seeds"] for v in (found.bare, found.fresh) if v]
            yield about | {"outcome": kind, "seeds": int(sum(taken))}


def summary(found: pd.DataFrame) -> pd.DataFrame:
    """Returns the share of each outcome by case and rule, and of *wrong* a bootstrap limit of 95 %."""
    random, lines = np.random.default_rng(0), []
    for key, of in found.groupby(["case", "rule"], sort=False):
        case, rule = key  # pyright: ignore
        counts = collections.Counter(of["outcome"])
        wrong = (of["outcome"] == "wrong").to_numpy(float)
        again = random.choice(wrong, (2000, len(wrong))).mean(1)
        shares = {kind: counts[kind] / len(of) for kind in ("right", "open", "wrong")}
        upper = {"wrong at most": float(np.quantile(again, 0.95))}
        lines.append({"case": case, "rule": rule, **shares, **upper, "seeds": of["seeds"].mean()})
    return pd.DataFrame(lines)


def simulated(runs: int) -> pd.DataFrame:
    """Returns how often each rule switches a defense on, and how often it says that none protects, by truth,
    number of points and spread, in the first world of ``simulation``.

    ``all`` points have the same truth, or ``one`` has it and the others leak more by ``MORE``. Those of which
    attacks read least on the seeds that explore compete first, ``CANDIDATES`` at a time, until one is switched
    on, some are left open, or all are denied.
    """
    lines = []
    cases = itertools.product(SIMULATED, (False, True), (4, 30), (0.02, 0.05))
    for truth, one, points, spread in cases:
        cell = simulation.Cell(EXPLORED + LOOKS[-1], 10, 12, spread)
        of, random = simulation.TRUTHS[truth], np.random.default_rng([1, round(1000 * spread)])
        world = simulation.WORLDS["equal spreads"]
        leaks, learned, _ = simulation.figures_of(cell, world, of, runs, random, points)
        leaks[:, 2:] = np.minimum(leaks[:, 2:] + MORE * one, 1)
        for rule in SIMULATED_RULES:
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
      rule: of ``SIMULATED_RULES``.
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
    parser = argparse.ArgumentParser(description="Repeat whole decisions on sweeps of many seeds.")
    parser.add_argument(
        "--workdir", type=pathlib.Path, default="runs/deciding", help="folder of the sweeps"
    )
    parser.add_argument("--cases", nargs="*", default=[*CASES], choices=[*CASES])
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws of seeds")
    parser.add_argument("--out", type=pathlib.Path, help="folder of deciding.csv")
    parser.add_argument("--simulate", type=int, default=0, help="simulated sweeps of each truth")
    arguments = parser.parse_args()
    if arguments.simulate:
        table = simulated(arguments.simulate).round(3)
        print(table.to_string(index=False))
        if arguments.out:
            store.write_text(arguments.out / "deciding.csv", table.to_csv(index=False))
        return
    vfljax.use_this_machine()
    parts = []
    for case in arguments.cases:
        began, folder = time.monotonic(), arguments.workdir / case
        vfljax.run_sweep(config_of(case, arguments.workdir), folder)
        hours = (time.monotonic() - began) / 3600
        sweep = store.load(folder)
        frames = read_frames(sweep, experiment_of(sweep))
        rows = [*outcomes(frames, arguments.draws, np.random.default_rng(0))]
        every = np.sort(frames.trials["seed"].unique())
        truth = Judgments(frames).of_seeds(every[:TRUTH])
        names = [v["label"] for v in truth if v["configuration"] in good(truth)]
        kept = [v["label"] for v in truth if v["cost"] == Cost.KEPT]
        print(f"{case}: {hours:.2f} h; good: {', '.join(names) or 'none'}; kept: {', '.join(kept)}")
        parts.append(pd.DataFrame(rows).assign(case=case))
    table = summary(pd.concat(parts)).round(3)
    print(table.to_string(index=False))
    if arguments.out:
        store.write_text(arguments.out / "decided_sweeps.csv", table.to_csv(index=False))


if __name__ == "__main__":
    main()
