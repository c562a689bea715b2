"""MixMatch: semi-supervised learning from guesses that are sharpened and rows that are mixed.

    q = sharpen(p, T) = p^(1/T) / sum p^(1/T)
    x~ = lam x + (1 - lam) x[perm], t~ likewise
    L = CE(labeled part, t~) + weight mean (p - t~)^2       (unlabeled part, batch and class)

Labels that are numbers (ours): a guess is the number that is predicted, which nothing sharpens, and the cross
entropy is a squared error.

Reference: Berthelot et al. "MixMatch: A Holistic Approach to Semi-Supervised Learning", NeurIPS 2019,
algorithm 1 and equations 3 to 5.
"""

from __future__ import annotations

from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp

from vfljax.types import Array, PyTree


class Mixing(NamedTuple):
    """The random numbers of some steps, with batches of b labeled and b unlabeled rows."""

    labeled: Array  # [steps, b] places among the known rows
    unlabeled: Array  # [steps, b] places among all rows, known ones first
    lam: Array  # [steps] max(lam, 1 - lam)
    order: Array  # [steps, 2b] permutation


def permutations(u: Array) -> Array:
    """The stable order [..., n] of uniform numbers u [..., n] along the last axis, as int32.

    Float32 uniform numbers of JAX are multiples of 2^-23, so that a number and its place fit into one integer
    for n up to 512. XLA sorts integers on a CPU in a seventh of the time that it takes for pairs of a number
    and a place.
    """
    chex.assert_type(u, jnp.float32)
    count = u.shape[-1]
    bits = max(count - 1, 1).bit_length()
    if bits > 32 - 23:
        return jnp.argsort(u, axis=-1).astype(jnp.int32)
    number = (u * 2**23).astype(jnp.uint32)
    packed = (number << bits) | jax.lax.broadcasted_iota(jnp.uint32, u.shape, u.ndim - 1)
    return (jnp.sort(packed, axis=-1) & ((1 << bits) - 1)).astype(jnp.int32)


def sharpen(logits: Array, temperature: Array | float) -> Array:
    """Sharpen the probabilities p = softmax(logits) [..., C] to p^(1/T) / sum p^(1/T) (MixMatch).

    That is softmax(logits / T). T > 0. T = 1 changes nothing; T near 0 picks the largest.
    Numbers [..., 1] stay.
    """
    chex.assert_type(logits, float)
    chex.assert_rank(temperature, 0)
    if logits.shape[-1] == 1:
        return logits
    return jax.nn.softmax(logits / temperature)


def mixup(tree: PyTree, lam: Array, permutation: Array) -> PyTree:
    """Mix the rows of each array a [2b, ...] of a tree: lam a + (1 - lam) a[permutation].

    ``lam`` is one number, ``permutation`` [2b] int. lam = 1 changes nothing.
    """
    chex.assert_rank([lam, permutation], [0, 1])
    chex.assert_type(permutation, int)
    chex.assert_equal_shape_prefix([*jax.tree.leaves(tree), permutation], 1)
    return jax.tree.map(lambda a: lam * a + (1 - lam) * a[permutation], tree)


def mixmatch_loss(logits: Array, targets: Array, labeled: int, weight: Array | float) -> Array:
    """The loss of MixMatch, a scalar (Berthelot et al. 2019, equations 3 to 5).

    The cross entropy of the first ``labeled`` rows of logits [2b, C] against targets [2b, C], plus
    ``weight`` times the squared error of the other rows' probabilities; both are means over rows, the
    error over classes too. With weight 0 it is the cross entropy alone. Of numbers [2b, 1] it is the squared
    error of both parts.
    """
    chex.assert_rank([logits, targets], 2)
    chex.assert_equal_shape([logits, targets])
    chex.assert_rank(weight, 0)
    if logits.shape[-1] == 1:
        squared = (logits - targets) ** 2
        return jnp.mean(squared[:labeled]) + weight * jnp.mean(squared[labeled:])
    ce = -jnp.mean(jnp.sum(targets[:labeled] * jax.nn.log_softmax(logits[:labeled]), axis=-1))
    error = jax.nn.softmax(logits[labeled:]) - targets[labeled:]
    return ce + weight * jnp.mean(error**2)
