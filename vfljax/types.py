"""The records that flow through vfljax, its glossary, and the symbols used everywhere else.

``Spec`` decides a program's structure; ``HParams`` holds the numbers that differ between its members.

Symbols::

    B  rows of a batch            N  training rows of one seed     M  test rows
    C  classes, or 1 of numbers   D  cut width of one party        P  passive parties
    E  recorded epochs            S  members of a batch            K  rows an attacker may know

Glossary::

    party             holds some columns of the rows that all parties share; the label party also holds labels
    federation        `split`: with a top model (model splitting), all parties honest; `malicious`: with one and
                      malicious passive parties; `no_split`: without a top model, the logits are a sum
    method            an entry of `config.grid`: a chain of defenses with the values of their knobs
    configuration     one value for every knob of a method, in all federations and over all seeds
    trial             a configuration in one federation from one seed: one member of the vmapped batch
    point             a configuration on a panel: what a verdict is about
    run               a configuration on a panel from one seed, and with a number of known labels
    knob              a number of a defense or an attack; a grid varies it within one program (hyperparameter)
    option            a static choice of a defense or an attack; each combination has a program of its own
    exchange          what each passive party sent (embeddings, or smashed data) and received (cut gradients)
    cut               the layer whose outputs, the embeddings, a passive party sends (split layer)
    bottom, top       a party's network up to the cut, and the label party's network behind it
    wire              a recorded exchange as a file or folder, of any federation (transcript)
    view              what the attackers see: the exchange, their own columns and bottom models
    known labels      the few labels that attackers know (auxiliary labels); their number is called knowledge
    draws             how often the known labels of a seed are drawn anew; figures are means over the draws
    panel             federations judged together (threat setting): `split` with malicious ones, or `no_split`
    family            an attack with all its variants: an entry of the table of attacks
    attack variant    an attack with one value of each static option; its numeric knobs may have several values
    bundle            variants of one attack that share a program
    oracle            an attack that is given what no attacker has, to explain a figure; no verdict counts it
    codebook          arrays that a defense trains before the federation and without its data, such as CAE's
    leak              how well scores predict labels: AUC for two classes, balanced top-1 accuracy for more,
                      concordance for numbers (``vfljax.tasks``)
    excess            the leak of an attack less that of the best local-only learner with as many known labels
    e, d, c           of a run: the largest excess; the leak less that of undefended; the excess less a
                      quarter of undefended's (``report.verdicts``)
    strongest attack  in a run, the attack or local-only learner of highest leak; the one that is strongest on
                      most seeds is the leader of its point
    settled           not run, because a cheaper attack by the same attackers read nearly all labels of the run
    rejected          not run, because cheap attacks showed by themselves that the configuration leaks
    local-only        the baseline of the passive party without the federation: its own columns and known labels
    label alone       the label party without the others; what a federation adds to its utility is the gain
    operating point   a configuration as a candidate for use; the chosen one keeps utility and leaks least
    verdict           what confidence limits allow to say of a configuration (``report.verdicts.Verdict``)
    candidate         a point that may be switched on, and gets seeds of its own to decide; a look is a
                      judgment of it at a planned number of them
    unit, shard       a part of a sweep that one process makes and stores whole; a shard is a unit of trials
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import flax.linen as nn
import jax

__all__ = [
    "KINDS",
    "MALICIOUS",
    "NO_SPLIT",
    "SPLIT",
    "Array",
    "Batch",
    "Context",
    "CutLayer",
    "DefenseSpec",
    "Exchange",
    "Federation",
    "HParams",
    "HostArray",
    "Input",
    "Known",
    "Mates",
    "PyTree",
    "Scores",
    "Spec",
    "State",
    "Sums",
    "View",
    "Weights",
]

Array = jax.Array
PyTree = Any
CHUNK = 1024  # rows evaluated at a time, so that test sets need no more memory than batches
HEAVY_CHUNK = 128  # the same for networks whose layers are many times larger than their input
HostArray = Any  # a NumPy array, also where it is passed as an Array


class Batch(NamedTuple):
    """One batch, as the parties hold it."""

    features: tuple[Array, ...]  # one per bottom model, [B, ...]; the label party's own last
    anchor: tuple[Array, ...]  # likewise [1, ...]: the row whose embedding the upload "swap" sends
    labels: Array  # [B] int32 classes, or float32 numbers, standardized by the seed's training rows
    index: Array  # [B] int32, the row's place among the training rows
    scores: Array | None = None  # [B, C] the teacher's probabilities; None without a teacher


class Input(NamedTuple):
    """What a network must know of the columns it reads; static."""

    kind: str  # "table", "image" or "text"
    shape: tuple[int, ...]  # of one row
    vocabulary: tuple[int, ...] = ()  # sizes: of each table column, 0 for numbers; one for a text
    pad: int = 0  # the padding token of texts


class Origin(NamedTuple):
    """The plugin that a row of the tables of defenses and attacks comes from."""

    plugin: str  # the module's name: the part of the row's name before its colon
    version: str  # its ``__version__``, "" without one
    sha256: str  # of its file or files


SPLIT, MALICIOUS, NO_SPLIT = "split", "malicious", "no_split"
HONEST = "honest"  # the upload of a party that sends its embeddings as they are
KINDS = (SPLIT, MALICIOUS, NO_SPLIT)  # in the order in which trials are numbered


class Federation(NamedTuple):
    """Which federation is trained: with or without model splitting, and which parties are malicious.

    ``kind``, one of ``KINDS``, is used by attacks and ``config.federations``; the glossary explains it.
    ``name``, a column of stored sweeps, adds the malicious parties: "malicious-0-1".
    """

    split: bool = True
    malicious: tuple[int, ...] = ()  # numbers of passive parties

    @property
    def kind(self) -> str:
        if self.malicious:
            return MALICIOUS
        return self.panel

    @property
    def panel(self) -> str:
        """The panel in which a report judges it: honest and malicious federations together."""
        return SPLIT if self.split else NO_SPLIT

    @property
    def name(self) -> str:
        return "-".join([self.kind, *map(str, self.malicious)])


def federation_of(name: str) -> Federation:
    """The federation of a name such as "malicious-0-1", where parties 0 and 1 are malicious."""
    kind, *malicious = name.split("-")
    return Federation(kind != NO_SPLIT, tuple(map(int, malicious)))


class AttackIdentity(NamedTuple):
    """Identifies the attack that a figure belongs to among all attacks on a trial.

    ``label`` is its only form as text, and no code parses that text.
    """

    attack: str  # its row in attacks.TABLE
    options: tuple[tuple[str, Any], ...] = ()  # static options, sorted by name
    label_options: tuple[str, ...] = ()  # names of the options in the label, in its order
    federation: str = ""  # name of the attacked federation; in a report's rows, its kind
    attackers: tuple[int, ...] = (0,)  # passive parties
    rule: int = 1  # number of the attack's rule (``attacks.core.AttackRow``)
    known: int = 0  # number of known labels
    outdated: bool = False  # whether the rule has changed since; the label then has ``rule``

    @property
    def words(self) -> tuple[str, ...]:
        """The texts of the options in the label: ("most_negative", "epoch=0")."""
        options = dict(self.options)
        return tuple(_option_word(name, options[name]) for name in self.label_options)

    @property
    def label(self) -> str:
        """The attack's name in tables and figures.

        >>> rule, epoch = ("rule", "most_negative"), ("epoch", 0)
        >>> AttackIdentity("direct", (epoch, rule), ("rule", "epoch"), attackers=(0, 1)).label
        'direct/most_negative/epoch=0/parties=0+1'
        >>> AttackIdentity("passive", rule=2, outdated=True).label
        'passive/rule=2'
        """
        words = [self.attack, *self.words]
        if self.outdated:
            words.append(f"rule={self.rule}")
        if self.attackers != (0,):
            words.append(f"parties={'+'.join(map(str, self.attackers))}")
        return "/".join(words)


def _option_word(option: str, value: Any) -> str:
    if value is True:
        return option
    return str(value) if isinstance(value, str) else f"{option}={value}"


class CutLayer(NamedTuple):
    """What a defense may know of the cut between the parties and the top model; static."""

    split: bool = True  # whether there is a top model
    output: str = "identity"  # the activation at the end of the bottoms: "identity" or "sigmoid"
    widths: tuple[int, ...] = (1,)  # D of each bottom
    aggregation: str = "concatenate"


class Context(NamedTuple):
    """What a defense may see of the current step."""

    index: Array  # [B] int32
    labels: (
        Array  # [B] as in ``Batch``, the labels that later slots may see (label DP replaces them)
    )
    scores: Array | None  # [B, C] teacher probabilities, None without a teacher
    step: Array  # [] int32, steps done since the start
    epoch: Array  # [] int32
    steps_per_epoch: Array  # [] int32
    key: Array  # this step's key, folded by the defense's name
    run_key: Array  # the run's key, the same at every step, folded by the defense's name
    train: bool
    cut_layer: CutLayer = CutLayer()  # static
    epochs: int = 1  # of the whole run, static


class Exchange(NamedTuple):
    """Everything that the passive parties send and receive in one batch."""

    embeddings: tuple[Array, ...]  # [B, D] as sent by each passive party
    # [B, D] as received, of the batch-MEAN loss (1/B inside); where none are sent, the party's own estimates
    gradients: tuple[Array, ...]  # (``vfljax.defenses.link``)
    index: Array  # [B] int32


class Sums(NamedTuple):
    """Running sums over every epoch of one party's received gradients (for averaging attacks)."""

    gradient: Array  # [N, D] sum of g
    sign: Array  # [N, D] sum of sign(g)
    square: Array  # [N, D] sum of g**2
    count: Array  # [N] times the row was sent


