"""How often a whole decision is right, open and wrong: ``python -m analysis.deciding --workdir=runs/deciding``.

A sweep of 60 seeds is trained for each of ``deciding_cases.CASES``, with few points and cheap attacks. Its
first 30 seeds are the truth: a point is good if by their means it protects and keeps the gain. The other 30
seeds are put into a random order again and again: three explore, by which candidates are chosen, and twelve
decide, after each of the looks. What limits then leave open is judged on some of the other fifteen, as
``--confirm`` does. A decision to switch on is right if its point is good, *no defense* if none is, *nothing
to protect* if undefended's mean excess is below .05, and *do not federate* if the mean gain is below a point;
all else is open. The rules that are compared differ in the seeds that decide, and in the correction:

    fresh      the twelve, corrected for looks and what is not denied: what ``vfljax`` does
    confirmed  likewise, and where limits leave a point open, that point on as many of the other seeds as are
               likely to settle it: what ``--confirm`` does once
    pooled     the twelve and the three that explored, likewise
    plain      the twelve, uncorrected
    explored   the best point by its verdict on the three seeds that explored, as before there were decisions

All rules judge all points under the same attacks, so that no family is missing. ``simulated_decisions`` has the
same rules on simulated leaks.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportReturnType=false, reportCallIssue=false, reportGeneralTypeIssues=false
# pyright: reportAttributeAccessIssue=false

from __future__ import annotations

import argparse
import collections
import pathlib
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

import vfljax
from analysis.deciding_cases import CASES, config_of
from vfljax import store
from vfljax.auditing.deciding import ROUNDS
from vfljax.report import decision
from vfljax.report.costs import SHOWN_GAIN, Cost
from vfljax.report.decision import LOOKS, Answer, Evidence, Reason, Row
from vfljax.report.frames import Frames, read_frames
from vfljax.report.fresh import seeds_for
from vfljax.report.limits import LEVEL
from vfljax.report.points import points_of
from vfljax.report.verdict_frame import verdict_frame
from vfljax.report.verdicts import EXCESS, Verdict
from vfljax.sweep.grid import experiment_of

TRUTH, EXPLORED, DRAWS = 30, 3, 200
RULES = ("fresh", "confirmed", "pooled", "plain", "explored")


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


def main() -> None:
    parser = argparse.ArgumentParser(description="Repeat whole decisions on sweeps of many seeds.")
    parser.add_argument(
        "--workdir", type=pathlib.Path, default="runs/deciding", help="folder of the sweeps"
    )
    parser.add_argument("--cases", nargs="*", default=[*CASES], choices=[*CASES])
    parser.add_argument("--draws", type=int, default=DRAWS, help="draws of seeds")
    parser.add_argument("--out", type=pathlib.Path, help="folder of decided_sweeps.csv")
    arguments = parser.parse_args()
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
