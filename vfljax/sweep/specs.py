"""From trials to programs: the static half of each, its members' numbers, and whether it can be trained at all.

``grouping`` decides which trials share a program. Host only.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportReturnType=false, reportCallIssue=false, reportAssignmentType=false

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pandas as pd

from vfljax import attacks, defenses, models, tasks
from vfljax.config import Config, Malicious, Model
from vfljax.defenses.core import TrainingData
from vfljax.errors import Field, UserError
from vfljax.federation import optimizers
from vfljax.federation.training import Member
from vfljax.models import last_layer
from vfljax.models.making import make_network
from vfljax.sweep.grid import is_malicious, is_split, knobs_of, model_of, options_of, trial_rows
from vfljax.types import (
    HONEST,
    NO_SPLIT,
    SPLIT,
    DefenseSpec,
    HostArray,
    HParams,
    Input,
    PyTree,
    Spec,
    federation_of,
)


class DataShape(NamedTuple):
    """The facts about the data that decide program structures: static, and known before arrays are used."""

    num_classes: int
    num_rows: int  # training rows of a seed
    inputs: tuple[Input, ...]  # of each party that owns columns


# --- the structure of a trial ---


def malicious_optimizer(malicious: Malicious, honest: str) -> str:
    """Returns the malicious form of an honest optimizer.

    Args:
      malicious: has the rule.
      honest: the name of the optimizer.

    Raises:
      UserError: if there is none.
    """
    if honest not in optimizers.MALICIOUS:
        remedy = (
            f"choose one of {', '.join(optimizers.MALICIOUS)} or train no malicious federation (the "
            "active attack, config.federations)"
        )
        what = "has no malicious form"
        raise UserError(what, field="training.optimizer", value=honest, remedy=remedy)
    forms = optimizers.MALICIOUS[honest]
    if malicious.rule not in forms:
        what = f"is not defined for config.training.optimizer={honest!r}"
        remedy = f"choose {' or '.join(map(repr, forms))}, or the optimizer 'sgd'"
        raise UserError(what, field="malicious.rule", value=malicious.rule, remedy=remedy)
    return forms[malicious.rule]


def chain_of(row: Mapping[str, Any]) -> tuple[DefenseSpec, ...]:
    """Returns the static half of a row's chain, in listing order; ``row`` is one of ``grid.trial_rows``."""
    return tuple(
        DefenseSpec(name, tuple(sorted(options.items())))
        for name, options in options_of(row).items()
    )


def trial_spec(
    config: Config,
    shape: DataShape,
    split: bool,
    model: Model,
    chain: tuple[DefenseSpec, ...] = (),
    malicious: bool = False,
) -> Spec:
    """Returns the static half of a trial.

    Args:
      shape: the data's classes, rows and columns.
      split: whether there is a top model.
      model: that of the trial's method.
      chain: its defenses.
      malicious: whether any trial of the sweep has malicious parties. Then all passive parties run the
        malicious optimizer and upload, which are honest at gamma = 0 and strength = 0, so that such trials
        share programs with others.
    """
    training, passive, rows = config.training, config.parties.passive, shape.num_rows
    cut, output = (model.cut, model.output) if split else (shape.num_classes, "identity")
    top = models.TOPS[model.top](model.top_hidden, shape.num_classes, weights=model.weights)
    bottoms = tuple(make_network(model, cut, output, reads) for reads in shape.inputs)
    honest = training.optimizer
    attacker = malicious_optimizer(config.malicious, honest) if malicious else honest
    attacked_by = knowers(chain, split) & set(config.attacks)
    whole = any(attacks.TABLE[name].whole_batches for name in attacked_by)
    spec = Spec(
        bottoms=bottoms,
        top=top if split else None,
        passive=passive,
        num_classes=shape.num_classes,
        num_rows=rows,
        batch_size=min(training.batch_size, rows),
        epochs=training.epochs,
        optimizers=(*((attacker,) * passive), *((honest,) * (len(bottoms) - passive)), honest),
        defenses=chain,
        aggregation=model.aggregation,
        upload=config.malicious.upload if malicious else HONEST,
        scope=training.scope,
        drop_last=training.drop_last,
        class_weights=training.class_weights,
        huber=training.huber,
        recorded=0 if whole else training.scored_rows(rows) % rows,  # 0: all of them
        record_inputs=training.record_parameter_gradients and not split,
        precision=training.precision,
    )
    return defenses.with_networks(spec)


def knowers(chain: Sequence[DefenseSpec], split: bool) -> set[str]:
    """Returns the names of the attacks that take a defense of the chain into account.

    Args:
      chain: the defenses.
      split: whether there is a top model.
    """
    kind = SPLIT if split else NO_SPLIT
    listed = (defenses.TABLE[spec.name].known_by.get(kind, ()) for spec in chain)
    return {knower.attack for row in listed for knower in row}


def first_of_each(trials: pd.DataFrame) -> list[dict[str, Any]]:
    """Returns the first trial of each configuration with, and without a top model, with a column "split"."""
    of = trials.assign(split=is_split(trials)).drop_duplicates(["configuration", "split"])
    return trial_rows(of)


