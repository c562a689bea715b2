"""LeakBench: entries trained on a data set, attacked by AutoLeak, and judged on every board.

    WORKDIR/tuning/            undefended and every strength of every entry, on all seeds, without attacks
    WORKDIR/split/             undefended and the strengths chosen with a top model, under AutoLeak
    WORKDIR/no_split/          likewise without a top model
    WORKDIR/split/canaries/    entries that claim an epsilon, on one seed with label canaries; no_split likewise

A strength is chosen by its cost on validation rows alone: it is the strongest that keeps a share (``GAINS``)
of the federation's gain over the label party alone. No leak is read before all strengths are chosen.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import datetime
import math
import pathlib
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pandas as pd

from analysis.leakbench.autoleak import autoleak
from analysis.leakbench.boards import BOARDS, GAINS, KNOWN, UNDEFENDED, Board
from analysis.leakbench.entry_files import (
    NOT_KEPT,
    ROUNDED,
    SCORED,
    Break,
    Data,
    Entry,
    Reading,
    Result,
    Score,
)
from vfljax import defenses, store, testing
from vfljax.attacks import TABLE
from vfljax.auditing import suite
from vfljax.config import Goal
from vfljax.errors import UserError
from vfljax.report import epsilon_lower_bounds
from vfljax.report.costs import costs
from vfljax.report.frames import read_frames
from vfljax.report.judged_sweep import Judged
from vfljax.report.points import members_of, points_of
from vfljax.report.strongest import by_run
from vfljax.report.verdict_frame import LOCAL_ONLY_LEADER
from vfljax.report.verdicts import EXCESS
from vfljax.scheduling import running
from vfljax.store import StoredSweep
from vfljax.store.units import SHARD
from vfljax.sweep.grid import defense_values, parse
from vfljax.sweep.plan import make_plan
from vfljax.types import MALICIOUS

TUNING = "tuning"
TRAINED = {"split": ("split", MALICIOUS), "no_split": ("no_split",)}
"""The kinds of federation that are trained for the boards of each federation."""
NO_TOP = "not trained without a top model"
DIVERGED, FAILED = "diverged on every seed", "no attack gave a figure above chance"
NOISE = 0.01  # smaller differences of leak, from a reading or an untrained bottom, do not count
Places = Mapping[tuple[str, float], int | None]
"""(federation in which the method was trained, share of the gain) -> index of the chosen strength among those
that were tried; None if no strength keeps that share."""


class Bench(NamedTuple):
    """A data set of LeakBench, the folder of its sweeps, and how the sweeps are made."""

    data: Data
    config: Mapping[str, Any]  # the data set's, without any entry
    workdir: pathlib.Path
    command: str
    say: Callable[[str], None] = print

    def sweep(
        self, folder: str, fields: Mapping[str, Any], attacks: Sequence[str] | None = None
    ) -> StoredSweep:
        """Trains and attacks those parts of a sweep that are not stored yet, and returns it.

        Args:
          folder: of the sweep, below ``workdir``.
          fields: of the config that differ from the data set's.
          attacks: names; None for those of the config.
        """
        config, path = {**self.config, **fields}, self.workdir / folder

        def may(unit: store.Unit) -> bool:
            return unit.kind == SHARD or attacks is None

        running.finish(parse(config), path, self.command, self.say, may=may).check()
        if attacks is not None:
            running.attack_stored(running.stored_plan(path), path, attacks, say=self.say).check()
        return store.load(path)

    def run(self, entries: Sequence[Entry]) -> list[Entry]:
        """Trains, attacks and judges entries on all boards of the data set. Stored parts are not made again.

        Returns:
          The entries with their results on this data set. Boards of a refused entry have the reason.

        Raises:
          UserError: if attacks have other rules than those of the suite, and whatever a sweep raises.
          ContractError: if a plugin's defense breaks the contract.
        """
        autoleak().require_current()
        chains = {entry.name: entry.chain(self.data) for entry in entries}
        # entries that no data set could serve are refused before anything is trained
        fields = {"grid": {UNDEFENDED: {}, **chains}, "attacks": {}, "federations": tuple(TRAINED)}
        testing.check_plugins(defense_values(parse({**self.config, **fields})), {})
        plan = make_plan(parse(dict(self.config)))
        refused = {name: suite.refusal(self.config, plan, chain) for name, chain in chains.items()}
        served = [entry for entry in entries if not refused[entry.name]]
        fields["grid"] = {UNDEFENDED: {}} | {entry.name: chains[entry.name] for entry in served}
        tuning = self.sweep(TUNING, fields)
        places = {entry.name: _chosen(tuning, entry.name) for entry in served}
        sweeps = {}
        for federation, kinds in TRAINED.items():
            grid: dict[str, Any] = {UNDEFENDED: {}} | {
                entry.name: entry.chain(self.data, kept)
                for entry in served
                if (kept := _kept(places[entry.name], federation))
            }
            attacks = suite.suited(autoleak().attacks, kinds, KNOWN, plan.dataset.num_classes)
            fields = {"grid": grid, "attacks": attacks, "federations": kinds}
            sweeps[federation] = self.sweep(federation, fields)
            claiming = {name: grid[name] for name in grid if _claims(grid[name])}
            if claiming:
                train = sweeps[federation].header["data"]["train"]
                planted = {"grid": claiming, "canaries": min(suite.CANARIES, train // 5)}
                planted |= {"seeds": 1, "known_draws": 1}
                self.sweep(f"{federation}/{epsilon_lower_bounds.FOLDER}", fields | planted)
        header, hashes, out = sweeps["split"].header, tuning.plugins, []
        for entry in entries:
            if refused[entry.name]:
                scores = [Score(b, gain, refused[entry.name]) for b in BOARDS for gain in GAINS]
            else:
                scores = [*_scores(sweeps, entry.name, places[entry.name], autoleak().attacks)]
            result = Result(
                autoleak=autoleak().version,
                revision=header["revision"],
                date=f"{datetime.date.today()}",
                versions=header["versions"],
                plugins={n: hashes[n]["sha256"] for n in entry.method if n in hashes},
                scores=tuple(scores),
            )
            # results of another version of AutoLeak are kept in releases only
            same = {d: r for d, r in entry.results.items() if r.autoleak == result.autoleak}
            results = {**same, self.data: result}
            out.append(msgspec.structs.replace(entry, results=results))
        return out

    def attack(self, entry: Entry, attacks: Sequence[str], by: str, how: str) -> Entry:
        """Runs further attacks on the sweeps of ``run``, and records where they read more than known attacks.

        Args:
          entry: with its results on the data set.
          attacks: names of attacks, of plugins or of the table.
          by: who breaks the entry.
          how: what the attacks do.

        Returns:
          The entry with a ``Break`` for each board and share of the gain where they read more.
        """
        sweeps = {
            name: self.sweep(name, store.load(self.workdir / name).config, attacks)
            for name in TRAINED
        }
        if not any(score.reading for score in entry.results[self.data].scores):
            raise UserError(f"{entry.name} has no score on {self.data} that could be broken.")
        places, found = _chosen(store.load(self.workdir / TUNING), entry.name), []
        for score in _scores(sweeps, entry.name, places, {*autoleak().attacks, *attacks}):
            known, reading = entry.best_known(self.data, *score.place), score.reading
            if known is None or reading is None or reading.attack not in attacks:
                continue
            if reading.leak >= known[0].leak + NOISE:
                origin, today = TABLE[reading.attack].origin, f"{datetime.date.today()}"
                sha256 = origin.sha256 if origin else ""
                of = score.board, score.gain, score.knobs, entry.results[self.data].plugins
                found.append(Break(self.data, *of, reading, sha256, by, how, today))
        return msgspec.structs.replace(entry, broken=(*entry.broken, *found))


def _claims(chain: Mapping[str, Any]) -> bool:
    """Returns whether any defense of a chain claims an epsilon at its example values."""
    rows = (defenses.TABLE[name] for name in chain)
    return any(row.remarks(row.example, {}).epsilon is not None for row in rows)


def _chosen(tuning: StoredSweep, method: str) -> Places:
    """Returns the place of the strongest strength of a method that keeps each share of the gain."""
    _, trials, facts, _ = read_frames(tuning)
    bare = trials.loc[trials["method"] == UNDEFENDED, "configuration"].iloc[0]
    of_method = trials[trials["method"] == method]
    members = sorted(set(of_method["configuration"]))
    order = pd.Index([bare, *(c for c in members if c != bare)])
    places: dict[tuple[str, float], int | None] = {}
    for federation in of_method["federation"].unique():
        of = trials[(trials["federation"] == federation) & trials["configuration"].isin(order)]
        for gain in GAINS:
            asked = facts._replace(goal=Goal(keep_gain=gain))
            kept = costs(of, order, asked)["qualifies"].reindex(members).to_numpy(bool)
            able = np.flatnonzero(kept).tolist()
            places[federation, gain] = max(able, default=None)
    return places


def _kept(places: Places, federation: str) -> list[int]:
    """Returns the places of the strengths that are attacked in a federation, from weak to strong."""
    found = (k for (trained, _), k in places.items() if trained == federation)
    return sorted({k for k in found if k is not None})


def _scores(
    sweeps: Mapping[str, StoredSweep], method: str, places: Places, counted: Collection[str]
) -> Iterator[Score]:
    """Yields a method's score on each board at each share of the gain, by the ``counted`` attacks."""
    for board in BOARDS:
        judged = board.judged(sweeps[board.federation], method, counted)
        of_method = judged.trials[judged.trials["method"] == method]
        members = sorted(set(of_method["configuration"]))
        limits = epsilon_lower_bounds.epsilon_lower_bounds(judged)
        leading = judged.leading[judged.leading["panel"] == board.federation]
        verdicts = {v["configuration"]: v for v in leading.to_dict("records")}
        for gain in GAINS:
            place = places.get((board.federation, gain))
            if place is None:
                trained = (board.federation, gain) in places
                yield Score(board, gain, NOT_KEPT if trained else NO_TOP)
                continue
            number = members[_kept(places, board.federation).index(place)]
            verdict, guesses = verdicts.get(number, {}), limits.get(number)
            if not math.isnan(verdict.get("leak", math.nan)):
                epsilon = guesses.epsilon() if guesses else 0.0
                yield _score(board, gain, verdict, judged, epsilon)
            else:
                lost = of_method.loc[of_method["configuration"] == number, "diverged"].all()
                yield Score(board, gain, DIVERGED if lost else FAILED)


