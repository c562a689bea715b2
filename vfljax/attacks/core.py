"""The records of an attack, and what several attacks share.

The arguments of ``Attack.run`` are the threat model. An attack sees a ``View`` and the few ``Known``
labels, and nothing else. It returns ``Scores``: how likely it finds each class for each row.

Symbols are those of ``vfljax.types``; T counts the batches of one epoch.
"""

from __future__ import annotations

import contextlib
import contextvars
import dataclasses
import functools
import inspect
import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

import chex
import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import errors
from vfljax.types import Array, HostArray, Known, Origin, PyTree, Scores, View

__all__ = [
    "BASELINES",
    "CLEAN",
    "KNOWN",
    "OVER_EPOCHS",
    "READS",
    "SOLVE",
    "USUAL",
    "WIDEST",
    "Attack",
    "AttackRow",
    "Batches",
    "batches_at",
    "by_party",
    "check_epoch",
    "check_numeric",
    "check_whole",
    "columns_of",
    "from_one",
    "labels_by_row",
    "minimize",
    "named_by",
    "once",
    "place_of",
    "reads_epoch",
    "received",
    "scored",
    "two_sided",
    "unit",
    "with_mates",
]

BASELINES = ("untrained", "logistic", "all_labels")
"""What an attack's figures may be compared with: the same attack on an untrained bottom, logistic
regression on the same labels without any federation, and the same attack knowing every label (its
upper bound)."""

CLEAN = "clean"
"""Names the gradients [N, D] of the undefended loss at the final weights, which no party receives."""

OVER_EPOCHS = ("mean", "votes")
"""The values of ``epoch`` that read the sums over all epochs instead of one recorded epoch."""

READS = {
    "columns": "the attackers' own columns",
    "embeddings": "embeddings",
    "gradients": "gradients",
    "order": "which rows shared a batch",
    "bottoms": "the bottom models",
    "parameter gradients": "parameter gradients",
    "nodes": "nodes of trees",
}
"""What an attack may read (``Attack.reads``), and how a message names it. "gradients" are those of rows, of
recorded epochs or summed over epochs. Every attack may read which rows were sent, and the numbers of epochs."""

USUAL = ("columns", "embeddings", "gradients", "order", "bottoms")
"""What every sweep records without being asked."""

RULE, SOLVE, HOST, TRAIN, WHOLE = range(5)
"""The places in the order of costs (``AttackRow.cost``), by what an attack computes in a run:

======  ================================================================================================
RULE    a rule of each row, or a few products over all rows
SOLVE   a linear solve, k-means, or some hundred optimizer steps of a linear model
HOST    learners that are fitted on the host
TRAIN   thousands of optimizer steps, or hundreds on all rows with a network or for several starts
WHOLE   rounds over all pairs of rows of every batch
======  ================================================================================================
"""

# the default product keeps only some ten bits of each factor on accelerators
multiply = functools.partial(jnp.matmul, precision="highest")

WIDEST = 256
"""The widest cut that is read as it is by attacks whose time grows with its square, or that keep a learner or
many steps for all its numbers."""

KNOWN = {"known": 40.0}
"""The knob of an attack that is given the labels of a few rows, and its usual value."""

MANY_DRAWS, FEW_DRAWS = 1 << 30, 2
"""The most draws of known labels (``config.known_draws``) with which a cheap and a costly attack are run."""

T = TypeVar("T")

Bottoms = tuple[nn.Module, ...]
"""The attackers' bottom models."""

Knobs = Mapping[str, Array]
"""The numeric options of an attack by name, [] each."""

HostReader = Callable[[HostArray, HostArray, HostArray, int, int], HostArray]
"""Scores [draws, N, C] of features [N, W], known rows [draws, K], their labels [draws, K], C and a seed; NaN
where features are."""


