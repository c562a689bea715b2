"""The strongest attack on a configuration: the candidate with the highest mean over seeds.

Its candidates are all attacks that know at most K labels, and the local-only baseline with K: what the
passive party reaches from its own columns, without the federation (``vfljax.attacking.local_only``). If several
parties attack, the baseline is that of the party that reaches most. With K = 0 it is chance.
Every row whose label is not known is scored (``leak_crossed``); sweeps of earlier versions have figures of one
half of the rows (``leak_report``). The direction of scores is never chosen on the rows that they are scored on.
The baseline of a seed is the learner that is the strongest on the other seeds. Attacks that know more than an
attacker can (oracles) are kept apart.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from vfljax.report import choosing, intervals
from vfljax.report.candidates import LOCAL_ONLY, Candidate, Candidates, Strongest, strongest_of
from vfljax.report.configurations import Reference, titles
from vfljax.report.spread import FEWEST_SEEDS
from vfljax.report.stored_rows import (
    FEDERATIONS,
    AttackFigures,
    LocalOnlyRow,
    StoredRows,
    brief,
    federation_of_kind,
    grouped,
)
from vfljax.types import AttackIdentity

BELOW_CHANCE = 4.0
"""From so many standard deviations of its rows on, an attack is far below chance."""


class Run(NamedTuple):
    """An attack at one point of its numeric knobs."""

    identity: AttackIdentity
    point: int

    @property
    def panel(self) -> str:
        """The key of ``FEDERATIONS`` of the federation that it was run in."""
        return federation_of_kind(self.identity.federation)

    @property
    def attack(self) -> AttackIdentity:
        """The attack's identity without the number of known labels."""
        return self.identity._replace(known=0)


def run_of(row: AttackFigures) -> Run:
    """Returns the run that a row is of."""
    return Run(row.identity, row.point)


def run_names(rows: Iterable[AttackFigures]) -> dict[Run, Candidate]:
    """Returns the names of runs among those of their federation: with the knobs that vary, and with the
    federation's kind if both honest and malicious parties ran the attack."""
    runs = {run_of(row): row.knobs for row in rows}
    texts: dict[AttackIdentity, str] = {}
    for federation in FEDERATIONS:
        texts |= titles(run.attack for run in runs if run.panel == federation)
    points = grouped(runs, lambda run: run.attack)
    out = {}
    for run, knobs in runs.items():
        first, *others = (runs[point] for point in points[run.attack])
        varying = [k for k in first if any(other.get(k) != first[k] for other in others)]
        name = " ".join([texts[run.attack], *(f"{k}={knobs[k]:g}" for k in varying)])
        short = brief(run.identity) + name.removeprefix(run.identity.label)
        out[run] = Candidate(name=name, brief=short, identity=run.identity)
    return out


