"""The config, parsed once into frozen records that the rest of the library reads.

The record of each group refuses invalid values. The checks of ``vfljax.sweep.limits`` apply to new sweeps
alone; a stored sweep is read without them. After ``parse`` no module reads a dict of the config, except for
the values of methods and attacks. ``Experiment.stored`` is the resolved config. It is written unchanged, so
that stored sweeps and config files have the same form.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vfljax import attacks, plugins
from vfljax.config import AXES, resolve
from vfljax.datasets.partition import Parties
from vfljax.errors import UserError, unknown, unknown_row
from vfljax.models.making import tuples
from vfljax.store import StoredSweep
from vfljax.sweep.limits import (
    LIMITS,
    LONGEST_TITLE,
    SizeLimits,
    check_distinct,
    check_name,
    check_text,
    lengths,
)
from vfljax.sweep.methods import Method, combinations, parse_methods
from vfljax.sweep.records import (
    MOST_WHOLE,
    Axis,
    Data,
    Execution,
    Goal,
    Malicious,
    Model,
    Reproduces,
    Teacher,
    Training,
    as_axis,
    at_least,
    parse_reproduces,
)
from vfljax.types import KINDS, MALICIOUS, NO_SPLIT, SPLIT, Federation

RECORDS = {
    "data": Data,
    "parties": Parties,
    "model": Model,
    "training": Training,
    "teacher": Teacher,
    "goal": Goal,
    "execution": Execution,
}


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A config, parsed: what is trained, attacked and reported."""

    name: str
    notes: tuple[str, ...]
    seeds: int
    first_seed: int
    data: Data
    parties: Parties
    model: Model
    training: Training
    malicious: Malicious
    teacher: Teacher
    methods: tuple[Method, ...]
    attacks: Mapping[str, Mapping[str, Any]]  # name -> option or knob -> value or values
    known_draws: int
    canaries: int
    attackers: tuple[tuple[int, ...], ...]
    federations: tuple[str, ...]  # kinds; (): ``attack_variants.federations`` chooses them
    goal: Goal
    reproduces: Reproduces | None
    execution: Execution
    stored: Mapping[str, Any]  # the resolved config as JSON values, for the writer of sweep.json
    limits: SizeLimits = LIMITS

    def __post_init__(self) -> None:
        for field, low in {"seeds": 1, "first_seed": 0, "known_draws": 1, "canaries": 0}.items():
            at_least(field, getattr(self, field), low)
        if self.attacks and not self.attackers:
            raise UserError("config.attackers=() names nobody: give ((0,),), or no config.attacks.")
        for field, groups in self.party_groups.items():
            for group in groups:
                _check_parties(field, group, self.parties.passive)
        _check_federations(self)
        names = [method.name for method in self.methods]
        for name in self.reproduces.arms if self.reproduces else ():
            if name not in names:
                raise unknown("method of config.reproduces", name, names)
        self.check_trials([Federation()])  # of one federation; ``grid.check_counts`` checks all

    @property
    def trained_seeds(self) -> range:
        """The seeds of trials. Tables hold all seeds from 0 on, so that a seed is also its index there."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def party_groups(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """The fields that name groups of passive parties."""
        return {"malicious.parties": self.malicious.parties, "attackers": self.attackers}

    @property
    def numbers(self) -> dict[str, Axis]:
        """The numbers of training that may be axes, in the order of their columns."""
        return {path.split(".")[1]: operator.attrgetter(path)(self) for path in AXES}

    @property
    def defense_values(self) -> dict[str, list[tuple[dict[str, float], dict[str, Any]]]]:
        """The knobs and options that the grid gives every defense, by the defense's name."""
        out: dict[str, list[tuple[dict[str, float], dict[str, Any]]]] = {}
        for chain in (chain for method in self.methods for chain in method.chains):
            for name, knobs in chain.knobs.items():
                pair = (knobs, chain.options[name])
                if pair not in out.setdefault(name, []):
                    out[name].append(pair)
        return out

    @property
    def static_options(self) -> dict[str, list[dict[str, Any]]]:
        """The static options of every attack's variants, by the attack's name."""
        return {
            name: combinations(
                {o: v for o, v in values.items() if o in attacks.TABLE[name].options},
                f"attacks.{name}",
            )
            for name, values in self.attacks.items()
        }

    def check_trials(self, federations: Sequence[Federation]) -> None:
        """Raises UserError for more trials in these federations than ``limits`` allow; none is built yet."""
        numbers = dict(zip(AXES, map(len, self.numbers.values()), strict=True))
        others = math.prod(numbers.values()) * self.seeds
        # of two that are equally long, the message names the first
        axes = {"seeds": self.seeds, "malicious.parties": len(self.malicious.parties)}
        axes |= {"grid": len(self.methods), **numbers}
        count = 0
        for method in self.methods:
            counts = {field: len(values) for field, values in method.values.items()}
            count += math.prod(counts.values()) * len(method.trained(federations)) * others
            axes |= counts
        self.limits.check_count("trials", count, axes, "trials")

    def with_attacks(self, names: Iterable[str] | Mapping[str, Any]) -> Experiment:
        """Returns the experiment with these attacks alone. A mapping also gives their options and knobs."""
        given = names if isinstance(names, Mapping) else self.attacks
        requests = {name: given.get(name, {}) for name in names}
        for name, values in requests.items():
            _check_attack(name, values, self.limits)
        return dataclasses.replace(self, attacks=requests)