@jax.tree_util.register_static
@dataclasses.dataclass(frozen=True)
class Agreed:
    """What all parties agreed on before training, so that every attacker knows it; static."""

    batch_size: int
    huber: float = 0.0  # delta of the loss of numbers, ``Spec.huber``


class Mates(NamedTuple):
    """The exchange of the R recorded rows that are not scored, which share batches with the N scored rows."""

    embeddings: Array  # [E, R, D] as sent
    gradients: Array  # [E, R, D] as received
    order: Array  # [E, N + R] place of every row, scored rows first, in its epoch's sending order
    sent: Array  # [E, R] bool


class View(NamedTuple):
    """What one attacker sees of a finished run. No labels are in it, except that ``diagnostics`` of an
    oracle form may be computed from them (``attacks.core.CLEAN``). Embeddings and gradients of colluding
    parties are concatenated (D is the sum of their widths); their columns and bottoms stay separate."""

    embeddings: Array  # [E, N, D] as sent
    gradients: Array  # [E, N, D] as received, or as the party estimates them (``Exchange``)
    order: Array  # [E, N] place of the row in its epoch's sending order: batch = order // B
    sent: Array  # [E, N] bool, False where the row was never sent in that epoch
    sums: Sums
    epochs: Array  # [E] int32, the numbers of the recorded epochs
    features: tuple[Array, ...]  # per colluder, [N, ...] its columns, as its bottom reads them
    test_features: tuple[Array, ...]  # [M, ...]
    bottoms: tuple[PyTree, ...]  # the colluders' trained bottom variables
    agreed: Agreed
    diagnostics: dict[str, Array]  # [N, W] for diagnostics and oracle forms alone; mostly empty
    # of the bottoms' last linear layers; None unless recorded (``vfljax.models.last_layer``)
    inputs: Array | None = None  # [E, N, H] inputs of the colluders' layers, concatenated
    # [E, T, P, H + 1, D] by batch and colluder, the bias's gradient last; H and D are one colluder's
    parameter_gradients: Array | None = None
    # of a federation of trees (``vfljax.federation.trees``): [T, N, L] int32 node of a row at each level, -1
    # where it is not told; levels of colluders follow each other
    nodes: Array | None = None
    mates: Mates | None = None  # for attacks that read whole batches, if not all rows are scored


