"""Finds by tracing what an attack reads, and skips attacks that read what a recording lacks."""

from __future__ import annotations

import jax
from jax.interpreters import partial_eval

from vfljax.attacking.batching import Stored, make_attack_batch, make_attack_member
from vfljax.attacking.jobs import VariantPlan

SUMS = ("sum_gradient", "sum_sign", "sum_square")  # of the gradients
SHOWN = {"bottoms": "the bottom models", "order": "which rows shared a batch"}


def as_recorded(planned: VariantPlan, stored: Stored) -> VariantPlan:
    """Returns the plan of a variant, without jobs if the attack reads a field that was not recorded.

    Args:
      planned: the variant and its jobs.
      stored: the sweep, of a recording or of a federation that was trained here.
    """
    recording = stored.plan.dataset.recording
    if recording is None or not planned.every_job:
        return planned
    missing, read = {"weights", *recording.missing}, fields_read(planned, stored)
    if "gradients" in missing and read.intersection(SUMS):
        read.add("gradients")
    if lacks := sorted(missing & read):
        why = ", ".join(SHOWN.get(field, field) for field in lacks)
        return planned._replace(jobs={}, skipped=f"it reads what this recording lacks: {why}")
    return planned


def fields_read(planned: VariantPlan, stored: Stored) -> set[str]:
    """Returns the names in ``AttackInput`` and its exchange on which the scores of training rows depend.

    Args:
      planned: the variant and its jobs.
      stored: the sweep.
    """
    group, jobs = next(iter(planned.jobs.items()))
    batch = make_attack_batch(planned.variant, group, stored)
    arguments, attack = (batch.load(jobs[0]), batch.common), make_attack_member(batch.static)
    jaxpr = jax.make_jaxpr(lambda *inputs: attack(*inputs).train)(*arguments).jaxpr
    _, used = partial_eval.dce_jaxpr(jaxpr, [True] * len(jaxpr.outvars))
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(arguments)]
    keys = [key for path, is_used in zip(paths, used) if is_used for key in path[1:3]]
    return {str(getattr(key, "name", getattr(key, "key", ""))) for key in keys}
