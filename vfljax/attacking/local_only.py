"""The local-only baseline: the strongest of several learners on the attackers' columns and known labels.

It is what the passive party reaches without the federation, hence a candidate for the strongest attack like
any other, scored on the same seeds and rows. It depends on the seed, the attackers, the number of known
labels and the learner, but on no trial. Its rows, of the variant ``LABEL``, therefore name no trial.
"""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.sparse import csr_matrix, hstack

from vfljax import store
from vfljax.attacking.batching import Stored
from vfljax.attacking.processes import in_processes
from vfljax.attacking.scoring import AttackOutput
from vfljax.attacking.view import CommonData, common_data
from vfljax.attacks.learners import OwnColumns, learn_draws, learners_of
from vfljax.store import LOCAL_ONLY as LABEL
from vfljax.sweep.plan import Plan
from vfljax.types import AttackIdentity, HostArray, Input, Scores


class LocalOnlyJob(NamedTuple):
    """One learner, fitted to the attackers' columns and known labels of one seed."""

    attackers: tuple[int, ...]
    known: int
    seed: int
    learner: str = LABEL
    draws: int = 1  # number of draws of the known labels

    def figures(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns its row of the variant ``LABEL``, with ``values``."""
        options = () if self.learner == LABEL else (("learner", self.learner),)
        identity = AttackIdentity(
            LABEL, options, ("learner",) * len(options), attackers=self.attackers, known=self.known
        )
        head = {"variant": LABEL, "seed": self.seed, "what": LABEL, "draws": float(self.draws)}
        return {**store.identity_columns(identity), **head, **values}


def _jobs(entry: Mapping[str, Any], plan: Plan) -> list[LocalOnlyJob]:
    """Returns the jobs of a unit; ``entry`` is what the header says of it."""
    attackers = tuple(entry["attackers"])
    width = sum(_width_of(plan.party_columns[party].input) for party in attackers)
    learners = learners_of(width, len(plan.splits[0].train))
    points = itertools.product(entry["seeds"], entry["points"], learners)
    return [
        LocalOnlyJob(attackers, known, seed, learner, draws)
        for seed, (known, draws), learner in points
    ]


def run(unit: store.Unit, stored: Stored) -> None:
    """Fits and scores the learners of a unit on the host, and stores their rows.

    Args:
      unit: of the baseline.
      stored: the sweep.
    """
    plan, arrays, began = stored.plan, stored.arrays, time.monotonic()
    jobs = _jobs(unit.of, plan)
    common = jax.device_get(common_data(plan.table, arrays, jobs[0].attackers))
    outputs: dict[int, list[tuple[LocalOnlyJob, AttackOutput]]] = {}
    for _, of_data in itertools.groupby(jobs, _data_of):
        for job, scores in _fitted(list(of_data), plan, common):
            train = len(arrays["train"][job.seed])
            sent = np.ones(train, bool)  # nothing is sent, so every row counts
            seed, known, trained = np.int32(job.seed), np.int32(job.known), np.bool_(False)
            on_host: Any = seed, known, sent, trained, known
            parts: Any = Scores(scores[:, :train], scores[:, train:])
            output = AttackOutput(parts, *on_host)
            outputs.setdefault(job.draws, []).append((job, output))
    rows = []
    for of_draws in outputs.values():
        alike, scored = zip(*of_draws, strict=True)
        figures = stored.scorer.figures_on_host(scored)
        rows += [job.figures(values) for job, values in zip(alike, figures, strict=True)]
    cost = {"seconds": time.monotonic() - began, "rows": len(rows)}
    store.write_rows(stored.workdir, unit.name, rows, cost=cost)


def _data_of(job: LocalOnlyJob) -> tuple[tuple[int, ...], int]:
    """Returns what decides which columns a job's learner reads."""
    return job.attackers, job.seed


def _fitted(
    jobs: Sequence[LocalOnlyJob], plan: Plan, common: CommonData
) -> Iterator[tuple[LocalOnlyJob, HostArray]]:
    """Yields each job of the same data with its scores [draws, n, C] of training rows, then of test rows.

    A learner prepares the columns once for all draws and numbers of known labels.
    """
    attackers, seed = _data_of(jobs[0])
    columns = own_columns(plan, common, attackers, jobs[0].known, seed)
    pairs: dict[str, dict[tuple[int, int], None]] = {}  # of known labels and draw, by learner
    for job in jobs:
        wanted = pairs.setdefault(job.learner, {})
        wanted.update(dict.fromkeys((job.known, draw) for draw in range(job.draws)))
    tasks = [
        (learner, [columns._replace(**_known(common, known, seed, draw)) for known, draw in wanted])
        for learner, wanted in pairs.items()
    ]
    rows_read = sum(map(len, pairs.values())) * columns.numbers.shape[0]
    scores = dict(zip(pairs, in_processes(learn_draws, tasks, rows_read), strict=True))
    for job in jobs:
        places = [*pairs[job.learner]]
        of_job = [places.index((job.known, draw)) for draw in range(job.draws)]
        yield job, scores[job.learner][of_job]


def own_columns(
    plan: Plan, common: CommonData, attackers: tuple[int, ...], known: int, seed: int
) -> OwnColumns:
    """Returns the attackers' columns of all training rows, followed by those of all test rows.

    Args:
      plan: of the sweep.
      common: the attackers' data, as NumPy arrays.
      attackers: numbers of parties.
      known: number of known labels.
      seed: whose rows and scaling are used.
    """
    train, test = (np.asarray(rows[seed]) for rows in (common.train, common.test))
    raw = np.concatenate([train, test])
    parts = [np.asarray(part) for part in common.columns(seed, raw)]
    inputs = [plan.party_columns[p].input for p in attackers]
    if any(any(reads.vocabulary) for reads in inputs):
        numbers = hstack([_numbers_of(*pair) for pair in zip(parts, inputs, strict=True)], "csr")
    else:
        numbers = np.concatenate([part.reshape(len(raw), -1) for part in parts], axis=1)
    labeled = _known(common, known, seed)
    return OwnColumns(numbers, classes=plan.dataset.num_classes, seed=seed, **labeled)


def _known(common: CommonData, known: int, seed: int, draw: int = 0) -> dict[str, Any]:
    """Returns the known rows of a draw and their labels, as fields of ``OwnColumns``."""
    rows = np.asarray(common.known_order[draw * len(common.train) + seed][:known])
    labels = np.asarray(common.labels)[np.asarray(common.train[seed])[rows]]
    return {"known": rows, "labels": labels}


def _numbers_of(x: np.ndarray, reads: Input) -> Any:
    """Returns a party's columns [n, ...] as sparse numbers [n, W] that a linear model can read: numbers stay
    as they are, codes become one-hot, and texts become bags of tokens (0 or 1)."""
    x = x.reshape(len(x), -1)
    if not any(reads.vocabulary):
        return csr_matrix(x)
    sizes = np.asarray(reads.vocabulary)
    if reads.kind == "text":  # one vocabulary for all places
        starts, coded = np.zeros(x.shape[1], int), np.ones(x.shape[1], bool)
    else:
        coded = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[coded]
    places = x[:, coded].astype(np.int64) + starts
    rows = np.repeat(np.arange(len(x)), places.shape[1])
    ones = np.ones(places.size, np.float32)
    codes = csr_matrix((ones, (rows, places.ravel())), shape=(len(x), int(sizes.sum())))
    codes.data[:] = 1.0  # a token that occurs twice was summed to 2
    return hstack([codes, x[:, ~coded]], "csr") if (~coded).any() else codes


def _width_of(reads: Input) -> int:
    """Returns the number of columns of ``_numbers_of``."""
    if not any(reads.vocabulary):
        return math.prod(reads.shape)
    numbers = 0 if reads.kind == "text" else sum(size == 0 for size in reads.vocabulary)
    return sum(reads.vocabulary) + numbers
