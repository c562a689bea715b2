"""VLP: labels become random vectors, one bit a class, that a sigmoid for each class learns (Zhao et al. 2025).

    P(Z_c = [y = c]) = e^(eps/2) / (e^(eps/2) + 1)        each bit of e_y is flipped or not, once a row
    L = sum_c Z_c (-log s(o_c)) + (1 - Z_c) (-log s(-o_c))    with the sigmoid s and the logits o
    y^ = argmax_c o_c

The mean of Z_c rises with the probability of class c, so that the largest s(o_c) is the likeliest class. The
chance to flip a bit does not depend on the number of classes; that of randomized response does.

Reference: Zhao, Wu, Liu, Shen, Zhang, Fan, Sun, Li. "Enhancing Learning with Label Differential Privacy by
Vector Approximation", ICLR 2025 (arXiv 2405.15150). What was reachable are the abstracts and a summary of the
preprint by others: the label becomes Z in {0, 1}^K under eps-local label DP, one network whose last layer is a
sigmoid approximates P(Z_j = 1 | x), and the largest output is the prediction. A page of a co-author has the
name VLP and another abstract. Neither the full text nor code was reachable. Decided here are

    the law of Z     independent bits that are flipped alike, with the least chance that keeps epsilon (the
                     unary encoding of Erlingsson, Pihur, Korolova, "RAPPOR", CCS 2014, sent once); flips
                     whose chance depends on the bit could keep epsilon too
    the loss         the sum over classes and the mean over rows: a row's gradient of the logits is s(o) - Z
                     over B, on the scale of softmax and cross entropy; class weights are not read
    two classes      two bits and two sigmoids: a top model that has one free logit is replaced by an MLP with
                     its hidden layers and two

Guarantee: eps-label-differential privacy. Two labels differ in two bits, and each shifts the odds by at most
e^(eps/2). Z is drawn once a row for the whole training, which is computed from Z alone; later slots and the
label party's teacher see a class drawn among the bits that are 1, and metrics alone see the true labels.
Without model splitting everybody who receives gradients reads Z off their signs, which the bound allows.

Edge cases
    epsilon = inf    Z = e_y. The loss stays that of one sigmoid a class: VLP never reduces to no defense
    epsilon = 0      Z is independent of the label
    Z = 0            of no class: later slots see any one
    float32          the chance to flip is never rounded below 2^-23 for a finite epsilon
"""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.label_dp import is_kept
from vfljax.defenses.rows import LEARNS, DefenseRow, Knower, Strengths, private_remarks
from vfljax.models.mlp import MLP, Generator, Probability
from vfljax.types import Array, Context, HostArray, Spec


class Randomized(NamedTuple):
    """What the label party keeps."""

    vectors: Array  # [N, C] float32, Z
    labels: Array  # [N] int32: what later slots and the teacher may see


def vectors(key: Array, labels: Array, num_classes: int, epsilon: Array | float) -> Array:
    """Z [N, C] float32 of ``labels`` [N], integers below ``num_classes``; ``epsilon`` >= 0 is a scalar."""
    chex.assert_rank([labels, epsilon], [1, 0])
    chex.assert_type(labels, int)
    bits = jax.nn.one_hot(labels, num_classes)
    kept = is_kept(key, bits.shape, 2, jnp.asarray(epsilon) / 2)
    return jnp.where(kept, bits, 1 - bits)


def named(key: Array, z: Array) -> Array:
    """A class [N] int32 of each row of ``z`` [N, C], uniform among the bits that are 1, or all if none is."""
    chex.assert_rank(z, 2)
    return jnp.argmax(z + jax.random.uniform(key, z.shape), axis=-1).astype(jnp.int32)


def binary_entropy(logits: Array, z: Array) -> Array:
    """The loss L [], a mean over rows, of ``logits`` and ``z``, both [B, C]."""
    chex.assert_rank([logits, z], 2)
    chex.assert_equal_shape([logits, z])
    return jnp.mean(jnp.sum(optax.sigmoid_binary_cross_entropy(logits, z), axis=-1))


