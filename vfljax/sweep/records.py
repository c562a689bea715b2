"""The parts of an experiment: one frozen record for each group of the config's fields.

Each record checks itself when it is made. ``Experiment`` checks what concerns several groups, and
``vfljax.sweep.feasibility`` what concerns the data.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vfljax import models
from vfljax.config import DEFAULT
from vfljax.datasets.scaling import SCALING_ROWS, SCALINGS
from vfljax.defenses.core import LARGEST
from vfljax.errors import UserError, unknown
from vfljax.federation import optimizers, uploads
from vfljax.models import parties
from vfljax.models.making import NetworkFields

SCOPES = ("all", "passive")
EVALUATIONS = ("final", "released")
SCALES = ("full", "reduced", "sample")
TEXTS = ("table", "dataset", "scale", "variant")  # fields of ``config.reproduces``
MOST_WHOLE = 2**31 - 1  # JAX counts in int32
Axis = tuple[float, ...]  # the values of a number that may differ between trials


def as_axis(value: Any) -> list[Any]:
    """Returns a field's values as a list: the entries of a tuple or list, or the single value."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def written(number: float) -> str:
    """Returns a number as messages show it. Python itself cannot print integers of thousands of digits."""
    if isinstance(number, int) and abs(number) >= 10**18:
        return f"about 10^{int(abs(number).bit_length() * math.log10(2))}"
    return f"{number:,}" if isinstance(number, int) else str(number)


