"""From a config to the settings of a sweep, grouped by program structure. Host only.

A *setting* is one trained lane: a grid point (one value for every knob), a structure (split,
split with malicious parties, no split) and a seed. Settings whose ``Spec`` is equal form a group
and share one compiled program; every number that differs within it is an array.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import arms, defenses, models, optimizers, parties
from vfljax.config import unknown
from vfljax.datasets.core import Input
from vfljax.defenses.core import TrainingData
from vfljax.errors import UserError
from vfljax.models.making import make_network, sizes
from vfljax.training import Lane
from vfljax.types import DefenseSpec, HostArray, HParams, Spec


class Structure(NamedTuple):
    """Which federation is trained: what an attack needs, decided before training."""

    split: bool = True
    malicious: tuple[int, ...] = ()

    @property
    def name(self) -> str:
        if self.malicious:
            return "malicious-" + "-".join(map(str, self.malicious))
        return "split" if self.split else "no_split"


@dataclasses.dataclass(frozen=True)
class Setting:
    """One trained lane. ``point`` numbers grid points; seeds and structures share it."""

    id: int
    point: int
    arm: str
    seed: int
    structure: Structure
    knobs: Mapping[str, Mapping[str, float]]  # defense -> knob -> value, in chain order
    options: Mapping[str, Mapping[str, str]]  # defense -> static option -> value
    training: Mapping[str, float]  # learning_rate, momentum, weight_decay, decay, gamma
    model: Mapping[str, Any]  # the arm's own top and top_hidden; config.model's where absent

    def row(self) -> dict[str, Any]:
        """Every knob of the setting as table columns; absent defenses have no column here."""
        row: dict[str, Any] = {
            "setting": self.id,
            "point": self.point,
            "arm": self.arm,
            "defenses": "+".join(self.knobs),
            "structure": self.structure.name,
            "seed": self.seed,
        }
        row.update({f"model.{field}": arms.text(value) for field, value in self.model.items()})
        for source in (self.knobs, self.options):
            for name, values in source.items():
                row.update({f"{name}.{knob}": value for knob, value in values.items()})
        numbers = dict(self.training)
        if not self.structure.malicious:
            numbers["gamma"] = 0.0
        return {**row, **numbers}


class Group(NamedTuple):
    """Settings of one program."""

    name: str
    spec: Spec
    settings: tuple[Setting, ...]


EVALUATIONS = ("final", "released")


def make_spec(
    config: Mapping[str, Any],
    structure: Structure,
    num_classes: int,
    num_rows: int,
    chain: tuple[DefenseSpec, ...],
    malicious: bool,
    own: Mapping[str, Any],
    inputs: Sequence[Input],
) -> Spec:
    """The static half of a setting; ``malicious``: whether the sweep has malicious settings; ``own``:
    its arm's model fields; ``inputs``: what each party that owns columns reads."""
    model, training = {**config["model"], **own}, config["training"]
    if model["top"] not in models.TOPS:
        raise unknown("config.model.top", model["top"], models.TOPS)
    if model["weights"] not in models.WEIGHTS:
        raise unknown("config.model.weights", model["weights"], models.WEIGHTS)
    if model["top"] in ("generator", "probability") and num_classes != 2:
        raise UserError(
            f"config.model.top={model['top']!r} predicts 2 classes and the data has {num_classes}: "
            "choose 'head' or 'mlp'."
        )
    if model["aggregation"] not in parties.AGGREGATIONS:
        raise unknown("config.model.aggregation", model["aggregation"], parties.AGGREGATIONS)
    if training["evaluation"] not in EVALUATIONS:
        raise unknown("config.training.evaluation", training["evaluation"], EVALUATIONS)
    if training["evaluation"] == "released" and num_classes != 2:
        raise UserError(
            f"config.training.evaluation='released' is an AUC of 2 classes and the data has "
            f"{num_classes}: choose 'final'."
        )
    honest = training["optimizer"]
    if honest not in optimizers.TABLE:
        raise unknown("config.training.optimizer", honest, optimizers.TABLE)
    if malicious and honest not in optimizers.MALICIOUS:
        raise UserError(
            f"config.training.optimizer={honest!r} has no malicious form: choose one of "
            f"{', '.join(optimizers.MALICIOUS)} or drop the active attack."
        )
    rule = config["malicious"]["rule"]
    if rule not in optimizers.RULES:
        raise unknown("config.malicious.rule", rule, optimizers.RULES)
    if malicious and rule not in optimizers.MALICIOUS[honest]:
        raise UserError(
            f"config.malicious.rule={rule!r} is not defined for config.training.optimizer={honest!r}: "
            f"choose {' or '.join(map(repr, optimizers.MALICIOUS[honest]))}, or the optimizer 'sgd'."
        )
    passive = config["parties"]["passive"]
    count = passive + int(config["parties"]["label_features"])
    if structure.split and model["top"] == "probability":
        _check_probability(model, count)
    cut = model["cut"] if structure.split else num_classes
    output = model["output"] if structure.split else "identity"  # logits are not squashed
    bottoms = tuple(make_network("config.model", model, cut, output, reads) for reads in inputs)
    top = models.TOPS[model["top"]](
        tuple(model["top_hidden"]), num_classes, weights=model["weights"]
    )
    weights = training["class_weights"]
    if weights and len(weights) != num_classes:
        raise UserError(
            f"config.training.class_weights={weights} has {len(weights)} weights and the data has "
            f"{num_classes} classes: give one a class, or ()."
        )
    batch = min(training["batch_size"], num_rows)
    normalized = any(getattr(module, "batch_norm", False) for module in bottoms)
    if ((structure.split and model["top"] == "head") or normalized) and (
        batch == 1 or (not training["drop_last"] and num_rows % batch == 1)
    ):
        remedy = "choose another bottom" if normalized else "model.top='head_plain' or 'mlp'"
        raise UserError(
            f"a batch of 1 row ({num_rows} training rows in batches of {batch}) has no batch "
            f"statistics: change config.training.batch_size, set drop_last=True or {remedy}."
        )
    # if any structure is malicious, passive parties run the malicious optimizer; gamma = 0 is honest
    names = [
        optimizers.MALICIOUS[honest][rule] if malicious and p < passive else honest
        for p in range(count)
    ]
    return Spec(
        bottoms=bottoms,
        top=top if structure.split else None,
        passive=passive,
        num_classes=num_classes,
        num_rows=num_rows,
        batch_size=batch,
        epochs=training["epochs"],
        optimizers=(*names, honest),
        defenses=chain,
        aggregation=model["aggregation"],
        scope=training["scope"],
        drop_last=training["drop_last"],
        class_weights=tuple(map(float, weights)),
        evaluation=training["evaluation"],
        recorded=min(training["record_rows"], num_rows) % num_rows,
    )


