"""The label party's teachers: trained on its own columns alone, before the federation starts.

What leaves: class probabilities of the training rows, ``[T, N, C]``, a data column read by every
(epsilon, k). A teacher depends on the seed and on the labels it may see: those a chain's ``teach``
slot gives, so that under label DP it never sees the true ones. Settings that agree in both share one.

KDk (Arazzi et al. 2024) trains ResNet-50, BERT or FCNN-4 with Adam for 20 epochs, the rate times 0.1
at 50 % and 80 %. ``config.teacher.network`` names the network; an MLP unless it does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import defenses, keys
from vfljax.datasets.core import Input
from vfljax.errors import UserError
from vfljax.grid import Group, lanes_of
from vfljax.models import weights as pretrained
from vfljax.models.making import make_network
from vfljax.parties import from_module
from vfljax.rows import over_chunks, scaled
from vfljax.training import Lane, Table
from vfljax.types import CHUNK, HEAVY_CHUNK, Array, HostArray, PyTree, Spec


class TeacherConfig(NamedTuple):
    """Static: what the teacher is and how it is trained."""

    network: nn.Module  # ends in C logits
    epochs: int
    batch_size: int
    learning_rate: float
    temperature: float  # scores are softmax(logits / temperature); ranks do not depend on it


def make_teacher(config: Mapping[str, Any], reads: Input, num_classes: int) -> TeacherConfig:
    """``config.teacher`` made concrete, for the columns of the label party."""
    fields = config["teacher"]
    model = {"weights": "default", **fields, "bottom": fields["network"], "activation": "relu"}
    network = make_network("config.teacher", model, num_classes, "identity", reads, "network")
    numbers = ("epochs", "batch_size", "learning_rate", "temperature")
    return TeacherConfig(network, **{name: fields[name] for name in numbers})


class Lessons(NamedTuple):
    """What each teacher is trained on; leading axis T."""

    seed_index: np.ndarray  # [T] int32
    labels: np.ndarray  # [T, N] int32, of the seed's training rows
    weights: np.ndarray  # [T, N] float32, 0 for rows whose label it may not see


def _reads_scores(group: Group) -> bool:
    knobs = next((s.knobs for s in group.settings if s.knobs), {})  # not an undefended guest's
    return bool(knobs) and defenses.build(group.spec.defenses, knobs).reads_scores


def check(
    config: Mapping[str, Any], groups: Sequence[Group], table: Table, reads: Input, num_classes: int
) -> None:
    """Refuse a teacher that cannot be made, before anything is trained; only where one is needed."""
    if not any(_reads_scores(group) for group in groups):
        return
    teacher = make_teacher(config, reads, num_classes)
    rows = table.train.shape[1]
    if getattr(teacher.network, "batch_norm", False) and min(teacher.batch_size, rows) == 1:
        raise UserError(
            f"config.teacher.batch_size={teacher.batch_size}: a batch of 1 row ({rows} training rows) "
            "has no batch statistics: choose at least 2, or another config.teacher.network."
        )
    shape = (1, *table.features[-1].shape[1:])
    try:
        init = from_module(teacher.network).init
        variables = jax.eval_shape(init, jax.random.key(0), jnp.zeros(shape))
    except (ValueError, TypeError, ArithmeticError) as error:
        raise UserError(f"config.teacher: {error}") from error
    if config["teacher"]["pretrained"]:
        pretrained.load(teacher.network, variables, config["teacher"]["pretrained"])


def lessons(groups: Sequence[Group], table: Table) -> tuple[Lessons | None, dict[int, int]]:
    """One lesson for each distinct (seed, labels) of settings whose chain reads a teacher's scores,
    and which setting (by id) has which. None where no chain reads any."""
    found: dict[tuple[int, bytes, bytes], int] = {}
    kept: list[tuple[int, HostArray, HostArray]] = []
    of: dict[int, int] = {}
    for group in groups:
        spec, lane = group.spec, lanes_of(group, list(group.settings), [])
        if not _reads_scores(group):
            continue

        def one(lane: Lane, spec: Spec = spec) -> tuple[Array, Array]:
            chain = defenses.build(spec.defenses, lane.hparams.defenses)
            labels = table.labels[table.train[lane.seed_index]]
            key = keys.fold(keys.run_key(lane.seed), "defense")  # as the protocol's init
            return chain.teach(key, labels, spec.num_classes)

        drawn = jax.jit(lambda lanes, one=one: jax.lax.map(one, lanes, batch_size=64))(lane)
        for setting, labels, weights in zip(group.settings, *map(np.asarray, drawn), strict=True):
            identity = (setting.seed, labels.tobytes(), weights.tobytes())
            if identity not in found:
                found[identity] = len(kept)
                kept.append((setting.seed, labels, weights))
            of[setting.id] = found[identity]
    if not kept:
        return None, {}
    seed_index, labels, weights = zip(*kept, strict=True)
    return Lessons(np.asarray(seed_index, np.int32), np.stack(labels), np.stack(weights)), of


def teacher_start(table: Table, config: TeacherConfig, seed: int) -> PyTree:
    """The random variables of a seed's teacher, for weights of a file to be put into."""
    x = jnp.zeros((1, *table.features[-1].shape[1:]), jnp.float32)
    key = keys.fold(keys.run_key(jnp.uint32(seed)), "teacher")
    return jax.device_get(jax.jit(from_module(config.network).init)(keys.fold(key, "init"), x))


