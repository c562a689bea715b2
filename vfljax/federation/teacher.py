"""The label party's teachers: trained on its own columns alone, before the federation starts.

Their class probabilities of the training rows [T, N, C] are a data column. A teacher depends on the seed and
on the labels it may see, which the ``teach`` slot of a chain returns: under label DP it never sees the true
labels. Trials that agree in both share a teacher.

KDk (Arazzi et al. 2024) trains ResNet-50, BERT or FCNN-4 with Adam for 20 epochs, and multiplies the rate by
0.1 after 50 % and 80 % of them. ``config.teacher.network`` names the network; by default it is an MLP.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import keys, machine
from vfljax.federation.training import Table
from vfljax.models.parties import from_module
from vfljax.models.reading import over_chunks, scaled_rows
from vfljax.types import CHUNK, HEAVY_CHUNK, Array, PyTree


class TeacherSpec(NamedTuple):
    """The static description of a teacher and of its training."""

    network: nn.Module  # ends in C logits
    epochs: int
    batch_size: int
    learning_rate: float
    temperature: float  # scores are softmax(logits / temperature); ranks do not depend on it


class Lessons(NamedTuple):
    """What each teacher is trained on; leading axis T."""

    seed: np.ndarray  # [T] int32
    labels: np.ndarray  # [T, N] int32, of the seed's training rows
    weights: np.ndarray  # [T, N] float32, 0 for rows whose label the teacher may not see


def teacher_start(table: Table, teacher: TeacherSpec, seed: int) -> PyTree:
    """Returns the random variables of a seed's teacher, into which weights from a file can be placed.

    Args:
      table: the data, of which the teacher reads the last party's columns.
      teacher: description of the teacher.
      seed: seed of the draw.
    """
    x = jnp.zeros((1, *table.features[-1].shape[1:]), jnp.float32)
    key = keys.fold(keys.run_key(jnp.uint32(seed)), "teacher")
    return jax.device_get(jax.jit(from_module(teacher.network).init)(keys.fold(key, "init"), x))


def teacher_scores(
    table: Table, seeds: Array, lessons: Lessons, teacher: TeacherSpec, start: PyTree = None
) -> Array:
    """Trains all teachers, and returns their probabilities [T, N, C] of their training rows.

    Args:
      table: the data, of which teachers read the last party's columns.
      seeds: [Q] seeds of the sweep.
      lessons: what each teacher is trained on.
      teacher: description of the teachers.
      start: variables [Q, ...] from which each seed's teachers start; None for random ones.
    """
    all_teachers = make_teachers(seeds, table.train.shape[1], teacher, start)
    light = from_module(teacher.network).light
    together = (8 if light else 1) if machine.offered().cpu else len(lessons.seed)
    # the table is an argument, because a constant would be compiled into the program
    given = tuple(map(jnp.asarray, lessons)), table._replace(scores=None)
    lower = jax.jit(all_teachers, static_argnums=2).lower
    return machine.run_fitting(lambda width: lower(*given, width).compile(), together, given)


def make_teachers(
    seeds: Array, rows: int, teacher: TeacherSpec, start: PyTree = None
) -> Callable[[tuple[Array, ...], Table, int], Array]:
    """Makes ``all_teachers(lessons, table, together)``, which trains ``together`` teachers at a time.

    Args:
      seeds: [Q] seeds of the sweep.
      rows: number of training rows of each teacher.
      teacher: description of the teachers.
      start: as in ``teacher_scores``.
    """
    model = from_module(teacher.network)
    batch = min(teacher.batch_size, rows)
    steps = rows // batch

    def train_one(lesson: tuple[Array, Array, Array], table: Table) -> Array:
        seed, labels, weights = lesson
        key = keys.fold(keys.run_key(seeds[seed]), "teacher")

        def features(places: Array) -> Array:
            columns = table.features[-1], table.mean[-1], table.scale[-1]
            return scaled_rows(*columns, seed, table.train[seed, places])

        drops = {int(teacher.epochs * steps * share): 0.1 for share in (0.5, 0.8)}
        optimizer = optax.adam(optax.piecewise_constant_schedule(teacher.learning_rate, drops))
        if start is not None:
            variables = jax.tree.map(lambda a: jnp.asarray(a)[seed], start)
        else:
            variables = model.init(keys.fold(key, "init"), features(jnp.arange(1)))

        def step(carry: PyTree, batch_now: tuple[Array, Array]) -> tuple[PyTree, None]:
            (variables, state), (places, number) = carry, batch_now

            def loss(params: PyTree) -> tuple[Array, PyTree]:
                drop = keys.fold(key, "dropout", number)
                now = {**variables, "params": params}
                logits, (after, _) = model.apply(now, features(places), True, drop)
                losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels[places])
                weight = weights[places]
                return jnp.sum(weight * losses) / jnp.maximum(jnp.sum(weight), 1.0), after

            gradient, after = jax.grad(loss, has_aux=True)(variables["params"])
            updates, state = optimizer.update(gradient, state, variables["params"])
            params = optax.apply_updates(variables["params"], updates)
            return ({**after, "params": params}, state), None

        def epoch(carry: PyTree, number: Array) -> tuple[PyTree, None]:
            order = jax.random.permutation(keys.fold(key, "order", number), rows)
            batches = order[: steps * batch].reshape(steps, batch)
            return jax.lax.scan(step, carry, (batches, number * steps + jnp.arange(steps)))

        carry = (variables, optimizer.init(variables["params"]))
        (variables, _), _ = jax.lax.scan(epoch, carry, jnp.arange(teacher.epochs))
        logits = over_chunks(
            lambda places: model.apply(variables, features(places), False, None)[0],
            jnp.arange(rows),
            CHUNK if model.light else HEAVY_CHUNK,
        )
        return jax.nn.softmax(logits / teacher.temperature)

    def all_teachers(lessons: tuple[Array, ...], table: Table, together: int) -> Array:
        return jax.lax.map(lambda lesson: train_one(lesson, table), lessons, batch_size=together)

    return all_teachers