def _check_probability(model: Mapping[str, Any], bottoms: int) -> None:
    """The top without parameters reads one number that is a probability already."""
    one = bottoms == 1 or model["aggregation"] == "mean"
    if model["cut"] != 1 or model["output"] != "sigmoid" or not one:
        raise UserError(
            "config.model.top='probability' reads the embedding as the probability of class 1: set "
            f"config.model.cut=1 (it is {model['cut']}), output='sigmoid' (it is {model['output']!r}) "
            f"and, for {bottoms} bottoms, aggregation='mean' (it is {model['aggregation']!r})."
        )
    if model["top_hidden"]:
        raise UserError(
            f"config.model.top='probability' has no layers: top_hidden={model['top_hidden']!r} must be "
            "()."
        )


def settings(config: Mapping[str, Any], structures: list[Structure]) -> list[Setting]:
    """Every setting of a resolved config, grid points outermost, seeds innermost. A chain that needs
    a top model is not trained in federations without one."""
    training = {
        k: config["training"][k] for k in ("learning_rate", "momentum", "weight_decay", "decay")
    }
    training["gamma"] = config["malicious"]["gamma"]
    if not isinstance(config["grid"], Mapping):
        raise UserError(
            f"config.grid={config['grid']!r} must be {{arm: {{defense: {{knob: values}}}}}}."
        )
    out: list[Setting] = []
    point = 0
    for arm, given in config["grid"].items():
        model, chain = arms.arm_model(arm, given)
        points = arms.arm_points(arm, chain)
        own = [s for s in structures if s.split or not defenses.NEEDS_TOP & set(chain)]
        for (knobs, options), numbers in itertools.product(points, arms.product(training)):
            for structure, seed in itertools.product(own, range(config["seeds"])):
                out.append(
                    Setting(len(out), point, arm, seed, structure, knobs, options, numbers, model)
                )
            point += 1
    return out


def check_points(
    config: Mapping[str, Any],
    all_settings: list[Setting],
    num_classes: int,
    num_rows: int,
    inputs: Sequence[Input],
) -> None:
    """Build every distinct chain once with concrete knobs, so that a knob out of range, an unknown
    option or a defense this federation cannot serve is refused before anything is trained."""
    labels = jax.ShapeDtypeStruct((8,), jnp.int32)
    teacher = config["parties"]["label_features"]
    scores = jax.ShapeDtypeStruct((8, num_classes), jnp.float32) if teacher else None
    for setting in {(s.point, s.structure.split): s for s in all_settings}.values():
        try:
            defense = defenses.build(chain_spec(setting), setting.knobs)
            own = setting.model
            where = f"config.grid.{setting.arm}.model" if "top_hidden" in own else "config.model"
            sizes(f"{where}.top_hidden", own.get("top_hidden", config["model"]["top_hidden"]))
            spec = make_spec(
                config, setting.structure, num_classes, num_rows, (), False, own, inputs
            )

            def init(y: Any, s: Any, d: Any = defense, seen: Any = spec.federation) -> Any:
                return d.init(jax.random.key(0), TrainingData(y, s, num_classes, seen))

            jax.eval_shape(init, labels, scores)
        except UserError:
            raise
        except ValueError as error:
            raise UserError(f"config.grid.{setting.arm}: {error}") from error


