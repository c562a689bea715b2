"""The local-only baseline: the strongest of several learners on the attackers' columns and known labels.

It is what the passive party reaches without the federation, hence a candidate for the strongest attack like
any other, scored on the same seeds and rows. It depends on the seed, on whose columns are read, on how
many labels are known and on the learner, and on no trial: its rows, of the variant ``LABEL``, have none.
"""

from __future__ import annotations

import functools
import itertools
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy.sparse import csr_matrix, hstack

from vfljax import store
from vfljax.attacking.batching import Stored
from vfljax.attacking.jobs import VariantPlan
from vfljax.attacking.scoring import AttackOutput
from vfljax.attacking.versions import NO_COST
from vfljax.attacking.view import CommonData, common_data
from vfljax.attacks.learners import LEARNERS, OwnColumns, learners_of
from vfljax.store import LOCAL_ONLY as LABEL
from vfljax.sweep.plan import Plan
from vfljax.types import AttackIdentity, Input, Scores

BY_BATCH = ("auc_batch_q95", "leak_batch_mean")  # figures that need batches, which it never saw


class LocalOnlyJob(NamedTuple):
    """One learner: whose columns, how many labels, and which seed's rows."""

    attackers: tuple[int, ...]
    known: int
    seed: int
    learner: str = LABEL

    def figures(self, values: Mapping[str, float]) -> dict[str, Any]:
        """Its row of the variant ``LABEL``."""
        options = () if self.learner == LABEL else (("learner", self.learner),)
        identity = AttackIdentity(
            LABEL, options, ("learner",) * len(options), attackers=self.attackers, known=self.known
        )
        head = {
            **store.identity_columns(identity),
            "variant": LABEL,
            "seed": self.seed,
            "what": LABEL,
        }
        return {**head, **{name: float(v) for name, v in values.items() if name not in BY_BATCH}}

    @property
    def key(self) -> tuple[Any, ...]:
        """What tells its stored row from the others."""
        return store.learner_key(self.figures({}))


def jobs(variant_plans: Iterable[VariantPlan], plan: Plan) -> list[LocalOnlyJob]:
    """Returns the baselines of these attacks: of all attackers, with every number of known labels.

    Args:
      variant_plans: the attacks.
      plan: of the sweep.
    """
    plans = list(variant_plans)
    attackers = dict.fromkeys(group.attackers for each in plans for group in each.jobs)
    points = (point for each in plans for point in each.variant.knobs)
    known = dict.fromkeys(int(point["known"]) for point in points if point.get("known"))
    return [
        LocalOnlyJob(*job, learner)
        for job in itertools.product(attackers, known, plan.experiment.trained_seeds)
        for learner in learners_of(sum(_width_of(plan.party_columns[p].input) for p in job[0]))
    ]


def stored_keys(workdir: pathlib.Path) -> set[tuple[Any, ...]]:
    """Returns the keys of the jobs whose rows are stored."""
    return {store.learner_key(row) for row in store.read_variant(workdir, LABEL).to_pylist()}


def described(todo: Iterable[LocalOnlyJob], workdir: pathlib.Path, shards: int) -> dict[str, Any]:
    """Returns the entry of ``attacks.json``, which counts stored rows too.

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

    @functools.lru_cache(maxsize=1)  # the jobs of equal columns follow each other
    def columns_of(attackers: tuple[int, ...], known: int, seed: int) -> OwnColumns:
        return own_columns(plan, common_of(attackers), attackers, known, seed)

    outputs = []
    for job in missing:
        columns = columns_of(job.attackers, job.known, job.seed)
        scores = _scores_of(columns, job.learner, len(arrays["train"][job.seed]))
        places = np.arange(len(scores.train), dtype=np.int32)
        sent = np.ones(len(places), bool)  # nothing is sent, so every row counts
        seed, known, trained = np.int32(job.seed), np.int32(job.known), np.bool_(False)
        on_host: Any = seed, known, places, sent, trained, known
        outputs.append(AttackOutput(scores, *on_host))
    figures = stored.scorer.figures_on_host(outputs, plan.groups[0].spec.batch_size)
    rows = [job.figures(values) for job, values in zip(missing, figures, strict=True)]
    store.write_chunk(workdir, LABEL, "rows", [job.key for job in missing], rows)


def own_columns(
    plan: Plan, common: CommonData, attackers: tuple[int, ...], known: int, seed: int
) -> OwnColumns:
    """Returns the attackers' columns of all training rows, and after these of all test rows.

    Args:
      plan: of the sweep.
      common: NumPy arrays of the attackers.
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
    first = np.asarray(common.known_order[seed][:known])
    labels = np.asarray(common.labels)[train[first]]
    return OwnColumns(numbers, first, labels, plan.dataset.num_classes, seed)


def _scores_of(columns: OwnColumns, learner: str, train: int) -> Scores:
    """A learner's scores of the first ``train`` rows, which train the federation, and of the others."""
    scores: Any = LEARNERS[learner](columns)
    return Scores(scores[:train], scores[train:])


def _numbers_of(x: np.ndarray, reads: Input) -> Any:
    """A party's columns [n, ...] as numbers that a linear model can read, [n, W] sparse: numbers stay as they
    are, codes become one-hot, and texts become bags of tokens (0 or 1)."""
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
    codes.data[:] = 1.0  # a token that stands twice was summed
    return hstack([codes, x[:, ~coded]], "csr") if (~coded).any() else codes


def _width_of(reads: Input) -> int:
    """How many columns ``_numbers_of`` gives."""
    if not any(reads.vocabulary):
        return math.prod(reads.shape)
    numbers = 0 if reads.kind == "text" else sum(size == 0 for size in reads.vocabulary)
    return sum(reads.vocabulary) + numbers