class Attack(NamedTuple):
    """An attack whose static options are fixed.

    ``run(key, view, known, knobs) -> Scores`` is pure and serves one trial; the caller maps it over
    trials. The other fields describe what the attack needs and how its figures are to be read.
    """

    run: Callable[[Array, View, Known, Knobs], Scores]
    # the kinds of federation it is defined on, some of types.KINDS: it runs on each that was trained.
    # The first is the one that papers attack; it is trained where ``config.federations`` names none
    federations: tuple[str, ...]
    # numeric options and their published values; ``run`` gets arrays. One called "known" is the number
    # of labels the attacker is given (``Known``)
    knobs: Mapping[str, float] = {}
    ranges: Mapping[str, tuple[float, float]] = {}  # (low, high) of knobs that are not just >= 0
    baselines: tuple[str, ...] = ()  # what its figures are compared with, some of BASELINES
    binary: bool = False  # defined for two classes only
    oracle: bool = False  # is given every row's label, and so is never the strongest attack
    adaptive: bool = False  # in no paper: an attacker that knows the defense
    # what it reads of ``View``, names in READS. The options decide it, so that it is declared here and not on
    # the row. An attack that leaves it out is skipped where one of the USUAL was not recorded
    reads: tuple[str, ...] = USUAL
    diagnostic: str = ""  # the entry of ``View.diagnostics`` it reads: a layer's name, or CLEAN
    # the recorded epoch of which it scores the rows sent; -1: the last, which always is recorded; None: it
    # reads all epochs or sums over them, and scores the rows sent in any
    epoch: int | None = -1
    steps: int = 0  # optimizer steps; if > 0, every row has a guess unless the attack diverged
    draws: int = MANY_DRAWS  # the most draws of known labels with which it is run
    # if given, ``run`` returns features [N, W] in place of scores, and ``host`` computes the scores
    host: HostReader | None = None
    # if given, the two parts of ``run``: the second one is run with what the first one returns as known rows.
    # Variants with an equal second one are computed side by side (``scores_of``)
    stages: tuple[Callable[..., Known], Callable[..., Scores]] | None = None


def scores_of(
    attacks: Sequence[Attack], key: Array, view: View, known: Known, knobs: Knobs
) -> tuple[Scores, ...]:
    """Returns what ``run`` of each attack returns. Equal second ``stages`` are mapped over their known rows: a
    program with a copy for each would compile for as many times as long."""
    found: dict[int, Scores] = {}
    beside: dict[Callable[..., Scores], list[tuple[int, Known]]] = {}
    for place, attack in enumerate(attacks):
        if attack.stages is None:
            found[place] = attack.run(key, view, known, knobs)
        else:
            first, second = attack.stages
            read = first(key, view, known, knobs)
            beside.setdefault(second, []).append((place, read))
    for second, given in beside.items():
        places, read = zip(*given, strict=True)
        together = jax.tree.map(lambda *parts: jnp.stack(parts), *read)
        scores = jax.vmap(lambda of, second=second: second(key, view, of, knobs))(together)
        for i, place in enumerate(places):
            found[place] = jax.tree.map(lambda a, i=i: a[i], scores)
    return tuple(found[place] for place in range(len(attacks)))