def chain_spec(setting: Setting) -> tuple[DefenseSpec, ...]:
    return tuple(
        DefenseSpec(name, tuple(sorted(setting.options[name].items()))) for name in setting.knobs
    )


def groups(
    config: Mapping[str, Any],
    all_settings: list[Setting],
    num_classes: int,
    num_rows: int,
    inputs: Sequence[Input],
) -> list[Group]:
    """Settings by equal Spec, in order of first appearance.

    Honest and malicious settings share a program (gamma is a number). Undefended settings join
    the first chain of their model whose every defense has neutral knobs and default options: one
    program less, and they differ from that chain's neutral setting in no bit.
    """
    malicious = any(s.structure.malicious for s in all_settings)
    members: dict[Spec, list[Setting]] = {}
    names: dict[Spec, str] = {}
    made: dict[Any, Spec] = {}
    hosts = _hosts(config, all_settings)
    for setting in all_settings:
        model = _model_name(config, setting)
        chain = chain_spec(setting) or hosts.get(model, ())
        split = setting.structure.split
        if (split, chain, model) not in made:
            structure, own = Structure(split), setting.model
            spec = make_spec(
                config, structure, num_classes, num_rows, chain, malicious, own, inputs
            )
            made[split, chain, model] = spec
            names.setdefault(spec, _group_name(spec, model))
        members.setdefault(made[split, chain, model], []).append(setting)
    return [Group(names[spec], spec, tuple(own)) for spec, own in members.items()]


def _model_name(config: Mapping[str, Any], setting: Setting) -> str:
    """'generator-16' where an arm's model is not the sweep's, else ''. One name, one model."""
    fields = [
        (setting.model.get(f, config["model"][f]), config["model"][f]) for f in arms.ARM_MODEL
    ]
    differs = any(arms.text(own) != arms.text(theirs) for own, theirs in fields)
    return "-".join(arms.text(own) for own, _ in fields) if differs else ""


def _hosts(
    config: Mapping[str, Any], all_settings: list[Setting]
) -> dict[str, tuple[DefenseSpec, ...]]:
    """Of each model, the first chain that undefended settings may join."""
    hosts: dict[str, tuple[DefenseSpec, ...]] = {}
    for setting in all_settings:
        chain = chain_spec(setting)
        # options are another rule: KDk anchored at its teacher changes labels at epsilon = 0 too
        if chain and all(d.name in defenses.NEUTRAL and not d.options for d in chain):
            hosts.setdefault(_model_name(config, setting), chain)
    return hosts


def _group_name(spec: Spec, model: str) -> str:
    """Unique in a sweep, options and the arm's own model included: shards are found again by it."""
    chain = spec.defenses or (DefenseSpec("undefended"),)
    words = ("-".join([d.name, *(str(value) for _, value in d.options)]) for d in chain)
    if spec.top is None:
        return "+".join(words) + "-no_split"
    return "+".join(words) + (f"-{model}" if model else "")


def lanes_of(
    group: Group,
    own: list[Setting],
    milestones: list[float],
    teachers: Mapping[int, int] | None = None,
) -> Lane:
    """The settings' numbers as arrays with a leading lane axis, on the host; ``teachers`` says which
    setting (by id) reads which teacher."""

    def column(values: Any) -> HostArray:
        return np.asarray(values, np.float32)

    knobs = {}
    for defense in group.spec.defenses:
        neutral = defenses.NEUTRAL.get(defense.name, {})
        values = [s.knobs.get(defense.name, neutral) for s in own]
        knobs[defense.name] = {k: column([v[k] for v in values]) for k in values[0]}
    parties_ = range(len(group.spec.bottoms))
    gamma = [[s.training["gamma"] * (p in s.structure.malicious) for p in parties_] for s in own]
    numbers = {k: column([s.training[k] for s in own]) for k in own[0].training if k != "gamma"}
    steps = column([milestones] * len(own))
    seeds: HostArray = np.asarray([s.seed for s in own])
    hparams = HParams(milestones=steps, defenses=knobs, gamma=column(gamma), **numbers)
    # seeds are 0..Q-1, so a seed is also its place in the table
    taught: HostArray = np.asarray([(teachers or {}).get(s.id, 0) for s in own], np.int32)
    return Lane(seeds.astype(np.uint32), seeds.astype(np.int32), taught, hparams)
