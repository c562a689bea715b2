"""Decides on which trials of a stored sweep each attack variant is run, and lists the jobs.

A *job* is one attack on one trial, or one of the attack's baselines. Trials that are attacked
alike form a ``ViewGroup``, whose jobs share a compiled program.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import attacks, store
from vfljax.attacking.diagnostics import make_layers
from vfljax.attacks.core import CLEAN, Attack
from vfljax.store import exchange
from vfljax.sweep.initial import plain, weight_shapes
from vfljax.sweep.plan import Plan, known_error
from vfljax.sweep.specs import knowers
from vfljax.sweep.variants import AttackVariant, attackers_of, make_attack
from vfljax.types import Spec

NOT_WHOLE = (
    "it reads whole batches under a defense that it knows, and this sweep has none: name one in config.grid "
    "and train in a new workdir"
)
ATTACK, ALL_LABELS, UNTRAINED = "attack", "all_labels", "untrained"
KEY = ("federation", "view", "trial", "what", "attack_configuration", "seed")
COLUMNS = ["trial", "seed", "federation", "status", "shard", "member"]  # of results


class ViewGroup(NamedTuple):
    """Trials that are attacked alike: they share the federation, the attackers and the models' shapes."""

    federation: str  # its name
    attackers: tuple[int, ...]
    spec: Spec  # of the models only, without defenses (``initial.plain``)
    number: int  # of the spec in the sweep, stored as the column ``view``