def teacher_scores(
    table: Table, seeds: Array, given: Lessons, config: TeacherConfig, start: PyTree = None
) -> Array:
    """Probabilities [T, N, C] on every teacher's training rows, from the last party's columns.
    ``start``: variables [Q, ...] that each seed's teachers start from, in place of random ones."""
    model = from_module(config.network)
    rows = table.train.shape[1]
    batch = min(config.batch_size, rows)
    steps = rows // batch

    def one(lesson: tuple[Array, Array, Array], table: Table) -> Array:
        x, mean, scale = table.features[-1], table.mean[-1], table.scale[-1]
        index, labels, weights = lesson
        key = keys.fold(keys.run_key(seeds[index]), "teacher")

        def features(places: Array) -> Array:
            return scaled(x[table.train[index, places]], mean[index], scale[index])

        rate = optax.piecewise_constant_schedule(
            config.learning_rate,
            {int(config.epochs * steps * share): 0.1 for share in (0.5, 0.8)},
        )
        optimizer = optax.adam(rate)
        if start is not None:
            variables = jax.tree.map(lambda a: jnp.asarray(a)[index], start)
        else:
            variables = model.init(keys.fold(key, "init"), features(jnp.arange(1)))

        def step(carry: PyTree, now: tuple[Array, Array]) -> tuple[PyTree, None]:
            (variables, state), (places, number) = carry, now

            def loss(params: PyTree) -> tuple[Array, PyTree]:
                drop = keys.fold(key, "dropout", number)
                own = {**variables, "params": params}
                logits, (after, _) = model.apply(own, features(places), True, drop)
                losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels[places])
                own = weights[places]
                return jnp.sum(own * losses) / jnp.maximum(jnp.sum(own), 1.0), after

            gradient, after = jax.grad(loss, has_aux=True)(variables["params"])
            updates, state = optimizer.update(gradient, state, variables["params"])
            params = optax.apply_updates(variables["params"], updates)
            return ({**after, "params": params}, state), None

        def epoch(carry: PyTree, number: Array) -> tuple[PyTree, None]:
            order = jax.random.permutation(keys.fold(key, "order", number), rows)
            batches = order[: steps * batch].reshape(steps, batch)
            return jax.lax.scan(step, carry, (batches, number * steps + jnp.arange(steps)))

        carry = (variables, optimizer.init(variables["params"]))
        (variables, _), _ = jax.lax.scan(epoch, carry, jnp.arange(config.epochs))
        logits = over_chunks(
            lambda places: model.apply(variables, features(places), False, None)[0],
            jnp.arange(rows),
            CHUNK if model.light else HEAVY_CHUNK,
        )
        return jax.nn.softmax(logits / config.temperature)

    together = 8 if model.light else 1

    def every(lessons: tuple[Array, ...], table: Table) -> Array:
        return jax.lax.map(lambda own: one(own, table), lessons, batch_size=together)

    # the table as an argument: a constant of the program would be compiled into it
    return jax.jit(every)(tuple(map(jnp.asarray, given)), table._replace(scores=None))
