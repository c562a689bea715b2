"""The parts of an experiment: one frozen record a group of the config's fields.

Each record checks itself when it is made: a value that cannot be meant is refused with the field, the
value and the remedy. What concerns several groups is refused by ``Experiment``, and what concerns the
data by ``vfljax.sweep.grid``.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from vfljax import models
from vfljax.config import DEFAULT
from vfljax.datasets.scaling import SCALING_ROWS, SCALINGS
from vfljax.defenses.core import LARGEST
from vfljax.errors import UserError, unknown
from vfljax.federation import optimizers
from vfljax.models import parties
from vfljax.models.making import NetworkFields

SCOPES = ("all", "passive")
EVALUATIONS = ("final", "released")
MOST_WHOLE = 2**31 - 1  # JAX counts in int32
MOST = LARGEST  # and computes in float32
Axis = tuple[float, ...]  # the values of a number that may differ between trials


def as_axis(value: Any) -> list[Any]:
    """A field's values: those of a tuple or list, or the one that it is."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def tuples(value: Any) -> Any:
    """JSON's lists as tuples, at every depth."""
    return tuple(map(tuples, value)) if isinstance(value, list) else value


def written(number: float) -> str:
    """A number of a message; Python itself refuses to write integers of thousands of digits."""
    if isinstance(number, int) and abs(number) >= 10**18:
        return f"about 10^{int(abs(number).bit_length() * math.log10(2))}"
    return f"{number:,}" if isinstance(number, int) else str(number)


def at_least(field: str, value: Any, low: float, most: float = MOST) -> None:
    """Refuse numbers below ``low``, and those that no program can hold: whole ones above int32, others
    above ``most``."""
    for number in as_axis(value):
        if not number >= low:
            raise UserError(
                f"config.{field}={written(number)} is too small: it must be at least {low}."
            )
        highest = MOST_WHOLE if isinstance(number, int) else most
        if number > highest:
            raise UserError(
                f"config.{field}={written(number)} is too large: it must be at most {highest:,}."
            )


def _numbers(field: str, values: Sequence[Any], low: float, what: str) -> None:
    for value in values:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not number or not low <= value <= MOST:
            shown = written(value) if number else repr(value)
            raise UserError(f"config.{field} holds {shown}: give numbers, {what}.")


@dataclasses.dataclass(frozen=True)
class Data:
    """Which rows are loaded and how they are divided between parts."""

    name: str
    dir: str
    options: Mapping[str, Any]
    train: float  # a share up to 1.0, or a count
    validation: float
    test: float
    scaling: str
    scaling_rows: str
    resident_gb: float
    permute_labels: float

    def __post_init__(self) -> None:
        for field in ("train", "validation", "test"):
            at_least(f"data.{field}", getattr(self, field), 0)
        if not 0 <= self.permute_labels <= 1:
            raise UserError(
                f"config.data.permute_labels={written(self.permute_labels)}: choose a share of the rows, "
                "from 0 (no label is permuted) to 1 (all are)."
            )
        at_least("data.resident_gb", self.resident_gb, 0, most=math.inf)  # inf: nothing is fetched
        if self.scaling not in SCALINGS:
            raise unknown("config.data.scaling", self.scaling, SCALINGS)
        if self.scaling_rows not in SCALING_ROWS:
            raise unknown("config.data.scaling_rows", self.scaling_rows, SCALING_ROWS)


@dataclasses.dataclass(frozen=True)
class Model:
    """The networks of the parties, and how embeddings are put together."""

    bottom: str
    hidden: tuple[int, ...]
    activation: str
    output: str
    cut: int
    top: str
    top_hidden: tuple[int, ...]
    aggregation: str
    weights: str
    options: Mapping[str, Any]
    pretrained: str

    def __post_init__(self) -> None:
        at_least("model.cut", self.cut, 1)
        for field, table in (
            ("top", models.TOPS),
            ("weights", models.WEIGHTS),
            ("aggregation", parties.AGGREGATIONS),
        ):
            if getattr(self, field) not in table:
                raise unknown(f"config.model.{field}", getattr(self, field), table)

    @property
    def network(self) -> NetworkFields:
        """What it says of the bottoms."""
        chosen = _chosen("model", {"hidden": self.hidden, "activation": self.activation})
        return NetworkFields(
            where="config.model",
            field="bottom",
            name=self.bottom,
            hidden=self.hidden,
            activation=self.activation,
            weights=self.weights,
            options=self.options,
            chosen=chosen,
        )