class Tried:
    """The attacks on one configuration in one federation, and what to compare them with."""

    def __init__(
        self,
        attacked: Sequence[AttackFigures],
        names: Mapping[Run, Candidate],
        rows: StoredRows,
        reference: Reference,
    ) -> None:
        self._names, self._rows, self._reference = names, rows, reference
        self._seeds = tuple(sorted({trial.seed for trial in rows.trials}))
        self._figure = "leak_crossed" if reference.crossed else "leak_report"
        runs = grouped(attacked, run_of)
        leaks = self._by_seed(runs.values(), self._figure)
        trained = np.isfinite(leaks).any(axis=0)
        broken = broken_attacks(leaks[:, trained], reference) & trained.any()
        self.broken = tuple(names[run].name for run in itertools.compress(runs, broken))
        self._runs = dict(itertools.compress(runs.items(), ~broken))

    def strongest(
        self, known: int, published: bool = False, oracle: bool = False
    ) -> Strongest | None:
        """Returns the strongest attack; None if none has a figure.

        Args:
          known: the most labels that it may know.
          published: leave out attacks that are in no paper.
          oracle: take only attacks that know more than an attacker can, and compare them with no baseline.
        """
        runs = {run: rows for run, rows in self._runs.items() if run.identity.known <= known}
        fair = [run for run, rows in runs.items() if not rows[0].oracle]
        candidates = {
            run: rows
            for run, rows in runs.items()
            if rows[0].oracle == oracle and not (published and rows[0].adaptive)
        }
        leaks = self._by_seed(candidates.values(), self._figure)
        if not np.isfinite(leaks).any():
            return None
        nulls = (_mean(row.figures["leak_null"] for row in rows) for rows in candidates.values())
        blank = np.full((1, len(self._seeds)), np.nan)
        draws = [rows[0].draws for rows in candidates.values()]
        local_only, local_only_errors, baseline = (
            (blank, blank, LOCAL_ONLY) if oracle else self._baseline(fair, known, draws)
        )
        rows, errors = self._reference.rows, self._by_seed(candidates.values(), "leak_error")
        return strongest_of(
            Candidates(
                attacks=tuple(
                    self._names[run]._replace(null=null, rows=tuple(r.figures for r in by_seed))
                    for (run, by_seed), null in zip(candidates.items(), nulls)
                ),
                figures=intervals.sample(leaks, rows, errors),
                local_only=intervals.sample(local_only, rows, local_only_errors),
                seeds=self._seeds,
                baseline=baseline,
            )
        )

    def _baseline(
        self, fair: Sequence[Run], known: int, draws: Sequence[int]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], Candidate]:
        """Returns the local-only baseline with ``known`` labels, its errors (both [rows, seeds]) and its name.

        Among all learners of all attacking parties, each seed uses the one that is the best on the other
        seeds. The last row is over all draws of known labels. If attacks were given fewer ``draws``, each
        attack has a row before it, over its own draws. The figures are NaN if the baseline was not scored.
        """
        chance, number = self._reference.chance, len(self._seeds)
        if not known:
            level = np.full((1, number), chance)
            return level, 0 * level, LOCAL_ONLY._replace(null=chance)
        attackers = dict.fromkeys(run.identity.attackers for run in fair)
        every = [
            (learner, by_draws)
            for who in attackers
            for learner, by_draws in self._rows.learners.get((known, who), {}).items()
        ]
        if not every:
            blank = np.full((1, number), np.nan)
            return blank, blank, LOCAL_ONLY
        of_most = [by_draws[max(by_draws)] for _, by_draws in every]
        leaks = self._by_seed(of_most, self._figure)
        best = int(choosing.strongest(leaks))
        name = LOCAL_ONLY.name + (f" ({every[best][0]})" if len(every) > 1 else "")
        null = _mean(row.figures["leak_null"] for row in of_most[best])
        picks = np.full(number, best)
        if np.isfinite(leaks).any(axis=0).sum() >= FEWEST_SEEDS:
            picks = choosing.leave_one_out(leaks).picks

        rows = [
            [by_draws.get(count, by_draws[max(by_draws)]) for _, by_draws in every]
            for count in draws
        ]
        rows = [*rows, of_most] if any(of_attack != of_most for of_attack in rows) else [of_most]
        figures, errors = (
            np.stack([choosing.of_picks(self._by_seed(each, name), picks) for each in rows])
            for name in (self._figure, "leak_error")
        )
        pairs = zip(self._seeds, picks, strict=True)
        stored = (row.figures for seed, k in pairs for row in of_most[k] if row.seed == seed)
        return figures, errors, LOCAL_ONLY._replace(name=name, null=null, rows=tuple(stored))

    def _by_seed(
        self, groups: Iterable[Sequence[AttackFigures | LocalOnlyRow]], figure: str
    ) -> NDArray[np.float64]:
        """Returns a figure as [groups, seeds], NaN where there is none."""
        found = [{row.seed: row.figures.get(figure) for row in rows} for rows in groups]
        table = [[of_group.get(seed) for seed in self._seeds] for of_group in found]
        return np.array(table, np.float64).reshape(len(found), len(self._seeds))


def broken_attacks(leaks: NDArray[np.float64], reference: Reference) -> NDArray[np.bool_]:
    """Returns which attacks show nothing but that they failed, [...].

    Such an attack has no figure on any seed that was trained, exactly chance on each (the same score for every
    row), or a figure far below chance on each, so that a defense would wrongly seem to protect.

    Args:
      leaks: [..., seeds].
      reference: chance, and the number of judged rows.
    """
    chance = reference.chance
    margin = BELOW_CHANCE * math.sqrt(chance * (1 - chance) / reference.rows)
    missing = np.isnan(leaks)
    constant = missing | (np.abs(leaks - chance) < 1e-6)
    return np.logical_or(constant.all(-1), (missing | (leaks < chance - margin)).all(-1))


def _mean(values: Iterable[float]) -> float:
    finite = [v for v in values if not math.isnan(v)]
    return sum(finite) / len(finite) if finite else -math.inf
