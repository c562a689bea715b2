"""GAFM: gradients of a GAN loss and of a randomized cross entropy that disturb each other (Han and
Guan 2023). Two classes.

The label party's top model is a generator G: its prediction is G(f) for the aggregated embedding f.
A discriminator D compares predictions with noisy labels. To this loss comes a cross entropy between
f itself and a randomized response y~:

    L_GAN = E D(y + N(0, sigma^2)) - E D(G(f))
    L_CE  = -E [y~ log s + (1 - y~) log(1 - s)],   y~ = 0.5 +- u,   u ~ U(0, Delta) anew every batch

On one batch, (1) D ascends L_GAN with Adam, and its weights are clipped to +-c; (2) G descends L_GAN
with the new D; (3) f, hence the parties, receive

    gamma grad_f L_GAN / |grad_f L_GAN| + grad_f L_CE / |grad_f L_CE|

with norms over the whole batch, the new D and the old G. What s is depends on the bottom models:

    ce_input="released"        s = f where the bottoms end in a sigmoid (released code on Spambase
                               and IMDB), else sigmoid(sum_d f) (Criteo, ISIC)
    ce_input="double_sigmoid"  s = sigmoid(sum_d f) always (the paper's text)

Ablations: terms="gan" and terms="ce". The latter leaves G at its initial weights, so that its utility
means nothing. Parties are averaged (config.model.aggregation="mean").

Reference: Han, Guan. "GAN-based Vertical Federated Learning for Label Protection in Binary
Classification", 2023, equations 3-6, algorithm A.1. Released values: c .1, sigma .01, Delta / gamma
.05 / 1 Spambase, .1 / 1 IMDB, .5 / 1 Criteo, .05 / 20 ISIC; Adam 1e-4 for all parts.

Guarantee: none. Nothing in the loss fixes the sign of the prediction, so many runs learn the labels
inverted; the sweep's results name these runs, and orient their predictions.

Scale: normalization makes the gradient of f at most 1 + gamma long, whatever B; where P parties are
averaged, a party receives a P-th of it. Absolute scales of other defenses are relative to that, not
to the batch-mean loss.

Edge cases: a zero gradient contributes zero; Delta = 0 removes the label from L_CE; gamma = 0 is
terms="ce" for the parties. GAFM never reduces to no defense.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import optax

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.rows import DefenseRow, Knower, Strengths
from vfljax.types import Array, CutLayer, PyTree

DISCRIMINATORS = {"10-10": (10, 10), "10": (10,)}  # hidden widths: Spambase, IMDB; Criteo, ISIC
SLOPE = 0.01  # of LeakyReLU
CANDIDATES = (0.05, 0.1, 0.2, 0.3, 0.5)  # Delta, section 3.3 and appendix D.3


class GAFMState(NamedTuple):
    """What the label party keeps between batches."""

    discriminator: PyTree  # as ``init_discriminator`` returns it
    optimizer: PyTree  # Adam's


def init_discriminator(key: Array, hidden: tuple[int, ...] = (10, 10)) -> PyTree:
    """(kernel [in, out], bias [out]) of each layer of 1 -> ``hidden`` -> 1.

    They are uniform within +-1/sqrt(in), as in PyTorch's Linear.
    """
    widths = (1, *hidden, 1)
    layers = []
    for i, (fan_in, out) in enumerate(itertools.pairwise(widths)):
        bound = fan_in**-0.5
        kernel = jax.random.uniform(keys.fold(key, i, "kernel"), (fan_in, out), minval=-1) * bound
        bias = jax.random.uniform(keys.fold(key, i, "bias"), (out,), minval=-1) * bound
        layers.append((kernel, bias))
    return tuple(layers)


def discriminate(params: PyTree, x: Array) -> Array:
    """D(x) [B] of the numbers ``x`` [B]; LeakyReLU follows each layer, the last included."""
    chex.assert_rank(x, 1)
    x = x[:, None]
    for kernel, bias in params:
        x = jax.nn.leaky_relu(x @ kernel + bias[None, :], SLOPE)
    return x[:, 0]


def critic_loss(params: PyTree, real: Array, fake: Array) -> Array:
    """-L_GAN [], which the discriminator descends, of ``real`` [B] and ``fake`` [B]."""
    chex.assert_rank([real, fake], 1)
    chex.assert_equal_shape([real, fake])
    return jnp.mean(discriminate(params, fake)) - jnp.mean(discriminate(params, real))


def perturbed_labels(key: Array, labels: Array, delta: Array | float) -> Array:
    """The randomized response y~ [B] of ``labels`` [B] in {0, 1}.

    It is 0.5 + u for label 1 and 0.5 - u for label 0, with u ~ U(0, delta).
    """
    chex.assert_rank([labels, delta], [1, 0])
    u = delta * jax.random.uniform(key, labels.shape)
    return jnp.where(labels == 1, 0.5 + u, 0.5 - u)


def draws(
    key: Array, labels: Array, delta: Array | float, sigma: Array | float
) -> tuple[Array, Array]:
    """(y + N(0, sigma^2), y~), both [B], of one batch's ``labels`` [B] in {0, 1}."""
    chex.assert_rank([labels, delta, sigma], [1, 0, 0])
    noise = sigma * jax.random.normal(keys.fold(key, "real"), labels.shape)
    return labels + noise, perturbed_labels(keys.fold(key, "response"), labels, delta)