@dataclasses.dataclass(frozen=True)
class AttackRow:
    """One row of the table of attacks: a factory, and what the report must know of the attack.

    Calling a row calls its factory.
    """

    factory: Callable[..., Attack] | None
    """``factory(bottoms, num_classes, *, static options) -> Attack``, of the attackers' ``Bottoms`` and
    the number of classes C. It raises ValueError for a bad option, in one line that names the value and the
    remedy. None: the row is the stored description of a plugin that is not in use, and cannot be run."""

    published_steps: int = 0
    """Optimizer steps of the published attack, 0 where it trains nothing."""

    computed_as: str = ""
    """An attack that computes the same from equal options on other federations, and shares its programs."""

    host_options: tuple[str, ...] = ()
    """The options that only ``Attack.host`` reads. Variants that differ in them alone share programs."""

    cost: int = RULE
    """Its place in the order in which attacks run, one of RULE, SOLVE, HOST, TRAIN and WHOLE. Cheaper attacks
    run first, and one that reads all labels of a run settles dearer ones (``attack_runs.cascade``). At RULE an
    attack is never settled."""

    whole_batches: bool = False
    """Whether it reads what all rows of a batch exchanged. It is run only under defenses that it knows
    (``DefenseRow.known_by``). There all rows are recorded, even if few of them are scored."""

    full_effort: bool = False
    """Whether its program is compiled with full effort whatever the sweep's (``programs.Effort``): with less it
    would, on some fifty trials, run longer by more than it saves in compiling. So it is where a program adds to
    places that data decide, or takes steps on all rows of a network with tanh."""

    widest: int = 0
    """The most numbers that a party may send or receive for a row, 0 for any. Of wider cuts the attack is
    given a projection (``attack_runs.projection``), so it must not read the bottom models, which make the whole
    cut."""

    not_for_numbers: str = "it is defined for classes"
    """Why it is not defined for labels that are numbers (``num_classes`` = 1); "" if it is."""

    rule: int = 1
    """The number of the attack's rule, stored with its rows. A change of the code or of a default that moves
    its figures takes the next number, so that rows of different rules are never mixed or averaged. Learners of
    the local-only baseline have one rule (``learners.RULE``)."""

    origin: Origin | None = None
    """The plugin that the row is from (``vfljax.plugins`` sets it); None for a row of this library."""

    parameters: tuple[inspect.Parameter, ...] | None = None
    """The options of a row without a factory, as a sweep has stored them. None: those of the factory."""

    def __call__(self, bottoms: Bottoms, num_classes: int, **options: Any) -> Attack:
        if self.factory is None:
            raise errors.not_in_use(self.origin.plugin if self.origin else "")
        if num_classes == 1 and self.not_for_numbers:
            raise ValueError(f"not for labels that are numbers: {self.not_for_numbers}.")
        return self.factory(bottoms, num_classes, **options)

    @property
    def options(self) -> dict[str, Any]:
        """The static options of the factory (its keyword-only parameters) and their defaults."""
        parameters = self.parameters
        if parameters is None:
            assert self.factory is not None
            parameters = inspect.signature(self.factory).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def check_epoch(epoch: int | str) -> None:
    """Raise ValueError unless ``epoch`` is a whole number >= -1, "mean" or "votes".

    Whether a sweep recorded that epoch is checked when the sweep is attacked.
    """
    number = isinstance(epoch, int) and not isinstance(epoch, bool) and epoch >= -1
    if not number and epoch not in OVER_EPOCHS:
        raise ValueError(
            f"epoch={epoch!r} is not an epoch: choose 0, 1, ..., -1 (the last), 'mean' or 'votes'."
        )


def check_whole(name: str, value: Any, low: int, high: float = math.inf) -> None:
    """Raise ValueError unless the option ``name`` holds a whole number from ``low`` to ``high``."""
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        bounds = f"of at least {low}" if math.isinf(high) else f"from {low} to {high}"
        raise ValueError(f"{name}={value!r} must be a whole number {bounds}.")


def named_by(names: str, knobs: Mapping[str, float]) -> dict[str, Any]:
    """The fields of ``Attack`` that differ with what names the classes: "known" rows, or "none".

    ``knobs`` are those besides ``KNOWN``. Raises ValueError for other ``names``.
    """
    errors.check_choice("names", names, ("known", "none"))
    if names == "none":
        return {"knobs": knobs}
    return {"knobs": {**KNOWN, **knobs}, "baselines": ("logistic",)}


def reads_epoch(epoch: int | str, adaptive: bool = False) -> dict[str, Any]:
    """The fields of ``Attack`` that say which epochs it reads, for an ``epoch`` that has been checked.

    An attack that averages over epochs assumes a defense, hence is adaptive.
    """
    if isinstance(epoch, str):
        return {"epoch": None, "adaptive": True}
    return {"epoch": epoch, "adaptive": adaptive}


def place_of(view: View, epoch: Array | int | str) -> Array | int:
    """The index of a recorded ``epoch`` along the axis E of ``view``; that of the last for -1 and for sums
    over epochs."""
    if isinstance(epoch, str) or (isinstance(epoch, int) and epoch == -1):
        return -1
    return jnp.argmax(view.epochs == epoch)


