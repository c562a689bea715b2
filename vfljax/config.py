"""The config of a sweep: typed records, and how files, flags and Python fill them.

A config file's ``get_config()`` returns ``ordered({...})`` with any of the fields of ``Config``.
In ``grid`` each entry is a method: ``{method: {defense: {knob: value or tuple of values}}}``; a tuple is
an axis of the grid. Defenses of one method are chained in listing order. A method's entry ``"model"``
replaces ``top`` and ``top_hidden`` of ``config.model``. The field ``attacks`` has the form
``{attack: {option: value or tuple of values}}``. Any field can be overridden on the command line, for example
by ``--config.training.epochs=100``.

The type of a field says which values it may have. ``vfljax.sweep.grid.parse`` also checks the names that a
config takes from the tables of defenses, attacks and networks, which this module does not know.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import math
import operator
import os
import pathlib
import types
from collections.abc import Iterable, Mapping, Sequence
from importlib.machinery import SourceFileLoader
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_type_hints

import msgspec
import numpy as np
from ml_collections import ConfigDict
from msgspec import Meta, Struct, inspect

from vfljax.errors import (
    LARGEST,
    MOST_WHOLE,
    Field,
    UserError,
    bounds,
    nearest,
    packaged,
    raised,
    unknown,
    user_path,
)

Count = Annotated[int, Meta(ge=1, le=MOST_WHOLE)]
Whole = Annotated[int, Meta(ge=0, le=MOST_WHOLE)]
Epoch = Annotated[int, Meta(ge=-1, le=MOST_WHOLE)]  # -1: the last
Number = Annotated[float, Meta(ge=0, le=LARGEST)]
Positive = Annotated[float, Meta(ge=1e-6, le=LARGEST)]
Share = Annotated[float, Meta(ge=0, le=1)]
Rows = Whole | Number  # an int is a count, a float up to 1.0 a share
Axis = Number | Annotated[tuple[Number, ...], Meta(min_length=1)]
Options = dict[str, Any]
MALICIOUS, SPLIT = "malicious", "split"  # as in ``vfljax.types``, which would load JAX for --help

# --- axes ---


def as_axis(value: Any) -> list[Any]:
    """Returns a field's values as a list: the entries of a tuple or list, or the single value."""
    return list(value) if isinstance(value, (list, tuple)) else [value]


def combinations(axes: Mapping[str, Any], field: str) -> list[dict[str, Any]]:
    """Returns all combinations of the values of ``axes``, the last axis fastest.

    Args:
      axes: by name, a value or a list of values.
      field: the config's group of these axes, for the message.

    Raises:
      UserError: if an axis has no value, or names one twice.
    """
    lists = {name: as_axis(values) for name, values in axes.items()}
    for name, values in lists.items():
        if not values:
            raise UserError("is empty", field=f"{field}.{name}", remedy="give at least one value")
        check_distinct(f"{field}.{name}", values)
    return [dict(zip(axes, each, strict=True)) for each in itertools.product(*lists.values())]


def check_distinct(field: str, values: Sequence[Any]) -> None:
    """Refuses an axis that names a value twice: its trials would be trained, and counted, twice.

    1 and 1.0 are the same value; True is a different value.

    Args:
      field: of the config.
      values: of the axis.

    >>> check_distinct("training.momentum", (0, 0.9))
    >>> check_distinct("training.momentum", (0, 0.0))
    Traceback (most recent call last):
    vfljax.errors.UserError: config.training.momentum names 0.0 twice: leave one of them out.
    """
    seen = set()
    for value in values:
        key = _key(value)
        if key in seen:
            raise UserError(f"config.{field} names {value!r} twice: leave one of them out.")
        seen.add(key)


def _key(value: Any) -> Any:
    """A hashable value that is equal for equal values of an axis."""
    if isinstance(value, (list, tuple)):
        return tuple(map(_key, value))
    if isinstance(value, dict):
        return tuple((name, _key(item)) for name, item in value.items())
    return isinstance(value, bool), value


