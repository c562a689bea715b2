"""The teachers that the trials of a sweep read, one for each distinct seed and training labels."""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportReturnType=false, reportCallIssue=false, reportAssignmentType=false

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from vfljax import defenses, keys
from vfljax.config import Teacher
from vfljax.errors import UserError
from vfljax.federation.teacher import Lessons, teacher_scores, teacher_start
from vfljax.federation.training import Member, Table
from vfljax.models import weights as pretrained
from vfljax.models.making import make_network
from vfljax.models.parties import from_module
from vfljax.sweep.grid import trial_rows
from vfljax.sweep.grouping import Group
from vfljax.sweep.specs import DataShape, chain_of, member_of_trials
from vfljax.types import Array, HostArray, Input, Spec


def _taught(group: Group) -> pd.DataFrame:
    """Returns the trials whose own chain reads scores; others may have joined the group."""
    first = group.trials.drop_duplicates("configuration")
    reads = {
        row["configuration"]: defenses.reads_scores(chain_of(row)) for row in trial_rows(first)
    }
    return group.trials[group.trials["configuration"].map(reads).astype(bool)]


def check(teacher: Teacher, groups: Sequence[Group], table: Table, shape: DataShape) -> None:
    """Refuses a teacher that cannot be made, if one is needed, before anything is trained.

    Args:
      teacher: ``config.teacher``.
      groups: the trials of the sweep.
      shape: its classes, rows and columns.
    """
    if not any(defenses.reads_scores(group.spec.defenses) for group in groups):
        return
    network = make_network(teacher, shape.num_classes, "identity", shape.inputs[-1])
    rows = table.train.shape[1]
    if getattr(network, "batch_norm", False) and min(teacher.batch_size, rows) == 1:
        raise UserError(
            f"config.teacher.batch_size={teacher.batch_size}: a batch of 1 row ({rows} training rows) "
            "has no batch statistics: choose at least 2, or another config.teacher.network."
        )
    example = jnp.zeros((1, *table.features[-1].shape[1:]))
    try:
        variables = jax.eval_shape(from_module(network).init, jax.random.key(0), example)
    except (ValueError, TypeError, ArithmeticError) as error:
        raise UserError(f"config.teacher: {error}") from error
    if teacher.pretrained:
        pretrained.load(network, variables, teacher.pretrained)


def most(groups: Sequence[Group]) -> int:
    """Returns an upper bound on the number of teachers: the number of distinct seeds and knobs of defenses
    with a ``teach`` slot, which alone decide a teacher's labels. No labels are drawn."""
    identities = set()
    for group in groups:
        teaching = [d.name for d in defenses.having("teach", group.spec.defenses)]
        columns = ["seed", *(f"{n}.{k}" for n in teaching for k in defenses.TABLE[n].knobs)]
        distinct = _taught(group)[columns].drop_duplicates().to_dict("records")
        identities |= {tuple(row.items()) for row in distinct}
    return len(identities)


def lessons(groups: Sequence[Group], table: Table) -> tuple[Lessons | None, dict[int, int]]:
    """Returns one lesson for each distinct seed, labels and weights of trials whose chain reads scores.

    Args:
      groups: the trials of the sweep.
      table: the data, of which labels are read.

    Returns:
      The lessons, None if no chain reads a teacher's scores; and the number of each trial's lesson, by id.
    """
    kept: dict[tuple[int, bytes, bytes], tuple[int, int, HostArray, HostArray]] = {}
    teacher_of: dict[int, int] = {}
    for group in groups:
        spec, trials = group.spec, _taught(group)
        if trials.empty:
            continue

        def labels_of(member: Member, spec: Spec = spec) -> tuple[Array, Array]:
            chain = defenses.build(spec.defenses, member.hparams.defenses)
            labels = table.labels[table.train[member.seed]]
            key = keys.fold(keys.run_key(member.seed), "defense")  # the key of the protocol's init
            return chain.teach(key, labels, spec.num_classes)

        members = member_of_trials(spec, trials, [])
        drawn = jax.jit(
            lambda members, labels_of=labels_of: jax.lax.map(labels_of, members, batch_size=64)
        )(members)
        places = trials["trial"].tolist(), trials["seed"].tolist()
        for trial, seed, labels, weights in zip(*places, *map(np.asarray, drawn), strict=True):
            identity = (seed, labels.tobytes(), weights.tobytes())
            lesson = kept.setdefault(identity, (len(kept), seed, labels, weights))
            teacher_of[trial] = lesson[0]
    if not kept:
        return None, {}
    _, seeds, labels, weights = zip(*kept.values(), strict=True)
    return Lessons(np.asarray(seeds, np.int32), np.stack(labels), np.stack(weights)), teacher_of


def identities(taught: Lessons) -> list[str]:
    """Returns for each lesson a name that two lessons share only if they are equal."""
    names = []
    for seed, labels, weights in zip(taught.seed, taught.labels, taught.weights, strict=True):
        digest = hashlib.sha256(np.asarray(labels).tobytes() + np.asarray(weights).tobytes())
        names.append(f"{seed}-{digest.hexdigest()}")
    return names


def train_teachers(
    teacher: Teacher,
    taught: Lessons,
    table: Table,
    reads: Input,
    num_classes: int,
    seeds: HostArray,
) -> HostArray:
    """Returns the scores [T, N, C] of every teacher, trained.

    Args:
      teacher: ``config.teacher``.
      taught: the lessons, one per teacher.
      reads: the columns of the label party.
      num_classes: C.
      seeds: [Q] of the sweep.

    Raises:
      UserError: if one diverged.
    """
    network = make_network(teacher, num_classes, "identity", reads)
    start: Any = None
    if teacher.pretrained:
        # tensors that the file does not hold differ by seed
        drawn = [teacher_start(table, network, int(seed)) for seed in seeds]
        loaded = [pretrained.load(network, weights, teacher.pretrained)[0] for weights in drawn]
        start = jax.tree.map(lambda *parts: np.stack(parts), *loaded)
    scores = np.asarray(
        teacher_scores(table, jax.device_put(seeds), taught, teacher, network, start)
    )
    if not np.all(np.isfinite(scores)):
        remedy = f"lower config.teacher.learning_rate ({teacher.learning_rate:g})"
        raise UserError("the label party's teacher diverged", remedy=remedy)
    return scores
