"""The local-only baseline: the strongest of several learners on the attackers' columns and known labels.

It is what the passive party reaches without the federation, hence a candidate for the strongest attack like
any other, scored on the same seeds and rows. It depends on the seed, on whose columns are read, on how
many labels are known and on the learner, and on no trial: its rows, of the variant ``LABEL``, have none.
"""

from __future__ import annotations

import functools
import itertools
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import store
from vfljax.attacking.baselines import local_only_scores, own_columns, width_of
from vfljax.attacking.jobs import VariantPlan
from vfljax.attacking.scoring import AttackOutput, Scorer
from vfljax.attacking.view import CommonData, common_data
from vfljax.attacks.learners import OwnColumns, learners_of
from vfljax.store import LOCAL_ONLY as LABEL
from vfljax.sweep.plan import Plan
from vfljax.types import AttackIdentity, Input

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


def jobs(
    variant_plans: Iterable[VariantPlan], seeds: int, inputs: Sequence[Input]
) -> list[LocalOnlyJob]:
    """Returns the baselines of these attacks: of all attackers, with every number of known labels.

    Args:
      variant_plans: the attacks.
      seeds: number of seeds.
      inputs: the description of every party's columns.
    """
    plans = list(variant_plans)
    attackers = dict.fromkeys(group.attackers for plan in plans for group in plan.attacks)
    points = (point for plan in plans for point in plan.variant.knobs)
    known = dict.fromkeys(int(point["known"]) for point in points if point.get("known"))

    def learners(parties: tuple[int, ...]) -> tuple[str, ...]:
        return learners_of(sum(width_of(inputs[p]) for p in parties))

    return [
        LocalOnlyJob(*job, learner)
        for job in itertools.product(attackers, known, range(seeds))
        for learner in learners(job[0])
    ]


def described(todo: Iterable[LocalOnlyJob], workdir: pathlib.Path, shards: int) -> dict[str, Any]:
    """Returns the entry of ``attacks.json``, which counts stored rows too.

    Args:
      todo: the jobs that are asked for.
      workdir: the folder of the sweep.
      shards: how many shards are trained.
    """
    stored = {store.learner_key(row) for row in store.read_variant(workdir, LABEL).to_pylist()}
    every = stored | {job.key for job in todo}
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
        "seconds": 0.0,
        "compiles": 0,
        "views": 0,
    }


def run(
    todo: Sequence[LocalOnlyJob],
    plan: Plan,
    workdir: pathlib.Path,
    arrays: Mapping[str, np.ndarray],
    scorer: Scorer,
) -> None:
    """Fits, scores and stores every job that is not stored yet, on the host.

    Args:
      todo: the jobs that are asked for.
      plan: of the sweep.
      workdir: the folder of the sweep.
      arrays: of the plan's splits.
      scorer: for the scores.
    """
    if not todo:
        return
    stored = {store.learner_key(row) for row in store.read_variant(workdir, LABEL).to_pylist()}
    missing = [job for job in todo if job.key not in stored]

    @functools.cache
    def common_of(attackers: tuple[int, ...]) -> CommonData:
        return jax.device_get(common_data(plan.table, arrays, attackers))

    @functools.lru_cache(maxsize=1)  # the jobs of equal columns follow each other
    def columns_of(attackers: tuple[int, ...], known: int, seed: int) -> OwnColumns:
        inputs = tuple(plan.party_columns[p].input for p in attackers)
        classes = plan.dataset.num_classes
        return own_columns(common_of(attackers), inputs, classes, seed, known)

    outputs = []
    for job in missing:
        own = columns_of(job.attackers, job.known, job.seed)
        scores = local_only_scores(own, job.learner, len(arrays["train"][job.seed]))
        places = np.arange(len(scores.train), dtype=np.int32)
        sent = np.ones(len(places), bool)  # nothing is sent, so every row counts
        seed, known, trained = np.int32(job.seed), np.int32(job.known), np.bool_(False)
        on_host: Any = seed, known, places, sent, trained, known
        outputs.append(AttackOutput(scores, *on_host))
    figures = scorer.figures_on_host(outputs, plan.groups[0].spec.batch_size)
    if missing:
        rows = [job.figures(values) for job, values in zip(missing, figures, strict=True)]
        store.write_chunk(workdir, LABEL, "rows", [job.key for job in missing], rows)
