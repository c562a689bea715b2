"""The defense record, its composition, and the checks every factory shares.

A defense is a few pure functions, each with an identity default. A factory takes its knobs
(numbers, possibly traced: it must never branch on them) and its static options (keyword-only
strings), and is called inside the traced step, so one compiled program serves a whole grid.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from jax.core import Tracer

from vfljax import keys
from vfljax.types import Array, Context, Federation, PyTree

LossFn = Callable[..., tuple[Array, tuple[Array, PyTree, PyTree]]]
"""``(active, f, embeddings, targets, context, state) -> (loss, (logits, variables, state))``:
``f`` is the aggregated cut, ``state`` is ``Scoped`` inside a defense's loss slot."""


class TrainingData(NamedTuple):
    """What a defense may prepare itself with before training."""

    labels: Array  # [N] int32; for members of a chain after label DP, the randomized ones
    scores: Array | None  # [N, C] teacher probabilities, None without a teacher
    num_classes: int  # static
    federation: Federation = Federation()  # static


class Scoped(NamedTuple):
    """State in the loss slot: yours, and the others' to be passed on to the inner loss."""

    own: PyTree
    rest: PyTree


def _no_state(key: Array, data: TrainingData) -> PyTree:
    del key, data
    return ()


def _same_labels(key: Array, labels: Array, num_classes: int) -> tuple[Array, Array]:
    del key, num_classes
    return labels, jnp.ones(labels.shape, jnp.float32)


def _unchanged_labels(state: PyTree, labels: Array) -> Array:
    del state
    return labels


def _same_targets(targets: Array, context: Context, state: PyTree) -> Any:
    return targets, context, state


def _same_loss(loss_fn: LossFn) -> LossFn:
    return loss_fn


class Defense(NamedTuple):
    """``Defense()`` is no defense: every slot is the identity."""

    init: Callable[[Array, TrainingData], PyTree] = _no_state
    # (key, labels [N], C) -> (labels, weights [N]): what the teacher may be trained on, with the
    # same key as init
    teach: Callable[[Array, Array, int], tuple[Array, Array]] = _same_labels
    # (state, labels [N]) -> labels: what the init of members listed after it is given
    labels: Callable[[PyTree, Array], Array] = _unchanged_labels
    targets: Callable[[Array, Context, PyTree], Any] = _same_targets  # before the loss
    loss: Callable[[LossFn], LossFn] = _same_loss  # in the loss
    gradient: optax.GradientTransformation = optax.identity()  # after it, on cut gradients
    reads_scores: bool = False  # whether it needs the teacher's scores
    replaces: bool = False  # what reaches its targets or loss slot is discarded, not changed


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
    inserting or removing one leaves the others' draws as they were. A member that replaces what
    reaches its slot (label DP the targets, GAFM the loss) must come before the others of that slot.
    """
    _check_order(defenses)

    def init(key: Array, data: TrainingData) -> PyTree:
        states = {}
        for name, one in defenses.items():
            own = keys.fold(key, name)
            states[name] = one.init(own, data)
            data = data._replace(labels=one.labels(states[name], data.labels))
        return states

    def teach(key: Array, labels: Array, num_classes: int) -> tuple[Array, Array]:
        labels, weights = _same_labels(key, labels, num_classes)
        for name, one in defenses.items():
            labels, own = one.teach(keys.fold(key, name), labels, num_classes)
            weights = weights * own
        return labels, weights

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
    reads_scores = any(one.reads_scores for one in defenses.values())
    return Defense(
        init=init,
        teach=teach,
        targets=targets,
        loss=loss,
        gradient=gradient,
        reads_scores=reads_scores,
    )


def _check_order(defenses: Mapping[str, Defense]) -> None:
    for slot, identity in (("targets", _same_targets), ("loss", _same_loss)):
        members = {n: one for n, one in defenses.items() if getattr(one, slot) is not identity}
        for place, (name, one) in enumerate(members.items()):
            if one.replaces and place:
                earlier = next(iter(members))
                raise ValueError(
                    f"{name} replaces what {earlier} makes: list {name} before {earlier}."
                )
    for name, one in defenses.items():
        if one.replaces and one.loss is not _same_loss:
            for other, before in defenses.items():
                if before.targets is not _same_targets and before.teach is _same_labels:
                    raise ValueError(
                        f"{name} reads labels, not targets, so {other} has no effect beside it: drop "
                        "one of them."
                    )


def per_party(
    rule: Callable[[Array, Array, Context], Array],
) -> optax.GradientTransformationExtraArgs:
    """A stateless rule ``(key, g [B, D], context) -> g`` as an optax transformation over the
    parties' cut gradients: each party's tensor alone, with draws of its own (equal noise for two
    parties could be subtracted by colluders)."""

    def update(updates, state, params=None, *, context: Any = None, **extra):
        del params, extra
        sent = tuple(rule(keys.fold(context.key, i), g, context) for i, g in enumerate(updates))
        return sent, state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


def require_two_classes(name: str, num_classes: int) -> None:
    """Refuse data that a two-class defense is not defined on."""
    if num_classes != 2:
        raise ValueError(
            f"{name} is defined for 2 classes and the data has {num_classes}: drop {name} or "
            "choose two-class data."
        )


LARGEST = 1e30  # of a knob without an upper bound: squares and products stay in float32's range


def check(name: str, value: Any, low: float, high: float, remedy: str = "") -> None:
    """Refuse a concrete knob outside [low, high]; silent on tracers (they were checked when
    the sweep was planned). NaN is outside every range; ``high`` = infinity means at most 1e30."""
    if isinstance(value, Tracer):
        return
    if not np.all((np.asarray(value) >= low) & (np.asarray(value) <= min(high, LARGEST))):
        bounds = f"in [{low:g}, {high:g}]" if high != float("inf") else f"at least {low:g}"
        if np.any(np.asarray(value) > LARGEST):
            bounds += f" and at most {LARGEST:g}"
        raise ValueError(f"{name}={value} is out of range: choose {name} {bounds}.{remedy}")


def check_integer(name: str, value: Any) -> None:
    """Refuse a concrete knob that is not a whole number; silent on tracers."""
    if not isinstance(value, Tracer) and not float(value).is_integer():
        raise ValueError(f"{name}={value} is not a whole number: choose an integer {name}.")


def check_option(name: str, value: str, choices: tuple[str, ...]) -> None:
    """Refuse an unknown static option."""
    if value not in choices:
        raise ValueError(f"{name}={value!r} is unknown: choose one of {', '.join(choices)}.")