def _wrong(path: str, value: Any, what: str, remedy: str) -> UserError:
    """Returns the error for a field; ``path`` is "" for the whole config."""
    field = Field(path) if path else Field("", "config")
    return UserError(what, field=field, value=value, remedy=remedy)


def _check_parties(field: str, group: Sequence[int], passive: int) -> None:
    if not group or max(group) >= passive:
        what = f"config.{field} names {list(group)}, but passive parties are 0..{passive - 1}"
        raise UserError(what, remedy="give a tuple of tuples such as ((0,),)")
    if len(set(group)) < len(group):
        raise UserError(f"config.{field} names {list(group)}: name each party once.")


# --- the groups of a config; the text beside a type says what the field means ---


class Data(Struct, frozen=True):
    """Which rows are loaded, and how they are divided into training, validation and test rows."""

    name: Annotated[str, "data set, one of those that `vfljax data` lists"] = "digits"
    dir: Annotated[str, "folder (or file) of data sets that do not come with the install"] = ""
    options: Annotated[Options, "options of the data set's loader, which `vfljax data` lists"] = {}
    train: Annotated[
        Rows, "rows to train on: a share up to 1.0 (of the published part), or a count"
    ] = 0.6
    validation: Annotated[Rows, "validation rows, likewise"] = 0.2
    test: Annotated[Rows, "test rows, likewise"] = 0.2
    scaling: Annotated[
        Literal["standard", "minmax", "range", "none"],
        "scaling of columns: standard, minmax, range or none",
    ] = "standard"
    scaling_rows: Annotated[
        Literal["train", "all"], "whose statistics scale: train, each seed's own rows, or all"
    ] = "train"
    permute_labels: Annotated[
        Share, "share of rows whose labels are permuted; 1 leaves no signal"
    ] = 0.0
    resident_gb: Annotated[
        Annotated[float, Meta(ge=0)],
        "features larger than this stay on the host; batches are fetched",
    ] = 4.0


class Parties(Struct, frozen=True):
    """Who takes part and how the features are divided between them."""

    passive: Annotated[Count, "how many passive parties there are"] = 1  # P
    label_features: Annotated[bool, "whether the label party owns columns"] = True
    rule: Annotated[
        Literal["contiguous", "rows", "grid"],
        "division of features; images also rows, or grid (patches)",
    ] = "contiguous"
    shares: Annotated[
        tuple[Annotated[float, Meta(gt=0, le=LARGEST)], ...],
        "of columns, pixels or words, passive parties first; (): equal",
    ] = ()
    columns: Annotated[
        tuple[str | tuple[str, ...], ...],
        "of a table: one tuple of names or globs a party; '*' is the rest",
    ] = ()
    names: Annotated[
        tuple[str, ...], "names in the report, passive parties first, the label party last"
    ] = ()

    def __post_init__(self) -> None:
        if self.columns and self.shares:
            what = "divides columns and config.parties.columns names whose they are"
            raise _wrong("parties.shares", self.shares, what, "leave one of the two empty")
        if self.shares and len(self.shares) != self.owners:
            what = f"is not one share for each of the {self.owners} parties that own columns"
            remedy = "give one each, passive parties first"
            raise _wrong("parties.shares", self.shares, what, remedy)
        if self.names and len(self.names) != self.passive + 1:
            what = f"has {len(self.names)} names"
            passive = f"one for each of the {self.passive} passive parties"
            remedy = f"give {passive} and, last, one for the label party"
            raise _wrong("parties.names", self.names, what, remedy)
        check_distinct("parties.names", self.names)

    @property
    def owners(self) -> int:
        """How many parties own features."""
        return self.passive + int(self.label_features)

    def name_of(self, party: int) -> str:
        """Returns what a report calls a passive party, or the label party, whose number is ``passive``."""
        if self.names:
            return self.names[party]
        return "the label party" if party == self.passive else f"passive party {party}"