def member_of_trials(
    spec: Spec,
    trials: pd.DataFrame,
    milestones: Sequence[float],
    teachers: Mapping[int, int] | None = None,
    codebooks: Mapping[int, dict[str, PyTree]] | None = None,
) -> Member:
    """Returns the numbers of some trials of one group, with a leading member axis, on the host.

    Args:
      spec: of the group.
      trials: the members, in order: rows of the group's table.
      milestones: epochs at which the learning rate is multiplied.
      teachers: which teacher a trial (by id) reads, a place in ``Table.scores``.
      codebooks: the codebooks that a trial (by id) has, by its defenses' names.
    """

    def column(name: str, neutral: float | None = None) -> HostArray:
        values = trials[name] if neutral is None else trials[name].fillna(neutral)
        return values.to_numpy(np.float32)

    knobs = {}
    for defense in spec.defenses:
        row = defenses.TABLE[defense.name]
        neutral = row.neutral or {}  # of the trials without it that joined the group
        knobs[defense.name] = {k: column(f"{defense.name}.{k}", neutral.get(k)) for k in row.knobs}
    parties = [federation_of(name).malicious for name in trials["federation"]]
    malicious = np.array(
        [[p in of for p in range(len(spec.bottoms))] for of in parties], np.float32
    )
    hparams = HParams(
        learning_rate=column("learning_rate"),
        momentum=column("momentum"),
        weight_decay=column("weight_decay"),
        milestones=np.tile(np.asarray(milestones, np.float32), (len(trials), 1)),
        decay=column("decay"),
        gamma=column("gamma")[:, None] * malicious,
        strength=column("strength")[:, None] * malicious,
        absent=np.zeros_like(malicious),
        defenses=knobs,
    )
    ids = trials["trial"].tolist()
    taught: HostArray = np.asarray([(teachers or {}).get(i, 0) for i in ids], np.int32)
    books = [(codebooks or {}).get(i, {}) for i in ids]
    books = jax.tree.map(lambda *parts: np.stack(parts), *books)
    return Member(trials["seed"].to_numpy(np.int32), taught, hparams, books)


# --- whether trials can be trained on the data's classes, rows and columns ---


def check(config: Config, shape: DataShape, trials: pd.DataFrame) -> None:
    """Checks that every trial can be trained on data of this shape, before any trial is trained.

    Every distinct chain is built once with concrete knobs.

    Args:
      shape: the data's classes, rows and columns.
      trials: the table of the sweep's trials.

    Raises:
      UserError: for classes, rows or columns that a network cannot serve, a knob out of range, an unknown
        option, and a defense that a federation cannot serve.
    """
    _check_classes(config, shape.num_classes)
    if is_malicious(trials).any():
        malicious_optimizer(config.malicious, config.training.optimizer)
    labels = jax.ShapeDtypeStruct((8,), tasks.of(shape.num_classes).label_type)
    scores = jax.ShapeDtypeStruct((8, shape.num_classes), jnp.float32)
    for row in first_of_each(trials):
        model, split, chain = model_of(config, row["method"]), row["split"], chain_of(row)
        for member in chain:
            _check_defense(row["method"], member, shape.num_classes)
        _check_model(model, split, shape)
        spec = trial_spec(config, shape, split, model)
        _check_networks(spec)
        try:
            defense = defenses.build(chain, knobs_of(row))
            spec = defenses.with_networks(dataclasses.replace(spec, defenses=chain))

            def init(labels: Any, scores: Any, defense: Any = defense, spec: Spec = spec) -> Any:
                data = TrainingData(labels, scores, spec.num_classes, spec.cut_layer)
                if config.data.label_range:
                    data = data._replace(label_range=jnp.zeros(2), shares_of_range=labels)
                return defense.init(jax.random.key(0), data)

            jax.eval_shape(init, labels, scores if config.parties.label_features else None)
        except ValueError as error:
            raise UserError(field=f"grid.{row['method']}", remedy=str(error)) from error


def _check_defense(method: str, member: DefenseSpec, num_classes: int) -> None:
    why = defenses.TABLE[member.name].not_for_numbers
    if num_classes == 1 and why:
        what = "is not for labels that are numbers"
        raise UserError(what, field=f"grid.{method}", value=member.name, remedy=why)


def _check_classes(config: Config, num_classes: int) -> None:
    training = config.training
    of_classes = {
        "canaries": config.canaries,
        "training.class_weights": training.class_weights,
        "training.evaluation": training.evaluation if training.evaluation != "final" else "",
    }
    for field, value in of_classes.items():
        if num_classes == 1 and value:
            what = "is of classes, and these labels are numbers"
            raise UserError(what, field=field, value=value, remedy="leave it out")
    if num_classes > 1 and training.huber:
        what = "is a loss of numbers, and these labels are classes"
        raise UserError(what, field="training.huber", value=training.huber, remedy="choose 0")
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


def _check_model(model: Model, split: bool, shape: DataShape) -> None:
    owners, field = len(shape.inputs), Field("model.top")
    if model.top in ("generator", "probability") and shape.num_classes != 2:
        what = f"predicts 2 classes and the data has {shape.num_classes}"
        raise UserError(what, field=field, value=model.top, remedy="choose 'head' or 'mlp'")
    if model.top != "probability" or not split:
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
        remedy = f"top_hidden={list(model.top_hidden)!r} must be ()"
        raise UserError("has no layers", field=field, value=model.top, remedy=remedy)


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
