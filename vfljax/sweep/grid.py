"""The trials of an experiment, grouped by the structure of their training program. Host only.

A *configuration* is one value for every knob and number of a method. A *trial* trains it in one federation
from one seed. Trials whose ``Spec`` is equal form a group and share one compiled program; every number
that differs within it is an array.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import attacks, defenses, models
from vfljax.federation.training import Member
from vfljax.models.making import make_network
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.limits import lengths
from vfljax.sweep.methods import Chain, Method, combinations
from vfljax.sweep.records import Model
from vfljax.types import (
    NO_SPLIT,
    SPLIT,
    DefenseSpec,
    Federation,
    HostArray,
    HParams,
    Input,
    PyTree,
    Spec,
)


class DataShape(NamedTuple):
    """What decides program structures about the data: static, and known before any array is used."""

    num_classes: int
    num_rows: int  # training rows of a seed
    inputs: tuple[Input, ...]  # of each party that owns columns


@dataclasses.dataclass(frozen=True)
class Configuration:
    """One value for every knob, option and number of a method: what trials of all seeds share."""

    number: int  # its place in the grid
    method: Method
    chain: Chain
    numbers: Mapping[str, float]  # learning_rate, momentum, weight_decay, decay, gamma

    def columns(self) -> dict[str, Any]:
        """Its knobs, options and numbers as table columns, such as ``kdk.epsilon``; defenses that the
        method does not have get no column here."""
        row: dict[str, Any] = self.method.top_columns()
        for by_defense in self.chain:
            for defense, values in by_defense.items():
                row.update({f"{defense}.{knob}": value for knob, value in values.items()})
        return {**row, **self.numbers}


@dataclasses.dataclass(frozen=True)
class Trial:
    """A configuration that is trained in one federation from one seed."""

    id: int
    configuration: Configuration
    federation: Federation
    seed: int

    @property
    def chain(self) -> Chain:
        """The defenses of its configuration."""
        return self.configuration.chain

    def row(self) -> dict[str, Any]:
        """Its identity and all of its numbers as table columns."""
        row = {
            "trial": self.id,
            "configuration": self.configuration.number,
            "method": self.configuration.method.name,
            "defenses": "+".join(self.chain.knobs),
            "federation": self.federation.name,
            "seed": self.seed,
            **self.configuration.columns(),
        }
        # the optimizer of an honest federation does not read gamma
        return row if self.federation.malicious else row | {"gamma": 0.0}


class Group(NamedTuple):
    """Trials of one program."""

    name: str
    spec: Spec
    trials: tuple[Trial, ...]


def check_counts(experiment: Experiment, federations: Sequence[Federation]) -> None:
    """Raise UserError for more trials or programs than ``experiment.limits``, before any is built.

    Args:
      experiment: what is trained.
      federations: those that it is trained in.
    """
    numbers = math.prod(map(len, experiment.numbers.values()))
    count, programs = 0, set()
    options = {"grid": len(experiment.methods)}  # what programs are made of
    for method in experiment.methods:
        trained = _trained(method, federations)
        count += len(method.chains) * numbers * len(trained) * experiment.seeds
        # as text: whether its options are hashable, and mean anything, is checked later
        chains = {(method.model_name, repr(chain.specs)) for chain in method.chains}
        programs |= {(f.split, *chain) for f in trained for chain in chains}
        for name, values in method.axes.items():
            static = {k: v for k, v in values.items() if k in defenses.TABLE[name].options}
            options |= lengths(f"grid.{method.name}.{name}", static)
    experiment.limits.check_count("trials", count, experiment.axes, "trials")
    experiment.limits.check_count("programs", len(programs), options, "programs to compile")


def _trained(method: Method, federations: Sequence[Federation]) -> list[Federation]:
    """The federations that a method is trained in."""
    return [f for f in federations if f.split or not method.needs_top]


def trials(experiment: Experiment, federations: Sequence[Federation]) -> list[Trial]:
    """Returns every trial of an experiment, configurations outermost, seeds innermost.

    Args:
      experiment: what is trained.
      federations: those to train; a method that needs a top model is left out of federations without one.
    """
    out: list[Trial] = []
    number = 0
    for method in experiment.methods:
        trained = _trained(method, federations)
        values = itertools.product(method.chains, combinations(experiment.numbers, "training"))
        for chain, numbers in values:
            configuration = Configuration(number, method, chain, numbers)
            for federation, seed in itertools.product(trained, range(experiment.seeds)):
                out.append(Trial(len(out), configuration, federation, seed))
            number += 1
    return out


def make_spec(
    experiment: Experiment,
    shape: DataShape,
    federation: Federation,
    model: Model,
    chain: tuple[DefenseSpec, ...] = (),
    malicious: bool = False,
) -> Spec:
    """Returns the static half of a trial.

    Args:
      experiment: what is trained.
      shape: the data's classes, rows and columns.
      federation: with or without a top model.
      model: that of the trial's method.
      chain: its defenses.
      malicious: whether any trial of the sweep has malicious parties. Then all passive parties run the
        malicious optimizer, which is honest at gamma = 0, so that such trials share programs with others.
    """
    training, passive, rows = experiment.training, experiment.parties.passive, shape.num_rows
    cut, output = (model.cut, model.output) if federation.split else (shape.num_classes, "identity")
    top = models.TOPS[model.top](model.top_hidden, shape.num_classes, weights=model.weights)
    bottoms = tuple(make_network(model.network, cut, output, reads) for reads in shape.inputs)
    honest = training.optimizer
    attacker = experiment.malicious.optimizer(honest) if malicious else honest
    spec = Spec(
        bottoms=bottoms,
        top=top if federation.split else None,
        passive=passive,
        num_classes=shape.num_classes,
        num_rows=rows,
        batch_size=min(training.batch_size, rows),
        epochs=training.epochs,
        optimizers=(*((attacker,) * passive), *((honest,) * (len(bottoms) - passive)), honest),
        defenses=chain,
        aggregation=model.aggregation,
        scope=training.scope,
        drop_last=training.drop_last,
        class_weights=tuple(map(float, training.class_weights)),
        # 0: all of them
        recorded=0
        if _reads_whole_batches(experiment, federation.split, chain)
        else training.scored_rows(rows) % rows,
        record_inputs=training.record_parameter_gradients and not federation.split,
        precision=training.precision,
    )
    return defenses.with_networks(spec)


def knowers(chain: Sequence[DefenseSpec], split: bool) -> set[str]:
    """The attacks that know a defense of the chain.

    Args:
      chain: the defenses.
      split: whether there is a top model.
    """
    kind = SPLIT if split else NO_SPLIT
    listed = (defenses.TABLE[spec.name].known_by.get(kind, ()) for spec in chain)
    return {knower.attack for row in listed for knower in row}


def _reads_whole_batches(experiment: Experiment, split: bool, chain: Sequence[DefenseSpec]) -> bool:
    asked = knowers(chain, split) & {request.name for request in experiment.attacks}
    return any(attacks.TABLE[name].whole_batches for name in asked)


def groups(experiment: Experiment, shape: DataShape, every_trial: Sequence[Trial]) -> list[Group]:
    """Groups trials by equal Spec, in order of first appearance.

    Honest and malicious trials share a program (gamma is a number). Undefended trials join
    the first chain of their model whose every defense has neutral knobs and default options: one
    program less, and they differ from that chain's neutral trial in no bit.
    """
    malicious = any(s.federation.malicious for s in every_trial)
    by_spec: dict[Spec, list[Trial]] = {}
    names: dict[Spec, str] = {}
    specs: dict[Any, Spec] = {}
    hosts = _hosts(experiment, every_trial)
    for trial in every_trial:
        model = _model_name(experiment, trial.configuration.method)
        chain = trial.chain.specs or hosts.get(model, ())
        split = trial.federation.split
        if (split, chain, model) not in specs:
            spec = make_spec(
                experiment,
                shape,
                Federation(split),
                trial.configuration.method.model,
                chain,
                malicious,
            )
            specs[split, chain, model] = spec
            names.setdefault(spec, _group_name(spec, model))
        by_spec.setdefault(specs[split, chain, model], []).append(trial)
    return [Group(names[spec], spec, tuple(group)) for spec, group in by_spec.items()]


def _model_name(experiment: Experiment, method: Method) -> str:
    """The name of a method's model where it is not the sweep's, else ''."""
    sweeps_own = dataclasses.replace(method, model=experiment.model).model_name
    return method.model_name if method.model_name != sweeps_own else ""


def _hosts(
    experiment: Experiment, every_trial: Sequence[Trial]
) -> dict[str, tuple[DefenseSpec, ...]]:
    """Of each model, the first chain that undefended trials may join."""
    hosts: dict[str, tuple[DefenseSpec, ...]] = {}
    for trial in every_trial:
        chain = trial.chain.specs
        # options are another rule: KDk anchored at its teacher changes labels at epsilon = 0 too
        if chain and all(
            defenses.TABLE[d.name].neutral is not None and not d.options for d in chain
        ):
            hosts.setdefault(_model_name(experiment, trial.configuration.method), chain)
    return hosts


def _group_name(spec: Spec, model: str) -> str:
    """Unique in a sweep, options and the method's own model included: shards are found again by it."""
    chain = spec.defenses or (DefenseSpec("undefended"),)
    words = ("-".join([d.name, *(str(value) for _, value in d.options)]) for d in chain)
    if spec.top is None:
        return "+".join(words) + "-no_split"
    return "+".join(words) + (f"-{model}" if model else "")


