"""Plans the attacks of a sweep: which variants are run, on which trials, and which do not apply.

A *job* is one attack on one trial, or one of the attack's baselines. Trials that are attacked
alike form a ``ViewGroup``, whose jobs share a compiled program.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from vfljax import attacks, plugins, store
from vfljax.attack_runs.diagnostics import belongs_to, make_layers
from vfljax.attack_runs.projection import width_read
from vfljax.attacks.core import CLEAN, READS, Attack
from vfljax.config import Config
from vfljax.datasets.core import Recording
from vfljax.sweep.initial import weight_shapes, without_defenses
from vfljax.sweep.known import known_error
from vfljax.sweep.plan import Plan, recorded
from vfljax.sweep.specs import knowers
from vfljax.sweep.variants import AttackVariant, attack_variants, attackers_of, make_attack
from vfljax.types import AttackIdentity, Spec

NOT_WHOLE = (
    "it reads whole batches under a defense that it knows, and this sweep has none: name one in config.grid "
    "and train in a new workdir"
)
ATTACK, ALL_LABELS, UNTRAINED = "attack", "all_labels", "untrained"
KEY = ("federation", "view", "trial", "what", "attack_configuration", "seed")


class ViewGroup(NamedTuple):
    """Trials that are attacked alike: they share the federation, the attackers and the models' shapes."""

    federation: str  # its name
    attackers: tuple[int, ...]
    spec: Spec  # of the models only, without defenses (``initial.without_defenses``)
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

    @property
    def member(self) -> tuple[Any, ...]:
        """What it shares with the jobs of other variants and points: trial, attackers, and what is run."""
        group = self.group
        return self.what, group.federation, group.attackers, group.number, self.row["trial"]

    def knobs(self, rows: int) -> dict[str, float]:
        """Returns the attack's numeric knobs; ``rows`` is how many training rows ALL_LABELS knows."""
        known = {"known": float(rows)} if self.what == ALL_LABELS else {}
        return {**self.variant.knobs[self.point], **known}

    @property
    def known(self) -> int:
        """The number of labels that the attack knows."""
        return int(self.variant.knobs[self.point].get("known", 0))

    def figures(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Returns the job's row of ``attacks``, with ``values`` added."""
        identity = self.variant.identity._replace(
            federation=self.group.federation, attackers=self.group.attackers, known=self.known
        )
        knobs = self.variant.knobs[self.point]
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


def attacks_among(jobs: Sequence[Job]) -> int:
    """Returns how many of the jobs are attacks, and not baselines."""
    return sum(job.what == ATTACK for job in jobs)


def entry_of(variant: AttackVariant, skip_settled: bool) -> dict[str, Any]:
    """Returns what the header of a sweep says of a planned variant.

    Args:
      skip_settled: whether it is skipped on runs of which a cheaper attack has read nearly all labels.
    """
    attack, columns = variant.attack, store.identity_columns(variant.identity)
    if variant.skipped:
        return {**columns, "status": "skipped", "reason": variant.skipped}
    owns_layer = all(belongs_to(attack.diagnostic, parties) for parties in variant.groups)
    plugged = plugins.described([variant.name])
    return {
        **columns,
        "status": "ok",
        "cost": attacks.TABLE[variant.name].cost,
        "skip_settled": skip_settled,
        "steps": attack.steps,
        "knobs": variant.knobs,
        "oracle": attack.oracle or (bool(attack.diagnostic) and not owns_layer),
        "labels": "all" if attack.oracle else "",
        "adaptive": attack.adaptive,
        "baselines": list(attack.baselines),
        "federations": list(attack.federations),
        "with_malicious": variant.with_malicious,
        **({"projected": list(variant.projected)} if variant.projected else {}),
        **({"plugins": plugged} if plugged else {}),
    }


def from_entry(entry: Mapping[str, Any], plan: Plan) -> AttackVariant | None:
    """Returns the variant of an entry of the header; None if this process cannot run it.

    It cannot if the code of the variant's rule is gone, or if its plugin is not in use.

    Args:
      entry: of a variant that was not skipped.
      plan: of the sweep, restricted to the recorded rows.
    """
    identity = store.identity_of(entry)._replace(outdated=False)
    row = attacks.TABLE.get(identity.attack)
    if row is None or row.rule != identity.rule:
        return None
    attack = _attack(identity, plan)
    return _planned(AttackVariant(identity, entry["knobs"], attack, entry["with_malicious"]), plan)


def planned(plan: Plan, experiment: Config) -> list[AttackVariant]:
    """Returns every attack variant of an experiment, as it is run on a sweep or skipped.

    Args:
      experiment: the sweep's, or the same with other attacks.
    """
    plan = recorded(plan)
    classes, reads = plan.dataset.num_classes, plan.party_columns[0].input
    return [
        _planned(variant._replace(attack=_attack(variant.identity, plan)), plan)
        for variant in attack_variants(experiment, classes, reads)
    ]


def _attack(identity: AttackIdentity, plan: Plan) -> Attack:
    """Returns an attack of the bottoms of the plan's first group."""
    bottoms = tuple(plan.groups[0].spec.bottoms[p] for p in identity.attackers)
    return make_attack(identity, bottoms, plan.dataset.num_classes)


def _planned(variant: AttackVariant, plan: Plan) -> AttackVariant:
    readable = _readable(variant.name, plan)
    kinds = [name for group in readable for name in group.trials["federation"].unique()]
    groups = dict.fromkeys(attackers_of(variant, name) for name in kinds)
    groups.pop((), None)
    return variant._replace(
        groups=tuple(groups),
        skipped=_refusal(variant, bool(groups), plan) if readable else NOT_WHOLE,
        projected=_projected(variant, plan),
    )


def _projected(variant: AttackVariant, plan: Plan) -> tuple[int, int] | None:
    """Returns the widest cut of the plan, and to how many numbers an attack reads it projected; None if it
    reads it as it is, or not at all."""
    recording = plan.dataset.recording
    reads = variant.attack.reads
    if {"embeddings", "gradients"}.isdisjoint(reads) or (recording and recording.trees):
        return None
    widest = max(bottom.out for group in plan.groups for bottom in group.spec.bottoms)
    read = width_read(widest, attacks.TABLE[variant.name].widest)
    return None if read == widest else (widest, read)


def _readable(attack: str, plan: Plan) -> list[Any]:
    """Returns the groups of trials that an attack can read. One that reads whole batches can if their defense
    is one that it knows, and if all rows of their recorded epochs are stored."""
    if not attacks.TABLE[attack].whole_batches:
        return list(plan.groups)
    scored = plan.experiment.training.scored_rows
    return [
        group
        for group in plan.groups
        if attack in knowers(group.spec.defenses, group.spec.top is not None)
        and (not group.spec.recorded or scored(group.spec.num_rows) == group.spec.num_rows)
    ]


def jobs_of(variant: AttackVariant, plan: Plan, rows: Iterable[Mapping[str, Any]]) -> list[Job]:
    """Returns the jobs of a variant on some trained trials.

    For each group and point of the knobs, the UNTRAINED jobs of all seeds come first, then for each trial
    ATTACK and ALL_LABELS, as far as the attack has these.

    Args:
      variant: of the attack.
      rows: of results, of the trials.
    """
    attack = variant.attack
    specs = list(dict.fromkeys(without_defenses(group.spec) for group in plan.groups))
    group_of = {shard.name: plan.groups[shard.group] for shard in plan.shards}
    readable = {group.name for group in _readable(variant.name, plan)}
    rows_of: dict[ViewGroup, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: row["trial"]):
        trained = group_of[row["shard"]]
        attackers = attackers_of(variant, row["federation"])
        if attackers and trained.name in readable:
            spec = without_defenses(trained.spec)
            group = ViewGroup(row["federation"], attackers, spec, specs.index(spec))
            rows_of.setdefault(group, []).append(dict(row))
    of_trial = [ATTACK, ALL_LABELS] if ALL_LABELS in attack.baselines else [ATTACK]
    # trees have no bottoms
    has_bottoms = plan.dataset.recording is None or not plan.dataset.recording.trees
    untrained = UNTRAINED in attack.baselines and has_bottoms
    firsts = _first_trials(plan, readable) if untrained else {}
    jobs = []
    for group, of_group in rows_of.items():
        todo = [
            (UNTRAINED, row)
            for row in of_group
            if firsts.get((group.federation, group.spec, row["seed"])) == row["trial"]
        ]
        todo += [(what, row) for row in of_group if row["status"] == "ok" for what in of_trial]
        jobs += [
            Job(what, variant, group, point, row["seed"], row)
            for point in range(len(variant.knobs))
            for what, row in todo
        ]
    return jobs


def _first_trials(plan: Plan, readable: set[str]) -> dict[tuple[str, Spec, int], int]:
    """Returns each seed's first trial, by federation, models and seed, among these groups."""
    first: dict[tuple[str, Spec, int], int] = {}
    for group in plan.groups:
        if group.name in readable:
            spec, trials = without_defenses(group.spec), group.trials
            rows = zip(trials["federation"], trials["seed"], trials["trial"], strict=True)
            for federation, seed, trial in rows:
                place = federation, spec, seed
                first[place] = min(first.get(place, trial), trial)
    return first


def _refusal(variant: AttackVariant, trained: bool, plan: Plan) -> str:
    """Returns why the attack cannot be run on the sweep, '' if it can. ``trained``: whether there are
    trials of a federation on which the attack is defined."""
    attack, training = variant.attack, plan.experiment.training
    num_classes = plan.dataset.num_classes
    recorded_epochs = training.recorded_epochs
    if attack.binary and num_classes > 2:
        return f"defined for two classes, {plan.dataset.name} has {num_classes}"
    if not trained:
        needed = " or ".join(map(repr, attack.federations))
        named = f"{needed} to config.federations" if plan.experiment.federations else ""
        return (
            f"it needs runs of the federation {needed} and this sweep trained none: add "
            f"{named or f'{variant.name!r} to config.attacks'} and train in a new workdir"
        )
    if attack.epoch not in (None, -1, *recorded_epochs):
        return (
            f"it reads epoch {attack.epoch} and this sweep recorded {recorded_epochs}: name it in "
            "config.training.record and train in a new workdir"
        )
    recording = plan.dataset.recording
    if recording is not None and (lacks := _lacking(attack, recording)):
        return f"it reads what this recording lacks: {', '.join(lacks)}"
    if recording is None and "nodes" in attack.reads:
        return "it reads the nodes of trees, and this federation is one of networks"
    if "parameter gradients" in attack.reads and not training.record_parameter_gradients:
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


def _lacking(attack: Attack, recording: Recording) -> list[str]:
    """Returns what an attack reads and a recording lacks, as messages name it.

    Columns that were not recorded do not count: they are zeros, from which an attack learns nothing, and it
    still reads the exchange. Nor do the encrypted gradients of trees, if the attack reads embeddings too, which
    are the paths of rows, as one more block of features. An attack that reads gradients and nodes needs both.
    """
    missing = {*recording.missing} - {"columns"}
    if not recording.trees:
        missing.add("nodes")
    elif "embeddings" in attack.reads and "nodes" not in attack.reads:
        missing.discard("gradients")
    lacks = [READS[name] for name in READS if name in attack.reads and name in missing]
    return lacks + ["the weights of all parties"] * bool(attack.diagnostic)


def layers(plan: Plan) -> list[str]:
    """Returns the layers that all split models of the sweep have; a method may have its own top model."""
    columns = tuple(
        jax.ShapeDtypeStruct((2, *x.shape[1:]), jnp.float32) for x in plan.table.features
    )
    names = []
    for spec in dict.fromkeys(
        without_defenses(g.spec) for g in plan.groups if g.spec.top is not None
    ):
        shapes = weight_shapes(spec, plan.seeds, plan.table)
        weights = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), shapes)
        names.append(list(jax.eval_shape(make_layers(spec), weights, columns)))
    return [name for name in names[0] if all(name in others for others in names)]