def received(view: View, epoch: int | str) -> tuple[Array, Array]:
    """The gradients that an attack reads, and which rows have one.

    Args:
      view: what the attacker sees.
      epoch: the number of a recorded epoch, -1 for the last. "mean" averages each row's gradients
        over all epochs and "votes" their signs: both average out zero-mean noise.

    Returns:
      Gradients [N, D] in the units in which they were received, and a mask [N] bool. Rows outside
      the mask hold no information.
    """
    chex.assert_rank([view.gradients, view.sent], [3, 2])
    chex.assert_equal_shape_prefix([view.gradients, view.sent], 2)
    chex.assert_type([view.gradients, view.sent], [float, bool])
    if isinstance(epoch, int):
        place = place_of(view, epoch)
        return view.gradients[place], view.sent[place]
    total = view.sums.gradient if epoch == "mean" else view.sums.sign
    count = view.sums.count
    chex.assert_shape(total, view.gradients.shape[1:])
    chex.assert_shape(count, view.sent.shape[1:])
    return total / jnp.maximum(count, 1)[:, None], count > 0


def by_party(x: Array, num_classes: int) -> Array:
    """[N, P, C] of what P colluders sent or received without model splitting, [N, P * C]."""
    return x.reshape(len(x), -1, num_classes)


class Batches(NamedTuple):
    """The rows of one epoch by the batch in which they were sent."""

    rows: Array  # [T, B] int32 in sending order; N where a batch is shorter
    sent: Array  # [T, B] bool

    def gather(self, x: Array) -> Array:
        """The rows of ``x`` [N, ...] by batch, [T, B, ...]; rows that were not sent read 0."""
        padded = jnp.concatenate([x, jnp.zeros_like(x[:1])])
        by_batch = padded[self.rows]
        return jnp.where(self.sent.reshape(self.sent.shape + (1,) * (x.ndim - 1)), by_batch, 0)

    def scatter(self, values: Array, rows: int) -> Array:
        """The inverse of ``gather``: ``values`` [T, B, ...] by row [N, ...], N = ``rows``; NaN for
        rows that were not sent."""
        chex.assert_equal_shape_prefix([values, self.rows], 2)
        blank = jnp.full((rows + 1, *values.shape[2:]), jnp.nan, values.dtype)
        where = jnp.where(self.sent, self.rows, rows)
        return blank.at[where.reshape(-1)].set(values.reshape(-1, *values.shape[2:]))[:rows]


def batches_at(view: View, place: Array | int) -> Batches:
    """The batches of the epoch at this place of the axis E."""
    chex.assert_rank([view.order, view.sent], 2)
    chex.assert_equal_shape([view.order, view.sent])
    chex.assert_type([view.order, view.sent], [int, bool])
    order, sent = view.order[place], view.sent[place]
    rows, size = len(order), view.agreed.batch_size
    in_order = jnp.argsort(order).astype(jnp.int32)
    spare = -rows % size
    padded = jnp.concatenate([in_order, jnp.full(spare, rows, jnp.int32)])
    was_sent = jnp.concatenate([sent[in_order], jnp.zeros(spare, bool)])
    return Batches(padded.reshape(-1, size), was_sent.reshape(-1, size))


def with_mates(view: View) -> View:
    """The view of whole batches: in each field that ``Mates`` has, the batch mates follow the view's rows."""
    chex.assert_rank([view.embeddings, view.gradients, view.sent, view.order], [3, 3, 2, 2])
    if view.mates is None:
        return view

    def joined(rows: Array, others: Array) -> Array:
        return jnp.concatenate([rows, others], axis=1)

    return view._replace(
        embeddings=joined(view.embeddings, view.mates.embeddings),
        gradients=joined(view.gradients, view.mates.gradients),
        order=view.mates.order,
        sent=joined(view.sent, view.mates.sent),
        mates=None,
    )


_SHARED: contextvars.ContextVar[dict[Hashable, tuple[Any, Any]] | None] = contextvars.ContextVar(
    "shared", default=None
)


