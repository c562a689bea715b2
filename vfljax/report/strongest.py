"""The strongest attack on a configuration: the candidate of the highest mean over seeds.

Its candidates are all attacks that know at most K labels, and the local-only baseline with K: what the
passive party reaches from its own columns, without the federation (``vfljax.attacking.local_only``). Of several
parties the one counts that reaches most; with K = 0 there is nothing to learn from, and it reaches chance.
Every row whose label is not known is scored (``leak_crossed``); sweeps of earlier versions have figures of one
half of the rows (``leak_report``). No direction of scores is chosen where it is scored. The baseline is scored
by the learner that is the strongest on the other seeds. Attacks that know more than an attacker can (oracles)
are kept apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vfljax.report import choosing, stored_rows
from vfljax.report.candidates import (
    LOCAL_ONLY,
    Candidate,
    Candidates,
    Strongest,
    broken_attacks,
    strongest_of,
)
from vfljax.report.configurations import Reference, titles
from vfljax.report.spread import FEWEST_SEEDS
from vfljax.report.stored_rows import FEDERATIONS, AttackFigures, StoredRows, federation_of_kind
from vfljax.types import AttackIdentity


class Run(NamedTuple):
    """An attack at one point of its numeric knobs."""

    identity: AttackIdentity
    point: int

    @property
    def panel(self) -> str:
        """The entry of ``FEDERATIONS`` that it was run in."""
        return federation_of_kind(self.identity.federation)


def run_of(row: AttackFigures) -> Run:
    """The run that a row is of."""
    return Run(row.identity, row.point)


def run_names(rows: Iterable[AttackFigures]) -> dict[Run, Candidate]:
    """What runs are called where their federation is clear: with the knobs that vary, and the federation's
    kind where both honest and malicious parties ran them."""
    runs = {run_of(row): row.knobs for row in rows}
    texts: dict[AttackIdentity, str] = {}
    for federation in FEDERATIONS:
        texts |= titles(_any(run) for run in runs if run.panel == federation)
    points: dict[AttackIdentity, list[dict[str, float]]] = {}
    for run, knobs in runs.items():
        points.setdefault(_any(run), []).append(knobs)
    out = {}
    for run, knobs in runs.items():
        values = points[_any(run)]
        varying = [k for k in values[0] if any(v.get(k) != values[0][k] for v in values)]
        name = " ".join([texts[_any(run)], *(f"{k}={knobs[k]:g}" for k in varying)])
        brief = stored_rows.brief(run.identity) + name.removeprefix(run.identity.label)
        out[run] = Candidate(name=name, brief=brief, identity=run.identity)
    return out


def _any(run: Run) -> AttackIdentity:
    """The run's attack with any number of known labels."""
    return run.identity._replace(known=0)


class _LocalOnly(NamedTuple):
    """The local-only baseline by seed; NaN where it was not scored."""

    leaks: np.ndarray  # [seeds]
    errors: np.ndarray  # [seeds]
    candidate: Candidate = LOCAL_ONLY