def draws_of(
    seed: int, step: int, labels: Array, delta: Array | float, sigma: Array | float
) -> tuple[Array, Array]:
    """Repeats the ``draws`` of one training step: ``step`` of the run of ``seed``, counted from 0 over all
    epochs. ``labels`` [B] are those of its batch, in the order of the batch."""
    return draws(keys.fold(keys.run_key(seed), "step", step, "gafm"), labels, delta, sigma)


def label_loss(f: Array, response: Array, ends_in_sigmoid: bool) -> Array:
    """L_CE [] of ``f`` [B, D] against the ``response`` y~ [B].

    With ``ends_in_sigmoid`` D is 1 and s is f itself, kept 1e-7 off 0 and 1 because a saturated
    sigmoid is exactly 1. Otherwise s = sigmoid(sum_d f).
    """
    chex.assert_shape(f, (*response.shape, 1 if ends_in_sigmoid else None))
    chex.assert_rank(response, 1)
    if ends_in_sigmoid:
        s = jnp.clip(f[:, 0], 1e-7, 1 - 1e-7)
        return -jnp.mean(response * jnp.log(s) + (1 - response) * jnp.log1p(-s))
    x = jnp.sum(f, axis=-1)
    log_s, log_rest = jax.nn.log_sigmoid(x), jax.nn.log_sigmoid(-x)
    return -jnp.mean(response * log_s + (1 - response) * log_rest)


def _unit(g: Array) -> Array:
    """``g`` over its Frobenius norm; zero where the norm is zero."""
    largest = jnp.max(jnp.abs(g))
    scaled = g / jnp.where(largest > 0, largest, 1.0)
    norm = jnp.sqrt(jnp.sum(scaled * scaled))
    return scaled / jnp.where(norm > 0, norm, 1.0)


def mixed_gradient(gan_gradient: Array, ce_gradient: Array, gamma: Array | float) -> Array:
    """gamma a/|a| + b/|b| for gradients a and b [B, D], with norms over the whole batch: [B, D]."""
    chex.assert_rank([gan_gradient, ce_gradient, gamma], [2, 2, 0])
    chex.assert_equal_shape([gan_gradient, ce_gradient])
    return gamma * _unit(gan_gradient) + _unit(ce_gradient)


def select_delta(leaks: Mapping[float, np.ndarray], train_auc: Mapping[float, np.ndarray]) -> float:
    """The Delta with the smallest mean of leakAUC / oriented trainAUC (section 3.3, appendix D.3).

    ``leaks[Delta]`` [repeats, attacks] are leak AUCs, and ``train_auc[Delta]`` [repeats] are AUCs in [0, 1];
    the mean is over repeats and attacks. Without the orientation max(AUC, 1 - AUC), a run that learned the
    labels inverted would make the ratio explode. Of equal means the smaller Delta is chosen.
    """

    def ratio(delta: float) -> float:
        auc = np.asarray(train_auc[delta], float)
        return float(np.mean(np.asarray(leaks[delta], float) / np.maximum(auc, 1 - auc)[:, None]))

    return min(leaks, key=lambda delta: (ratio(delta), delta))


