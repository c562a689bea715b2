"""BlockRR: randomized response that treats rare classes otherwise than frequent ones (Liu, Ding 2026).

    S1 = {y : prior_y >= e^(-1/sigma) max prior}, the majority; S2, the minority, is the rest
    Delta, the ell likeliest classes, all in S1; C classes in all

                     y~ = y        y~ in Delta    y~ in S1     y~ in S2
    y in S1          e^eps beta    beta           beta         gamma
    y in S2          e^eps gamma   1 / C          beta         gamma

beta and gamma follow from the two sums of a row, which are 1:

    (e^eps + |S1| - 1) beta + |S2| gamma = 1
    ell / C + (|S1| - ell) beta + (e^eps + |S2| - 1) gamma = 1

It is eps-label-DP: beta <= 1 / C <= e^eps beta for every ell <= |S1|, so that no two entries of a column differ
by more than e^eps. A label of S2 is replaced by Delta with ell / C, however large eps is.

The prior is that of the classes, the same for all rows. It is estimated from a fold of the rows, whose counts
get Laplace noise of scale 2 / eps (one label changes two counts by 1). The fold's labels are not used again, so
that the whole is eps-label-DP too (parallel composition).

Reference: Liu, Ding. "BlockRR: A Unified Framework of RR-type Algorithms for Label Differential Privacy",
arXiv 2602.03277 (2026). The matrix and the partition are those of the authors' code (yuyin132/BlockRR at
7e28dcf, ``randomized.py``, "rrwithweight"; its ``delta`` is ell here). The proof above is ours. The paper also
has other choices of the sets; those that give RR and RRWithPrior are ``label_dp``'s other mechanisms.

Edge cases
    sigma = 0        S2 is empty: randomized response
    sigma = inf      S1 has the likeliest class alone, and ties
    epsilon = 0      uniform over all classes, whatever the label
    epsilon = inf    labels of S1 are kept; a label of S2 is kept with 1 - ell / C
    ell > |S1|       ell = |S1|
    float32          a draw outside of y and Delta has a chance of at least 2^-23 for a finite epsilon

Deviations: the authors leave the fold out of training, 1 % of the rows. Here its rows are trained on labels
drawn from the estimated prior, which tell nothing of their own. Where noise makes every count negative the
prior is uniform; theirs is not a number.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from vfljax import keys
from vfljax.types import Array


class Blocks(NamedTuple):
    """The partition of the classes, and the probabilities of a report."""

    majority: Array  # [C] bool, S1
    fallback: Array  # [C] bool, Delta
    keep: Array  # [C] that a label is kept; e^-eps times that it is reported for another one


def blocks(
    prior: Array, epsilon: Array | float, sigma: Array | float, ell: Array | float
) -> Blocks:
    """The sets and probabilities of BlockRR for a ``prior`` [C] that sums to 1.

    ``epsilon`` and ``sigma`` in [0, inf] and the whole number ``ell`` >= 0 are scalars and may be traced.
    """
    chex.assert_rank([prior, epsilon, sigma, ell], [1, 0, 0, 0])
    classes, epsilon = len(prior), jnp.asarray(epsilon, jnp.float32)
    majority = prior >= jnp.exp(-1 / jnp.asarray(sigma, jnp.float32)) * jnp.max(prior)
    large = jnp.sum(majority)  # |S1|
    small = classes - large  # |S2|
    ell = jnp.minimum(jnp.asarray(ell, jnp.float32), large)
    fallback = jnp.argsort(jnp.argsort(-prior, stable=True)) < ell
    # both sums are solved in q = e^-eps and u = 1 - q, which stay finite where e^eps does not
    q, u = jnp.exp(-epsilon), -jnp.expm1(-epsilon)
    both = u * u + u * q * classes + q * q * ell * small
    keep_large = (u + q * ell * small / classes) / both
    keep_small = (u * (1 - ell / classes) + q * ell * (1 - large / classes)) / both
    keep = jnp.where(majority, keep_large, keep_small)
    # without Delta or without S2 it is randomized response, and for epsilon = 0 both are 0 / 0
    return Blocks(majority, fallback, jnp.where(ell * small > 0, keep, 1 / (u + q * classes)))


def channel(
    prior: Array, epsilon: Array | float, sigma: Array | float, ell: Array | float
) -> Array:
    """P(noisy = column | true = row) [C, C] of BlockRR; arguments as those of ``blocks``."""
    of, classes = blocks(prior, epsilon, sigma, ell), len(prior)
    other = jnp.exp(-jnp.asarray(epsilon, jnp.float32)) * of.keep
    to_fallback = ~of.majority[:, None] & of.fallback[None, :]
    law = jnp.where(to_fallback, 1 / classes, other[None, :])
    return jnp.where(jnp.eye(classes, dtype=bool), of.keep[:, None], law)


def block_rr(
    key: Array,
    labels: Array,
    prior: Array,
    epsilon: Array | float,
    sigma: Array | float,
    ell: Array | float,
) -> Array:
    """Randomizes ``labels`` [N], integers, by ``channel``: [N] int32.

    Each label is epsilon-differentially private if the ``prior`` [C] does not depend on it. The other
    arguments are those of ``blocks``.
    """
    chex.assert_rank([labels, prior], 1)
    chex.assert_type([labels, prior], [int, float])
    epsilon, classes = jnp.asarray(epsilon, jnp.float32), len(prior)
    of = blocks(prior, epsilon, sigma, ell)
    minority = ~of.majority[labels]
    own = jax.nn.one_hot(labels, classes, dtype=bool)
    to_fallback = minority[:, None] & of.fallback[None, :]
    # e^eps times the chance of each other report, which does not underflow
    others = jnp.where(own | to_fallback, 0, of.keep[None, :])  # [N, C]
    to_other = jnp.exp(-epsilon) * jnp.sum(others, axis=-1)
    # a chance below a float32's step is rounded up, as in ``label_dp.is_kept``
    possible = jnp.isfinite(epsilon) & jnp.any(others > 0, axis=-1)
    to_other = jnp.where(possible, jnp.maximum(to_other, 2.0**-23), 0)
    count = jnp.sum(of.fallback)
    uniform = jax.random.uniform(keys.fold(key, "fallback"), labels.shape)
    place = jnp.clip(jnp.floor(uniform * count), 0, jnp.maximum(count - 1, 0)).astype(jnp.int32)
    in_fallback = jnp.argsort(~of.fallback, stable=True)[place]
    other = jax.random.categorical(keys.fold(key, "other"), jnp.log(others))
    draw = jax.random.uniform(keys.fold(key, "block"), labels.shape)
    replaced = draw < to_other + jnp.where(minority, count / classes, 0)
    drawn = jnp.where(replaced, in_fallback, labels)
    return jnp.where(draw < to_other, other, drawn).astype(jnp.int32)


def private_counts(key: Array, counts: Array, epsilon: Array | float) -> Array:
    """``counts`` [C] of classes with Laplace noise of scale 2 / epsilon, times epsilon / (1 + epsilon).

    With that factor, which no prior depends on, ``epsilon`` may be any number in [0, inf].
    """
    noisier = 1 / (1 + jnp.asarray(epsilon, jnp.float32))  # 0 for an infinite epsilon
    return (1 - noisier) * counts + noisier * 2 * jax.random.laplace(key, counts.shape)


def randomize(
    key: Array,
    labels: Array,
    num_classes: int,
    epsilon: Array | float,
    sigma: Array | float,
    ell: Array | float,
    fold: Array | float,
) -> Array:
    """Estimates the prior from a share ``fold`` of the ``labels`` [N] and randomizes the others: [N] int32."""
    chex.assert_rank([labels, epsilon, fold], [1, 0, 0])
    first = jax.random.permutation(keys.fold(key, "fold"), len(labels)) < fold * len(labels)
    counts = jnp.sum(jax.nn.one_hot(labels, num_classes) * first[:, None], axis=0)
    noisy = jnp.maximum(private_counts(keys.fold(key, "counts"), counts, epsilon), 0)
    total = jnp.sum(noisy)
    prior = jnp.where(total > 0, noisy / jnp.where(total > 0, total, 1), 1 / num_classes)
    drawn = block_rr(keys.fold(key, "respond"), labels, prior, epsilon, sigma, ell)
    unrelated = jax.random.categorical(keys.fold(key, "prior"), jnp.log(prior), shape=labels.shape)
    return jnp.where(first, unrelated, drawn).astype(jnp.int32)