class Tried:
    """The attacks on one configuration in one federation, and whom to compare them with."""

    def __init__(
        self,
        attacked: Sequence[AttackFigures],
        names: Mapping[Run, Candidate],
        rows: StoredRows,
        reference: Reference,
    ) -> None:
        self._names, self._rows, self._reference = names, rows, reference
        self._seeds = tuple(sorted({trial.seed for trial in rows.trials}))
        self._local_only = rows.attackers()
        self._figure = "leak_crossed" if reference.crossed else "leak_report"
        self._runs: dict[Run, list[AttackFigures]] = {}
        for row in attacked:
            self._runs.setdefault(run_of(row), []).append(row)
        self._runs, self.broken = self._without_broken()

    def _without_broken(self) -> tuple[dict[Run, list[AttackFigures]], tuple[str, ...]]:
        """The attacks that show something, and the names of the broken ones."""
        by_run = {run: {row.seed: row.figures for row in of} for run, of in self._runs.items()}
        leaks = {run: self._by_seed(of, self._figure) for run, of in by_run.items()}
        trained = np.isfinite(list(leaks.values())).any(axis=0) if leaks else np.zeros(0, bool)
        chance = self._reference.chance
        broken = (
            [
                run
                for run, of in leaks.items()
                if broken_attacks(of[trained], chance, self._reference.rows)
            ]
            if trained.any()
            else []
        )
        kept = {run: of for run, of in self._runs.items() if run not in broken}
        return kept, tuple(self._names[run].name for run in broken)

    def strongest(
        self, known: int, published: bool = False, oracle: bool = False
    ) -> Strongest | None:
        """The strongest of the attacks that know at most so many labels; None where none has a figure.

        ``published`` leaves out attacks that are in no paper. ``oracle`` takes those that know more than an
        attacker can instead of the others, and compares them with nobody.
        """
        runs = {run: rows for run, rows in self._runs.items() if run.identity.known <= known}
        fair = {run: rows for run, rows in runs.items() if not rows[0].oracle}
        candidates = {
            run: rows
            for run, rows in runs.items()
            if (run not in fair if oracle else run in fair) and not (published and rows[0].adaptive)
        }
        by_seed = [{row.seed: row.figures for row in rows} for rows in candidates.values()]
        leaks = np.array([self._by_seed(rows, self._figure) for rows in by_seed])
        if not np.isfinite(leaks).any():
            return None
        blank = np.full(len(self._seeds), np.nan)
        away = _LocalOnly(blank, blank) if oracle else self._baseline(fair, known)
        nulls = (_mean(row.figures["leak_null"] for row in rows) for rows in candidates.values())
        return strongest_of(
            Candidates(
                attacks=tuple(
                    self._names[run]._replace(null=null) for run, null in zip(candidates, nulls)
                ),
                leaks=leaks,
                local_only=away.leaks,
                rows=self._reference.rows,
                seeds=self._seeds,
                baseline=away.candidate,
                errors=np.array([self._by_seed(rows, "leak_error") for rows in by_seed]),
                local_only_errors=away.errors[None],
            )
        )

    def _baseline(self, fair: Mapping[Run, Sequence[AttackFigures]], known: int) -> _LocalOnly:
        """The local-only baseline with so many labels: the best learner of the best of the parties who attack,
        on each seed the one that is the best on the others."""
        chance, number = self._reference.chance, len(self._seeds)
        if not known:
            level = np.full(number, chance)
            return _LocalOnly(level, np.zeros(number), LOCAL_ONLY._replace(null=chance))
        attackers = dict.fromkeys(run.identity.attackers for run in fair)
        reached = self._local_only.get(known, {})
        every = [
            (learner, {seed: row.figures for seed, row in rows.items()})
            for who in attackers
            for learner, rows in reached.get(who, {}).items()
        ]
        if not every:
            blank = np.full(number, np.nan)
            return _LocalOnly(blank, blank)
        leaks, errors = (
            np.array([self._by_seed(of, name) for _, of in every])
            for name in (self._figure, "leak_error")
        )
        best = int(choosing.strongest(leaks))
        learner, of_best = every[best]
        enough = int(np.isfinite(leaks).any(axis=0).sum()) >= FEWEST_SEEDS
        folds = choosing.leave_one_out(leaks)
        picks = np.maximum(folds.picks, 0) if enough else np.full(number, best)
        name = f"{LOCAL_ONLY.name}" + (f" ({learner})" if len(every) > 1 else "")
        null = _mean(row["leak_null"] for row in of_best.values())
        return _LocalOnly(
            leaks=folds.scores if enough else leaks[best],
            errors=errors[picks, np.arange(number)],
            candidate=LOCAL_ONLY._replace(name=name, null=null),
        )

    def _by_seed(self, rows: Mapping[int, Mapping[str, float]], figure: str) -> np.ndarray:
        """[seeds], NaN where there is none."""
        found = (rows[s].get(figure) if s in rows else None for s in self._seeds)
        return np.array([math.nan if x is None else x for x in found])


def _mean(values: Iterable[float]) -> float:
    finite = [v for v in values if not math.isnan(v)]
    return sum(finite) / len(finite) if finite else -math.inf