class Known(NamedTuple):
    """The few rows whose labels an attacker knows; entries from ``count`` on are padding."""

    rows: Array  # [N] int32: all rows, the `count` known ones first and the rest in ascending order
    labels: Array  # [N] int32: -1 from `count` on; of numbers float32, standardized
    count: Array  # [] int32


class Scores(NamedTuple):
    """An attack's scores of each row; a larger score means a likelier class."""

    train: Array  # [N, C]
    test: Array | None = None  # [M, C]; None if the attack is not defined on rows never trained on


class HParams(NamedTuple):
    """Every number of one trial, as arrays: one compiled program serves any values."""

    learning_rate: Array
    momentum: Array
    weight_decay: Array
    milestones: Array  # [m] epochs at which the rate is multiplied by `decay`
    decay: Array
    gamma: Array  # [bottoms] gamma of each party; 0 is honest
    strength: Array  # [bottoms] strength of each party's upload; 0 is honest
    absent: Array  # [bottoms] 1 of a party that takes no part, so that it does not learn; else 0
    defenses: dict[str, dict[str, Array]]  # name of the defense -> knob -> value


class Weights(NamedTuple):
    """Every party's model variables. Initial weights depend on the seed alone."""

    bottoms: tuple[PyTree, ...]  # one per bottom model, the label party's own last
    active: PyTree  # the label party's top model ({} without model splitting)


