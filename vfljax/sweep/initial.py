"""The weights that every seed's trials start from: drawn at random, or read from a file."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.config import Config
from vfljax.federation.training import Table, make_initial
from vfljax.models import weights as pretrained
from vfljax.sweep import programs
from vfljax.types import DefenseSpec, HostArray, Spec, Weights


def without_defenses(spec: Spec) -> Spec:
    """Returns the spec without defenses and recording, and with "sgd" for every optimizer."""
    optimizers = ("sgd",) * len(spec.optimizers)
    return dataclasses.replace(spec, defenses=(), optimizers=optimizers, recorded=0)


def models(spec: Spec, readers: tuple[DefenseSpec, ...] = ()) -> Spec:
    """Returns a spec without defenses, with fixed values where neither initial weights nor evaluation read.

    Sweeps that differ in those fields alone therefore share programs.

    Args:
      spec: of a trial.
      readers: the trial's defenses that evaluation needs.
    """
    return dataclasses.replace(
        without_defenses(spec),
        defenses=readers,
        num_rows=1,
        batch_size=1,
        epochs=1,
        scope="all",
        drop_last=False,
        class_weights=(),
        record_inputs=False,
    )


def weight_shapes(spec: Spec, seeds: HostArray, table: Table) -> Weights:
    """Returns the shapes of every seed's weights [Q, ...]; nothing is computed."""
    return _shapes(models(spec), len(seeds), _two_rows(table))


@functools.lru_cache(maxsize=256)
def _shapes(spec: Spec, seeds: int, table: Table) -> Weights:
    return jax.eval_shape(make_initial(spec), jax.ShapeDtypeStruct((seeds,), jnp.uint32), table)


def _two_rows(table: Table) -> Table:
    """Returns the shapes of ``table`` with two rows. Weights depend only on the shape of a row, so tables of
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
    spec: Spec, experiment: Config, seeds: HostArray, table: Table, level: int | None = None
) -> Weights:
    """Returns the initial weights [Q, ...] of every seed, the same for all trials of a seed and model.

    They are drawn at random, except the bottoms' tensors that the file ``config.model.pretrained`` holds.

    Args:
      experiment: the experiment, which may name a file of weights.
      table: the data, of which only shapes are read.
      level: of ``programs.compiler_options``.
    """
    ones = jax.tree.map(lambda a: np.ones(a.shape, a.dtype), _two_rows(table))
    arguments = jax.device_put(seeds), ones
    # drawing weights multiplies nothing, so that sweeps of another precision share the program
    models_alone = dataclasses.replace(models(spec), precision="float32")
    # the program runs once, and on CPU optimizing it took minutes for a deep network (ResNet-18)
    level = level if spec.light else 0
    drawn = programs.compiled(make_initial, (models_alone,), arguments, level)(*arguments)
    path = experiment.model.pretrained
    if not path:
        return drawn
    bottoms = []
    for module, variables in zip(spec.bottoms, drawn.bottoms, strict=True):
        on_host = jax.device_get(variables)
        by_seed = [jax.tree.map(lambda a, q=q: a[q], on_host) for q in range(len(seeds))]
        # tensors that the file does not hold differ by seed
        loaded = [pretrained.load(module, weights, path)[0] for weights in by_seed]
        bottoms.append(jax.tree.map(lambda *parts: np.stack(parts), *loaded))
    return drawn._replace(bottoms=tuple(bottoms))


def unread_tensors(spec: Spec, experiment: Config, seeds: HostArray, table: Table) -> list[str]:
    """Returns the tensors of ``config.model.pretrained`` that no bottom takes.

    Args:
      experiment: the experiment, which names the file.
      table: the data, of which only shapes are read.

    Raises:
      UserError: if no tensor of the file fits.
    """
    shapes = weight_shapes(spec, seeds, table).bottoms
    unread = []
    for module, variables in zip(spec.bottoms, shapes, strict=True):
        drawn = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape[1:], a.dtype), variables)
        unread.append(set(pretrained.load(module, drawn, experiment.model.pretrained)[1]))
    return sorted(set.intersection(*unread))
