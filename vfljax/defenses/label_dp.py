"""Label DP: labels randomized once, before any party learns from them (Ghazi et al. 2021).

    randomized_response  keep y with probability e^eps / (e^eps + C - 1), else uniform over the others
    rr_with_prior        with k* = argmax_k e^eps / (e^eps + k - 1) * sum of the top-k prior:
                         y in the top k*: kept with e^eps / (e^eps + k* - 1), else uniform over the
                         other k* - 1;  y outside: uniform over the top k*
    block_rr             rare classes are replaced by frequent ones more often
                         (``vfljax.defenses.block_rr``, which has the equations and the reference)

Labels that are numbers have two mechanisms of their own, for a range (low, high) that the user gives
(``config.data.label_range``) and that no label sets. Labels are clipped to it before anything else.

    laplace              y + Laplace noise of scale (high - low) / eps
    rr_on_bins           randomized response among a few values of the range, the best ones for a prior
                         that the user gives (``vfljax.defenses.rr_on_bins``)

They read labels in their own unit. What they return is standardized by its own mean and standard deviation,
so that the true labels' moments, by which labels are standardized elsewhere, take no part in training.
Predictions are scaled back where they are judged.

What eps does not cover of numbers: rows are divided, and known labels drawn, by tenths of the true labels
(``vfljax.datasets.strata``), and passive parties see which rows are for training. A federation would divide its
rows without labels. Those of validation and test rows are clipped too: R² and errors are of clipped labels.

A row's label is drawn ONCE for the whole training: fresh draws in every epoch would spend eps in every epoch.
Later slots and the label party's teacher see the randomized labels only; metrics alone see the true ones.

Reference: Ghazi, Golowich, Kumar, Manurangsi, Zhang. "Deep Learning with Label Differential
Privacy", NeurIPS 2021, algorithms 1 and 2; LP-2ST is their algorithm 3 with two stages.

Guarantee: eps-label-differential privacy. An attacker's posterior odds of two labels are at most
e^eps times its prior odds. The prior includes whatever the attacker knows from features, so it may
well guess better than ``best_guess``, the bound for one that sees the noisy label alone.

The prior of rr_with_prior must not have seen the row's label:
    prior="two_stage"  (default) half of the rows is randomized plainly; a teacher trained on those
                       randomized labels gives the prior of the other half (LP-2ST)
    prior="teacher", guarantee="none"  a teacher trained on the raw labels; no eps holds then
Public knowledge (class frequencies, a model trained elsewhere) goes to ``rr_with_prior`` directly.

Edge cases
    epsilon = inf    every label is kept (rr_with_prior: if it is in the top k*)
    epsilon = 0      independent of the label (C = 2: a coin)
    uniform prior    rr_with_prior is randomized_response (k* = C)
    float32          the chance to flip is never rounded below 2^-23 for a finite epsilon. Laplace noise
                     reaches 44 of its scales, and is rounded to 1/256 of it, which is some thousand steps of
                     the noise or more (Mironov, "On significance of the least significant bits for
                     differential privacy", CCS 2012). Odds are then e^eps but for about a thousandth, and
                     with a chance below 2^-63 e^eps one label makes a number that another cannot
    k* = 1           the prior's likeliest class, whatever the label

Deviation: Google's released k* is off by one, and it samples all C classes for y outside the top k*,
which breaks eps-DP. Neither is offered. A continuous response with a prior (RPWithPrior, Liu and Huang, arXiv
2601.22625) is left out: only its abstract was at hand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp

from vfljax import errors, keys
from vfljax.defenses import block_rr, core, rr_on_bins
from vfljax.defenses.rows import LEARNS, DefenseRow, Knower, Strengths, private_remarks
from vfljax.types import Array, Context, HostArray, PyTree

OF_CLASSES = ("randomized_response", "rr_with_prior", "block_rr")
OF_NUMBERS = ("laplace", "rr_on_bins")
MECHANISMS = (*OF_CLASSES, *OF_NUMBERS)
OF_BLOCK_RR = {"sigma": 1.0, "ell": 1.0, "fold": 0.01}
"""The defaults of the knobs that other mechanisms do not read."""
GRID = 2.0**-8
"""The steps of what Laplace noise returns, in its scales."""


def _other(key: Array, position: Array, count: Array | int) -> Array:
    """Uniform draws [N] from 0..count-1 without ``position`` [N], or ``position`` itself if count is 1."""
    draw = jax.random.uniform(key, position.shape)
    place = jnp.minimum(jnp.floor(draw * (count - 1)), count - 2).astype(jnp.int32)
    moved = place + (place >= position)
    return jnp.where(jnp.asarray(count) > 1, moved, position)


def is_kept(
    key: Array, shape: tuple[int, ...], count: Array | int, epsilon: Array | float
) -> Array:
    """Bernoulli(e^eps / (e^eps + count - 1)) draws of that shape.

    They are drawn as their complement. A uniform float32 has steps of 2^-23, and a chance to flip
    that is smaller is rounded up to one step, not down to 0. An infinite epsilon keeps all.
    """
    epsilon = jnp.asarray(epsilon, jnp.float32)
    odds = (jnp.asarray(count) - 1) * jnp.exp(-epsilon)
    flip = jnp.where(jnp.isinf(epsilon), 0.0, jnp.maximum(odds / (1 + odds), 2.0**-23))
    flip = jnp.where(jnp.asarray(count) > 1, flip, 0.0)
    return jax.random.uniform(key, shape) >= flip


def randomized_response(
    key: Array, labels: Array, num_classes: Array | int, epsilon: Array | float
) -> Array:
    """Randomized response of ``labels`` [N], integers below ``num_classes``: [N] int32.

    Each label is epsilon-differentially private; this is k = C in Ghazi et al. 2021, algorithm 1.
    ``epsilon`` >= 0 is a scalar and may be traced. Where it is infinite, nothing changes.
    """
    chex.assert_rank([labels, epsilon], [1, 0])
    chex.assert_type(labels, int)
    kept = is_kept(keys.fold(key, "keep"), labels.shape, num_classes, epsilon)
    other = _other(keys.fold(key, "other"), labels, num_classes)
    return jnp.where(kept, labels, other).astype(jnp.int32)


def optimal_k(prior: Array, epsilon: Array | float) -> Array:
    """k* [N] int32 of each row's ``prior`` [N, C] (Ghazi et al. 2021, algorithm 2).

    Of values that are equally good, to a relative 1e-6, it is the largest, so that a uniform prior
    gives C. ``epsilon`` >= 0 is a scalar.
    """
    chex.assert_rank([prior, epsilon], [2, 0])
    mass = jnp.cumsum(-jnp.sort(-prior, axis=-1), axis=-1)
    k = jnp.arange(1, prior.shape[-1] + 1)
    keep = 1 / (1 + (k - 1) * jnp.exp(-jnp.asarray(epsilon, jnp.float32)))
    right = keep[None, :] * mass
    enough = right >= (1 - 1e-6) * jnp.max(right, axis=-1, keepdims=True)
    return jnp.max(jnp.where(enough, k[None, :], 1), axis=-1).astype(jnp.int32)


def rr_with_prior(key: Array, labels: Array, prior: Array, epsilon: Array | float) -> Array:
    """Randomized ``labels`` [N], integers, with a ``prior`` [N, C] for each row: [N] int32.

    This is RRWithPrior (Ghazi et al. 2021, algorithm 2). The rows of ``prior`` sum to 1 and must not
    depend on the row's own label; then each label is epsilon-differentially private. ``epsilon`` >= 0
    is a scalar. The law reduces to that of ``randomized_response`` for a uniform prior.
    """
    chex.assert_rank([labels, prior, epsilon], [1, 2, 0])
    chex.assert_equal_shape_prefix([labels, prior], 1)
    chex.assert_type([labels, prior], [int, float])
    k = optimal_k(prior, epsilon)
    order = jnp.argsort(-prior, axis=-1, stable=True)  # [N, C], the likeliest class first
    rank = jnp.argmax(order == labels[:, None], axis=-1)  # the label's place in that order
    kept = is_kept(keys.fold(key, "keep"), labels.shape, k, epsilon)
    other = _other(keys.fold(key, "other"), rank, k)
    within = jnp.where(kept, rank, other)
    uniform = jax.random.uniform(keys.fold(key, "outside"), labels.shape)
    outside = jnp.minimum(jnp.floor(uniform * k), k - 1).astype(jnp.int32)
    place = jnp.where(rank < k, within, outside)
    return jnp.take_along_axis(order, place[:, None], axis=-1)[:, 0].astype(jnp.int32)


def channel(prior: Array, epsilon: Array | float) -> Array:
    """P(noisy = column | true = row) [C, C] of RRWithPrior with the ``prior`` [C].

    A uniform prior gives the channel of randomized response. ``epsilon`` >= 0 is a scalar.
    """
    chex.assert_rank([prior, epsilon], [1, 0])
    classes = prior.shape[0]
    k = optimal_k(prior[None], epsilon)[0]
    rank = jnp.argsort(jnp.argsort(-prior, stable=True))
    top = rank < k
    keep = 1 / (1 + (k - 1) * jnp.exp(-jnp.asarray(epsilon, jnp.float32)))
    off = (1 - keep) / jnp.maximum(k - 1, 1)
    within = jnp.where(jnp.eye(classes, dtype=bool), keep, off) * top[None, :]
    return jnp.where(top[:, None], within, top[None, :] / k)


def best_guess(prior: Array, noisy_given_true: Array) -> Array:
    """Probability [] that the best guess from the noisy label alone is right.

    It is the sum over noisy labels of max_y prior_y P(noisy | y), for a ``prior`` [C] and a channel
    ``noisy_given_true`` [C, C] as ``channel`` gives it. For a uniform prior and randomized response
    it is e^eps / (e^eps + C - 1).
    """
    chex.assert_rank(prior, 1)
    chex.assert_shape(noisy_given_true, (len(prior), len(prior)))
    return jnp.sum(jnp.max(prior[:, None] * noisy_given_true, axis=0))


def first_half(key: Array, rows: int) -> Array:
    """Which rows the first stage of prior="two_stage" randomizes, half of them: [N] bool."""
    return jax.random.permutation(keys.fold(key, "fold"), rows) < rows // 2


def label_dp(
    epsilon: Array | float,
    sigma: Array | float = 1.0,
    ell: Array | float = 1.0,
    fold: Array | float = 0.01,
    *,
    mechanism: str = "randomized_response",
    prior: str = "two_stage",
    guarantee: str = "epsilon",
    masses: str = "",
) -> core.Defense:
    """Label DP with ``epsilon`` in [0, inf].

    With mechanism="randomized_response" it reduces to no defense at infinity, and so do "laplace" and
    "rr_on_bins", which are of labels that are numbers and need a range. It must be listed before other
    defenses on targets. mechanism="rr_with_prior" needs a teacher, hence a label party that owns columns.
    mechanism="block_rr" alone reads ``sigma`` in [0, inf], where 0 leaves no class to the minority; ``ell``, a
    whole number of classes that replace those of the minority; and ``fold`` in [0, 1], the share of rows
    that the prior is estimated from. mechanism="rr_on_bins" alone reads ``masses``, the prior of
    ``rr_on_bins.prior_of``.

    Raises ``ValueError`` for a knob out of range, one that the mechanism does not read at another value than
    its default, an unknown option, and a teacher of raw labels whose guarantee is not given up; ``init`` does
    where a teacher or a range is needed and there is none, and for labels that the mechanism is not for.
    """
    errors.check("epsilon", epsilon, 0.0, jnp.inf, infinite=True)
    errors.check("sigma", sigma, 0.0, jnp.inf, infinite=True)
    errors.check("ell", ell, 0, whole=True)
    errors.check("fold", fold, 0.0, 1.0)
    errors.check_choice("mechanism", mechanism, MECHANISMS)
    errors.check_choice("prior", prior, ("two_stage", "teacher"))
    errors.check_choice("guarantee", guarantee, ("epsilon", "none"))
    cells = rr_on_bins.prior_of(masses)
    unread: dict[str, tuple[str, Any, Any]] = {"masses": ("rr_on_bins", masses, "")}
    for knob, value in {"sigma": sigma, "ell": ell, "fold": fold}.items():
        unread[knob] = ("block_rr", value, OF_BLOCK_RR[knob])
    for name, (reader, value, default) in unread.items():
        traced = hasattr(value, "aval")  # it was checked when the sweep was planned
        if mechanism != reader and not traced and value != default:
            raise errors.UserError(
                f"is not read by {mechanism}",
                field=errors.Field(name, name),
                value=value,
                remedy=f"leave it out, or choose mechanism={reader!r}",
            )
    reads_scores, raw_teacher = mechanism == "rr_with_prior", prior == "teacher"
    if raw_teacher != (guarantee == "none") or (raw_teacher and not reads_scores):
        raise ValueError(
            f"mechanism={mechanism!r}, prior={prior!r}, guarantee={guarantee!r}: a teacher that has "
            "seen the raw labels destroys the guarantee. Choose prior='two_stage', or "
            "prior='teacher' together with mechanism='rr_with_prior' and guarantee='none'."
        )
    if mechanism in OF_NUMBERS:
        return _of_numbers(mechanism, epsilon, cells)

    def plain(key: Array, labels: Array, num_classes: int) -> Array:
        if mechanism == "block_rr":
            return block_rr.randomize(key, labels, num_classes, epsilon, sigma, ell, fold)
        return randomized_response(keys.fold(key, "plain"), labels, num_classes, epsilon)

    def teach(key: Array, labels: Array, num_classes: int) -> tuple[Array, Array]:
        weights = jnp.ones(labels.shape, jnp.float32)
        if not reads_scores:
            return plain(key, labels, num_classes), weights
        if raw_teacher:
            return labels, weights
        first = first_half(key, len(labels))
        drawn = plain(key, labels, num_classes)
        # the second half's labels are spent on its own draw: the teacher gets a constant there
        return jnp.where(first, drawn, 0), first.astype(jnp.float32)

    def init(key: Array, data: core.TrainingData) -> PyTree:
        if data.num_classes == 1:
            raise ValueError(
                f"label_dp's mechanism={mechanism!r} is for classes, and these labels are numbers: choose "
                "'laplace' or 'rr_on_bins'."
            )
        drawn = plain(key, data.labels, data.num_classes)
        if not reads_scores:
            return drawn
        if data.scores is None:
            raise ValueError(
                "label_dp's rr_with_prior needs a teacher, which is trained on the label party's own "
                "columns, and the label party owns none: set config.parties.label_features=True or "
                "choose mechanism='randomized_response'."
            )
        informed = rr_with_prior(keys.fold(key, "prior"), data.labels, data.scores, epsilon)
        if raw_teacher:
            return informed
        return jnp.where(first_half(key, len(data.labels)), drawn, informed)

    def targets(targets: Array, context: Context, state: PyTree) -> tuple[Array, Context, PyTree]:
        labels = state[context.index]
        randomized = jax.nn.one_hot(labels, targets.shape[-1], dtype=targets.dtype)
        return randomized, context._replace(labels=labels), state

    return core.Defense(
        init=init,
        teach=teach,
        labels=lambda state, labels: state,
        targets=targets,
        reads_scores=reads_scores,
        replaces=True,
    )


def laplace(key: Array, u: Array, epsilon: Array | float) -> Array:
    """Numbers ``u`` [N] in [0, 1] with Laplace noise of scale 1 / ``epsilon``, in units of 1 / epsilon.

    The magnitude is ln 2 times a geometric number, the leading zeros of 64 random bits, plus an exponential
    variable within (0, ln 2): ``jax.random.laplace`` ends at 16 scales. The sum is rounded to ``GRID``.
    """
    chex.assert_rank([u, epsilon], [1, 0])
    first, second, sign = jax.random.bits(keys.fold(key, "bits"), (3, *u.shape), jnp.uint32)
    halvings = jax.lax.clz(first) + jnp.where(first == 0, jax.lax.clz(second), 0)
    part = -jnp.log1p(-jax.random.uniform(keys.fold(key, "part"), u.shape) / 2)
    size = jnp.log(2.0) * halvings.astype(jnp.float32) + part
    noise = jnp.where(sign >> 31 == 1, -size, size)
    return jnp.round((epsilon * u + noise) / GRID) * GRID


def response_on_bins(
    key: Array, u: Array, prior: Array | HostArray, epsilon: Array | float
) -> Array:
    """Numbers ``u`` [N] in [0, 1] by randomized response on the bins that are optimal for a ``prior`` [G]."""
    chex.assert_rank([u, prior, epsilon], [1, 1, 0])
    bins = rr_on_bins.optimal_bins(jnp.asarray(prior), epsilon)
    own = bins.bin_of[rr_on_bins.cell_of(u)]
    return bins.values[randomized_response(key, own, bins.count, epsilon)]


def _of_numbers(mechanism: str, epsilon: Array | float, prior: HostArray) -> core.Defense:
    """Label DP of labels that are numbers, whose state holds the randomized ones, standardized, and how outputs
    that learn them are read: a standardized true label is ``offset`` + ``slope`` times the output."""

    def init(key: Array, data: core.TrainingData) -> PyTree:
        if data.num_classes > 1:
            raise ValueError(
                f"label_dp's mechanism={mechanism!r} is for labels that are numbers, and the data has "
                f"{data.num_classes} classes: choose 'randomized_response'."
            )
        if data.label_range is None or data.shares_of_range is None:
            raise ValueError(
                "label_dp of numbers needs bounds that no label sets, and labels are clipped to them: give "
                "config.data.label_range=(low, high)."
            )
        low, high = data.label_range
        labels, u = jnp.clip(data.labels, low, high), data.shares_of_range
        # an infinite epsilon is treated apart, and 1e-6 keeps what is read without any signal finite
        finite = jnp.where(jnp.isinf(epsilon), 1.0, epsilon)
        if mechanism == "laplace":
            drawn, unit = laplace(keys.fold(key, mechanism), u, finite), jnp.maximum(finite, 1e-6)
        else:
            drawn, unit = response_on_bins(keys.fold(key, mechanism), u, prior, finite), 1.0
        mean, spread = jnp.mean(drawn), jnp.std(drawn)
        spread = jnp.where(spread > 0, spread, 1.0)
        width = (high - low) / unit
        randomized = {
            "labels": (drawn - mean) / spread,
            "offset": low + width * mean,
            "slope": width * spread,
        }
        kept = {"labels": labels, "offset": jnp.float32(0.0), "slope": jnp.float32(1.0)}
        every = jnp.isinf(epsilon)
        return {name: jnp.where(every, kept[name], of) for name, of in randomized.items()}

    def teach(key: Array, labels: Array, num_classes: int) -> tuple[Array, Array]:
        del key, num_classes  # a teacher has no range, and learns nothing
        return 0 * labels, 0 * labels

    def targets(targets: Array, context: Context, state: PyTree) -> tuple[Array, Context, PyTree]:
        labels = state["labels"][context.index]
        randomized = labels[:, None].astype(targets.dtype)
        return randomized, context._replace(labels=labels), state

    return core.Defense(
        init=init,
        teach=teach,
        labels=lambda state, labels: state["labels"],
        targets=targets,
        read=lambda state, logits: state["offset"] + state["slope"] * logits,
        replaces=True,
    )


def guess_text(epsilon: float, options: Mapping[str, Any], prior: Array | HostArray) -> str:
    """The best guess from the noisy label alone, for ``Remarks.bound``. ``prior`` [C] holds the classes'
    shares, or 1 for numbers."""
    if options.get("mechanism") == "rr_with_prior":
        return "differs from row to row"
    if options.get("mechanism") == "block_rr":
        return "differs from seed to seed"  # with the estimated prior
    if len(prior) == 1:
        return "not defined for numbers"
    return f"{float(_guessed(prior, epsilon)):.3f}"


@jax.jit  # one program in place of one for each operation
def _guessed(prior: Array, epsilon: Array | float) -> Array:
    uniform = jnp.full(len(prior), 1 / len(prior))
    return best_guess(prior, channel(uniform, epsilon))


ROW = DefenseRow(
    factory=label_dp,
    example={"epsilon": 1.0, **OF_BLOCK_RR},
    known_by={
        # the likeliest label given the noisy one is the noisy one: to read it is the best guess
        # (label-only); model completion and the posterior add what the columns predict. Of numbers too: the
        # larger the noisy label, the larger is the mean of the true one
        "no_split": (Knower("direct"), Knower("two_stage"), Knower("posterior")),
        # noise that is drawn once is learned away: embeddings average over rows
        "split": (
            *(Knower("probe"), Knower("passive"), Knower("spectral")),
            *(Knower("posterior", "direction"), Knower("spreading")),
        ),
    },
    neutral={"epsilon": math.inf, **OF_BLOCK_RR},
    not_for_numbers="",
    options_for_numbers={"mechanism": "rr_on_bins"},
    strengths=Strengths("epsilon", (8.0, 4.0, 2.0, 1.0, 0.5)),
    remarks=private_remarks(
        lambda options: options.get("guarantee") != "none",
        guess_text,
        f"Label DP {LEARNS} Attacks that use features may exceed what the noisy label alone gives "
        "without breaking the guarantee; the table below has the strongest.",
        unbound="no guarantee (its prior has seen the raw labels)",
    ),
)