def _score(
    board: Board, gain: float, verdict: Mapping[str, Any], judged: Judged, epsilon: float
) -> Score:
    """Returns the score of a strength; ``epsilon`` is the lower bound that its canaries show."""
    of_point = judged.rows[judged.rows["configuration"] == verdict["configuration"]]
    if verdict["leader"] == LOCAL_ONLY_LEADER:
        learners = judged.rows[judged.rows["role"] == "learner"]
        learners = learners[learners["known"] == verdict["known"]]
        by_learner = learners.groupby(["attackers", "draws", "label"])["leak"].transform("mean")
        leading, attack = learners[by_learner == by_learner.max()], ""
    else:
        leading = of_point[of_point["label"] == verdict["leader"]]
        attack = leading["attack"].iloc[0]
    certain = leading.get("tpr_at_1e-2", leading.get("read_99"))
    measured = certain is not None and len(certain) > 0 and bool(certain.notna().all())
    defended = bool(verdict["defenses"])
    return Score(
        board=board,
        gain=gain,
        outcome=SCORED,
        knobs=points_of(judged.trials).loc[verdict["configuration"], "knobs"],
        reading=Reading(
            leak=round(verdict["leak"], 5),
            limits=_limits(verdict["leak_lower"], verdict["leak_upper"]),
            attack=attack,
            variant=verdict["leader"],
            **_by_seed(verdict, judged),
        ),
        local_only=_number(verdict["local_only"]),
        certain=_number(float(certain.mean())) if certain is not None and measured else None,
        utility=_number(verdict["utility"]) or 0.0,
        alone=_number(verdict["alone"]),
        kept=_number(verdict["share_kept"]) if defended else 1.0,
        kept_limits=None,
        verdict=verdict["verdict"] if defended else "",
        flags=tuple(name for name, raised in _flags(verdict, of_point, judged, epsilon) if raised),
    )


