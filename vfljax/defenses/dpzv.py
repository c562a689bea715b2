"""DPZV: the label party answers a batch by one clipped and noised difference of losses (Zhang et al. 2025).

    u_m     uniform on the unit sphere of party m's parameters, drawn for each batch
    sent    h(theta_m + lambda u_m) and h(theta_m - lambda u_m), both [B, D]
    d_i     = (l_i(+) - l_i(-)) / lambda, of the loss of row i where all parties, the label party's own
              networks too, have moved along +u and along -u
    Delta   = mean_i clip(d_i, -C, C) + sigma N(0, 1)         the only answer, the same number for all parties
    theta_m <- theta_m - eta (n_m / 2) Delta u_m              n_m: the number of m's parameters

No gradient of a row leaves the label party, and none is computed: its own networks learn from Delta too.
Without clipping, (n_m / 2) Delta u_m is an estimate of the gradient that is unbiased as lambda -> 0, so that
the learning rate has its usual meaning. Its square is some n_m times that of the gradient: small networks,
many steps and small rates are needed.

Guarantee: (eps, delta)-label-DP of all that the parties receive in a run. A label changes Delta in one batch an
epoch, by at most 2 C / B. With sigma = 2 C sqrt(E) / (B mu) for E epochs the run is mu^2 / 2-zCDP (Gaussian
mechanism and adaptive composition), and

    mu = sqrt(2) (sqrt(ln(1 / delta) + eps) - sqrt(ln(1 / delta)))

makes that (eps, delta)-DP (Bun, Steinke 2016, proposition 1.3). It holds for this defense alone: others that
read labels, such as teachers, are not counted, which is why no other defense is trained beside it.

What a passive party sees of a batch is one number and its own two uploads. All that it can tell of a row is the
number times half the difference of the row's uploads over lambda, a zeroth-order estimate of the gradient of
its embedding. Attacks on gradients read that: it is in the exchange's ``gradients`` and never crosses the wire.
``embeddings`` are the mean of both uploads.

Reference: Zhang, Chen, Liu, Brinton. "DPZV: Elevating the Tradeoff between Privacy and Utility in Zeroth-
Order Vertical Federated Learning", arXiv 2502.20565 (2025). Its abstracts and introductions (versions 1 to 3)
could be read, and its update as restated in junaidaliop/zij at 96144ac, ``docs/math/dpzv.md``; not its proofs.

Edge cases
    epsilon = inf    no noise
    B < batch size   sigma grows with 1 / B, so that the last batch of an epoch is as private as others

Deviations: parties move together and get one answer; in the paper each client has its own. sigma is for batches
without amplification by sampling (the paper: 2 C sqrt(T) / (D mu) for T steps on D rows, which is smaller by
sqrt(B / D)), because each row is in one batch of an epoch. How the paper's server updates its own network was
not reached. Clipped are differences of the plain cross entropy: class weights are not read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np

from vfljax import errors, keys
from vfljax.defenses import core
from vfljax.defenses.link import Forward, Link
from vfljax.defenses.rows import AVERAGING, READING, DefenseRow, Knower, Remarks, Strengths
from vfljax.types import Array, Context, PyTree


def direction(key: Array, params: PyTree) -> PyTree:
    """Draws a direction like ``params``, uniform on the unit sphere of all their numbers."""
    leaves, structure = jax.tree.flatten(params)
    draws = [jax.random.normal(keys.fold(key, i), leaf.shape) for i, leaf in enumerate(leaves)]
    length = jnp.sqrt(sum((jnp.sum(draw * draw) for draw in draws), jnp.float32(0)))
    return jax.tree.unflatten(structure, [draw / length for draw in draws])


def _moved(params: PyTree, by: Array | float, along: PyTree) -> PyTree:
    return jax.tree.map(lambda a, u: a + by * u, params, along)


def _estimate(reply: Array, along: PyTree) -> PyTree:
    """Returns the estimated gradient (n / 2) Delta u of n parameters."""
    half = sum(leaf.size for leaf in jax.tree.leaves(along)) / 2
    return jax.tree.map(lambda u: half * reply * u, along)


def gaussian_mu(epsilon: Array | float, delta: Array | float) -> Array:
    """mu of Gaussian mechanisms that together are (``epsilon``, ``delta``)-DP; infinite for infinite
    epsilon."""
    epsilon = jnp.asarray(epsilon, jnp.float32)
    least = jnp.log(1 / jnp.asarray(delta, jnp.float32))
    finite = jnp.where(jnp.isinf(epsilon), 1.0, epsilon)
    rooted = finite / (jnp.sqrt(least + finite) + jnp.sqrt(least))  # without cancellation
    return jnp.where(jnp.isinf(epsilon), jnp.inf, jnp.sqrt(2.0) * rooted)


def answer(
    key: Array, differences: Array, clip: Array | float, mu: Array | float, epochs: int
) -> Array:
    """Delta []: the mean of clipped ``differences`` [B] with noise for ``epochs`` answers that read a row.

    A difference that is NaN counts as 0, so that the clip bounds what any row adds.
    """
    chex.assert_rank([differences, clip, mu], [1, 0, 0])
    mean = jnp.mean(jnp.clip(jnp.nan_to_num(differences), -clip, clip))
    spread = jnp.sqrt(jnp.float32(epochs)) / (len(differences) * mu)
    return mean + 2 * clip * spread * jax.random.normal(key)


def row_losses(logits: Array, targets: Array) -> Array:
    """The cross entropy of each row [B]."""
    return -jnp.sum(targets * jax.nn.log_softmax(logits), axis=-1)


def dpzv(
    epsilon: Array | float,
    clip: Array | float = 0.1,
    smoothing: Array | float = 1e-2,
    delta: Array | float = 1e-5,
) -> core.Defense:
    """DPZV with ``epsilon`` in (0, inf] and ``delta`` in (0, .5] for a whole run.

    ``clip`` (C) bounds a row's difference of losses per length of the parties' move, and ``smoothing``
    (lambda) is that length. It never reduces to no defense. Raises ``ValueError`` for a knob out of range; a
    chain raises it for another defense beside this one.
    """
    errors.check("epsilon", epsilon, 1e-3, jnp.inf, infinite=True)
    errors.check("clip", clip, 1e-6, jnp.inf)
    errors.check("smoothing", smoothing, 1e-6, 1e3)
    errors.check("delta", delta, 1e-30, 0.5)

    def send(
        forward: Forward, params: PyTree, key: Array
    ) -> tuple[Array, Callable[[Array], PyTree], Any]:
        u = direction(key, params)
        plus, auxiliary = forward(_moved(params, smoothing, u))
        minus, _ = forward(_moved(params, -smoothing, u))
        return (
            jnp.concatenate([plus, minus], axis=1),
            lambda reply: _estimate(reply[0, 0], u),
            auxiliary,
        )

    def respond(
        loss: Callable[..., Any],
        params: PyTree,
        sent: tuple[Array, ...],
        targets: Array,
        context: Context,
    ) -> tuple[Any, PyTree, tuple[Array, ...]]:
        key = keys.fold(context.key, "dpzv")
        u = direction(keys.fold(key, "direction"), params)
        plus, minus = zip(*(jnp.split(z, 2, axis=1) for z in sent), strict=True)
        value, auxiliary = loss(_moved(params, smoothing, u), plus)
        _, (logits, *_) = loss(_moved(params, -smoothing, u), minus)
        rows = row_losses(auxiliary[0], targets) - row_losses(logits, targets)
        mu = gaussian_mu(epsilon, delta)
        reply = answer(keys.fold(key, "noise"), rows / smoothing, clip, mu, context.epochs)
        return (value, auxiliary), _estimate(reply, u), (reply[None, None],) * len(sent)

    def seen(sent: Array, received: Array) -> tuple[Array, Array]:
        plus, minus = jnp.split(sent, 2, axis=1)
        return (plus + minus) / 2, received * (plus - minus) / (2 * smoothing)

    return core.Defense(link=Link(send, respond, seen))


READ = (
    "DPZV keeps (ε, δ)-label-DP of the answers in a run, one number a batch. No gradient of a row is sent. "
    "Attacks on gradients read the party's own estimates: the answer times the move of the row's embedding."
)


def _remarks(knobs: Mapping[str, float], options: Mapping[str, Any]) -> Remarks:
    del options
    epsilon, delta = knobs["epsilon"], knobs["delta"]
    if np.isinf(epsilon):
        return Remarks(lambda prior: ("no bound", "not stated"), bound_sentence=READ)
    odds = f"{np.exp(epsilon):.3g}, but for δ = {delta:g}"
    return Remarks(
        lambda prior: (odds, "not stated"), approximate=(epsilon, delta), bound_sentence=READ
    )


ROW = DefenseRow(
    factory=dpzv,
    example={"epsilon": 10.0, "clip": 0.1, "smoothing": 1e-2, "delta": 1e-5},
    known_by={
        # what a party can tell of a row from the answers has noise of mean zero
        "no_split": READING,
        "split": (*AVERAGING, Knower("passive")),
    },
    strengths=Strengths("epsilon", (100.0, 30.0, 10.0, 3.0, 1.0)),
    remarks=_remarks,
)
