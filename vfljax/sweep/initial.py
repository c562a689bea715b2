"""The weights that every seed's trials start from: drawn at random, or read from a file."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.federation.training import Table, make_initial
from vfljax.models import weights as pretrained
from vfljax.sweep import programs
from vfljax.sweep.effort import options_of
from vfljax.sweep.experiment import Experiment
from vfljax.types import DefenseSpec, HostArray, PyTree, Spec, Weights


def plain(spec: Spec, readers: tuple[DefenseSpec, ...] = ()) -> Spec:
    """The spec's models alone, which initial weights depend on, and for evaluation the ``readers`` among
    its defenses."""
    optimizers = ("sgd",) * len(spec.optimizers)
    return dataclasses.replace(spec, defenses=readers, optimizers=optimizers, recorded=0)


def models(spec: Spec, readers: tuple[DefenseSpec, ...] = ()) -> Spec:
    """``plain`` with one value for every field that neither initial weights nor evaluation read, so that
    sweeps that differ in those alone share programs."""
    return dataclasses.replace(
        plain(spec, readers),
        **{"num_rows": 1, "batch_size": 1, "epochs": 1, "scope": "all", "drop_last": False},
        **{"class_weights": (), "record_inputs": False},
    )


def random_weights(spec: Spec, seeds: HostArray, table: Table, level: int | None = None) -> Weights:
    """Randomly drawn weights [Q, ...] of every seed; ``level``: of the compiler's effort."""
    # run once: optimizing the draws of a deep network's kernels took XLA on CPU minutes (ResNet-18)
    options = options_of(level if spec.light else 0)
    ones = jax.tree.map(lambda a: np.ones(a.shape, a.dtype), _two_rows(table))
    arguments = jnp.asarray(seeds), ones
    # draws multiply nothing: sweeps of another precision share the program
    drawn = dataclasses.replace(models(spec), precision="float32")
    return programs.compiled(make_initial, (drawn,), arguments, options)(*arguments)


def weight_shapes(spec: Spec, seeds: HostArray, table: Table) -> Weights:
    """Their shapes [Q, ...], nothing computed."""
    return _shapes(models(spec), len(seeds), _two_rows(table))


@functools.lru_cache(maxsize=256)
def _shapes(spec: Spec, seeds: int, table: Table) -> Weights:
    return jax.eval_shape(make_initial(spec), jax.ShapeDtypeStruct((seeds,), jnp.uint32), table)


def _two_rows(table: Table) -> Table:
    """The shapes of ``table`` with two rows: weights depend on those of a row alone, so that tables of
    any length share a program."""

    def like(array: Any, *rows: int) -> Any:
        return jax.ShapeDtypeStruct((*rows, *array.shape[len(rows) :]), array.dtype)

    part = like(table.train, len(table.train), 2)
    return Table(
        features=tuple(like(x, 2) for x in table.features),
        labels=like(table.labels, 2),
        train=part,
        validation=part,
        test=part,
        mean=tuple(map(like, table.mean)),
        scale=tuple(map(like, table.scale)),
        scores=None,
    )


def initial_weights(
    spec: Spec, experiment: Experiment, seeds: HostArray, table: Table, level: int | None = None
) -> Weights:
    """Initial weights [Q, ...] of every seed: the same for all trials of a seed and model. Drawn at
    random, except what ``config.model.pretrained`` holds of the bottoms."""
    drawn, path = random_weights(spec, seeds, table, level), experiment.model.pretrained
    if not path:
        return drawn
    bottoms = []
    for module, variables in zip(spec.bottoms, drawn.bottoms, strict=True):
        # what the file does not hold differs by seed
        loaded = [
            pretrained.load(module, one_seed, path)[0] for one_seed in _by_seed(variables, seeds)
        ]
        bottoms.append(jax.tree.map(lambda *parts: np.stack(parts), *loaded))
    return drawn._replace(bottoms=tuple(bottoms))


def _by_seed(variables: PyTree, seeds: HostArray) -> list[PyTree]:
    on_host = jax.device_get(variables)
    return [jax.tree.map(lambda a, q=q: a[q], on_host) for q in range(len(seeds))]


def unread_tensors(spec: Spec, experiment: Experiment, seeds: HostArray, table: Table) -> list[str]:
    """The tensors of ``config.model.pretrained`` that no bottom takes; raises UserError for a file
    that holds none that fit."""
    shapes = weight_shapes(spec, seeds, table).bottoms
    unread = []
    for module, variables in zip(spec.bottoms, shapes, strict=True):
        drawn = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), variables)
        unread.append(set(pretrained.load(module, drawn, experiment.model.pretrained)[1]))
    return sorted(set.intersection(*unread))