class Model(Struct, frozen=True):
    """The networks of the parties, and how embeddings are put together."""

    bottom: Annotated[str, "network of each party that owns columns"] = "mlp"
    hidden: Annotated[tuple[Count, ...], "widths of the hidden layers of the bottoms"] = (64,)
    activation: Annotated[str, "activation of the hidden layers of the bottoms"] = "relu"
    output: Annotated[str, "activation at the end of the bottoms, with model splitting"] = (
        "identity"
    )
    cut: Annotated[Count, "width of each party's embedding; without model splitting it is C"] = 16
    top: Annotated[str, "network of the label party that reads all embeddings"] = "head"
    top_hidden: Annotated[tuple[Count, ...], "widths of the hidden layers of the top model"] = ()
    aggregation: Annotated[
        Literal["concatenate", "sum", "mean"], "how embeddings are joined: concatenate, sum or mean"
    ] = "concatenate"
    weights: Annotated[
        Literal["default", "torch"], "how linear layers start; 'torch' is as in PyTorch"
    ] = "default"
    options: Annotated[
        Options, "other fields of the bottom network, for example {'width': 16}"
    ] = {}
    pretrained: Annotated[str, "file of weights that the bottoms start from"] = ""


class Training(Struct, frozen=True):
    """How every trial is trained. Four of its numbers may be axes."""

    epochs: Annotated[Count, "epochs of training"] = 30
    batch_size: Annotated[Count, "rows of a batch"] = 32
    optimizer: Annotated[str, "optimizer of every party: sgd or adam"] = "sgd"
    learning_rate: Annotated[Axis, "learning rate of every party"] = 0.1
    momentum: Annotated[Axis, "momentum of sgd"] = 0.9
    weight_decay: Annotated[Axis, "weight decay of every party"] = 5e-4
    milestones: Annotated[
        tuple[Number, ...], "epochs from which the learning rate is multiplied by decay"
    ] = ()
    decay: Annotated[Axis, "factor of the learning rate at each milestone"] = 0.1
    drop_last: Annotated[bool, "whether the last batch of an epoch is left out if smaller"] = False
    class_weights: Annotated[
        tuple[Positive, ...], "in the label party's cross entropy, one a class; (): all 1"
    ] = ()
    scope: Annotated[
        Literal["all", "passive"],
        "whose cut gradients defenses treat: all bottoms, or passive ones",
    ] = "all"
    precision: Annotated[
        Literal["float32", "bfloat16"], "of networks, or bfloat16: see vfljax.models.precision"
    ] = "float32"
    evaluation: Annotated[
        Literal["final", "released"], "'released' adds the test AUC pooled over each epoch's steps"
    ] = "final"
    record: Annotated[
        tuple[Epoch, ...], "epochs whose exchange is stored; the last, -1, always is"
    ] = (0, -1)
    record_rows: Annotated[Whole, "training rows whose exchange is stored and attacked; 0: all"] = 0
    record_parameter_gradients: Annotated[bool, "of last layers, without model splitting"] = False

    def __post_init__(self) -> None:
        for epoch in self.record:
            if epoch >= self.epochs:
                what, last = f"names epoch {epoch}", self.epochs - 1
                remedy = f"choose 0 to {last}, or -1 for the last"
                raise _wrong("training.record", self.record, what, remedy)
        if self.record_parameter_gradients and self.record_rows:
            what = "leaves out rows whose gradients the parameter gradients hold"
            remedy = "choose 0, or record_parameter_gradients=False"
            raise _wrong("training.record_rows", self.record_rows, what, remedy)

    @property
    def recorded_epochs(self) -> list[int]:
        """The epochs whose exchange is stored, in order; the last is always one of them."""
        return sorted({self.epochs - 1 if epoch == -1 else epoch for epoch in (*self.record, -1)})

    def scored_rows(self, rows: int) -> int:
        """Returns how many of ``rows`` training rows attacks are scored on (``record_rows``)."""
        return min(self.record_rows or rows, rows)


