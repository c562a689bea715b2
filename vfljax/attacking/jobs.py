"""What attacking a stored sweep takes: which trials each attack variant can be run on, and the jobs.

A *job* is one attack on one trial, or one of the attack's baselines; trials that are attacked
alike (one federation, one set of attackers, one shape of model) form a ``ViewGroup``, whose jobs
share a compiled program.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import attacks, store
from vfljax.attacking.diagnostics import layer_names
from vfljax.attacks.core import CLEAN, Attack
from vfljax.store import exchange
from vfljax.sweep.attack_variants import AttackVariant, attackers_of, make_attack, serves
from vfljax.sweep.grid import knowers
from vfljax.sweep.initial import plain, weight_shapes
from vfljax.sweep.plan import Plan
from vfljax.sweep.serving import known_error
from vfljax.types import Spec

NOT_WHOLE = (
    "it reads whole batches under a defense that it knows, and this sweep has none: name one in config.grid "
    "and train in a new workdir"
)
ATTACK, ALL_LABELS, UNTRAINED = "attack", "all_labels", "untrained"
KEY = ("federation", "view", "trial", "what", "attack_configuration", "seed")


class ViewGroup(NamedTuple):
    """Settings attacked alike: one federation, one set of attackers, one shape of model."""

    federation: str  # its name
    attackers: tuple[int, ...]
    spec: Spec  # models only
    number: int  # of the spec, in the sweep: the column ``view``


class Job(NamedTuple):
    """One attack on one trial, or one of its baselines.

    ``what``: ATTACK; ALL_LABELS, the same attack knowing every label; UNTRAINED, the same on an
    untrained bottom, once a seed.
    """

    what: str
    variant: AttackVariant
    group: ViewGroup
    point: int  # of the variant's knobs
    seed: int
    row: dict[str, Any]  # the trial's row of results; UNTRAINED: of any with the seed

    def knobs(self, rows: int) -> dict[str, float]:
        """The numbers it is given; ``rows``: how many training rows there are to know."""
        known = {"known": float(rows)} if self.what == ALL_LABELS else {}
        return {**self.variant.knobs[self.point], **known}

    def figures(self, values: Mapping[str, float]) -> dict[str, Any]:
        """Its row of ``attacks``."""
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
        """What tells its stored row from the others of the variant."""
        return key_of(self.figures({}))


def key_of(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """What tells a stored row from the others of its variant."""
    return tuple(row[name] for name in KEY)


class VariantPlan(NamedTuple):
    """An attack variant, the groups of trials it is run on, and the jobs of each."""

    variant: AttackVariant
    attacks: dict[ViewGroup, Attack]
    jobs: dict[ViewGroup, list[Job]]
    diverged: int  # trials that are not attacked because their training diverged

    @property
    def attack(self) -> Attack:
        """The attack on any of the groups: they differ in the bottoms it is given only."""
        return next(iter(self.attacks.values()))

    def of_shards(self, names: Collection[str]) -> VariantPlan:
        """The same of the trials of these shards alone."""
        jobs = {
            group: [job for job in jobs if job.row["shard"] in names]
            for group, jobs in self.jobs.items()
        }
        return self._replace(jobs={group: jobs for group, jobs in jobs.items() if jobs})

    @property
    def every_job(self) -> list[Job]:
        """The jobs of all groups, and the baseline's."""
        return [job for jobs in self.jobs.values() for job in jobs]

    @property
    def trials(self) -> int:
        """How many times the attack itself is run."""
        return sum(job.what == ATTACK for jobs in self.jobs.values() for job in jobs)


def plan_variant(variant: AttackVariant, plan: Plan, sweep: store.Sweep) -> VariantPlan | str:
    """Returns the jobs of an attack variant on a stored sweep, or one line on why there are none.

    Args:
      variant: of the attack.
      plan: of the sweep.
      sweep: as it is stored.
    """
    attack, rows, reason = _attackable(variant, plan, sweep)
    if reason:
        return reason
    classes = plan.dataset.num_classes
    rows_of = _view_groups(variant, rows, plan, sweep)
    on_groups = {
        group: make_attack(variant, tuple(group.spec.bottoms[p] for p in group.attackers), classes)
        for group in rows_of
    }
    jobs = {
        group: _jobs(variant, group, attack.baselines, group_rows, plan.experiment.seeds)
        for group, group_rows in rows_of.items()
    }
    diverged = sum(row["status"] != "ok" for row in rows)
    return VariantPlan(variant, on_groups, jobs, diverged)


def _view_groups(
    variant: AttackVariant, rows: Sequence[dict[str, Any]], plan: Plan, sweep: store.Sweep
) -> dict[ViewGroup, list[dict[str, Any]]]:
    specs = list(dict.fromkeys(plain(group.spec) for group in plan.groups))
    # by the names of stored shards' groups: trials have other numbers under other attacks
    spec_of_group = {group.name: plain(group.spec) for group in plan.groups}
    spec_of = {s["name"]: spec_of_group.get(s["group"]) for s in sweep.header["shards"]}
    out: dict[ViewGroup, list[dict[str, Any]]] = {}
    for row in rows:
        attackers = attackers_of(row["federation"], variant)
        spec = spec_of[row["shard"]]
        assert spec is not None, "the plan is another sweep's"
        group = ViewGroup(row["federation"], attackers, spec, specs.index(spec))
        out.setdefault(group, []).append(row)
    return out


