"""Bundles: variants of one attack that share a program, with the jobs that are to be done for them."""

from __future__ import annotations

import pathlib
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from vfljax import attacks
from vfljax.attack_runs.jobs import ALL_LABELS, Job
from vfljax.attack_runs.scoring import Scorer
from vfljax.models.last_layer import recorded_width
from vfljax.sweep.plan import Plan
from vfljax.sweep.variants import AttackVariant

MOST_KNOWN = "most"  # the option of an attack that names the most known labels that it learns from

Rejected = Callable[[tuple[str, ...]], Collection[tuple[int, str]]]
"""Returns the configurations and panels on which dear attacks need not run, once cheap ones have run on some
shards."""


def none_rejected(shards: tuple[str, ...]) -> Collection[tuple[int, str]]:
    """Returns (): attacks are run on every configuration."""
    del shards
    return ()


class Begun(NamedTuple):
    """A sweep whose units can be made."""

    plan: Plan  # divided as the header
    workdir: pathlib.Path
    header: Mapping[str, Any]
    rejected: Rejected = none_rejected  # on which dear attacks are not run


class Stored(NamedTuple):
    """What attacks need of a sweep."""

    begun: Begun
    plan: Plan  # of the sweep, restricted to the recorded rows
    arrays: Mapping[str, np.ndarray]  # the splits
    scorer: Scorer
    variants: Mapping[str, AttackVariant | None]  # by key; None: this process cannot run it


class Bundle(NamedTuple):
    """Variants of one attack that share a program, and the jobs that are to be done for them.

    The variants have the same points of knobs. A *member* of a call is a trial, or a baseline of one, under all
    variants and points.
    """

    variants: tuple[AttackVariant, ...]
    members: list[Job]  # one job of each member, which stands for all of them
    jobs: Mapping[tuple[Any, ...], Job]  # by variant, point and member, as ``job_of`` finds them

    def job_of(self, variant: int, point: int, member: Job) -> Job | None:
        """Returns the job of a member under a variant and point; None if it is not to be done.

        Args:
          variant: place among ``variants``.
          point: of the knobs.
          member: one of ``members``.
        """
        return self.jobs.get((self.variants[variant].key, point, member.member))

    @property
    def points(self) -> int:
        """The number of points of the knobs."""
        return len(self.variants[0].knobs)


def learns_from_all(job: Job) -> bool:
    """Returns whether a job knows every label, and its attack has an option that would limit from how many it
    learns."""
    return job.what == ALL_LABELS and MOST_KNOWN in attacks.TABLE[job.variant.name].options


def bundles_of(left: Sequence[tuple[AttackVariant, Sequence[Job]]]) -> list[Bundle]:
    """Returns the bundles of the variants of one attack, by the program that computes their jobs.

    Variants share a program if they are defined on the same federations and have the same points, draws and
    baselines; jobs do if the models of their attackers have the same shapes, whatever their group. A call
    computes as many members as its program takes, so small groups alone would waste most of it.

    Args:
      left: the variants, each with the jobs that are to be done for it.
    """
    found: dict[Any, tuple[dict[str, AttackVariant], dict[Any, Job], dict[Any, Job]]] = {}
    for variant, jobs in left:
        attack = variant.attack
        points = tuple(tuple(sorted(point.items())) for point in variant.knobs)
        alike = attack.federations, attack.baselines, attack.oracle, attack.diagnostic
        for job in jobs:
            attackers, spec = job.group.attackers, job.group.spec
            bottoms = tuple(spec.bottoms[p] for p in attackers)
            shapes = attackers, bottoms, spec.batch_size, spec.light, recorded_width(spec)
            own_spec = spec if attack.diagnostic else None
            draws = None if attack.host else attack.draws
            key = points, alike, draws, shapes, own_spec, learns_from_all(job)
            variants, members, job_of = found.setdefault(key, ({}, {}, {}))
            variants[variant.key] = variant
            members.setdefault(job.member, job)
            job_of[variant.key, job.point, job.member] = job
    return [
        Bundle(tuple(variants.values()), [*members.values()], job_of)
        for variants, members, job_of in found.values()
    ]