@contextlib.contextmanager
def sharing() -> Iterator[None]:
    """Lets the attacks that the block traces share what functions marked ``once`` compute."""
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def once(function: Callable[..., T]) -> Callable[..., T]:
    """The function, of which calls with the same arrays and equal options are traced once within ``sharing``.

    Variants of an attack on the same trial share ranks, graphs and the like in this way. The function is pure
    and positional, its options are hashable, and it is called outside of loops: what is traced within one must
    not be read outside.
    """

    @functools.wraps(function)
    def shared(*arguments: Any) -> T:
        memo = _SHARED.get()
        if memo is None:
            return function(*arguments)
        leaves, structure = jax.tree.flatten(arguments)
        arrays = (jax.Array, np.ndarray)
        same = tuple(id(leaf) if isinstance(leaf, arrays) else leaf for leaf in leaves)
        key = function, structure, same
        if key not in memo:
            memo[key] = arguments, function(*arguments)  # the arguments keep their ids
        return memo[key][1]

    return shared


def unit(x: Array) -> Array:
    """x [..., D] at length 1 along its last axis; zeros stay."""
    length = jnp.linalg.norm(x, axis=-1, keepdims=True)
    return x / jnp.where(length > 0, length, 1.0)


def labels_by_row(known: Known, rows: int) -> Array:
    """The known labels by row [N], N = ``rows``; -1 where the label is not known."""
    return jnp.full(rows, -1, known.labels.dtype).at[known.rows].set(known.labels)


def scored(scores: Array, sent: Array) -> Scores:
    """The ``scores`` [N, C] of the rows ``sent`` [N] bool; NaN for the other rows."""
    return Scores(jnp.where(sent[:, None], scores, jnp.nan))


def two_sided(score: Array, sent: Array) -> Array:
    """Class scores [N, 2] from one number a row [N] that is larger for positives.

    The scores are minus and plus the distance to the median of the rows ``sent`` [N] bool, so that
    the larger half is called positive. Rows that were not sent have NaN.
    """
    chex.assert_rank([score, sent], 1)
    chex.assert_equal_shape([score, sent])
    centered = score - jnp.nanmedian(jnp.where(sent, score, jnp.nan))
    return scored(jnp.stack([-centered, centered], axis=-1), sent).train


def from_one(score: Array, sent: Array, num_classes: int) -> Array:
    """Scores [N, C] from one number a row [N] that is larger for positives, or for larger labels that are
    numbers: ``two_sided``, or the number itself. Rows that were not sent have NaN."""
    if num_classes == 1:
        return scored(score[:, None], sent).train
    return two_sided(score, sent)


def known_by_row(known: Known, rows: int) -> Array:
    """Whether the label of each row [N] bool is known, N = ``rows``."""
    return jnp.zeros(rows, bool).at[known.rows].set(jnp.arange(len(known.rows)) < known.count)


def check_numeric(bottoms: Sequence[nn.Module], option: str) -> None:
    """Raise ValueError where a bottom reads codes or token ids, which are no numbers to a linear model.

    ``option`` ends the message: what asks for the columns, and the remedy.
    """
    coded = [type(module).__name__ for module in bottoms if not getattr(module, "mixable", True)]
    if coded:
        raise ValueError(f"columns that {coded[0]} reads are codes and not numbers: {option}.")


def columns_of(features: Sequence[Array]) -> Array:
    """All colluders' columns [N, W] of their features [N, ...]."""
    return jnp.concatenate([x.reshape(len(x), -1) for x in features], axis=-1)


def minimize(
    loss: Callable[..., Array],
    params: PyTree,
    optimizer: optax.GradientTransformation,
    steps: int,
    *drawn: Array,
) -> PyTree:
    """The parameters after ``steps`` of an ``optimizer`` on ``loss(params, *batch) -> scalar``.

    ``drawn`` [steps, ...] holds the batch of each step. Without it every step reads all rows.
    """

    def step(carry: tuple[PyTree, PyTree], batch: Any) -> tuple[tuple[PyTree, PyTree], None]:
        params, state = carry
        update, state = optimizer.update(jax.grad(loss)(params, *batch), state, params)
        return (optax.apply_updates(params, update), state), None

    carry = (params, optimizer.init(params))
    return jax.lax.scan(step, carry, drawn, length=steps)[0][0]
