"""The config, parsed once into frozen records that the rest of the library reads.

``parse(config) -> Experiment``. Every refusal that needs no data is made by the record it concerns
(``vfljax.sweep.records``); nothing has been read, trained or written by then. After
it no module sees a dict of the config: a function takes the one record it needs. (Of an arm and an
attack the values stay as they were given, by name.) The stored JSON
(``Experiment.stored``) is written as it came, so that stored sweeps and config files keep their form.
"""

from __future__ import annotations

import copy
import dataclasses
import inspect
import itertools
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from vfljax import attacks, defenses
from vfljax.config import DEFAULT, resolve, typed
from vfljax.datasets.dividing import Parties
from vfljax.errors import UserError, unknown
from vfljax.models.making import sizes
from vfljax.store import Sweep
from vfljax.sweep.records import (
    Axis,
    Data,
    Execution,
    Malicious,
    Model,
    Published,
    Teacher,
    Training,
    as_axis,
    at_least,
)
from vfljax.types import DefenseSpec

ARM_MODEL = ("top", "top_hidden")  # an arm's own; every bottom is the whole sweep's


def combinations(axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All combinations of axes, the last axis fastest."""
    lists = [as_axis(values) for values in axes.values()]
    if any(not values for values in lists):
        empty = [name for name, values in axes.items() if not as_axis(values)]
        raise UserError(f"the axis {empty[0]} is empty: give at least one value.")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]


class ChainPoint(NamedTuple):
    """One value for every knob and option of an arm's chain; defense -> name -> value."""

    knobs: dict[str, dict[str, float]]
    options: dict[str, dict[str, Any]]

    @property
    def chain(self) -> tuple[DefenseSpec, ...]:
        """The static half, in listing order."""
        return tuple(
            DefenseSpec(name, tuple(sorted(self.options[name].items()))) for name in self.knobs
        )


@dataclasses.dataclass(frozen=True)
class Arm:
    """One entry of ``config.grid``: a chain of defenses with its axes, and perhaps its own top model."""

    name: str
    axes: Mapping[str, Mapping[str, Any]]  # defense -> knob or option -> value or values
    points: tuple[ChainPoint, ...]
    top: Mapping[str, Any]  # those of ARM_MODEL that it names; the sweep's where absent
    model: Model  # with that top

    @property
    def needs_top(self) -> bool:
        """Whether it is trained with model splitting only."""
        return any(defenses.TABLE[name].needs_top for name in self.axes)

    @property
    def model_name(self) -> str:
        """'generator-16' where its model is not the sweep's, else ''. Arms of one name share one model."""
        return "-".join(field_text(getattr(self.model, field)) for field in ARM_MODEL)

    def top_columns(self) -> dict[str, str]:
        """Its own model fields as columns of results."""
        return {f"model.{field}": field_text(value) for field, value in self.top.items()}


def field_text(value: Any) -> str:
    """'generator', '16-8', 'none': a model field as a table column or a part of a name."""
    return "-".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


class AttackRequest(NamedTuple):
    """One entry of ``config.attacks``: an attack and the values of its options and knobs."""

    name: str
    values: Mapping[str, Any]  # option or knob -> value or values


@dataclasses.dataclass(frozen=True)
class Experiment:
    """A config, parsed: what is trained, attacked and reported."""

    name: str
    notes: tuple[str, ...]
    seeds: int
    data: Data
    parties: Parties
    model: Model
    training: Training
    malicious: Malicious
    teacher: Teacher
    arms: tuple[Arm, ...]
    attacks: tuple[AttackRequest, ...]
    attackers: tuple[tuple[int, ...], ...]
    published: Published | None
    execution: Execution
    stored: Mapping[str, Any]  # the resolved config as JSON values, for the writer of sweep.json

    def __post_init__(self) -> None:
        at_least("seeds", self.seeds, 1)
        if self.attacks and not self.attackers:
            raise UserError("config.attackers=() names nobody: give ((0,),), or no config.attacks.")
        passive = self.parties.passive
        for field, groups in (
            ("malicious.parties", self.malicious.parties),
            ("attackers", self.attackers),
        ):
            for group in groups:
                _check_parties(field, group, passive)
        if self.published is not None:
            names = [arm.name for arm in self.arms]
            for name in self.published.rows:
                if name not in names:
                    raise unknown("arm of config.published", name, names)

    @property
    def numbers(self) -> dict[str, Axis]:
        """The numbers of training that may be axes, in the order of their columns."""
        training = self.training
        return {
            "learning_rate": training.learning_rate,
            "momentum": training.momentum,
            "weight_decay": training.weight_decay,
            "decay": training.decay,
            "gamma": self.malicious.gamma,
        }

    def with_attacks(self, names: Iterable[str]) -> Experiment:
        """The same with these attacks alone, with the config's options where it names them."""
        values = {request.name: request.values for request in self.attacks}
        requests = tuple(AttackRequest(name, values.get(name, {})) for name in names)
        for request in requests:
            _check_attack(request.name, request.values)
        return dataclasses.replace(self, attacks=requests)


def _check_parties(field: str, group: tuple[int, ...], passive: int) -> None:
    numbers = all(isinstance(p, int) and not isinstance(p, bool) for p in group)
    if not group or not numbers or not all(0 <= p < passive for p in group):
        raise UserError(
            f"config.{field} names {list(group)}, but passive parties are 0..{passive - 1}: "
            "give a tuple of tuples such as ((0,),)."
        )
    if len(set(group)) < len(group):
        raise UserError(f"config.{field} names {list(group)}: a party stands in it twice.")


def parse(config: Mapping[str, Any]) -> Experiment:
    """The records of a config; raises UserError with one line for anything it cannot mean."""
    fields = resolve(config)
    model = _record(Model, fields["model"])
    published = fields["published"]
    if published != {} and (
        not isinstance(published, Mapping) or set(published) != {"source", "digits", "rows"}
    ):
        raise UserError("config.published must have exactly the fields source, digits, rows.")
    return Experiment(
        name=fields["name"],
        notes=tuple(fields["notes"]),
        seeds=fields["seeds"],
        data=_record(Data, fields["data"]),
        parties=_record(Parties, fields["parties"]),
        model=model,
        training=_record(Training, fields["training"]),
        malicious=_malicious(fields["malicious"]),
        teacher=_record(Teacher, fields["teacher"]),
        arms=_arms(fields["grid"], model),
        attacks=_attacks(fields["attacks"]),
        attackers=_groups(fields["attackers"]),
        published=Published(**published) if published else None,
        execution=_record(Execution, fields["execution"]),
        stored=fields,
    )


def experiment_of(sweep: Sweep) -> Experiment:
    """The experiment that a stored sweep was made by."""
    return parse(sweep.config)


def changed(experiment: Experiment, fields: Mapping[str, Any]) -> Experiment:
    """The experiment whose config has these fields, by dotted path, in place of its own."""
    config = copy.deepcopy(dict(experiment.stored))
    for path, value in fields.items():
        *groups, last = path.split(".")
        group = config
        for name in groups:
            group = group[name]
        group[last] = value
    return parse(config)


def with_knob(experiment: Experiment, defense: str, knob: str, value: float) -> Experiment:
    """The experiment with one value of a knob in every arm whose chain has the defense."""
    grid = copy.deepcopy(experiment.stored["grid"])
    for chain in grid.values():
        if defense in chain:
            chain[defense][knob] = value
    return changed(experiment, {"grid": grid})


def _record(kind: Any, group: Mapping[str, Any]) -> Any:
    """A record of a group of fields: lists are tuples in it, an axis always is one."""
    axes = {field.name for field in dataclasses.fields(kind) if field.type == "Axis"}
    return kind(
        **{
            name: tuple(as_axis(value)) if name in axes else _tuples(value)
            for name, value in group.items()
        }
    )


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _groups(values: Iterable[Any]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(as_axis(group)) for group in values)


def _malicious(group: Mapping[str, Any]) -> Malicious:
    return Malicious(_groups(group["parties"]), tuple(as_axis(group["gamma"])), group["rule"])


def _arms(grid: Any, model: Model) -> tuple[Arm, ...]:
    if not grid:
        raise UserError("config.grid is empty: give at least {'undefended': {}}.")
    if not isinstance(grid, Mapping):
        raise UserError(f"config.grid={grid!r} must be {{arm: {{defense: {{knob: values}}}}}}.")
    return tuple(_arm(name, chain, model) for name, chain in grid.items())


def _arm(name: str, entry: Any, model: Model) -> Arm:
    if not isinstance(entry, Mapping):
        raise UserError(f"config.grid.{name}={entry!r} must be {{defense: {{knob: values}}}}.")
    where = f"config.grid.{name}.model"
    top = entry.get("model", {})
    if not isinstance(top, Mapping):
        raise UserError(f"{where}={top!r} must be a group of fields: {', '.join(ARM_MODEL)}.")
    for field in top:
        if field not in ARM_MODEL:  # an attack holds one bottom, and baselines one cut
            raise unknown(f"field of {where}", field, ARM_MODEL)
    top = {
        field: _tuples(typed(DEFAULT["model"][field], value, f"grid.{name}.model.{field}"))
        for field, value in top.items()
    }
    hidden = top.get("top_hidden", model.top_hidden)
    sizes(f"{where if 'top_hidden' in top else 'config.model'}.top_hidden", hidden)
    axes = {defense: values for defense, values in entry.items() if defense != "model"}
    points = tuple(_points(name, axes))
    return Arm(name, axes, points, top, dataclasses.replace(model, **top))


def _points(arm: str, chain: Mapping[str, Any]) -> list[ChainPoint]:
    """Every combination of an arm's knobs and options, knobs that it does not name at their default."""
    axes: dict[str, Any] = {}
    for name, values in chain.items():
        if name not in defenses.TABLE:
            raise unknown("defense", name, defenses.TABLE)
        if not isinstance(values, Mapping):
            raise UserError(f"config.grid.{arm}.{name}={values!r} must be {{knob: values}}.")
        row = defenses.TABLE[name]
        for knob in values:
            if knob not in row.knobs and knob not in row.options:
                raise unknown(f"knob of {name}", knob, [*row.knobs, *row.options])
        for knob, parameter in row.knobs.items():
            if knob not in values and parameter.default is inspect.Parameter.empty:
                raise UserError(f"config.grid.{arm}.{name} gives no {knob}: name its value(s).")
        axes.update({f"{name} {knob}": value for knob, value in values.items()})
    points = []
    for combination in combinations(axes):
        point = ChainPoint({name: {} for name in chain}, {name: {} for name in chain})
        for key, value in combination.items():
            name, knob = key.split(" ")
            if knob in defenses.TABLE[name].knobs:
                point.knobs[name][knob] = _knob(f"{name}.{knob}", value)
            else:
                point.options[name][knob] = value
        for name in chain:  # defaulted knobs are columns too
            for knob, parameter in defenses.TABLE[name].knobs.items():
                point.knobs[name].setdefault(knob, parameter.default)
        points.append(point)
    return points


def _knob(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UserError(f"{name}={value!r} is not a number.")
    try:
        return float(value)
    except OverflowError:  # an integer of hundreds of digits
        raise UserError(f"{name} is too large: choose a smaller one.") from None


def _attacks(requests: Any) -> tuple[AttackRequest, ...]:
    if not isinstance(requests, Mapping):
        raise UserError(f"config.attacks={requests!r} must be {{attack: {{option: value}}}}.")
    for name, values in requests.items():
        _check_attack(name, values)
    return tuple(AttackRequest(name, values) for name, values in requests.items())


def _check_attack(name: str, values: Any) -> None:
    if name not in attacks.TABLE:
        raise unknown("attack", name, attacks.TABLE)
    if not isinstance(values, Mapping):
        raise UserError(f"config.attacks.{name}={values!r} must be {{option: values}}.")