def _check_parties(field: str, group: tuple[int, ...], passive: int) -> None:
    if not group or not all(type(p) is int and 0 <= p < passive for p in group):
        what = f"config.{field} names {list(group)}, but passive parties are 0..{passive - 1}"
        raise UserError(what, remedy="give a tuple of tuples such as ((0,),)")
    if len(set(group)) < len(group):
        raise UserError(f"config.{field} names {list(group)}: a party stands in it twice.")


def _check_federations(experiment: Experiment) -> None:
    """Refuses unknown federations, 'malicious' without malicious parties or without 'split' to compare with,
    and methods that cannot be trained in any of the federations."""
    kinds = experiment.federations
    for kind in kinds:
        if kind not in KINDS:
            raise unknown("federation of config.federations", kind, KINDS)
    named = f"config.federations={list(kinds)}"
    if MALICIOUS in kinds and not experiment.malicious.parties:
        raise UserError(f"{named}: config.malicious.parties=() names nobody: give ((0,),).")
    if MALICIOUS in kinds and SPLIT not in kinds:
        what = f"{named} has no honest federation to compare 'malicious' with"
        raise UserError(what, remedy="add 'split'")
    for method in experiment.methods:
        if method.needs_top and kinds == (NO_SPLIT,):
            raise UserError(f"{named}: config.grid.{method.name} needs a top model: add 'split'.")


def parse(config: Mapping[str, Any], limits: SizeLimits = LIMITS) -> Experiment:
    """Returns the records of the config of a new sweep.

    Args:
      config: a mapping with any of the fields of ``vfljax.config.DEFAULT``.
      limits: of the sweep's size.

    Raises:
      UserError: in one line, for an invalid config.
    """
    fields = resolve(config)
    _check_names(fields)
    experiment = _experiment(fields, limits)
    _check_axes(experiment)
    return experiment


def _experiment(fields: Mapping[str, Any], limits: SizeLimits) -> Experiment:
    for name in ("seeds", "first_seed"):
        limits.check("seeds", name, fields[name])
    limits.check("parties", "parties.passive", fields["parties"]["passive"])
    for group in ("training", "teacher"):
        limits.check("epochs", f"{group}.epochs", fields[group]["epochs"])
    malicious = fields["malicious"]
    malicious = malicious | {"parties": list(map(as_axis, malicious["parties"]))}
    records = {name: _record(kind, fields[name]) for name, kind in RECORDS.items()}
    return Experiment(
        name=fields["name"],
        notes=tuple(fields["notes"]),
        seeds=fields["seeds"],
        first_seed=fields["first_seed"],
        malicious=_record(Malicious, malicious),
        methods=parse_methods(fields["grid"], records["model"]),
        attacks=_attacks(fields["attacks"], len(fields["attackers"]), limits),
        known_draws=fields["known_draws"],
        canaries=fields["canaries"],
        attackers=tuple(tuple(as_axis(group)) for group in fields["attackers"]),
        federations=tuple(fields["federations"]),
        reproduces=parse_reproduces(fields["reproduces"]),
        stored=fields,
        limits=limits,
        **records,
    )