class Malicious(Struct, frozen=True):
    """Which parties are malicious, the rule and strength of their optimizer, and what they send."""

    parties: Annotated[
        tuple[tuple[Whole, ...], ...], "an axis: a tuple of malicious parties for each federation"
    ] = ((0,),)
    gamma: Annotated[Axis, "strength of the malicious optimizer; 0 is honest"] = 1.0
    rule: Annotated[
        Literal["intended", "released", "released_torch2"],
        "the optimizer's rule: intended is the paper's; released and released_torch2 are its code's",
    ] = "intended"
    upload: Annotated[str, "what malicious parties send: vfljax.federation.uploads"] = "honest"
    strength: Annotated[Axis, "strength of their upload; 0 is honest"] = 0.0


class Teacher(Struct, frozen=True):
    """The label party's teacher: its network and its training."""

    network: Annotated[str, "any bottom network that reads the label party's columns"] = "mlp"
    options: Annotated[Options, "other fields of the teacher's network"] = {}
    pretrained: Annotated[str, "file of weights that the teacher starts from"] = ""
    hidden: Annotated[tuple[Count, ...], "widths of the hidden layers of the teacher"] = (64,)
    epochs: Annotated[Count, "epochs of the teacher's training"] = 20
    batch_size: Annotated[Count, "rows of a batch of the teacher"] = 32
    learning_rate: Annotated[Number, "learning rate of the teacher"] = 1e-3
    temperature: Annotated[Positive, "divisor of the teacher's logits before their softmax"] = 1.0


class Goal(Struct, frozen=True):
    """The requirements of a defense. No result depends on them."""

    max_leak: Annotated[Share, "largest leak that the report accepts of a defense; 1: any"] = 1.0
    max_cost: Annotated[Share, "largest loss of test utility that the report accepts; 1: any"] = 1.0
    keep_gain: Annotated[
        Share, "share of the gain over the label party alone that is to be kept"
    ] = 0.5


class Reproduces(Struct, frozen=True):
    """The paper's table that a sweep reproduces. ``vfljax.papers`` checks that the table exists, and compares
    the results with it."""

    table: str  # "gafm/2", "kdk/figure6"
    dataset: str = ""  # as the paper calls it
    # "reduced": less training or a smaller network; "sample": some of the paper's rows
    scale: Literal["full", "reduced", "sample"] = "full"
    variant: str = ""  # the name of a rule that differs from the paper's; "": none does
    # arms: our method -> the paper's defense; attacks: the paper's attack -> our label
    arms: dict[str, str] = {}
    attacks: dict[str, str] = {}
    # facts of the paper's numbers that are no knobs here: of the whole sweep, or {method: facts}
    setting: Options = {}


class Execution(Struct, frozen=True):
    """How trials are mapped over the machine; no result depends on it."""

    width: Annotated[Whole, "trials mapped at once on a device; 0: chosen by backend"] = 0
    shard_seconds: Annotated[
        Annotated[float, Meta(ge=1e-3, le=LARGEST)],
        "about how long a shard trains before it is stored",
    ] = 20.0