def _chosen(group: str, fields: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields that are not at the default of their group."""
    defaults = DEFAULT[group]
    return tuple(name for name, value in fields.items() if value != defaults.get(name, value))


@dataclasses.dataclass(frozen=True)
class Training:
    """How every trial is trained. Four of its numbers may be axes."""

    epochs: int
    batch_size: int
    optimizer: str
    learning_rate: Axis
    momentum: Axis
    weight_decay: Axis
    milestones: tuple[float, ...]
    decay: Axis
    drop_last: bool
    class_weights: tuple[float, ...]
    scope: str
    precision: str
    evaluation: str
    record: tuple[int, ...]
    record_rows: int
    record_parameter_gradients: bool

    def __post_init__(self) -> None:
        for field, low in (("epochs", 1), ("batch_size", 1), ("record_rows", 0)):
            at_least(f"training.{field}", getattr(self, field), low)
        for field in ("learning_rate", "momentum", "weight_decay", "decay"):
            at_least(f"training.{field}", getattr(self, field), 0)
        if self.scope not in SCOPES:
            raise UserError(
                f"config.training.scope={self.scope!r} is unknown: choose 'all' (every bottom's "
                "gradient, as released) or 'passive' (what leaves the label party)."
            )
        if self.precision not in parties.PRECISIONS:
            raise unknown("config.training.precision", self.precision, parties.PRECISIONS)
        _numbers("training.milestones", self.milestones, 0, "epochs, 0 or later")
        _numbers("training.class_weights", self.class_weights, 1e-6, "positive")
        for epoch in self.record:
            number = isinstance(epoch, int) and not isinstance(epoch, bool)
            if not number or not -1 <= epoch < self.epochs:
                raise UserError(
                    f"config.training.record names epoch {epoch!r}: choose 0 to {self.epochs - 1}, or "
                    "-1 for the last."
                )
        if self.record_parameter_gradients and self.record_rows:
            raise UserError(
                f"config.training.record_rows={self.record_rows} leaves out rows whose gradients the "
                "parameter gradients hold: choose 0, or record_parameter_gradients=False."
            )
        if self.evaluation not in EVALUATIONS:
            raise unknown("config.training.evaluation", self.evaluation, EVALUATIONS)
        if self.optimizer not in optimizers.TABLE:
            raise unknown("config.training.optimizer", self.optimizer, optimizers.TABLE)

    @property
    def recorded_epochs(self) -> list[int]:
        """The epochs whose exchange is stored, in order; the last is always one of them."""
        last = self.epochs - 1
        return sorted({last if epoch == -1 else epoch for epoch in (*self.record, -1)})

    def scored_rows(self, rows: int) -> int:
        """Of how many of the ``rows`` to train on the exchange is stored, and attacks are scored."""
        return min(self.record_rows or rows, rows)


@dataclasses.dataclass(frozen=True)
class Malicious:
    """Who trains with the malicious optimizer (an axis), how strongly, and by which rule."""

    parties: tuple[tuple[int, ...], ...]
    gamma: Axis
    rule: str

    def __post_init__(self) -> None:
        at_least("malicious.gamma", self.gamma, 0)
        if self.rule not in optimizers.RULES:
            raise unknown("config.malicious.rule", self.rule, optimizers.RULES)

    def optimizer(self, honest: str) -> str:
        """The malicious form of an honest optimizer; raises UserError where there is none."""
        if honest not in optimizers.MALICIOUS:
            raise UserError(
                f"config.training.optimizer={honest!r} has no malicious form: choose one of "
                f"{', '.join(optimizers.MALICIOUS)} or train no malicious federation (the active attack, "
                "config.federations)."
            )
        forms = optimizers.MALICIOUS[honest]
        if self.rule not in forms:
            raise UserError(
                f"config.malicious.rule={self.rule!r} is not defined for "
                f"config.training.optimizer={honest!r}: choose {' or '.join(map(repr, forms))}, or the "
                "optimizer 'sgd'."
            )
        return forms[self.rule]


@dataclasses.dataclass(frozen=True)
class Teacher:
    """The label party's teacher: its network and its training."""

    network: str
    options: Mapping[str, Any]
    pretrained: str
    hidden: tuple[int, ...]
    epochs: int
    batch_size: int
    learning_rate: float
    temperature: float

    def __post_init__(self) -> None:
        lowest = {"epochs": 1, "batch_size": 1, "learning_rate": 0, "temperature": 1e-6}
        for field, low in lowest.items():
            at_least(f"teacher.{field}", getattr(self, field), low)

    @property
    def fields(self) -> NetworkFields:
        """What it says of the network."""
        chosen = _chosen("teacher", {"hidden": self.hidden})
        return NetworkFields(
            where="config.teacher",
            field="network",
            name=self.network,
            hidden=self.hidden,
            activation="relu",
            weights="default",
            options=self.options,
            chosen=chosen,
        )


@dataclasses.dataclass(frozen=True)
class Execution:
    """How trials are mapped over the machine; no result depends on it."""

    width: int  # trials mapped at once on a device; 0: by backend
    shard_seconds: float

    def __post_init__(self) -> None:
        at_least("execution.width", self.width, 0)
        at_least("execution.shard_seconds", self.shard_seconds, 1e-3)


SCALES = ("full", "reduced", "sample")


@dataclasses.dataclass(frozen=True)
class Goal:
    """What is asked of a defense: ``config.goal``. No result depends on it."""

    max_leak: float = 1.0  # of the strongest attack, on the report's scale; 1: any
    max_cost: float = 1.0  # test utility (accuracy or AUC) that may be lost; 1: any
    keep_gain: float = 0.5  # share of the federation's gain over the label party alone to be kept

    def __post_init__(self) -> None:
        for field in ("max_leak", "max_cost", "keep_gain"):
            value = getattr(self, field)
            if not 0 <= value <= 1:
                raise UserError(f"config.goal.{field}={value}: give a number from 0 to 1.")


@dataclasses.dataclass(frozen=True)
class Reproduces:
    """The paper's table that a sweep is a run of: ``vfljax.papers`` checks that there is such a table, and
    compares."""

    table: str  # "gafm/2", "kdk/figure6"
    dataset: str = ""  # as the paper calls it
    # "reduced": less training or a smaller network; "sample": some of the paper's rows
    scale: str = "full"
    variant: str = ""  # the name of a rule that is not the paper's; "": none
    # method -> the paper's defense; the paper's attack -> our label
    arms: Mapping[str, str] = dataclasses.field(default_factory=dict)
    attacks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # facts that the paper's numbers name and no knob is: of the whole sweep, or {method: facts} of one method
    setting: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for field in ("table", "dataset", "scale", "variant"):
            if not isinstance(getattr(self, field), str):
                raise UserError(f"config.reproduces.{field}={getattr(self, field)!r} is no text.")
        if self.scale not in SCALES:
            raise unknown("config.reproduces.scale", self.scale, SCALES)
        for field in ("arms", "attacks", "setting"):
            if not isinstance(getattr(self, field), Mapping):
                raise UserError(
                    f"config.reproduces.{field}={getattr(self, field)!r} must be a group of fields."
                )


def parse_reproduces(group: Any) -> Reproduces | None:
    """The record of ``config.reproduces``, None where it is empty."""
    if group == {}:
        return None
    known = [field.name for field in dataclasses.fields(Reproduces)]
    if not isinstance(group, Mapping) or "table" not in group:
        raise UserError(
            f"config.reproduces={group!r} names no table: give one, for example {{'table': 'gafm/2'}}."
        )
    for name in group:
        if name not in known:
            raise unknown("config field", f"reproduces.{name}", known)
    return Reproduces(**group)