def _check_names(fields: Mapping[str, Any]) -> None:
    """Refuse names and texts that the report could not show."""
    check_name("config.name", fields["name"], LONGEST_TITLE)
    for note in fields["notes"]:
        check_text("config.notes:", note, allowed="\n\t")
    for name in fields["parties"]["names"]:
        check_name("config.parties.names:", name)
    if isinstance(fields["grid"], Mapping):
        for method in fields["grid"]:
            check_name("config.grid: the method", method)


def _check_axes(experiment: Experiment) -> None:
    """Refuse axes that name a value twice."""
    for method in experiment.methods:
        for field, values in method.values.items():
            check_distinct(field, values)
    for path, axis in zip(AXES, experiment.numbers.values(), strict=True):
        check_distinct(path, axis)
    for name, values in experiment.attacks.items():
        for option, axis in values.items():
            check_distinct(f"attacks.{name}.{option}", as_axis(axis))
    check_distinct("federations", experiment.federations)
    for field, groups in experiment.party_groups.items():
        check_distinct(field, [tuple(sorted(group)) for group in groups])


def parse_stored(config: Mapping[str, Any]) -> Experiment:
    """Returns the records of a stored sweep's config, without the checks that apply to new sweeps alone."""
    return _experiment(resolve(config), SizeLimits.none())


def experiment_of(sweep: StoredSweep) -> Experiment:
    """Returns the experiment of a stored sweep. Placeholders replace rows of plugins that are not in use."""
    plugins.stand_in(sweep.plugins)
    return parse_stored(sweep.config)


def changed(experiment: Experiment, fields: Mapping[str, Any]) -> Experiment:
    """Returns the experiment with some fields changed.

    Args:
      experiment: stays as it is.
      fields: new values, by dotted path.
    """
    config = copy.deepcopy(dict(experiment.stored))
    for path, value in fields.items():
        *groups, last = path.split(".")
        functools.reduce(operator.getitem, groups, config)[last] = value
    return _experiment(resolve(config), experiment.limits)


def with_knob(experiment: Experiment, defense: str, knob: str, value: float) -> Experiment:
    """Returns the experiment with one value of a knob, in every method that has the defense.

    Args:
      experiment: stays as it is.
      defense: the name of the defense.
      knob: the name of the knob.
      value: the value of the knob.
    """
    grid = copy.deepcopy(experiment.stored["grid"])
    for chain in grid.values():
        if defense in chain:
            chain[defense][knob] = value
    return changed(experiment, {"grid": grid})


def _record(kind: Any, group: Mapping[str, Any]) -> Any:
    """Makes the record of a group of fields. Lists become tuples, and an axis is always a tuple."""
    axes = {field.name for field in dataclasses.fields(kind) if field.type == "Axis"}
    fields = {name: tuple(as_axis(v)) if name in axes else tuples(v) for name, v in group.items()}
    return kind(**fields)


def _attacks(requests: Any, attackers: int, limits: SizeLimits) -> Mapping[str, Any]:
    if not isinstance(requests, Mapping):
        raise UserError(f"config.attacks={requests!r} must be {{attack: {{option: value}}}}.")
    axes, points = {"attackers": attackers}, 0
    for name, values in requests.items():
        _check_attack(name, values, limits)
        counts = lengths(f"attacks.{name}", values)
        axes, points = axes | counts, points + math.prod(counts.values()) * attackers
    limits.check_count("attack_points", points, axes, "attacks on every trial")
    return requests


def _check_attack(name: str, values: Any, limits: SizeLimits) -> None:
    if name not in attacks.TABLE:
        raise unknown_row("attack", name, attacks.TABLE)
    if not isinstance(values, Mapping):
        raise UserError(f"config.attacks.{name}={values!r} must be {{option: values}}.")
    for option, axis in values.items():
        field = f"attacks.{name}.{option}"
        for value in as_axis(axis):
            if isinstance(value, (int, float)) and value < math.inf:
                limit = "attack_steps" if option == "steps" else "attack_numbers"
                limits.check(limit, field, value)
            if isinstance(value, int):
                at_least(field, value, -MOST_WHOLE)
