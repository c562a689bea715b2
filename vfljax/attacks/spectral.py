"""Spectral: embeddings of the two classes stand apart along the direction of largest variance (Sun et
al. 2022).

    s_i = <z_i - mean z, v>,   v the top right singular vector of the centered batch

Reference: Sun, Yang, Yao, Wang. "Label Leakage and Protection from Forward Embedding in Vertical
Federated Learning", 2022, section 5, algorithm 1 (appendix D), appendices E and G; spectral
signatures: Tran, Li, Madry 2018.

The sign of v is arbitrary. Scores "signed" (algorithm 1) are cut into two clusters (2-means on the
line, exact) and turned so that the smaller cluster is the positive class, which the attacker is
supposed to know is the rarer one. As the s_i sum to 0, the smaller cluster also has the larger mean
score: for signed scores the paper's heuristic for balanced data says the same. For "absolute" scores,
|s_i| (section 5), it does not: heuristic="minority" calls the smaller cluster positive, "larger" the
one of larger |s|.

More classes: k-means with C clusters in the span of the C - 1 top directions, over the whole epoch;
a cluster is named by the majority of its known rows (matching by size, appendix E, is chance on
balanced classes). oracle=True names clusters by all labels: an upper bound.

Deviations: a batch's scores are in units of its largest entry and less the cut between its clusters; an
all-zero batch scores 0; of clusters of equal size either may be called positive; ``signal`` a layer's
name looks at the trained model's activations after training, in evaluation mode (published: during
training).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.attacks.core import SPLIT, Attack, batches, check_epoch, number_of, place_of, received
from vfljax.types import Array, Known, Scores, View

SIGNALS = ("embeddings", "gradients")
RESTARTS, ROUNDS = 8, 30  # of k-means
SQUARINGS = 12

# the default product keeps only some ten bits of each factor on accelerators
multiply = functools.partial(jnp.matmul, precision="highest")


def centered(x: Array, weights: Array) -> Array:
    """Rows [n, D] less their weighted mean, in units of the largest entry; rows of weight 0 are 0."""
    count = jnp.maximum(jnp.sum(weights), 1.0)
    x = jnp.where(weights[:, None] > 0, x, 0.0)
    largest = jnp.max(jnp.abs(x))
    x = x / jnp.where(largest > 0, largest, 1.0)
    return (x - jnp.sum(x, axis=0, keepdims=True) / count) * weights[:, None]


def directions(x: Array, count: int) -> Array:
    """The ``count`` top right singular vectors [D, count] of centered rows, strongest first.

    By squaring the covariance (its 2**SQUARINGS-th power is nearly of rank one) and deflation: products
    only, cheap under vmap on any backend. Variances within .1 % of each other are not told apart.
    """

    def square(_: Array, power: Array) -> Array:
        power = multiply(power, power)
        largest = jnp.max(jnp.abs(power))
        return power / jnp.where(largest > 0, largest, 1.0)

    def top(covariance: Array) -> Array:
        largest = jnp.max(jnp.abs(covariance))
        power = covariance / jnp.where(largest > 0, largest, 1.0)
        power = jax.lax.fori_loop(0, SQUARINGS, square, power)
        v = power[:, jnp.argmax(jnp.diagonal(power))]  # every column is a multiple of it
        length = jnp.linalg.norm(v)
        return v / jnp.where(length > 0, length, 1.0)

    def one(left: Array, _: None) -> tuple[Array, Array]:
        v = top(multiply(left.T, left))
        return left - multiply(left, v)[:, None] * v[None, :], v

    _, vectors = jax.lax.scan(one, x, None, length=count)
    return vectors.T


def threshold(s: Array, weights: Array) -> Array:
    """The cut of numbers [n] into two clusters of least squared distance to their means: halfway
    between the neighbors it parts. Weights are 0 or 1."""
    n = jnp.sum(weights)
    values = jnp.sort(jnp.where(weights > 0, s, jnp.inf))
    finite = jnp.where(jnp.isfinite(values), values, 0.0)
    below = jnp.arange(1, len(s) + 1, dtype=jnp.float32)
    total, left = jnp.sum(finite), jnp.cumsum(finite)
    above = jnp.maximum(n - below, 1.0)
    # between-cluster variance up to a constant: maximal where the within-cluster one is least
    gain = left**2 / below + (total - left) ** 2 / above
    i = jnp.argmax(jnp.where(below < n, gain, -jnp.inf))
    return (values[i] + jnp.where(i + 1 < n, values[jnp.minimum(i + 1, len(s) - 1)], values[i])) / 2


def two_clusters(x: Array, weights: Array, absolute: bool, minority: bool) -> Array:
    """Scores [n] of rows [n, D]: above 0 for the cluster called positive."""
    x = centered(x, weights)
    s = multiply(x, directions(x, 1))[:, 0]
    s = jnp.abs(s) if absolute else s
    s = s - threshold(s, weights)
    positive = jnp.sum(weights * (s > 0))
    turn = (2 * positive > jnp.sum(weights)) & (minority or not absolute)
    return jnp.where(turn, -s, s)


def k_means(key: Array, x: Array, weights: Array, count: int) -> Array:
    """Cluster of each row [n, D], the best of RESTARTS runs of Lloyd's rounds from k-means++ starts."""

    def squares(centers: Array) -> Array:
        apart = x[:, None, :] - centers[None, :, :]
        return jnp.sum(apart * apart, axis=-1)

    def start(key: Array) -> Array:
        first, *rest = jax.random.split(key, count)
        place = jax.random.choice(first, len(x), p=weights / jnp.sum(weights))
        centers = jnp.broadcast_to(x[place][None, :], (count, x.shape[1]))
        for c, own in enumerate(rest, start=1):
            nearest = jnp.min(squares(centers), axis=1) * weights
            # where every row is a center already any row serves
            chance = jnp.where(jnp.sum(nearest) > 0, nearest, weights)
            centers = centers.at[c].set(x[jax.random.choice(own, len(x), p=chance / chance.sum())])
        return centers

    def one(centers: Array, _: None) -> tuple[Array, None]:
        members = jax.nn.one_hot(jnp.argmin(squares(centers), axis=1), count) * weights[:, None]
        size = jnp.sum(members, axis=0)[:, None]
        return jnp.where(size > 0, multiply(members.T, x) / jnp.maximum(size, 1.0), centers), None

    def attempt(key: Array) -> tuple[Array, Array]:
        centers, _ = jax.lax.scan(one, start(key), None, length=ROUNDS)
        near = squares(centers)
        return jnp.sum(jnp.min(near, axis=1) * weights), jnp.argmin(near, axis=1)

    inertia, clusters = jax.lax.map(attempt, jax.random.split(key, RESTARTS))
    return clusters[jnp.argmin(inertia)]


