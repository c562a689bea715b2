"""The label party's teachers: trained on its own columns alone, before the federation starts.

Their class probabilities of the training rows [T, N, C] are a data column. A teacher depends on the seed and
on the labels it may see, which the ``teach`` slot of a chain returns: under label DP it never sees the true
labels. Trials that agree in both share a teacher.

KDk (Arazzi et al. 2024) trains ResNet-50, BERT or FCNN-4 with Adam for 20 epochs, and multiplies the rate by
0.1 after 50 % and 80 % of them. ``config.teacher.network`` names the network; by default it is an MLP.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import flax.linen as nn
import jax
import jax.numpy as jnp
import optax

from vfljax import keys, machine
from vfljax.config import Teacher
from vfljax.federation.training import Table
from vfljax.models.parties import Party, from_module
from vfljax.models.reading import over_chunks, scaled_rows
from vfljax.types import CHUNK, HEAVY_CHUNK, Array, PyTree


class Lessons(NamedTuple):
    """What each teacher is trained on; leading axis T. Without it, the lesson of one teacher."""

    seed: Any  # [T] int32
    labels: Any  # [T, N] int32, of the seed's training rows
    weights: Any  # [T, N] float32, 0 for rows whose label the teacher may not see


def teacher_start(table: Table, network: nn.Module, seed: int) -> PyTree:
    """Returns the random variables of a seed's teacher, into which weights from a file can be placed.

    Args:
      table: the data, of which the teacher reads the last party's columns.
      network: of the teacher.
      seed: seed of the draw.
    """
    x = jnp.zeros((1, *table.features[-1].shape[1:]), jnp.float32)
    key = keys.fold(keys.run_key(jnp.uint32(seed)), "teacher")
    return jax.device_get(jax.jit(from_module(network).init)(keys.fold(key, "init"), x))


def teacher_scores(
    table: Table,
    seeds: Array,
    lessons: Lessons,
    teacher: Teacher,
    network: nn.Module,
    start: PyTree = None,
) -> Array:
    """Trains all teachers, and returns their probabilities [T, N, C] of their training rows.

    Args:
      table: the data, of which teachers read the last party's columns.
      seeds: [Q] seeds of the sweep.
      lessons: what each teacher is trained on.
      teacher: how teachers are trained; its fields of the network are not read.
      network: of the teachers; it ends in C logits.
      start: variables [Q, ...] from which each seed's teachers start; None for random ones.
    """
    all_teachers = make_teachers(seeds, teacher, network, start)
    light = from_module(network).light
    together = (8 if light else 1) if machine.offered().cpu else len(lessons.seed)
    # the table is an argument, because a constant would be compiled into the program
    given = jax.device_put(lessons), table._replace(scores=None)
    lower = jax.jit(all_teachers, static_argnums=2).lower
    return machine.run_fitting(lambda width: lower(*given, width).compile(), together, given)


def make_teachers(
    seeds: Array, teacher: Teacher, network: nn.Module, start: PyTree = None
) -> Callable[[Lessons, Table, int], Array]:
    """Makes ``all_teachers(lessons, table, together)``, which trains ``together`` teachers at a time. The
    arguments are those of ``teacher_scores``."""
    model = from_module(network)

    def scores_of(lesson: Lessons, table: Table) -> Array:
        key = keys.fold(keys.run_key(seeds[lesson.seed]), "teacher")
        features = functools.partial(_features, table, lesson.seed)
        if start is not None:
            variables = jax.tree.map(lambda a: jnp.asarray(a)[lesson.seed], start)
        else:
            variables = model.init(keys.fold(key, "init"), features(jnp.arange(1)))
        variables = _trained(teacher, model, variables, lesson, features, key)
        logits = over_chunks(
            lambda places: model.apply(variables, features(places), False, None)[0],
            jnp.arange(len(lesson.labels)),
            CHUNK if model.light else HEAVY_CHUNK,
        )
        # ranks do not depend on the temperature
        return jax.nn.softmax(logits / teacher.temperature)

    def all_teachers(lessons: Lessons, table: Table, together: int) -> Array:
        return jax.lax.map(lambda lesson: scores_of(lesson, table), lessons, batch_size=together)

    return all_teachers


def _features(table: Table, seed: Array, places: Array) -> Array:
    """Returns the label party's columns of some of a seed's training rows."""
    columns = table.features[-1], table.mean[-1], table.scale[-1]
    return scaled_rows(*columns, seed, table.train[seed, places])


def _trained(
    teacher: Teacher,
    model: Party,
    variables: PyTree,
    lesson: Lessons,
    features: Callable[[Array], Array],
    key: Array,
) -> PyTree:
    """Returns the variables of a teacher after its training.

    Args:
      teacher: how it is trained.
      model: its network.
      variables: those that it starts from.
      lesson: of this teacher.
      features: gives its columns of some training rows.
      key: of its orders of rows and dropout.
    """
    rows = len(lesson.labels)
    batch = min(teacher.batch_size, rows)
    steps = rows // batch
    drops = {int(teacher.epochs * steps * share): 0.1 for share in (0.5, 0.8)}
    optimizer = optax.adam(optax.piecewise_constant_schedule(teacher.learning_rate, drops))

    def step(carry: PyTree, batch_now: tuple[Array, Array]) -> tuple[PyTree, None]:
        (variables, state), (places, number) = carry, batch_now
        loss = functools.partial(
            _loss,
            model,
            variables,
            features(places),
            lesson._replace(labels=lesson.labels[places], weights=lesson.weights[places]),
            keys.fold(key, "dropout", number),
        )
        gradient, after = jax.grad(loss, has_aux=True)(variables["params"])
        updates, state = optimizer.update(gradient, state, variables["params"])
        params = optax.apply_updates(variables["params"], updates)
        return ({**after, "params": params}, state), None

    def epoch(carry: PyTree, number: Array) -> tuple[PyTree, None]:
        order = jax.random.permutation(keys.fold(key, "order", number), rows)
        batches = order[: steps * batch].reshape(steps, batch)
        return jax.lax.scan(step, carry, (batches, number * steps + jnp.arange(steps)))

    carry = (variables, optimizer.init(variables["params"]))
    return jax.lax.scan(epoch, carry, jnp.arange(teacher.epochs))[0][0]


def _loss(
    model: Party, variables: PyTree, x: Array, lesson: Lessons, drop: Array, params: PyTree
) -> tuple[Array, PyTree]:
    """Returns the mean cross entropy of the rows of a batch, by their weights, and the variables with moved
    batch statistics.

    Args:
      model: the network.
      variables: its variables, whose parameters are replaced by ``params``.
      x: [B, ...] columns of the batch.
      lesson: its labels and weights.
      drop: the key of dropout.
      params: the parameters.
    """
    logits, (after, _) = model.apply({**variables, "params": params}, x, True, drop)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, lesson.labels)
    return jnp.sum(lesson.weights * losses) / jnp.maximum(jnp.sum(lesson.weights), 1.0), after