def vlp(epsilon: Array | float) -> core.Defense:
    """VLP with ``epsilon`` in [0, inf].

    It makes its targets from labels and replaces the loss: it must be listed before other defenses on either,
    and before those that extend the top model. Raises ``ValueError`` for an epsilon out of range.
    """
    errors.check("epsilon", epsilon, 0.0, jnp.inf, infinite=True)

    def drawn(key: Array, labels: Array, num_classes: int) -> Randomized:
        z = vectors(keys.fold(key, "z"), labels, num_classes, epsilon)
        return Randomized(z, named(keys.fold(key, "named"), z))

    def targets(
        targets: Array, context: Context, state: Randomized
    ) -> tuple[Array, Context, Randomized]:
        z = state.vectors[context.index].astype(targets.dtype)
        return z, context._replace(labels=state.labels[context.index]), state

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, scoped):
            _, aux = loss_fn(active, f, embeddings, targets, context, scoped)
            return binary_entropy(aux[0], targets), aux

        return defended

    return core.Defense(
        init=lambda key, data: drawn(key, data.labels, data.num_classes),
        teach=lambda key, labels, num_classes: (
            drawn(key, labels, num_classes).labels,
            jnp.ones(labels.shape, jnp.float32),
        ),
        labels=lambda state, labels: state.labels,
        targets=targets,
        loss=loss,
        replaces=True,
    )


def network(spec: Spec) -> Spec:
    """The ``spec`` whose top model has a free logit for each class.

    Raises ``ValueError`` for a top model with one free logit that another defense has extended.
    """
    top: Any = spec.top
    inner = top
    while hasattr(inner, "top"):
        inner = inner.top
    if not isinstance(inner, (Generator, Probability)):
        return spec
    if inner is not top:
        raise ValueError("vlp replaces the top model: list vlp before defenses that extend it.")
    free = MLP(top.hidden, spec.num_classes, "leaky_relu", weights=top.weights)
    return dataclasses.replace(spec, top=free)


def best_guess(epsilon: float, prior: Array | HostArray) -> float:
    """Probability that the best guess from one row of Z is right; ``prior`` [C] holds the classes' shares, and
    ``epsilon`` is concrete.

    With v_c = P(Z_c | y = c) / P(Z_c | y != c), which is e^(eps/2) or e^(-eps/2), it is E max_c prior_c v_c,
    where each bit of Z is 1 with the chance to flip, as in a vector without a label.
    """
    if epsilon > 100:  # wrong with a probability of about C e^-50
        return 1.0
    prior, odds = np.asarray(prior, float), np.exp(epsilon / 2)
    flip = 1 / (1 + odds)
    # P(max <= x) is a product over classes, and jumps at the 2C values of prior_c v_c alone
    values = np.unique(np.concatenate([prior / odds, prior * odds]))
    below = np.where(prior / odds <= values[:, None], 1 - flip, 0.0)
    below += np.where(prior * odds <= values[:, None], flip, 0.0)
    chances = np.diff(np.prod(below, axis=1), prepend=0.0)
    return float(np.sum(values * chances))


ROW = DefenseRow(
    factory=vlp,
    example={"epsilon": 2.0},
    known_by={
        # signs of gradients are Z itself, and the posterior weighs its bits with the columns
        "no_split": (
            *(Knower("posterior", "signs"), Knower("direct", "most_negative"), Knower("fusion")),
            *(Knower("mean", "mean"), Knower("probe"), Knower("joint")),
        ),
        # noise that is drawn once is learned away: embeddings average over rows
        "split": (
            *(Knower("mean", "mean"), Knower("probe"), Knower("joint"), Knower("spectral")),
            Knower("posterior", "opposed"),
        ),
    },
    network=network,
    strengths=Strengths("epsilon", (8.0, 4.0, 2.0, 1.0, 0.5)),
    remarks=private_remarks(
        lambda options: True,
        # from Z alone
        lambda epsilon, options, prior: f"{best_guess(epsilon, prior):.3f}",
        f"The noise in VLP's vectors, drawn once a row, {LEARNS}",
    ),
)
