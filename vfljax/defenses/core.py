"""The defense record, its composition, and the checks every factory shares.

A defense is four pure functions, each with an identity default. A factory takes its knobs
(numbers, possibly traced: it must never branch on them) and its static options (keyword-only
strings), and is called inside the traced step, so one compiled program serves a whole grid.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import optax
from jax.core import Tracer

from vfljax import keys
from vfljax.types import Array, Context, PyTree

LossFn = Callable[..., tuple[Array, tuple[Array, PyTree, PyTree]]]
"""``(active, f, embeddings, targets, context, state) -> (loss, (logits, variables, state))``:
``f`` is the aggregated cut, ``state`` is ``Scoped`` inside a defense's loss slot."""


class TrainingData(NamedTuple):
    """What a defense may prepare itself with before training."""

    labels: Array  # [N] int32
    scores: Array | None  # [N, C] teacher probabilities, None without a teacher
    num_classes: int  # static


class Scoped(NamedTuple):
    """State in the loss slot: yours, and the others' to be passed on to the inner loss."""

    own: PyTree
    rest: PyTree


def _no_state(key: Array, data: TrainingData) -> PyTree:
    del key, data
    return ()


def _same_targets(targets: Array, context: Context, state: PyTree) -> Any:
    return targets, context, state


def _same_loss(loss_fn: LossFn) -> LossFn:
    return loss_fn


class Defense(NamedTuple):
    """``Defense()`` is no defense: every slot is the identity."""

    init: Callable[[Array, TrainingData], PyTree] = _no_state
    targets: Callable[[Array, Context, PyTree], Any] = _same_targets  # before the loss
    loss: Callable[[LossFn], LossFn] = _same_loss  # in the loss
    gradient: optax.GradientTransformation = optax.identity()  # after it, on cut gradients


def _named(context: Context, name: str) -> Context:
    """The context one defense of a chain sees: draws are folded by NAME, never by position."""
    return context._replace(
        key=keys.fold(context.key, name), run_key=keys.fold(context.run_key, name)
    )


def _named_loss(name: str, wrap: Callable[[LossFn], LossFn], loss_fn: LossFn) -> LossFn:
    """One defense's loss slot over a loss whose state is the chain's dict."""

    def loss(active, f, embeddings, targets, context, states):
        def inner(active, f, embeddings, targets, seen, state):
            seen = seen._replace(key=context.key, run_key=context.run_key)
            value, (logits, variables, merged) = loss_fn(
                active, f, embeddings, targets, seen, {**state.rest, name: state.own}
            )
            rest = {key: value for key, value in merged.items() if key != name}
            return value, (logits, variables, Scoped(merged[name], rest))

        rest = {key: value for key, value in states.items() if key != name}
        value, (logits, variables, state) = wrap(inner)(
            active, f, embeddings, targets, _named(context, name), Scoped(states[name], rest)
        )
        return value, (logits, variables, {**state.rest, name: state.own})

    return loss


def _named_gradient(name: str, transform: optax.GradientTransformation) -> Any:
    transform = optax.with_extra_args_support(transform)

    def update(updates, state, params=None, *, context: Any = None, **extra):
        return transform.update(updates, state, params, context=_named(context, name), **extra)

    return optax.GradientTransformationExtraArgs(transform.init, update)


def chain(**defenses: Defense) -> Defense:
    """Compose defenses: within each slot they act in listing order (in the loss, the first is
    innermost). Reduces to no defense for ``chain()``; an identity member changes nothing.

    Each member draws from keys folded by its name here, so no two members share a draw and
    inserting or removing one leaves the others' draws as they were.
    """

    def init(key: Array, data: TrainingData) -> PyTree:
        return {name: one.init(keys.fold(key, name), data) for name, one in defenses.items()}

    def targets(targets: Array, context: Context, state: PyTree) -> Any:
        state = dict(state)
        for name, one in defenses.items():
            targets, seen, state[name] = one.targets(targets, _named(context, name), state[name])
            context = seen._replace(key=context.key, run_key=context.run_key)
        return targets, context, state

    def loss(loss_fn: LossFn) -> LossFn:
        for name, one in defenses.items():
            loss_fn = _named_loss(name, one.loss, loss_fn)
        return loss_fn

    members = (_named_gradient(name, one.gradient) for name, one in defenses.items())
    gradient = optax.chain(optax.identity(), *members)  # optax refuses an empty chain
    return Defense(init, targets, loss, gradient)


def per_party(rule: Callable[[Array, Array], Array]) -> optax.GradientTransformationExtraArgs:
    """A stateless rule ``(key, g [B, D]) -> g`` as an optax transformation over the parties'
    cut gradients: each party's tensor alone, with draws of its own (equal noise for two
    parties could be subtracted by colluders)."""

    def update(updates, state, params=None, *, context: Any = None, **extra):
        del params, extra
        sent = tuple(rule(keys.fold(context.key, i), g) for i, g in enumerate(updates))
        return sent, state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


def check(name: str, value: Any, low: float, high: float, remedy: str = "") -> None:
    """Refuse a concrete knob outside [low, high]; silent on tracers (they were checked when
    the sweep was planned). NaN is outside every range."""
    if isinstance(value, Tracer):
        return
    if not np.all((np.asarray(value) >= low) & (np.asarray(value) <= high)):
        bounds = f"in [{low:g}, {high:g}]" if high != float("inf") else f"at least {low:g}"
        raise ValueError(f"{name}={value} is out of range: choose {name} {bounds}.{remedy}")


def check_integer(name: str, value: Any) -> None:
    """Refuse a concrete knob that is not a whole number; silent on tracers."""
    if not isinstance(value, Tracer) and float(value) != int(value):
        raise ValueError(f"{name}={value} is not a whole number: choose an integer {name}.")


def check_option(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse an unknown static option."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown: choose one of {', '.join(choices)}.")
