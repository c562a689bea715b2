"""Batch inversion: the direct attack from gradients that are summed over a batch (after Zou et al. 2022).

Where the exchange is encrypted, a party computes its parameter gradient under encryption and decrypts only
the sum over a batch. Of its last linear layer, whose inputs a_i it knows, that sum is

    G = sum_i (a_i, 1) g_i^T = A^T R              A [B, H + 1], R [B, D] the rows' gradients

so that the least R that explains G is R = (A^T)^+ G, and ``direct`` reads the labels off its rows. R is
exact if A has rank B, which is possible in batches of at most H + 1 rows, and is worse the larger the batch.

Reference: Zou et al. "Defending Batch-Level Label Inference and Replacement Attacks in Vertical Federated
Learning", IEEE Transactions on Big Data 2022, arXiv 2112.05409, which descends on dummy labels and logits
for 10,000 steps. This closed form is ours, and needs no trainable head. It is meant
for defenses by encryption alone: a party that receives rows' gradients has stronger attacks.

The equations, scaled to length 1, are orthogonalized one by one. The next is always the one with the longest
remainder, until no remainder exceeds ``TOLERANCE``. As they are consistent, the scaling changes nothing.
"""

from __future__ import annotations

import chex
import jax
import jax.numpy as jnp

from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.direct import RULES, check_rule
from vfljax.models.last_layer import with_bias
from vfljax.types import NO_SPLIT, Array, Known, Scores, View

TOLERANCE = 1e-4  # of an equation's length; float32 leaves some 1e-6 of noise


def least_solution(equations: Array, sums: Array) -> Array:
    """The X [B, D] of least length with ``equations`` [m, B] X = ``sums`` [m, D], by pivoted Gram-Schmidt.

    It is ``pinv(equations) @ sums``, computed in m rounds of products and without a factorization.
    """
    chex.assert_rank([equations, sums], 2)
    chex.assert_equal_shape_prefix([equations, sums], 1)
    length = jnp.linalg.norm(equations, axis=1, keepdims=True)
    scale = jnp.where(length > 0, 1 / jnp.where(length > 0, length, 1.0), 0.0)

    def eliminate(_: Array, carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        left, sums, x = carry
        lengths = jnp.linalg.norm(left, axis=1)
        most = jnp.argmax(lengths)
        much = lengths[most] > TOLERANCE
        by = jnp.where(much, 1 / jnp.where(much, lengths[most], 1.0), 0.0)
        direction, value = by * left[most], by * sums[most]
        along = core.multiply(left, direction)[:, None]
        x = x + direction[:, None] * value[None]
        return left - along * direction[None], sums - along * value[None], x

    start = (scale * equations, scale * sums, jnp.zeros((equations.shape[1], sums.shape[1])))
    return jax.lax.fori_loop(0, len(equations), eliminate, start)[2]


def batch_inversion(
    bottoms: Bottoms, num_classes: int, *, rule: str = "most_negative", epoch: int = 0
) -> Attack:
    """Solve each batch's parameter gradient for its rows' gradients, and read the labels off their signs.

    Each colluder solves for the rows by itself, and their solutions are averaged.

    Args:
      rule: which entry is the label's, a name in ``direct.RULES``.
      epoch: a recorded one, -1 for the last.

    Returns:
      An attack whose scores [N, C] are those of ``direct`` on the rows' gradients it finds: NaN for rows
      not sent in that epoch and for rows without a guess.
    """
    del bottoms
    check_rule(rule, num_classes)
    core.check_whole("epoch", epoch, -1)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known, knobs
        assert view.inputs is not None
        assert view.parameter_gradients is not None
        place = core.place_of(view, epoch)
        by_batch, sent = core.batches_at(view, place), view.sent[place]
        inputs = by_batch.gather(view.inputs[place])
        of_batch = inputs, by_batch.sent, view.parameter_gradients[place]

        def invert(part: tuple[Array, Array, Array]) -> Array:
            inputs, sent, sums = part
            inputs = inputs.reshape(len(inputs), len(sums), -1)
            solve = jax.vmap(lambda a, g: least_solution(with_bias(a, sent).T, g), in_axes=(1, 0))
            return jnp.mean(solve(inputs, sums), axis=0)

        g = by_batch.scatter(jax.lax.map(invert, of_batch), len(sent))
        return core.scored(RULES[rule](g), sent)

    reads = ("order", "parameter gradients")
    return Attack(run, (NO_SPLIT,), adaptive=True, epoch=epoch, reads=reads)


ROW = AttackRow(batch_inversion, cost=core.WHOLE)