class Job(NamedTuple):
    """One attack on one trial, or one of its baselines.

    ``what`` is ATTACK, ALL_LABELS (the same attack, knowing every label), or UNTRAINED (the same
    attack on an untrained bottom, once per seed).
    """

    what: str
    variant: AttackVariant
    group: ViewGroup
    point: int  # index into the variant's knobs
    seed: int
    row: dict[str, Any]  # the trial's row of results; for UNTRAINED, of the seed's first trial

    def knobs(self, rows: int) -> dict[str, float]:
        """Returns the attack's numeric knobs; ``rows`` is how many training rows ALL_LABELS knows."""
        known = {"known": float(rows)} if self.what == ALL_LABELS else {}
        return {**self.variant.knobs[self.point], **known}

    def figures(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the job's row of ``attacks``, with ``values`` added."""
        knobs = self.variant.knobs[self.point]
        identity = self.variant.identity._replace(
            federation=self.group.federation,
            attackers=self.group.attackers,
            known=int(knobs.get("known", 0)),
        )
        return {
            **store.identity_columns(identity),
            "variant": self.variant.key,
            "trial": self.row["trial"],
            "seed": self.seed,
            "view": self.group.number,
            "what": self.what,
            "attack_configuration": self.point,
            **{f"attack.{k}": float(v) for k, v in knobs.items()},
            **values,
        }

    @property
    def key(self) -> tuple[Any, ...]:
        """What identifies its stored row among those of the variant."""
        return key_of(self.figures({}))


def draws_of(attack: Attack, known_draws: int) -> int:
    """Returns the number of draws of known labels over which an attack's figures are averaged.

    Args:
      attack: if it knows no label, or every label, there is one draw.
      known_draws: the number of draws of the experiment.
    """
    if "known" not in attack.knobs or attack.oracle:
        return 1
    return min(known_draws, attack.draws)


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Returns the values of ``KEY``, which identify a stored row among those of its variant."""
    return tuple(row[name] for name in KEY)


class VariantPlan(NamedTuple):
    """An attack variant and its jobs by group, or why it has none."""

    variant: AttackVariant
    attack: Attack  # built with one group's bottoms; for other groups, only the bottoms differ
    jobs: dict[ViewGroup, list[Job]]
    diverged: int  # trials that are not attacked because their training diverged
    skipped: str = ""  # one line on why it cannot be run on the sweep; "" if it can

    def of_shards(self, names: Collection[str]) -> VariantPlan:
        """Returns the plan with only those jobs that are on trials of these shards."""
        jobs = {
            group: [job for job in jobs if job.row["shard"] in names]
            for group, jobs in self.jobs.items()
        }
        return self._replace(jobs={group: jobs for group, jobs in jobs.items() if jobs})

    @property
    def every_job(self) -> list[Job]:
        """The jobs of all groups, baselines included."""
        return [job for jobs in self.jobs.values() for job in jobs]

    @property
    def trials(self) -> int:
        """How many times the attack itself is run."""
        return attacks_among(self.every_job)


def attacks_among(jobs: Sequence[Job]) -> int:
    """Returns how many of the jobs are attacks, and not baselines."""
    return sum(job.what == ATTACK for job in jobs)


def plan_variant(variant: AttackVariant, plan: Plan, sweep: store.StoredSweep) -> VariantPlan:
    """Returns the jobs of an attack variant on a stored sweep, or one line that says why there are none.

    Args:
      variant: the attack variant.
      plan: of the sweep.
      sweep: the stored sweep.
    """
    bottoms = tuple(plan.groups[0].spec.bottoms[p] for p in variant.attackers)
    attack = make_attack(variant, bottoms, plan.dataset.num_classes)
    rows = sweep.results.select(COLUMNS).to_pylist() if sweep.results.num_rows else []
    rows = [row for row in rows if attackers_of(variant, attack, row["federation"])]
    skipped = ""
    if attacks.TABLE[variant.name].whole_batches:
        whole = _whole_batches(variant.name, plan, sweep)
        rows = [row for row in rows if row["shard"] in whole]
        skipped = "" if whole else NOT_WHOLE
    skipped = skipped or _refusal(variant, attack, bool(rows), plan)
    jobs = {} if skipped else _jobs(variant, attack, rows, plan, sweep)
    return VariantPlan(variant, attack, jobs, sum(row["status"] != "ok" for row in rows), skipped)


def _jobs(
    variant: AttackVariant,
    attack: Attack,
    rows: Sequence[dict[str, Any]],
    plan: Plan,
    sweep: store.StoredSweep,
) -> dict[ViewGroup, list[Job]]:
    """Returns the jobs of each group. For each point of the knobs, the UNTRAINED jobs of all seeds come
    first, then for each trial ATTACK and ALL_LABELS, as far as the attack has these baselines."""
    specs = list(dict.fromkeys(plain(group.spec) for group in plan.groups))
    # groups are matched by name, because the numbers of trials depend on the attacks of the config
    spec_of_group = {group.name: plain(group.spec) for group in plan.groups}
    spec_of = {s["name"]: spec_of_group.get(s["group"]) for s in sweep.header["shards"]}
    rows_of: dict[ViewGroup, list[dict[str, Any]]] = {}
    for row in rows:
        spec = spec_of[row["shard"]]
        assert spec is not None, "the plan is another sweep's"
        attackers = attackers_of(variant, attack, row["federation"])
        group = ViewGroup(row["federation"], attackers, spec, specs.index(spec))
        rows_of.setdefault(group, []).append(row)
    of_trial = [ATTACK, ALL_LABELS] if ALL_LABELS in attack.baselines else [ATTACK]
    jobs: dict[ViewGroup, list[Job]] = {}
    for group, of_group in rows_of.items():
        first = {row["seed"]: row for row in reversed(of_group)}
        seeds = sorted(first) if UNTRAINED in attack.baselines else []
        todo = [(UNTRAINED, first[seed]) for seed in seeds]
        todo += [(what, row) for row in of_group if row["status"] == "ok" for what in of_trial]
        jobs[group] = [
            Job(what, variant, group, point, row["seed"], row)
            for point in range(len(variant.knobs))
            for what, row in todo
        ]
    return jobs


def _refusal(variant: AttackVariant, attack: Attack, trained: bool, plan: Plan) -> str:
    """Returns why the attack cannot be run on the sweep, '' if it can. ``trained`` tells whether there are
    trials of a federation on which the attack is defined."""
    training, num_classes = plan.experiment.training, plan.dataset.num_classes
    recorded = training.recorded_epochs
    if attack.binary and num_classes > 2:
        return f"defined for two classes, {plan.dataset.name} has {num_classes}"
    if not trained:
        needed = " or ".join(map(repr, attack.federations))
        named = f"{needed} to config.federations" if plan.experiment.federations else ""
        return (
            f"it needs runs of the federation {needed} and this sweep trained none: add "
            f"{named or f'{variant.name!r} to config.attacks'} and train in a new workdir"
        )
    if attack.epoch >= 0 and attack.epoch not in recorded:
        return (
            f"it reads epoch {attack.epoch} and this sweep recorded {recorded}: name it in "
            "config.training.record and train in a new workdir"
        )
    if attack.parameter_gradients and not training.record_parameter_gradients:
        return (
            "it reads parameter gradients and this sweep recorded none: set "
            "config.training.record_parameter_gradients and train in a new workdir"
        )
    names = layers(plan) if attack.diagnostic not in ("", CLEAN) else []
    if names and attack.diagnostic not in names:
        return (
            f"there is no layer {attack.diagnostic!r} in every model of the sweep: choose one of "
            f"{', '.join(names)}"
        )
    known = (point["known"] for point in variant.knobs if "known" in point)
    errors = (known_error(variant.name, number, plan) for number in known)
    return next((str(error).removesuffix(".") for error in errors if error), "")


def _whole_batches(attack: str, plan: Plan, sweep: store.StoredSweep) -> set[str]:
    """Returns the names of the shards that the attack can read: their defense is one that the attack knows,
    and all rows of their recorded epochs are stored, or will be once they are trained."""
    training, specs = plan.experiment.training, {group.name: group.spec for group in plan.groups}
    whole = set()
    for shard in sweep.header["shards"]:
        spec, folder = specs[shard["group"]], sweep.workdir / "shards" / shard["name"] / "exchange"
        every = training.scored_rows(spec.num_rows) == spec.num_rows
        # sweeps of earlier versions have no batch mates
        mates = not spec.recorded and (not folder.is_dir() or exchange.has_mates(folder))
        if attack in knowers(spec.defenses, spec.top is not None) and (every or mates):
            whole.add(shard["name"])
    return whole


def layers(plan: Plan) -> list[str]:
    """Returns the layers that all split models of the sweep have; a method may have its own top model."""
    columns = tuple(
        jax.ShapeDtypeStruct((2, *x.shape[1:]), jnp.float32) for x in plan.table.features
    )
    names = []
    for spec in dict.fromkeys(plain(g.spec) for g in plan.groups if g.spec.top is not None):
        shapes = weight_shapes(spec, plan.seeds, plan.table)
        weights = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), shapes)
        names.append(list(jax.eval_shape(make_layers(spec), weights, columns)))
    return [name for name in names[0] if all(name in others for others in names)]