def members_of(
    spec: Spec,
    trials: Sequence[Trial],
    milestones: Sequence[float],
    teachers: Mapping[int, int] | None = None,
    codebooks: Mapping[int, dict[str, PyTree]] | None = None,
) -> Member:
    """Returns the numbers of some trials of one group, with a leading member axis, on the host.

    Args:
      spec: of the group.
      trials: the members, in order.
      milestones: epochs at which the learning rate is multiplied.
      teachers: which teacher a trial (by id) reads, a place in ``Table.scores``.
      codebooks: the codebooks that a trial (by id) has, by its defenses' names.
    """

    def column(values: Any) -> HostArray:
        return np.asarray(values, np.float32)

    knobs = {}
    for defense in spec.defenses:
        neutral = defenses.TABLE[defense.name].neutral or {}
        values = [s.chain.knobs.get(defense.name, neutral) for s in trials]
        knobs[defense.name] = {k: column([v[k] for v in values]) for k in values[0]}
    bottoms = range(len(spec.bottoms))
    gamma = [
        [s.configuration.numbers["gamma"] * (p in s.federation.malicious) for p in bottoms]
        for s in trials
    ]
    numbers = {
        k: column([s.configuration.numbers[k] for s in trials])
        for k in trials[0].configuration.numbers
        if k != "gamma"
    }
    steps = column([milestones] * len(trials))
    hparams = HParams(milestones=steps, defenses=knobs, gamma=column(gamma), **numbers)
    taught: HostArray = np.asarray([(teachers or {}).get(s.id, 0) for s in trials], np.int32)
    seeds: HostArray = np.asarray([s.seed for s in trials], np.int32)
    books = [(codebooks or {}).get(s.id, {}) for s in trials]
    return Member(seeds, taught, hparams, jax.tree.map(lambda *parts: np.stack(parts), *books))
