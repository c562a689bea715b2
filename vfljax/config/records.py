"""The groups of a config, as records; the text beside a type says what the field means.

The type of a field says which values it may have. ``vfljax.sweep.grid.parse`` also checks the names that a
config takes from the tables of defenses, attacks and networks, which this module does not know.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from ml_collections import ConfigDict
from msgspec import Meta, Struct

from vfljax.config.axes import as_axis, check_distinct
from vfljax.errors import LARGEST, MOST_WHOLE, Field, UserError, unknown

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

AXES = (
    "training.learning_rate",
    "training.momentum",
    "training.weight_decay",
    "training.decay",
    "malicious.strength",
    "malicious.gamma",
)


def wrong(path: str, value: Any, what: str, remedy: str) -> UserError:
    """Returns the error for a field; ``path`` is "" for the whole config."""
    field = Field(path) if path else Field("", "config")
    return UserError(what, field=field, value=value, remedy=remedy)


def _check_parties(field: str, group: Sequence[int], passive: int) -> None:
    if not group or max(group) >= passive:
        what = f"config.{field} names {list(group)}, but passive parties are 0..{passive - 1}"
        raise UserError(what, remedy="give a tuple of tuples such as ((0,),)")
    if len(set(group)) < len(group):
        raise UserError(f"config.{field} names {list(group)}: name each party once.")


def plain(value: Any) -> Any:
    """Returns the value in JSON types: dicts, lists and scalars."""
    if isinstance(value, (ConfigDict, Mapping)):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return value


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
    permute_groups: Annotated[
        Whole, "groups a class of equal columns-only scores, within which they are; 0: all rows"
    ] = 0
    label_range: Annotated[
        tuple[float, ...],
        "of numbers: (low, high), to which labels are clipped, and which no label sets; (): none",
    ] = ()
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
            raise wrong("parties.shares", self.shares, what, "leave one of the two empty")
        if self.shares and len(self.shares) != self.owners:
            what = f"is not one share for each of the {self.owners} parties that own columns"
            remedy = "give one each, passive parties first"
            raise wrong("parties.shares", self.shares, what, remedy)
        if self.names and len(self.names) != self.passive + 1:
            what = f"has {len(self.names)} names"
            passive = f"one for each of the {self.passive} passive parties"
            remedy = f"give {passive} and, last, one for the label party"
            raise wrong("parties.names", self.names, what, remedy)
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

    task: Annotated[
        Literal["", "classification", "regression"],
        "what labels are, classes or numbers; '': what the data set has",
    ] = ""
    bottom: Annotated[str, "network of each party that owns columns"] = "mlp"
    hidden: Annotated[tuple[Count, ...], "widths of the hidden layers of the bottoms"] = (64,)
    activation: Annotated[str, "activation of the hidden layers of the bottoms"] = "relu"
    output: Annotated[str, "activation at the end of the bottoms, with model splitting"] = (
        "identity"
    )
    cut: Annotated[
        Count, "width of each party's embedding; without model splitting it is C, or 1"
    ] = 16
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
    huber: Annotated[
        Number, "delta of Huber's loss of numbers, in standard deviations; 0: the squared error"
    ] = 0.0
    scope: Annotated[
        Literal["all", "passive"],
        "whose cut gradients defenses treat: all bottoms, or passive ones",
    ] = "all"
    precision: Annotated[
        Literal["float32", "bfloat16"], "of the networks' hidden layers; all else is float32"
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
                raise wrong("training.record", self.record, what, remedy)
        if self.record_parameter_gradients and self.record_rows:
            what = "leaves out rows whose gradients the parameter gradients hold"
            remedy = "choose 0, or record_parameter_gradients=False"
            raise wrong("training.record_rows", self.record_rows, what, remedy)

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

    max_leak: Annotated[
        Share,
        "leak that is accepted of a defense that does not protect; 1: no such defense is accepted",
    ] = 1.0
    max_cost: Annotated[Share, "largest loss of test utility that the report accepts; 1: any"] = 1.0
    keep_gain: Annotated[
        Share, "share of the gain over the label party alone that is to be kept"
    ] = 0.5


class Reproduces(Struct, frozen=True):
    """The paper's table that a sweep reproduces. ``analysis.reproduction`` of a checkout compares the results
    with it."""

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
        Whole, "training rows per seed whose labels are guessed, to audit a claimed epsilon"
    ] = 0
    canary_labels: Annotated[
        Literal["coins", "observed"],
        "their labels: coins, or observed, each beside one that a proxy draws",
    ] = "coins"
    attackers: Annotated[
        tuple[tuple[Whole, ...], ...],
        "an axis: who attacks where all parties were honest; several collude",
    ] = ((0,),)
    federations: Annotated[
        tuple[Literal["split", "malicious", "no_split"], ...],
        "trained: of split, malicious, no_split; (): what the attacks are for",
    ] = ()
    goal: Goal = Goal()
    decide: Annotated[
        bool, "whether candidates get seeds of their own, under every attack, to decide what to do"
    ] = False
    reproduces: Annotated[
        Reproduces | None, "the paper's table that this is a run of: vfljax.config.Reproduces"
    ] = None
    execution: Execution = Execution()
    beyond_limits: bool = (
        False  # whether ``grid.LIMITS`` are lifted; no field of a file, not stored
    )

    def __post_init__(self) -> None:
        if self.attacks and not self.attackers:
            raise wrong("attackers", (), "is empty", "give ((0,),), or no config.attacks")
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
            raise wrong("federations", kinds, "has 'malicious' without a malicious party", remedy)
        if MALICIOUS in kinds and SPLIT not in kinds:
            what = "has no honest federation to compare 'malicious' with"
            raise wrong("federations", kinds, what, "add 'split'")
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
        fields = plain(msgspec.to_builtins(self))
        del fields["beyond_limits"]
        return fields | {"reproduces": fields["reproduces"] or {}}

    def with_attacks(self, names: Iterable[str] | Mapping[str, Any]) -> Config:
        """Returns the config with these attacks alone. A mapping also gives their options and knobs."""
        given = names if isinstance(names, Mapping) else self.attacks
        requests = {name: plain(given.get(name, {})) for name in names}
        return msgspec.structs.replace(self, attacks=requests)
