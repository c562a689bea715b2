"""What the parties and the label party exchange in a batch, and how a party pulls back what it receives.

By default each party sends its embeddings and receives the gradient of the loss with respect to them. A
defense may exchange something else (``vfljax.defenses.dpzv``), and all seven steps of the protocol remain.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax

from vfljax.types import Array, Context, PyTree

Forward = Callable[[PyTree], tuple[Array, Any]]
"""``forward(params) -> (embeddings [B, D], auxiliary)`` of one party on its rows of the batch."""


def _send(forward: Forward, params: PyTree, key: Array) -> tuple[Array, Callable[..., PyTree], Any]:
    del key
    sent, pullback, auxiliary = jax.vjp(forward, params, has_aux=True)
    return sent, lambda gradient: pullback(gradient)[0], auxiliary


def _answer(
    loss: Callable[..., Any],
    params: PyTree,
    sent: tuple[Array, ...],
    targets: Array,
    context: Context,
) -> tuple[Any, PyTree, tuple[Array, ...]]:
    del targets, context
    value, (gradient, gradients) = jax.value_and_grad(loss, argnums=(0, 1), has_aux=True)(
        params, sent
    )
    return value, gradient, gradients


class Link(NamedTuple):
    """The exchange of one batch, as three pure functions. ``Link()`` is embeddings against gradients."""

    send: Callable[[Forward, PyTree, Array], tuple[Array, Callable[..., PyTree], Any]] = _send
    """``send(forward, params, key) -> (sent, pullback, auxiliary)``: what a party sends [B, W], how what it
    receives becomes a gradient of its ``params``, and what ``forward`` returned beside the embeddings."""

    answer: Callable[..., tuple[Any, PyTree, tuple[Array, ...]]] = _answer
    """``answer(loss, params, sent, targets, context) -> ((value, auxiliary), gradient, received)``: what the
    label party computes. ``loss(params, embeddings) -> (value, auxiliary)`` takes embeddings [B, D] of all
    parties, and ``auxiliary`` begins with the logits [B, C]. ``gradient`` is of its own ``params``, and
    ``received`` has what each party receives."""

    seen: Callable[[Array, Array], tuple[Array, Array]] = lambda sent, received: (sent, received)
    """``seen(sent, received) -> (embeddings [B, D], gradients [B, D])``: the exchange as attackers read it,
    which the party can compute from what it sent and received, and from nothing else."""