class State(NamedTuple):
    """What evolves during training. What is only recorded is returned beside it, as an ``Exchange``."""

    step: Array  # [] int32
    weights: Weights
    optimizer: tuple[PyTree, ...]  # a state per bottom, then the top model's
    defense: PyTree  # the chain's state for the targets and loss slots
    gradient: PyTree  # the chain's state for the gradient slot (optax)
    run_key: Array


@dataclasses.dataclass(frozen=True)
class DefenseSpec:
    """Static half of one defense of a chain: its table entry and its non-numeric options."""

    name: str
    options: tuple[tuple[str, Any], ...] = ()


@dataclasses.dataclass(frozen=True)
class Spec:
    """What decides the structure of a training program; equal specs share one compiled program.

    ``bottoms`` are flax modules, passive parties first, the label party's own (if any) last. ``top`` is
    None without model splitting: logits are then a sum. ``optimizers`` names each bottom's, then the top's.
    """

    bottoms: tuple[nn.Module, ...]
    top: nn.Module | None
    passive: int
    num_classes: int
    num_rows: int  # training rows; N is how many of them are recorded, all by default
    batch_size: int  # B
    epochs: int
    optimizers: tuple[str, ...]
    defenses: tuple[DefenseSpec, ...] = ()
    upload: str = HONEST  # what malicious parties send: ``vfljax.federation.uploads``
    aggregation: str = "concatenate"
    scope: str = "all"  # whose cut gradients the gradient slot treats: "all" or "passive"
    drop_last: bool = False
    class_weights: tuple[float, ...] = ()  # of the label party's cross entropy; (): all 1
    huber: float = 0.0  # delta of Huber's loss of numbers; 0: the squared error
    recorded: int = 0  # the first training rows whose exchange is recorded; 0: all
    record_inputs: bool = False  # whether inputs of the passive bottoms' last layers are recorded
    precision: str = "float32"  # of the networks, "float32" or "bfloat16"
    heads: tuple[int, ...] = ()  # widths of the top's heads, side by side; (): C logits

    @property
    def recorded_rows(self) -> int:
        return self.recorded or self.num_rows

    @property
    def light(self) -> bool:
        """Whether all networks are small. Many trials, and many rows to evaluate, are then taken at once."""
        modules = (*self.bottoms, self.top) if self.top is not None else self.bottoms
        return all(getattr(module, "light", False) for module in modules)

    @property
    def chunk(self) -> int:
        """Rows evaluated at a time."""
        return CHUNK if self.light else HEAVY_CHUNK

    @property
    def steps_per_epoch(self) -> int:
        full, rest = divmod(self.num_rows, self.batch_size)
        return full if self.drop_last or not rest else full + 1

    @property
    def cut_layer(self) -> CutLayer:
        """What defenses may know of the cut."""
        return CutLayer(
            split=self.top is not None,
            output=getattr(self.bottoms[0], "output", "identity"),
            widths=tuple(module.out for module in self.bottoms),
            aggregation=self.aggregation,
        )

    @property
    def label_features(self) -> bool:
        """Whether the label party owns columns, and hence has a bottom model."""
        return len(self.bottoms) > self.passive