class Config(Struct, frozen=True):
    """A config: what is trained, attacked and reported."""

    name: Annotated[str, "title of the sweep and of its report"] = "sweep"
    notes: Annotated[tuple[str, ...], "sentences that the report prints on top"] = ()
    seeds: Annotated[Count, "how many seeds: first_seed, ..., first_seed + seeds - 1"] = 3
    first_seed: Annotated[Whole, "the first seed"] = 0
    data: Data = Data()
    parties: Parties = Parties()
    model: Model = Model()
    training: Training = Training()
    malicious: Malicious = Malicious()
    teacher: Teacher = Teacher()
    grid: Annotated[Options, "{method: {defense: {knob: value or tuple of values}}}"] = (
        msgspec.field(default_factory=lambda: {"undefended": {}})
    )
    attacks: Annotated[Options, "{attack: {option: value or tuple of values}}"] = msgspec.field(
        default_factory=lambda: {"passive": {}, "active": {}, "direct": {}, "norm": {}}
    )
    skip_settled: Annotated[
        bool, "whether an attack is skipped where a cheaper one has read nearly all labels"
    ] = True
    known_draws: Annotated[
        Count, "draws of the known labels for each seed: figures are means over them"
    ] = 1
    canaries: Annotated[
        Whole, "training rows per seed whose labels are coins, to audit a claimed epsilon"
    ] = 0
    attackers: Annotated[
        tuple[tuple[Whole, ...], ...],
        "an axis: who attacks where all parties were honest; several collude",
    ] = ((0,),)
    federations: Annotated[
        tuple[Literal["split", "malicious", "no_split"], ...],
        "trained: of split, malicious, no_split; (): what the attacks are for",
    ] = ()
    goal: Goal = Goal()
    reproduces: Annotated[
        Reproduces | None, "the paper's table that this is a run of: vfljax.config.Reproduces"
    ] = None
    execution: Execution = Execution()
    beyond_limits: bool = (
        False  # whether ``grid.LIMITS`` are lifted; no field of a file, not stored
    )

    def __post_init__(self) -> None:
        if self.attacks and not self.attackers:
            raise _wrong("attackers", (), "is empty", "give ((0,),), or no config.attacks")
        for field, groups in self.party_groups.items():
            for group in groups:
                _check_parties(field, group, self.parties.passive)
            check_distinct(field, [tuple(sorted(group)) for group in groups])
        for path, axis in zip(AXES, self.numbers.values(), strict=True):
            check_distinct(path, axis)
        kinds = self.federations
        check_distinct("federations", kinds)
        if MALICIOUS in kinds and not self.malicious.parties:
            remedy = "give config.malicious.parties=((0,),)"
            raise _wrong("federations", kinds, "has 'malicious' without a malicious party", remedy)
        if MALICIOUS in kinds and SPLIT not in kinds:
            what = "has no honest federation to compare 'malicious' with"
            raise _wrong("federations", kinds, what, "add 'split'")
        for name in self.reproduces.arms if self.reproduces else ():
            if name not in self.grid:
                raise unknown("method of config.reproduces", name, self.grid)

    @property
    def trained_seeds(self) -> range:
        """The seeds of trials. Tables hold all seeds from 0 on, so that a seed is also its index there."""
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def party_groups(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """The fields that name groups of passive parties."""
        return {"malicious.parties": self.malicious.parties, "attackers": self.attackers}

    @property
    def numbers(self) -> dict[str, tuple[float, ...]]:
        """The values of the numbers of training that may be axes, in the order of their columns."""
        values = {path.split(".")[1]: operator.attrgetter(path)(self) for path in AXES}
        return {name: tuple(as_axis(value)) for name, value in values.items()}

    @property
    def stored(self) -> dict[str, Any]:
        """The config in JSON types, with every field: what a sweep stores."""
        fields = _plain(msgspec.to_builtins(self))
        del fields["beyond_limits"]
        return fields | {"reproduces": fields["reproduces"] or {}}

    def with_attacks(self, names: Iterable[str] | Mapping[str, Any]) -> Config:
        """Returns the config with these attacks alone. A mapping also gives their options and knobs."""
        given = names if isinstance(names, Mapping) else self.attacks
        requests = {name: _plain(given.get(name, {})) for name in names}
        return msgspec.structs.replace(self, attacks=requests)


class ConfigField(NamedTuple):
    """A field of a config, for its page, ``--print_config`` and flags."""

    kind: Any  # its type
    default: Any
    meaning: str


AXES = (
    "training.learning_rate",
    "training.momentum",
    "training.weight_decay",
    "training.decay",
    "malicious.strength",
    "malicious.gamma",
)
# groups whose keys are names of methods, defenses, attacks or options
FREE = ("grid", "attacks", "reproduces", "data.options", "model.options", "teacher.options")


_hints = functools.cache(functools.partial(get_type_hints, include_extras=True))


def _fields(group: Struct, path: str = "") -> dict[str, ConfigField]:
    """Returns the fields of a group and of the groups within, by dotted path."""
    out: dict[str, ConfigField] = {}
    hints = _hints(type(group))
    for name in group.__struct_fields__:
        value, place = getattr(group, name), _below(path, name)
        if isinstance(value, Struct):
            out |= _fields(value, place)
        elif place != "beyond_limits":
            texts = [part for part in get_args(hints[name])[1:] if isinstance(part, str)]
            default = {} if value is None else value
            out[place] = ConfigField(hints[name], default, *texts)
    return out


def _grouped(fields: Mapping[str, ConfigField]) -> dict[str, Any]:
    """Returns the defaults of fields, which are given by dotted path, as nested groups."""
    out: dict[str, Any] = {}
    for path, field in fields.items():
        *groups, name = path.split(".")
        group = functools.reduce(lambda group, key: group.setdefault(key, {}), groups, out)
        group[name] = field.default
    return out


def _below(path: str, name: Any) -> str:
    """The dotted path of a field in the group ``path``, which is "" for the whole config."""
    return f"{path}.{name}" if path else str(name)


FIELDS = _fields(Config())
DEFAULT = _grouped(FIELDS)

# --- from a mapping to the record ---


def make(values: Mapping[str, Any], *, beyond_limits: bool = False) -> Config:
    """Returns the record of a config; fields that the mapping lacks have their defaults.

    Args:
      values: of a config file, of Python, or stored.
      beyond_limits: whether the limits of a sweep's size are lifted, as for sweeps that are stored.

    Raises:
      UserError: in one line, for a field that does not exist, of another type or out of range, and for
        fields that contradict each other.
    """
    made = _made(Config, _plain(values), "")
    return msgspec.structs.replace(made, beyond_limits=beyond_limits)


def _made(kind: Any, values: Any, path: str) -> Any:
    """Returns the record of a group of fields."""
    known = [name for name in kind.__struct_fields__ if name != "beyond_limits"]
    if not isinstance(values, Mapping):
        remedy = f"give some of {', '.join(known)}"
        raise _wrong(path, values, "must be a group of fields", remedy)
    fields = {}
    for name, value in values.items():
        if name not in known:
            raise _unknown_field(_below(path, name))
        fields[name] = convert(kind, name, value, path)
    if kind is Reproduces and "table" not in fields:
        raise _wrong(path, values, "names no table", "give one, for example {'table': 'gafm/2'}")
    return kind(**fields)


def convert(kind: type[Struct], name: str, value: Any, path: str) -> Any:
    """Returns the value of one field of a group as its type has it.

    Args:
      kind: the group.
      name: the field.
      value: what a config gives it.
      path: dotted path of the place where the config gives it, for the message.
    """
    hints = _hints(kind)
    return _value(hints[name], _plain(value), _below(path, name))


def _value(kind: Any, value: Any, path: str) -> Any:
    """Returns a field's value as its type has it."""
    if path == "reproduces":
        return _made(Reproduces, value, path) if value else None
    if isinstance(kind, type) and issubclass(kind, Struct):
        return _made(kind, value, path)
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        pass
    shape = _shape(kind)
    if isinstance(shape, inspect.LiteralType):
        raise unknown(Field(path), value, [str(choice) for choice in shape.values])
    given = tuple(value) if isinstance(value, list) else value
    raise UserError(field=path, value=given, remedy=f"give {expected(kind)}")


def expected(kind: Any) -> str:
    """Returns in words what values a type has."""
    return _expected(_shape(kind))


def _shape(kind: Any) -> inspect.Type:
    """Returns the description of a type, without its texts."""
    shape = inspect.type_info(kind)
    return shape.type if isinstance(shape, inspect.Metadata) else shape


def _expected(shape: inspect.Type) -> str:
    match shape:
        case inspect.IntType(ge=low, le=high):
            return bounds(*_limits(low, high), whole=True)
        case inspect.FloatType(gt=0.0, le=high):
            return f"a number above 0, at most {high:g}"
        case inspect.FloatType(ge=low, le=high):
            return bounds(*_limits(low, high))
        case inspect.BoolType():
            return "True or False (of type bool)"
        case inspect.StrType():
            return "a text"
        case inspect.LiteralType(values=names):
            return f"one of {', '.join(map(str, names))}"
        case inspect.VarTupleType(item_type=item):
            return f"a tuple, each entry {_expected(item)}"
        case inspect.UnionType(types=kinds):
            return " or ".join(map(_expected, kinds))
    return "a group of fields"


def _limits(low: float | None, high: float | None) -> tuple[float, float]:
    return -math.inf if low is None else low, math.inf if high is None else high


def _unknown_field(path: str) -> UserError:
    """Returns the error for an unknown field. It suggests a similar field of the same group, else of any."""
    group, _, name = path.rpartition(".")
    known = [field for field in FIELDS if group and field.startswith(f"{group}.")] or list(DEFAULT)
    if group == "reproduces":
        known = [f"reproduces.{name}" for name in Reproduces.__struct_fields__]
    last = {field: field.rpartition(".")[2] for field in (*known, *FIELDS)}
    found = nearest(name, last.values())
    near = [field for field in last if last[field] in found]
    return unknown("config field", path, known, near=[f for f in near if f in known] or near)


def _plain(value: Any) -> Any:
    """Returns the value in JSON types: dicts, lists and scalars."""
    if isinstance(value, (ConfigDict, Mapping)):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value


def resolve(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns a config with every default filled in, in JSON types. A sweep stores this form.

    Raises:
      UserError: as ``make`` does.
    """
    return make(config).stored


def changed(config: Config, fields: Mapping[str, Any]) -> Config:
    """Returns a config with some fields changed.

    Args:
      config: stays as it is.
      fields: new values, by dotted path.
    """
    values = config.stored
    for path, value in fields.items():
        *groups, last = path.split(".")
        functools.reduce(operator.getitem, groups, values)[last] = value
    return make(values, beyond_limits=config.beyond_limits)


# --- config files and flags ---


def ordered(values: Mapping[str, Any]) -> ConfigDict:
    """Returns a config file's values as a ConfigDict in listing order (by default it sorts names). All fields
    that the file does not name have their default, so that every field can be overridden."""
    return _ordered(_filled(DEFAULT, values, ""))


def _ordered(values: Mapping[str, Any]) -> ConfigDict:
    # any value may be assigned: ``make`` checks types
    out = ConfigDict(sort_keys=False, type_safe=False)
    for key, value in values.items():
        out[key] = _ordered(value) if isinstance(value, Mapping) else value
    return out


def _filled(default: Mapping[str, Any], values: Mapping[str, Any], path: str) -> dict[str, Any]:
    """Returns the given fields in their order, then the missing ones at their default."""
    out: dict[str, Any] = {}
    for key in [*values, *(key for key in default if key not in values)]:
        known, value = default.get(key), values.get(key, default.get(key))
        name = _below(path, key)
        if isinstance(known, Mapping) and isinstance(value, Mapping) and name not in FREE:
            value = _filled(known, value, name)
        out[key] = value
    return out


class ConfigFile(NamedTuple):
    """The file of a config, and the variant that is asked of it."""

    given: pathlib.Path  # as the user names it
    path: pathlib.Path  # likewise, or the copy that comes with vfljax if no file is there
    variant: str


def located(source: str) -> ConfigFile:
    """Returns the file and the variant of FILE or FILE:VARIANT; a folder's name may have colons too.

    Raises:
      UserError: if there is no such file.
    """
    parts = source.split(":")
    for count in range(len(parts), 0, -1):
        given = pathlib.Path(os.path.expanduser(":".join(parts[:count])))
        path = packaged(given)
        if path.is_file():
            return ConfigFile(given, path, ":".join(parts[count:]))
    user_path(source, "config")
    raise UserError(f"config {parts[0]!r} is not a file: try configs/quickstart.py.")


def from_file(source: str, fields: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Read a config file and change some of its fields.

    Args:
      source: the path of a Python file with ``get_config()``, which may be a config that comes with vfljax.
        PATH:VARIANT calls ``get_config("VARIANT")``.
      fields: new values as texts, by dotted path, such as {"training.epochs": "100"}.

    Returns:
      the config, with every field that the file does not name at its default.

    Raises:
      UserError: for a file that is missing or raises, and for a field that does not exist.
    """
    config = _filled(DEFAULT, returned(source), "")
    for field, text in (fields or {}).items():
        _change(config, field, text)
    return config


def returned(source: str) -> dict[str, Any]:
    """Returns what the function ``get_config`` of a config file returns, in JSON types.

    Args:
      source: as of ``from_file``.

    Raises:
      UserError: for a file that is missing or raises.
    """
    _, file, variant = located(source)
    path = str(file)
    try:
        loader = SourceFileLoader("config", path)
        module = types.ModuleType("config")
        module.__file__ = path
        loader.exec_module(module)
        values = module.get_config(variant) if variant else module.get_config()
    except (Exception, SystemExit) as error:  # a config file is a program: it may raise anything
        raise UserError(f"config: {raised(error, path)}") from error
    if not isinstance(values, (Mapping, ConfigDict)):
        raise UserError(
            f"{path}: get_config() returned {type(values).__name__}: let it return ordered({{...}})."
        )
    return _plain(values)


def _change(config: dict[str, Any], field: str, text: str) -> None:
    """Sets the field at a dotted path to the value that a text stands for."""
    *groups, last = field.split(".")
    group: Any = config
    for name in groups:
        group = group.get(name) if isinstance(group, dict) else None
    if isinstance(group, dict) and last in group:
        kind = FIELDS[field].kind if field in FIELDS else type(group[last])
        group[last] = _from_text(text, kind)
    elif any(field.startswith(f"{free}.") for free in FREE):
        raise UserError(
            f"the config file has no field {last!r} for --config.{field} to change: add it to the "
            "file, or give a config that has it."
        )
    else:
        raise _unknown_field(field)


def _from_text(text: str, kind: Any) -> Any:
    """Returns the value of a type that a text stands for, or the text itself, which ``make`` refuses."""
    shape = _shape(kind)
    if isinstance(shape, (inspect.StrType, inspect.LiteralType)):
        return text
    if isinstance(shape, inspect.BoolType):
        return {"true": True, "false": False}.get(text.lower(), text)
    value: Any = text
    with contextlib.suppress(ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        value = ast.literal_eval(text)
    several = isinstance(shape, (inspect.VarTupleType, inspect.ListType))
    return (value,) if several and not isinstance(value, (list, tuple)) else value


def described(values: Mapping[str, Any]) -> str:
    """Returns two lines for each field of a resolved config: its value and default, and what it means."""
    lines, defaults = [], resolve({})
    for path, field in FIELDS.items():
        names = path.split(".")
        value, default = (functools.reduce(operator.getitem, names, v) for v in (values, defaults))
        origin = "the default" if value == default else f"default {default!r}"
        axis = "; a tuple trains each of its values" if path in AXES else ""
        lines += [f"{path} = {value!r} ({origin})", f"    {field.meaning}{axis}"]
    return "\n".join(lines)