def is_number(value: Any) -> bool:
    """Whether a value is a number, which True and False are not."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def at_least(field: str, value: Any, low: float, most: float = LARGEST) -> None:
    """Refuse a number that is too small, or that no program can hold.

    Args:
      field: of the config.
      value: the number, or several.
      low: the least that it may be.
      most: the largest value of a float; an int must fit into int32.
    """
    for number in as_axis(value):
        if not number >= low:
            what = f"config.{field}={written(number)} is too small"
            raise UserError(what, remedy=f"it must be at least {low}")
        highest = MOST_WHOLE if isinstance(number, int) else most
        if number > highest:
            what = f"config.{field}={written(number)} is too large"
            raise UserError(what, remedy=f"it must be at most {highest:,}")


def _check_lowest(record: Any, group: str, lowest: Mapping[str, float]) -> None:
    for field, low in lowest.items():
        at_least(f"{group}.{field}", getattr(record, field), low)


def _check_choices(record: Any, group: str, tables: Mapping[str, Iterable[str]]) -> None:
    for field, table in tables.items():
        if getattr(record, field) not in table:
            raise unknown(f"config.{group}.{field}", getattr(record, field), table)


def _numbers(field: str, values: Sequence[Any], low: float, what: str) -> None:
    for value in values:
        if not is_number(value) or not low <= value <= LARGEST:
            shown = written(value) if is_number(value) else repr(value)
            raise UserError(f"config.{field} holds {shown}: give numbers, {what}.")


@dataclasses.dataclass(frozen=True)
class Data:
    """Which rows are loaded, and how they are divided into training, validation and test rows."""

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
        _check_lowest(self, "data", {"train": 0, "validation": 0, "test": 0})
        if not 0 <= self.permute_labels <= 1:
            what = f"config.data.permute_labels={written(self.permute_labels)}"
            remedy = "choose a share of the rows, from 0 (no label is permuted) to 1 (all are)"
            raise UserError(what, remedy=remedy)
        at_least("data.resident_gb", self.resident_gb, 0, most=math.inf)  # inf: never streamed
        _check_choices(self, "data", {"scaling": SCALINGS, "scaling_rows": SCALING_ROWS})


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
        tables = {"weights": models.WEIGHTS, "aggregation": parties.AGGREGATIONS}
        _check_choices(self, "model", {"top": models.TOPS, **tables})

    @property
    def network(self) -> NetworkFields:
        """The network of every bottom."""
        return _network("model", "bottom", vars(self))


def _network(group: str, field: str, values: Mapping[str, Any]) -> NetworkFields:
    """Returns the fields of the network that ``field`` of a config group names."""
    read = {"hidden": values["hidden"], "activation": values.get("activation", "relu")}
    return NetworkFields(
        where=f"config.{group}",
        field=field,
        name=values[field],
        weights=values.get("weights", "default"),
        options=values["options"],
        chosen=tuple(k for k, v in read.items() if v != DEFAULT[group].get(k, v)),
        **read,
    )


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
        numbers = dict.fromkeys(("learning_rate", "momentum", "weight_decay", "decay"), 0)
        _check_lowest(self, "training", {"epochs": 1, "batch_size": 1, "record_rows": 0, **numbers})
        if self.scope not in SCOPES:
            raise UserError(
                f"config.training.scope={self.scope!r} is unknown: choose 'all' (every bottom's "
                "gradient, as released) or 'passive' (what leaves the label party)."
            )
        _numbers("training.milestones", self.milestones, 0, "epochs, 0 or later")
        _numbers("training.class_weights", self.class_weights, 1e-6, "positive")
        for epoch in self.record:
            if type(epoch) is not int or not -1 <= epoch < self.epochs:
                what, last = f"config.training.record names epoch {epoch!r}", self.epochs - 1
                raise UserError(what, remedy=f"choose 0 to {last}, or -1 for the last")
        if self.record_parameter_gradients and self.record_rows:
            leaves = "leaves out rows whose gradients the parameter gradients hold"
            what = f"config.training.record_rows={self.record_rows} {leaves}"
            raise UserError(what, remedy="choose 0, or record_parameter_gradients=False")
        tables = {"precision": parties.PRECISIONS, "evaluation": EVALUATIONS}
        _check_choices(self, "training", {**tables, "optimizer": optimizers.TABLE})

    @property
    def recorded_epochs(self) -> list[int]:
        """The epochs whose exchange is stored, in order; the last is always one of them."""
        return sorted({self.epochs - 1 if epoch == -1 else epoch for epoch in (*self.record, -1)})

    def scored_rows(self, rows: int) -> int:
        """Returns how many of ``rows`` training rows attacks are scored on (``record_rows``)."""
        return min(self.record_rows or rows, rows)


@dataclasses.dataclass(frozen=True)
class Malicious:
    """Which parties are malicious (an axis), the rule and strength of their optimizer, and what they send."""

    parties: tuple[tuple[int, ...], ...]
    gamma: Axis
    rule: str
    upload: str
    strength: Axis

    def __post_init__(self) -> None:
        _check_lowest(self, "malicious", {"gamma": 0, "strength": 0})
        _check_choices(self, "malicious", {"rule": optimizers.RULES, "upload": uploads.TABLE})
        strength, most = max(self.strength, default=0.0), uploads.TABLE[self.upload].most
        if strength > most:
            raise UserError(
                f"config.malicious.strength={strength:g} is more than the {most:g} of "
                f"config.malicious.upload={self.upload!r}."
            )

    def optimizer(self, honest: str) -> str:
        """Returns the malicious form of an honest optimizer. Raises UserError if there is none."""
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
        _check_lowest(self, "teacher", lowest)

    @property
    def fields(self) -> NetworkFields:
        """The fields of its network."""
        return _network("teacher", "network", vars(self))


@dataclasses.dataclass(frozen=True)
class Execution:
    """How trials are mapped over the machine; no result depends on it."""

    width: int  # trials mapped at once on a device; 0: by backend
    shard_seconds: float

    def __post_init__(self) -> None:
        _check_lowest(self, "execution", {"width": 0, "shard_seconds": 1e-3})


@dataclasses.dataclass(frozen=True)
class Goal:
    """The requirements of a defense: ``config.goal``. No result depends on them."""

    max_leak: float = 1.0  # of the strongest attack, on the report's scale; 1: any
    max_cost: float = 1.0  # test utility (accuracy or AUC) that may be lost; 1: any
    keep_gain: float = 0.5  # share of the federation's gain over the label party alone to be kept

    def __post_init__(self) -> None:
        for field in ("max_leak", "max_cost", "keep_gain"):
            value = getattr(self, field)
            if not 0 <= value <= 1:
                raise UserError(f"config.goal.{field}={written(value)}: give a number from 0 to 1.")


@dataclasses.dataclass(frozen=True)
class Reproduces:
    """The paper's table that a sweep reproduces. ``vfljax.papers`` checks that the table exists, and compares
    the results with it."""

    table: str  # "gafm/2", "kdk/figure6"
    dataset: str = ""  # as the paper calls it
    # "reduced": less training or a smaller network; "sample": some of the paper's rows
    scale: str = "full"
    variant: str = ""  # the name of a rule that differs from the paper's; "": none does
    # arms: our method -> the paper's defense; attacks: the paper's attack -> our label
    arms: Mapping[str, str] = dataclasses.field(default_factory=dict)
    attacks: Mapping[str, str] = dataclasses.field(default_factory=dict)
    # facts of the paper's numbers that are no knobs here: of the whole sweep, or {method: facts}
    setting: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        for field, value in vars(self).items():
            if not isinstance(value, str if field in TEXTS else Mapping):
                what = "is no text" if field in TEXTS else "must be a group of fields"
                raise UserError(f"config.reproduces.{field}={value!r} {what}.")
        _check_choices(self, "reproduces", {"scale": SCALES})


def parse_reproduces(group: Any) -> Reproduces | None:
    """Returns the record of ``config.reproduces``, None if it is empty."""
    if group == {}:
        return None
    known = [field.name for field in dataclasses.fields(Reproduces)]
    if not isinstance(group, Mapping) or "table" not in group:
        what = f"config.reproduces={group!r} names no table"
        raise UserError(what, remedy="give one, for example {'table': 'gafm/2'}")
    for name in group:
        if name not in known:
            raise unknown("config field", f"reproduces.{name}", known)
    return Reproduces(**group)