def _jobs(
    variant: AttackVariant,
    group: ViewGroup,
    baselines: Sequence[str],
    rows: Sequence[dict[str, Any]],
    seeds: int,
) -> list[Job]:
    """The baseline that a seed's trials share first, then per trial the attack and its upper
    bound."""
    sample = {row["seed"]: row for row in reversed(rows)}
    out: list[Job] = []
    for point in range(len(variant.knobs)):
        if UNTRAINED in baselines:
            out += [
                Job(UNTRAINED, variant, group, point, seed, sample[seed])
                for seed in range(seeds)
                if seed in sample
            ]
        for row in rows:
            if row["status"] != "ok":
                continue
            out.append(Job(ATTACK, variant, group, point, row["seed"], row))
            if ALL_LABELS in baselines:
                out.append(Job(ALL_LABELS, variant, group, point, row["seed"], row))
    return out


def _attackable(
    variant: AttackVariant, plan: Plan, sweep: store.Sweep
) -> tuple[Attack, list[dict], str]:
    """The attack, the stored trials that it can be run on, and why there are none."""
    num_classes = plan.dataset.num_classes
    spec = plan.groups[0].spec
    attack = make_attack(variant, tuple(spec.bottoms[p] for p in variant.attackers), num_classes)
    columns = ["trial", "seed", "federation", "status", "shard", "member"]
    rows = sweep.results.select(columns).to_pylist() if sweep.results.num_rows else []
    rows = [row for row in rows if serves(variant, attack, row["federation"])]
    if attacks.TABLE[variant.name].whole_batches:
        whole = _whole_batches(variant.name, plan, sweep)
        rows = [row for row in rows if row["shard"] in whole]
        if not whole:
            return attack, [], NOT_WHOLE
    recorded = plan.experiment.training.recorded_epochs
    if attack.binary and num_classes > 2:
        return attack, [], f"defined for two classes, {plan.dataset.name} has {num_classes}"
    if not rows:
        return attack, [], _none_trained(variant, attack, plan)
    if attack.epoch >= 0 and attack.epoch not in recorded:
        reason = (
            f"it reads epoch {attack.epoch} and this sweep recorded {recorded}: name it in "
            "config.training.record and train in a new workdir"
        )
        return attack, [], reason
    if attack.parameter_gradients and not plan.experiment.training.record_parameter_gradients:
        reason = (
            "it reads parameter gradients and this sweep recorded none: set "
            "config.training.record_parameter_gradients and train in a new workdir"
        )
        return attack, [], reason
    if attack.diagnostic not in ("", CLEAN):
        names = layers(plan)
        if attack.diagnostic not in names:
            reason = (
                f"there is no layer {attack.diagnostic!r} in every model of the sweep: choose one of "
                f"{', '.join(names)}"
            )
            return attack, [], reason
    for point in variant.knobs:
        error = known_error(variant.name, point["known"], plan) if "known" in point else None
        if error:
            return attack, [], str(error).removesuffix(".")
    return attack, rows, ""


def _whole_batches(attack: str, plan: Plan, sweep: store.Sweep) -> set[str]:
    """The shards under a defense that the attack knows, of whose recorded epochs all rows are stored or will be
    once they are trained."""
    training, specs = plan.experiment.training, {group.name: group.spec for group in plan.groups}
    whole = set()
    for shard in sweep.header["shards"]:
        spec, folder = specs[shard["group"]], sweep.workdir / "shards" / shard["name"] / "exchange"
        every = training.scored_rows(spec.num_rows) == spec.num_rows
        # earlier versions recorded none
        mates = not spec.recorded and (not folder.is_dir() or exchange.has_mates(folder))
        if attack in knowers(spec.defenses, spec.top is not None) and (every or mates):
            whole.add(shard["name"])
    return whole


def _none_trained(variant: AttackVariant, attack: Attack, plan: Plan) -> str:
    needed = " or ".join(map(repr, attack.federations))
    named = plan.experiment.federations
    remedy = f"{needed} to config.federations" if named else f"{variant.name!r} to config.attacks"
    return (
        f"it needs runs of the federation {needed} and this sweep trained none: add {remedy} and train "
        "in a new workdir"
    )


def layers(plan: Plan) -> list[str]:
    """The layers that all split models of the sweep have (a method may have a top model of its own)."""
    columns = tuple(
        jax.ShapeDtypeStruct((2, *x.shape[1:]), jnp.float32) for x in plan.table.features
    )
    names = []
    for spec in dict.fromkeys(plain(g.spec) for g in plan.groups if g.spec.top is not None):
        shapes = weight_shapes(spec, plan.seeds, plan.table)
        one = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), shapes)
        names.append(layer_names(spec, one, columns))
    return [name for name in names[0] if all(name in others for others in names)]
