"""The local-only baseline: the strongest of several learners on the attackers' columns and known labels.

It is what the passive party reaches without the federation, hence a candidate for the strongest attack like
any other, scored on the same seeds and rows. It depends on the seed, the attackers, the number of known
labels and the learner, but on no trial. Its rows, of the variant ``LABEL``, therefore name no trial.
"""

from __future__ import annotations

import functools
import itertools
import math
import pathlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.sparse import csr_matrix, hstack

from vfljax import store
from vfljax.attacking.batching import Stored
from vfljax.attacking.jobs import VariantPlan, draws_of
from vfljax.attacking.processes import in_processes
from vfljax.attacking.scoring import AttackOutput
from vfljax.attacking.versions import NO_COST
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

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies its stored row."""
        return store.learner_key(self.figures({}))


def jobs(variant_plans: Iterable[VariantPlan], plan: Plan) -> list[LocalOnlyJob]:
    """Returns the baselines of these attacks, for all their attackers and all their numbers of known labels.

    There are none for a recording that lacks the attackers' columns.

    Args:
      variant_plans: the attacks.
      plan: of the sweep.
    """
    if plan.dataset.recording is not None and "columns" in plan.dataset.recording.missing:
        return []
    plans = list(variant_plans)
    attackers = dict.fromkeys(group.attackers for each in plans for group in each.jobs)
    points = (point for each in plans for point in each.variant.knobs)
    known = dict.fromkeys(int(point["known"]) for point in points if point.get("known"))
    # an attack is compared with a baseline on the same draws of labels
    most, seeds = plan.experiment.known_draws, plan.experiment.trained_seeds
    draws = dict.fromkeys([most, *(draws_of(each.attack, most) for each in plans)])
    out = []
    for group in attackers:
        width = sum(_width_of(plan.party_columns[party].input) for party in group)
        points = itertools.product(
            draws, known, seeds, learners_of(width, len(plan.splits[0].train))
        )
        out += [
            LocalOnlyJob(group, labels, seed, learner, count)
            for count, labels, seed, learner in points
        ]
    return out


def stored_keys(workdir: pathlib.Path) -> set[tuple[Any, ...]]:
    """Returns the keys of the jobs whose rows are stored."""
    return {store.learner_key(row) for row in store.read_variant(workdir, LABEL).to_pylist()}


def described(todo: Iterable[LocalOnlyJob], workdir: pathlib.Path, shards: int) -> dict[str, Any]:
    """Returns the baseline's entry of ``attacks.json``, which counts the stored rows too.

    Args:
      todo: the jobs that are asked for.
      workdir: the folder of the sweep.
      shards: how many shards are trained.
    """
    every = stored_keys(workdir) | {job.key for job in todo}
    return {
        **store.identity_columns(AttackIdentity(LABEL)),
        "status": "ok",
        "steps": 0,
        "knobs": [{"known": known} for known in sorted({key[1] for key in every})],
        "oracle": False,
        "labels": "",
        "adaptive": False,
        "federations": [],
        "trials": 0,
        "diverged": 0,
        "rows": len(every),
        "shards": shards,
        **NO_COST,
    }


def run(todo: Sequence[LocalOnlyJob], stored: Stored) -> None:
    """Fits, scores and stores every job that is not stored yet, on the host.

    Args:
      todo: the jobs that are asked for.
      stored: the sweep.
    """
    plan, workdir, arrays = stored.plan, stored.workdir, stored.arrays
    done = stored_keys(workdir) if todo else set()
    missing = [job for job in todo if job.key not in done]
    if not missing:
        return

    @functools.cache
    def common_of(attackers: tuple[int, ...]) -> CommonData:
        return jax.device_get(common_data(plan.table, arrays, attackers))

    outputs: dict[int, list[tuple[LocalOnlyJob, AttackOutput]]] = {}
    missing.sort(key=_data_of)
    for data, of_data in itertools.groupby(missing, _data_of):
        alike = list(of_data)
        for job, scores in _fitted(alike, plan, common_of(data[0])):
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
    store.write_chunk(workdir, LABEL, "rows", [job.key for job in missing], rows)


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
