"""The trials of an experiment, grouped by the structure of their training program. Host only.

A *configuration* is one value for every knob and number of a method. A *trial* trains it in one federation
from one seed. Trials whose ``Spec`` is equal form a group and share one compiled program, in which every
number that differs is an array.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np

from vfljax import attacks, defenses, models
from vfljax.federation.training import Member
from vfljax.models.making import make_network
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.limits import lengths
from vfljax.sweep.methods import Chain, Method, combinations, model_name
from vfljax.sweep.records import Model
from vfljax.types import (
    HONEST,
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
    """The facts about the data that decide program structures: static, and known before arrays are used."""

    num_classes: int
    num_rows: int  # training rows of a seed
    inputs: tuple[Input, ...]  # of each party that owns columns


class Trial(NamedTuple):
    """One value for every knob, option and number of a method, trained in one federation from one seed."""

    id: int
    configuration: int  # number of its configuration, the same in all federations and seeds
    method: Method
    chain: Chain
    numbers: Mapping[str, float]  # learning_rate, momentum, weight_decay, decay, strength, gamma
    federation: Federation
    seed: int

    def row(self) -> dict[str, Any]:
        """Its identity and all of its numbers as table columns, such as ``kdk.epsilon``.

        Defenses that the method does not have get no column here.
        """
        values = [(d, by_knob) for by_defense in self.chain for d, by_knob in by_defense.items()]
        row = {
            "trial": self.id,
            "configuration": self.configuration,
            "method": self.method.name,
            "defenses": "+".join(self.chain.knobs),
            "federation": self.federation.name,
            "seed": self.seed,
            **self.method.top_columns(),
            **{
                f"{defense}.{knob}": v for defense, by_knob in values for knob, v in by_knob.items()
            },
            **self.numbers,
        }
        # the optimizer of an honest federation does not read gamma
        return row if self.federation.malicious else row | {"gamma": 0.0}


class Group(NamedTuple):
    """Trials of one program."""

    name: str
    spec: Spec
    trials: tuple[Trial, ...]
    weights: int = 0  # how many numbers a trial's networks and codebooks have


def check_counts(experiment: Experiment, federations: Sequence[Federation]) -> None:
    """Raises UserError for more trials or programs than ``experiment.limits`` allow, before any is built.

    Args:
      experiment: what is trained.
      federations: the federations that it is trained in.
    """
    experiment.check_trials(federations)
    programs, options = set(), {"grid": len(experiment.methods)}  # options: axes of programs
    for method in experiment.methods:
        # as text, because options may be unhashable or invalid: they are checked later
        chains = {(model_name(method.model), repr(chain.specs)) for chain in method.chains}
        programs |= {(f.split, *chain) for f in method.trained(federations) for chain in chains}
        for name, values in method.axes.items():
            _, static = defenses.TABLE[name].knobs_and_options(values)
            options |= lengths(f"grid.{method.name}.{name}", static)
    experiment.limits.check_count("programs", len(programs), options, "programs to compile")


def trials(experiment: Experiment, federations: Sequence[Federation]) -> list[Trial]:
    """Returns every trial of an experiment, configurations outermost, seeds innermost.

    Args:
      experiment: what is trained.
      federations: those to train; a method that needs a top model is left out of federations without one.
    """
    numbers = combinations(experiment.numbers, "training")
    configurations = [
        (method, chain, values)
        for method in experiment.methods
        for chain, values in itertools.product(method.chains, numbers)
    ]
    runs = (
        (number, *configuration, federation, seed)
        for number, configuration in enumerate(configurations)
        for federation in configuration[0].trained(federations)
        for seed in experiment.trained_seeds
    )
    return [Trial(i, *run) for i, run in enumerate(runs)]


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
        malicious optimizer and upload, which are honest at gamma = 0 and strength = 0, so that such trials
        share programs with others.
    """
    training, passive, rows = experiment.training, experiment.parties.passive, shape.num_rows
    cut, output = (model.cut, model.output) if federation.split else (shape.num_classes, "identity")
    top = models.TOPS[model.top](model.top_hidden, shape.num_classes, weights=model.weights)
    bottoms = tuple(make_network(model.network, cut, output, reads) for reads in shape.inputs)
    honest = training.optimizer
    attacker = experiment.malicious.optimizer(honest) if malicious else honest
    attacked_by = knowers(chain, federation.split) & set(experiment.attacks)
    whole = any(attacks.TABLE[name].whole_batches for name in attacked_by)
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
        upload=experiment.malicious.upload if malicious else HONEST,
        scope=training.scope,
        drop_last=training.drop_last,
        class_weights=tuple(map(float, training.class_weights)),
        recorded=0 if whole else training.scored_rows(rows) % rows,  # 0: all of them
        record_inputs=training.record_parameter_gradients and not federation.split,
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


def groups(experiment: Experiment, shape: DataShape, every_trial: Sequence[Trial]) -> list[Group]:
    """Returns trials grouped by equal Spec, in order of first appearance.

    Honest and malicious trials share a program (gamma is a number). Undefended trials join the first chain of
    their model in which every defense has neutral knobs and default options. This saves a program, and their
    results equal those of that chain at its neutral knobs bit for bit.

    Args:
      experiment: what is trained.
      shape: the data's classes, rows and columns.
      every_trial: the trials of the experiment.
    """
    malicious = any(trial.federation.malicious for trial in every_trial)
    sweeps_own = model_name(experiment.model)
    models_of = {m.name: model_name(m.model) for m in experiment.methods}
    names = {method: "" if name == sweeps_own else name for method, name in models_of.items()}
    hosts: dict[str, tuple[DefenseSpec, ...]] = {}  # by model, the chain for undefended trials
    for trial in every_trial:
        chain = trial.chain.specs
        # an option may be another rule: KDk anchored at its teacher changes labels at epsilon = 0 too
        if chain and all(
            defenses.TABLE[d.name].neutral is not None and not d.options for d in chain
        ):
            hosts.setdefault(names[trial.method.name], chain)
    specs: dict[Any, Spec] = {}
    empty: dict[Spec, Group] = {}
    members: dict[Spec, list[Trial]] = {}
    for trial in every_trial:
        model, split = names[trial.method.name], trial.federation.split
        chain = trial.chain.specs or hosts.get(model, ())
        if (split, chain, model) not in specs:
            spec = make_spec(
                experiment, shape, Federation(split), trial.method.model, chain, malicious
            )
            specs[split, chain, model] = spec
            empty.setdefault(spec, Group(_group_name(spec, model), spec, ()))
        members.setdefault(specs[split, chain, model], []).append(trial)
    return [empty[spec]._replace(trials=tuple(group)) for spec, group in members.items()]


def _group_name(spec: Spec, model: str) -> str:
    """Returns a name that is unique in a sweep, because stored shards refer to their group by it."""
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
    malicious = [[p in s.federation.malicious for p in range(len(spec.bottoms))] for s in trials]
    numbers = {k: column([s.numbers[k] for s in trials]) for k in trials[0].numbers}
    for name in ("gamma", "strength"):
        numbers[name] = numbers[name][:, None] * column(malicious)
    hparams = HParams(milestones=column([milestones] * len(trials)), defenses=knobs, **numbers)
    taught: HostArray = np.asarray([(teachers or {}).get(s.id, 0) for s in trials], np.int32)
    seeds: HostArray = np.asarray([s.seed for s in trials], np.int32)
    books = [(codebooks or {}).get(s.id, {}) for s in trials]
    return Member(seeds, taught, hparams, jax.tree.map(lambda *parts: np.stack(parts), *books))
