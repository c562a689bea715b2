"""ALIBI: labels under Laplace noise, denoised at each step by what the model predicts (Malek et al. 2021).

    o_i = e_y + u_i,  u_ic ~ Lap(2/eps) i.i.d.                           once a row, before training
    t_ic proportional to softmax(logits_i)_c exp(-(eps/2) sum_j |o_ij - [j = c]|)    at each step

t is the posterior of the label given o, with the model's current prediction as its prior. No gradient
passes through t. As |o_c| - |o_c - 1| = clip(2 o_c - 1, -1, 1), it is

    t_i = softmax(log softmax(logits_i) + (eps/2) clip(2 o_i - 1, -1, 1))

so that without model splitting the gradient is softmax(logits) - t. While predictions are near uniform, its
most negative entry is that of the largest o, where every o above 1 counts as 1.

    draw   "once"  (default) u is drawn once a row, for the whole training
           "step"  (one released version) u is drawn anew at each step

Reference: Malek, Mironov, Prasad, Shilov, Tramer. "Antipodes of Label Differential Privacy: PATE and
ALIBI", NeurIPS 2021, section 4.

Guarantee: with draw="once" training is eps-label-differentially private: e_y changes by 2 in L1, and all
that happens is computed from o. Later slots and the label party's teacher see the class of largest o;
metrics alone see the true labels. With draw="step" nothing is guaranteed: eps is spent in every epoch, and
the noise averages away. Float32 cuts the tails of the noise off, at a probability of 1e-7.

Edge cases
    epsilon = inf    o = e_y and t = e_y, the one-hot labels
    epsilon -> 0     t is the prediction itself, and nothing is learned

t takes the place of other targets and needs a loss that reads targets, so that defenses on targets and
GAFM are refused beside it.
"""

from __future__ import annotations

import math

import chex
import jax
import jax.numpy as jnp

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.grad_perturb import SMALLEST, best_guess_of_entries
from vfljax.defenses.rows import LEARNS, DefenseRow, Knower, Strengths, private_remarks
from vfljax.types import Array, Context, PyTree


def observed(key: Array, labels: Array, num_classes: int, epsilon: Array | float) -> Array:
    """o [B, C]: the one-hot ``labels`` [B] plus i.i.d. Laplace(0, 2/epsilon). ``epsilon`` > 0 is a scalar."""
    chex.assert_rank([labels, epsilon], [1, 0])
    chex.assert_type(labels, int)
    draws = jax.random.laplace(key, (len(labels), num_classes))
    return jax.nn.one_hot(labels, num_classes) + draws * (2.0 / epsilon)


def denoised(logits: Array, o: Array, epsilon: Array | float) -> Array:
    """t [B, C], the posterior of the labels given ``o`` [B, C] with the prior softmax(``logits`` [B, C]).

    Its rows sum to 1. ``epsilon`` is a scalar. If it is infinite, ``o`` is one-hot and is returned.
    """
    chex.assert_rank([logits, o, epsilon], [2, 2, 0])
    chex.assert_equal_shape([logits, o])
    finite = jnp.where(jnp.isinf(epsilon), 0.0, epsilon)
    weights = finite / 2 * jnp.clip(2 * o - 1, -1, 1)
    return jnp.where(jnp.isinf(epsilon), o, jax.nn.softmax(jax.nn.log_softmax(logits) + weights))


def alibi(epsilon: Array | float, *, draw: str = "once") -> core.Defense:
    """ALIBI with ``epsilon`` > 0.

    Reduces to no defense at infinity. It must be listed before other defenses on the loss. Raises
    ``ValueError`` for an epsilon out of range and for an unknown option.
    """
    errors.check("epsilon", epsilon, SMALLEST, jnp.inf, infinite=True)
    errors.check_choice("draw", draw, ("once", "step"))
    once = draw == "once"

    def init(key: Array, data: core.TrainingData) -> PyTree:
        return observed(key, data.labels, data.num_classes, epsilon) if once else ()

    def targets(targets: Array, context: Context, state: PyTree) -> tuple[Array, Context, PyTree]:
        labels = _largest(state[context.index])
        noisy = jax.nn.one_hot(labels, targets.shape[-1], dtype=targets.dtype)
        return noisy, context._replace(labels=labels), state

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, scoped):
            # the compiler merges the two passes through the top model, whose draws are equal
            _, (logits, _, _) = loss_fn(active, f, embeddings, targets, context, scoped)
            if once:
                o = scoped.state[context.index]
            else:
                key = keys.fold(context.key, "u")
                o = observed(key, context.labels, logits.shape[-1], epsilon)
            t = denoised(jax.lax.stop_gradient(logits), o, epsilon)
            return loss_fn(active, f, embeddings, t, context, scoped)

        return defended

    defense = core.Defense(init=init, loss=loss, replaces=True)
    if not once:
        return defense
    return defense._replace(
        teach=lambda key, labels, num_classes: (
            _largest(observed(key, labels, num_classes, epsilon)),
            jnp.ones(labels.shape, jnp.float32),
        ),
        labels=lambda state, labels: _largest(state),
        targets=targets,
    )


def _largest(o: Array) -> Array:
    return jnp.argmax(o, axis=-1).astype(jnp.int32)


ROW = DefenseRow(
    factory=alibi,
    example={"epsilon": 2.0},
    known_by={
        # the largest o is the best guess from o alone, and gradients point to it
        "no_split": (
            *(Knower("direct", "most_negative"), Knower("direct", "mean"), Knower("fusion")),
            *(Knower("mean", "mean"), Knower("posterior"), Knower("probe"), Knower("joint")),
        ),
        # noise that is drawn once is learned away: embeddings average over rows
        "split": (
            *(Knower("mean", "mean"), Knower("probe"), Knower("joint"), Knower("spectral")),
            Knower("posterior", "direction"),
        ),
    },
    neutral={"epsilon": math.inf},
    strengths=Strengths("epsilon", (8.0, 4.0, 2.0, 1.0, 0.5)),
    remarks=private_remarks(
        lambda options: options.get("draw", "once") == "once",
        # the best guess from o alone
        lambda epsilon, options, prior: f"{best_guess_of_entries(epsilon, prior):.3f}",
        f"ALIBI's noise, drawn once a row, {LEARNS}",
    ),
)