def gafm(
    delta: Array | float,
    gamma: Array | float = 1.0,
    sigma: Array | float = 0.01,
    clip: Array | float = 0.1,
    learning_rate: Array | float = 1e-4,
    *,
    terms: str = "both",
    ce_input: str = "released",
    discriminator: str = "10-10",
) -> core.Defense:
    """GAFM with Delta = ``delta`` in [0, .5], for two classes and with model splitting.

    ``gamma`` >= 0 weighs the GAN's gradient, ``sigma`` >= 0 is the deviation of the noise on real
    labels, ``clip`` >= 0 bounds the weights of D, and ``learning_rate`` >= 0 is D's. The top model
    is the generator: G(f) is the softmax of its two logits, whatever the network ("generator" is the
    published one).

    GAFM replaces the loss, so that it is listed before other defenses in the loss. It reads labels
    and not targets, so that KDk has no effect beside it. GAFM never reduces to no defense. Raises
    ``ValueError`` for a knob out of range or an unknown option; ``init`` does for more than two
    classes and for a cut that GAFM cannot read.
    """
    errors.check("delta", delta, 0.0, 0.5)
    errors.check("gamma", gamma, 0.0, jnp.inf)
    errors.check("sigma", sigma, 0.0, jnp.inf)
    errors.check("clip", clip, 0.0, jnp.inf)
    errors.check("learning_rate", learning_rate, 0.0, jnp.inf)
    errors.check_choice("terms", terms, ("both", "gan", "ce"))
    errors.check_choice("ce_input", ce_input, ("released", "double_sigmoid"))
    errors.check_choice("discriminator", discriminator, tuple(DISCRIMINATORS))
    adam = optax.adam(learning_rate)

    def init(key: Array, data: core.TrainingData) -> GAFMState:
        core.require_two_classes("gafm", data)
        core.require_top_model("gafm", "generator is", data)
        _check_cut_layer(data.cut_layer)
        params = init_discriminator(key, DISCRIMINATORS[discriminator])
        return GAFMState(params, adam.init(params))

    def loss(loss_fn: core.LossFn) -> core.LossFn:
        def defended(active, f, embeddings, targets, context, scoped):
            real, response = draws(context.key, context.labels, delta, sigma)
            frozen = jax.lax.stop_gradient((active, f, embeddings))

            others = frozen[2], targets, context, scoped
            generate = functools.partial(_generated, loss_fn, others)

            # (1) the discriminator, on predictions of the old generator
            fake, pullback, (logits, variables, scoped) = jax.vjp(
                generate, *frozen[:2], has_aux=True
            )
            critic, adam_state = scoped.state
            slope = jax.grad(critic_loss)(critic, real, fake)
            update, adam_state = adam.update(slope, adam_state, critic)
            params = optax.apply_updates(critic, update)
            params = jax.tree.map(lambda w: jnp.clip(w, -clip, clip), params)

            # (2), (3) with the new discriminator and the old generator
            gan, by_fake = jax.value_and_grad(lambda x: -jnp.mean(discriminate(params, x)))(fake)
            by_active, by_f = pullback(by_fake)
            as_it_is = context.cut_layer.output == "sigmoid" and ce_input == "released"
            ce, ce_by_f = jax.value_and_grad(lambda x: label_loss(x, response, as_it_is))(frozen[1])
            ce_by_f = jnp.zeros_like(ce_by_f) if terms == "gan" else ce_by_f
            by_f = mixed_gradient(by_f, ce_by_f, 0.0 if terms == "ce" else gamma)

            # a loss of the value L_CE - E D(G(f)), whose gradients are the ones above
            value = gan + ce + core.with_gradient(f, by_f)
            if terms != "ce":
                value += sum(
                    map(core.with_gradient, *map(jax.tree.leaves, (active, by_active))), 0.0
                )
            scoped = scoped._replace(state=GAFMState(params, adam_state))
            return value, (logits, variables, scoped)

        return defended

    return core.Defense(init=init, loss=loss, replaces=True)


def _generated(
    loss_fn: core.LossFn, others: tuple[Any, ...], active: PyTree, f: Array
) -> tuple[Array, Any]:
    """G(f) [B], and what ``loss_fn`` returns beside the loss. ``others`` are its other arguments."""
    _, aux = loss_fn(active, f, *others)
    return jax.nn.softmax(aux[0])[:, 1], aux


def _check_cut_layer(cut_layer: CutLayer) -> None:
    """Raise ``ValueError`` for a cut that GAFM cannot read."""
    if cut_layer.output == "sigmoid" and set(cut_layer.widths) != {1}:
        raise ValueError(
            f"gafm reads embeddings that end in a sigmoid as probabilities, and theirs are "
            f"{cut_layer.widths} wide: set config.model.cut=1 or config.model.output='identity'."
        )
    kind, parties = cut_layer.aggregation, len(cut_layer.widths)
    if parties > 1 and (kind == "concatenate" or (kind == "sum" and cut_layer.output == "sigmoid")):
        reads = "one embedding" if kind == "concatenate" else "a probability"
        raise ValueError(
            f"gafm reads {reads} and config.model.aggregation={kind!r} of {parties} parties gives it "
            "none: set config.model.aggregation='mean'."
        )


ROW = DefenseRow(
    factory=gafm,
    example={"delta": 0.05, "gamma": 1.0, "sigma": 0.01, "clip": 0.1, "learning_rate": 1e-4},
    known_by={
        # normalization and the GAN's gradient undone; the embedding is the prediction
        "split": (Knower("residual"), Knower("probe"), Knower("spectral"))
    },
    needs_top=True,
    two_classes=True,
    strengths=Strengths("delta", CANDIDATES[::-1], {"learning_rate": 1e-3}),
)