def _by_seed(verdict: Mapping[str, Any], judged: Judged) -> dict[str, Any]:
    """Returns the fields of a ``Reading`` by which it is compared with others seed by seed."""
    runs = by_run(judged.rows, judged.facts, verdict["known"])
    leaks = runs.loc[verdict["configuration"], verdict["panel"]]
    if not abs(leaks.mean() - verdict["leak"]) <= ROUNDED:
        return {}  # on some seed only attacks that the judge counts as broken have figures
    of_seed = leaks.reindex(sorted(judged.trials["seed"].unique()))
    rows = judged.facts.scored_rows
    return {"by_seed": tuple(_number(leak) for leak in of_seed), "rows": rows}


def _number(value: float) -> float | None:
    """Returns a figure as it is written to JSON: five digits, None for NaN."""
    return None if math.isnan(value) else round(float(value), 5)


def _limits(lower: float, upper: float) -> tuple[float, float] | None:
    return None if math.isnan(lower) else (round(lower, 5), round(upper, 5))


def _flags(
    verdict: Mapping[str, Any], of_point: pd.DataFrame, judged: Judged, epsilon: float
) -> list[tuple[str, bool]]:
    """Returns the warnings that a score may carry, each with whether it applies.

    Args:
      verdict: of the strength.
      of_point: the rows of attacks on it.
      judged: the sweep.
      epsilon: the lower bound that its canaries show.
    """
    number, panel = verdict["configuration"], verdict["panel"]
    trials = judged.trials[judged.trials["configuration"] == number]
    wanted = ["leak", "untrained_leak", "all_labels_leak"]
    means = of_point.reindex(columns=["label", *wanted]).astype(dict.fromkeys(wanted, float))
    means = means.groupby("label")[wanted].mean()
    untrained = means.dropna(subset="untrained_leak")
    taught = bool((means["all_labels_leak"] > verdict["local_only"] + EXCESS).any())
    chain = members_of(verdict["defenses"])
    listed = [defenses.TABLE[name].known_by.get(panel) for name in chain]
    return [
        ("worse than no federation", verdict["utility"] < verdict["alone"]),
        (
            "no attack beats the local-only baseline, though all labels would teach one to",
            verdict["leader"] == LOCAL_ONLY_LEADER and taught,
        ),
        (
            "embeddings give away no more than those of an untrained bottom",
            len(untrained) > 0
            and bool((untrained["leak"] <= untrained["untrained_leak"] + NOISE).all()),
        ),
        ("some seeds diverge", bool(trials["diverged"].any())),
        ("classes exchanged", bool((trials.get("inverted", pd.Series(dtype=float)) == 1).any())),
        ("canaries exceed the claimed epsilon", epsilon > verdict["epsilon claimed"]),
        (
            "nobody who knows it attacked it",
            bool(chain) and not (verdict["known_by"] and all(listed)),
        ),
    ]
