"""The strongest attack on a configuration, chosen on other seeds than it is scored on.

Its candidates are all attacks that know at most K labels, and the local-only baseline with K: what the
passive party reaches from its own columns, without the federation (``vfljax.attacking.local_only``). Of several
parties the one counts that reaches most; with K = 0 there is nothing to learn from, and it reaches chance.
With 3 seeds or more each fold chooses on the other seeds and scores on one (``choosing``); with fewer the
attack is chosen on one half of the rows (``leak_select``). It is always scored on the other half
(``leak_report``), on which the direction of its scores is not chosen either. Attacks that know more than an
attacker can (oracles) are kept apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from vfljax.report import judging, stored_rows
from vfljax.report.candidates import LOCAL_ONLY, Candidate, Candidates
from vfljax.report.configurations import Reference, titles
from vfljax.report.judging import Strongest
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
    selects: np.ndarray  # [seeds]
    null: float = math.nan


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
        self._runs: dict[Run, list[AttackFigures]] = {}
        for row in attacked:
            self._runs.setdefault(run_of(row), []).append(row)

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
        figures = [row.figures["leak_select"] for rows in candidates.values() for row in rows]
        if not any(map(math.isfinite, figures)):
            return None
        blank = np.full(len(self._seeds), np.nan)
        away = _LocalOnly(blank, blank) if oracle else self._baseline(fair, known)
        by_seed = [{row.seed: row.figures for row in rows} for rows in candidates.values()]
        nulls = (_mean(row.figures["leak_null"] for row in rows) for rows in candidates.values())
        return judging.strongest_of(
            Candidates(
                attacks=tuple(
                    self._names[run]._replace(null=null) for run, null in zip(candidates, nulls)
                ),
                leaks=np.array([self._by_seed(rows, "leak_report") for rows in by_seed]),
                selects=np.array([self._by_seed(rows, "leak_select") for rows in by_seed]),
                local_only=away.leaks,
                local_only_selects=away.selects,
                rows=self._reference.rows,
                seeds=self._seeds,
                baseline=LOCAL_ONLY._replace(null=away.null),
            )
        )

    def _baseline(self, fair: Mapping[Run, Sequence[AttackFigures]], known: int) -> _LocalOnly:
        """The local-only baseline with so many labels, the best of the parties who attack."""
        chance = self._reference.chance
        if not known:
            level = np.full(len(self._seeds), chance)
            return _LocalOnly(level, level, chance)
        reached = self._local_only.get(known, {})
        attackers = dict.fromkeys(run.identity.attackers for run in fair)
        every = []
        for rows in (reached[who] for who in attackers if who in reached):
            figures = {seed: row.figures for seed, row in rows.items()}
            leaks, selects = (
                self._by_seed(figures, name) for name in ("leak_report", "leak_select")
            )
            null = _mean(row["leak_null"] for row in figures.values())
            every.append(_LocalOnly(leaks, selects, null))
        blank = np.full(len(self._seeds), np.nan)
        return max(every, key=lambda x: _mean(x.selects), default=_LocalOnly(blank, blank))

    def _by_seed(self, rows: Mapping[int, Mapping[str, float]], figure: str) -> np.ndarray:
        """[seeds], NaN where there is none."""
        return np.array([rows[s][figure] if s in rows else math.nan for s in self._seeds])


def _mean(values: Iterable[float]) -> float:
    finite = [v for v in values if not math.isnan(v)]
    return sum(finite) / len(finite) if finite else -math.inf
