"""Whether the trials of an experiment can be trained on the data's classes, rows and columns. Host only."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import defenses, models
from vfljax.defenses.core import TrainingData
from vfljax.errors import UserError
from vfljax.models import last_layer
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.grid import DataShape, Trial, make_spec
from vfljax.types import Spec


def check(experiment: Experiment, shape: DataShape, every_trial: Sequence[Trial]) -> None:
    """Checks that every trial can be trained on data of this shape, before any trial is trained.

    Every distinct chain is built once with concrete knobs.

    Args:
      experiment: what is trained.
      shape: the data's classes, rows and columns.
      every_trial: the trials of the experiment.

    Raises:
      UserError: for classes, rows or columns that a network cannot serve, a knob out of range, an unknown
        option, and a defense that a federation cannot serve.
    """
    _check_classes(experiment, shape.num_classes)
    if any(trial.federation.malicious for trial in every_trial):
        experiment.malicious.optimizer(experiment.training.optimizer)
    teacher = experiment.parties.label_features
    labels = jax.ShapeDtypeStruct((8,), jnp.int32)
    scores = jax.ShapeDtypeStruct((8, shape.num_classes), jnp.float32) if teacher else None
    for trial in {(s.configuration, s.federation.split): s for s in every_trial}.values():
        _check_model(trial, shape)
        spec = make_spec(experiment, shape, trial.federation, trial.method.model)
        _check_networks(spec)
        try:
            defense = defenses.build(trial.chain.specs, trial.chain.knobs)
            spec = defenses.with_networks(dataclasses.replace(spec, defenses=trial.chain.specs))

            def init(labels: Any, scores: Any, defense: Any = defense, spec: Spec = spec) -> Any:
                data = TrainingData(labels, scores, spec.num_classes, spec.cut_layer)
                return defense.init(jax.random.key(0), data)

            jax.eval_shape(init, labels, scores)
        except UserError:
            raise
        except ValueError as error:
            raise UserError(field=f"grid.{trial.method.name}", remedy=str(error)) from error


def _check_classes(experiment: Experiment, num_classes: int) -> None:
    training = experiment.training
    if training.evaluation == "released" and num_classes != 2:
        raise UserError(
            f"config.training.evaluation='released' is an AUC of 2 classes and the data has {num_classes}: "
            "choose 'final'."
        )
    weights = training.class_weights
    if weights and len(weights) != num_classes:
        raise UserError(
            f"config.training.class_weights={list(weights)} has {len(weights)} weights and the data "
            f"has {num_classes} classes: give one a class, or ()."
        )


def _check_model(trial: Trial, shape: DataShape) -> None:
    model, owners = trial.method.model, len(shape.inputs)
    if model.top in ("generator", "probability") and shape.num_classes != 2:
        what = f"config.model.top={model.top!r} predicts 2 classes and the data has {shape.num_classes}"
        raise UserError(what, remedy="choose 'head' or 'mlp'")
    if model.top != "probability" or not trial.federation.split:
        return
    # this top model has no parameters: it reads one number, which must be a probability already
    single = owners == 1 or model.aggregation == "mean"
    if model.cut != 1 or model.output != "sigmoid" or not single:
        raise UserError(
            "config.model.top='probability' reads the embedding as the probability of class 1: set "
            f"config.model.cut=1 (it is {model.cut}), output='sigmoid' (it is {model.output!r}) "
            f"and, for {owners} bottoms, aggregation='mean' (it is {model.aggregation!r})."
        )
    if model.top_hidden:
        what, hidden = "config.model.top='probability' has no layers", list(model.top_hidden)
        raise UserError(what, remedy=f"top_hidden={hidden!r} must be ()")


def _check_networks(spec: Spec) -> None:
    """Refuses batches of one row if some network computes batch statistics, and bottoms whose parameter
    gradients cannot be recorded."""
    for module in spec.bottoms[: spec.passive] if spec.record_inputs else ():
        if not last_layer.width(module):
            raise UserError(
                f"config.training.record_parameter_gradients: {type(module).__name__} does not end in a "
                "linear layer after a hidden one: choose False, or bottoms 'mlp' with config.model.hidden."
            )
    normalized = any(getattr(module, "batch_norm", False) for module in spec.bottoms)
    in_top = isinstance(spec.top, models.Head) and spec.top.batch_norm
    one_row = not spec.drop_last and spec.num_rows % spec.batch_size == 1
    if (in_top or normalized) and (spec.batch_size == 1 or one_row):
        remedy = "choose another bottom" if normalized else "model.top='head_plain' or 'mlp'"
        raise UserError(
            f"a batch of 1 row ({spec.num_rows} training rows in batches of {spec.batch_size}) has no "
            f"batch statistics: change config.training.batch_size, set drop_last=True or {remedy}."
        )