def named(clusters: Array, known: Known, sent: Array, num_classes: int) -> Array:
    """Scores [n, C]: the share of each class among the known rows of a row's cluster; clusters without
    any score all classes 0."""
    labels = jnp.full(len(clusters), -1).at[known.rows].set(known.labels)
    told = jax.nn.one_hot(labels, num_classes) * sent[:, None]  # -1 is no class: a row of zeros
    votes = jax.ops.segment_sum(told, clusters, num_classes)
    return (votes / jnp.maximum(jnp.sum(votes, axis=1, keepdims=True), 1.0))[clusters]


def spectral(
    bottoms: tuple[nn.Module, ...],
    num_classes: int,
    *,
    signal: str = "embeddings",
    scores: str = "signed",
    heuristic: str = "minority",
    whole: bool = False,
    epoch: int | str = -1,
    oracle: bool = False,
) -> Attack:
    """The attack on what was sent ("embeddings"), received ("gradients") or computed (a layer's name,
    such as "party0.hidden.0" or "top.hidden.0": a diagnostic where the layer is not the attacker's
    own) in ``epoch``, a mini-batch at a time, or over the ``whole`` epoch at once."""
    del bottoms
    check_epoch(epoch)
    for name, value, known_ones in (
        ("scores", scores, ("signed", "absolute")),
        ("heuristic", heuristic, ("minority", "larger")),
    ):
        if value not in known_ones:
            raise ValueError(f"{name}={value!r} is unknown: choose one of {', '.join(known_ones)}.")
    if not isinstance(signal, str) or (signal not in SIGNALS and "." not in signal):
        raise ValueError(
            f"signal={signal!r} is unknown: choose one of {', '.join(SIGNALS)} or a layer such as "
            "'party0.hidden.0'."
        )
    if isinstance(epoch, str) and (signal != "gradients" or not whole):
        raise ValueError(
            f"epoch={epoch!r} has no mini-batches and no embeddings: choose a number, or "
            "signal='gradients' with whole=True."
        )
    if num_classes > 2 and (scores, heuristic, whole) != ("signed", "minority", False):
        raise ValueError(
            f"scores={scores!r}, heuristic={heuristic!r}, whole={whole!r} are for two classes; with "
            f"{num_classes} classes the epoch's rows are clustered by k-means: leave them out."
        )
    if oracle and num_classes == 2:
        raise ValueError("oracle=True names more than two clusters by all labels: C is 2 here.")

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        del knobs
        if signal == "gradients":
            x, sent = received(view, epoch)
        else:
            sent = view.sent[place_of(view, number_of(epoch))]
            own = view.embeddings[place_of(view, number_of(epoch))]
            x = own if signal == "embeddings" else view.inside[signal]
        if num_classes > 2:
            z = centered(x, sent.astype(jnp.float32))
            z = multiply(z, directions(z, min(num_classes - 1, z.shape[1])))
            found = named(
                k_means(key, z, sent.astype(jnp.float32), num_classes), known, sent, num_classes
            )
            return Scores(jnp.where(sent[:, None], found, jnp.nan))

        def one(x: Array, weights: Array) -> Array:
            return two_clusters(x, weights, scores == "absolute", heuristic == "minority")

        if whole:
            s = one(x, sent.astype(jnp.float32))
        else:
            together = batches(view, number_of(epoch))
            parts = jax.vmap(one)(together.gather(x), together.sent.astype(jnp.float32))
            s = together.scatter(parts, len(x))
        return Scores(jnp.where(sent[:, None], jnp.stack([-s, s], axis=-1), jnp.nan))

    return Attack(
        run,
        SPLIT,
        knobs={"known": 40.0} if num_classes > 2 and not oracle else {},
        baselines=("untrained",) if signal == "embeddings" and not oracle else (),
        oracle=oracle,
        adaptive=isinstance(epoch, str),
        epoch=number_of(epoch),
        over_epochs=isinstance(epoch, str),
        inside="" if signal in SIGNALS else signal,
    )
