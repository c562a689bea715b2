"""The defense record, and its composition.

A defense is a few pure functions, each of which defaults to the identity. A factory takes knobs and options.
Knobs are numbers and may be traced, so a factory must never branch on them. Options are static and
keyword-only. The factory is called inside the traced step: one compiled program serves a whole grid of knobs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import keys
from vfljax.defenses.link import Link
from vfljax.types import Array, Context, CutLayer, PyTree

LossFn = Callable[..., tuple[Array, tuple[Array, PyTree, PyTree]]]
"""``(active, f, embeddings, targets, context, state) -> (loss, (logits, variables, state))``.

``active`` are the top model's variables, ``f`` [B, D] is the aggregated cut, ``embeddings`` are the
passive parties' [B, D] and ``targets`` are [B, C]. In a defense's loss slot ``state`` is a
``Scoped``."""


__all__ = [
    "Defense",
    "Scoped",
    "TrainingData",
    "chain",
    "per_party",
    "require_top_model",
    "require_two_classes",
    "stateless",
    "with_gradient",
]


class TrainingData(NamedTuple):
    """What the ``init`` of a defense may read before training."""

    # [N] int32, or standardized numbers float32; after label DP in a chain, the randomized ones
    labels: Array
    scores: Array | None  # [N, C] teacher probabilities, None without a teacher
    num_classes: int  # C, static
    cut_layer: CutLayer = CutLayer()  # static
    codebook: PyTree | None = None  # from ``Defense.codebook`` (a chain's: by name); None: not made
    # [2] the bounds of numbers that the user gave, standardized as ``labels``; None of classes or without
    label_range: Array | None = None
    # [N] in [0, 1]: the labels within that range, from the labels in their own unit. Moments of true labels, by
    # which ``labels`` and ``label_range`` are standardized, cancel in exact arithmetic alone
    shares_of_range: Array | None = None


class Scoped(NamedTuple):
    """The state that a defense's loss slot receives and returns.

    A defense reads and replaces ``state``. It hands ``others`` on to the inner loss unread.
    """

    state: PyTree  # of this defense
    others: PyTree  # of all members of the chain; this defense's own is the one that it received


def _same_labels(key: Array, labels: Array, num_classes: int) -> tuple[Array, Array]:
    del key, num_classes
    return labels, jnp.ones(labels.shape, jnp.float32)


class Defense(NamedTuple):
    """What a defense does at each place where it may act. ``Defense()`` is no defense.

    ``targets`` acts before the loss, ``loss`` in it, and ``gradient`` after it, on the gradients of
    the cut. ``read`` acts where predictions are judged, in training and after it.
    """

    codebook: Callable[[Array, int], PyTree] = lambda key, num_classes: ()
    """``codebook(key, num_classes) -> codebook``: arrays in dicts that a defense trains before the
    federation and without its data. It receives the same key as ``init``, so that a sweep may make
    the codebook once for all trials with one seed and the same knobs. If ``init`` receives no codebook
    in its ``data``, it makes it."""

    init: Callable[[Array, TrainingData], PyTree] = lambda key, data: ()
    """``init(key, data) -> state``, once before training."""

    teach: Callable[[Array, Array, int], tuple[Array, Array]] = _same_labels
    """``teach(key, labels [N], num_classes) -> (labels [N], weights [N])``: what the teacher may be
    trained on. It receives the same key as ``init``."""

    labels: Callable[[PyTree, Array], Array] = lambda state, labels: labels
    """``labels(state, labels [N]) -> labels [N]``: the labels that ``init`` of the members listed
    after this one receives."""

    targets: Callable[[Array, Context, PyTree], Any] = lambda targets, context, state: (
        targets,
        context,
        state,
    )
    """``targets(targets [B, C], context, state) -> (targets, context, state)``. A defense whose ``network``
    has other ``heads`` returns targets of their width."""

    loss: Callable[[LossFn], LossFn] = lambda loss_fn: loss_fn
    """``loss(loss_fn) -> loss_fn``; see ``LossFn``."""

    gradient: optax.GradientTransformation = optax.identity()
    """A transformation of the parties' cut gradients, a tuple of [B, D]; it also receives
    ``context``."""

    read: Callable[[PyTree, Array], Array] = lambda state, logits: logits
    """``read(state, logits) -> scores [M, C]``: the scores that are compared with labels in place of the
    model's logits, which are [M, C] unless a ``network`` has other ``heads``. The larger a score, the
    likelier the class. ``read`` may use the state but no knob, because only the state is stored with the
    weights. The state is then a mapping of names to arrays, or to such mappings."""

    link: Link = Link()
    """What the parties and the label party exchange in a batch: embeddings and gradients by default. A defense
    with another link is the only one of its chain."""

    reads_scores: bool = False
    """Whether the defense needs the teacher's scores."""

    replaces: bool = False
    """Whether it discards what reaches its targets or loss slot, instead of changing it."""

    widens: bool = False
    """Whether its targets are wider than the number of classes, so that no later member can treat them."""


IDLE = Defense()


def _named(context: Context, name: str) -> Context:
    """The context that one member of a chain receives. Its keys are folded by the member's NAME,
    never by its position."""
    return context._replace(
        key=keys.fold(context.key, name), run_key=keys.fold(context.run_key, name)
    )


def _named_loss(name: str, wrap: Callable[[LossFn], LossFn], loss_fn: LossFn) -> LossFn:
    """One member's loss slot around a loss whose state is the chain's dict."""

    def loss(active, f, embeddings, targets, context, states):
        def inner(active, f, embeddings, targets, inner_context, scoped):
            inner_context = inner_context._replace(key=context.key, run_key=context.run_key)
            value, (logits, variables, merged) = loss_fn(
                active, f, embeddings, targets, inner_context, {**scoped.others, name: scoped.state}
            )
            return value, (logits, variables, Scoped(merged[name], merged))

        scoped = Scoped(states[name], states)
        value, (logits, variables, scoped) = wrap(inner)(
            active, f, embeddings, targets, _named(context, name), scoped
        )
        return value, (logits, variables, {**scoped.others, name: scoped.state})

    return loss


def _named_gradient(name: str, transform: optax.GradientTransformation) -> Any:
    transform = optax.with_extra_args_support(transform)

    def update(updates, state, params=None, *, context: Any = None, **extra):
        return transform.update(updates, state, params, context=_named(context, name), **extra)

    return optax.GradientTransformationExtraArgs(transform.init, update)


def chain(**defenses: Defense) -> Defense:
    """Compose defenses. Reduces to no defense for ``chain()``; an identity member changes nothing.

    Within each slot the members act in listing order; in the loss the first is innermost, and
    predictions are read in reverse order. The chain's state is a dict by member name.

    Each member draws from keys folded by its name. No two members share a draw, and inserting or
    removing one leaves the others' draws as they were.

    Raises ``ValueError`` if a member that replaces what reaches its slot (label DP the targets, GAFM the
    loss) is listed after another member of that slot or makes another member useless, if a member that
    acts on targets or predictions is listed after one that ``widens`` the targets, and if there is another
    member beside one with a ``link`` of its own.
    """
    _check_order(defenses)

    def codebook(key: Array, num_classes: int) -> PyTree:
        return {
            name: member.codebook(keys.fold(key, name), num_classes)
            for name, member in defenses.items()
            if member.codebook is not IDLE.codebook
        }

    def init(key: Array, data: TrainingData) -> PyTree:
        states, books = {}, data.codebook or {}
        for name, member in defenses.items():
            data = data._replace(codebook=books.get(name))
            states[name] = member.init(keys.fold(key, name), data)
            data = data._replace(labels=member.labels(states[name], data.labels))
        return states

    def teach(key: Array, labels: Array, num_classes: int) -> tuple[Array, Array]:
        labels, weights = _same_labels(key, labels, num_classes)
        for name, member in defenses.items():
            labels, factors = member.teach(keys.fold(key, name), labels, num_classes)
            weights = weights * factors
        return labels, weights

    def targets(targets: Array, context: Context, state: PyTree) -> Any:
        state = dict(state)
        for name, member in defenses.items():
            targets, changed, state[name] = member.targets(
                targets, _named(context, name), state[name]
            )
            context = changed._replace(key=context.key, run_key=context.run_key)
        return targets, context, state

    def loss(loss_fn: LossFn) -> LossFn:
        for name, member in defenses.items():
            loss_fn = _named_loss(name, member.loss, loss_fn)
        return loss_fn

    def read(state: PyTree, logits: Array) -> Array:
        for name, member in reversed(defenses.items()):
            logits = member.read(state[name], logits)
        return logits

    transforms = (_named_gradient(name, member.gradient) for name, member in defenses.items())
    return Defense(
        codebook=codebook,
        init=init,
        teach=teach,
        targets=targets,
        loss=loss,
        gradient=optax.chain(optax.identity(), *transforms),  # optax refuses an empty chain
        read=read,
        link=next((m.link for m in defenses.values()), IDLE.link),
        reads_scores=any(member.reads_scores for member in defenses.values()),
    )


def _check_order(defenses: Mapping[str, Defense]) -> None:
    for name, member in defenses.items():
        others = [other for other in defenses if other != name]
        if member.link is not IDLE.link and others:
            raise ValueError(
                f"{name} answers by one number a batch, and its guarantee holds alone: drop {others[0]}."
            )
    wide = ""
    for name, member in defenses.items():
        if wide and (member.targets is not IDLE.targets or member.read is not IDLE.read):
            raise ValueError(f"{wide} has targets of more than the classes: list it after {name}.")
        wide = name if member.widens else wide
    for slot in ("targets", "loss"):
        idle = getattr(IDLE, slot)
        members = {n: m for n, m in defenses.items() if getattr(m, slot) is not idle}
        for place, (name, member) in enumerate(members.items()):
            if member.replaces and place:
                earlier = next(iter(members))
                raise ValueError(
                    f"{name} replaces what {earlier} makes: list {name} before {earlier}."
                )
    for name, member in defenses.items():
        if member.replaces and member.loss is not IDLE.loss:
            for other, before in defenses.items():
                if before.targets is not IDLE.targets and before.teach is IDLE.teach:
                    raise ValueError(
                        f"{name} reads labels, not targets, so {other} has no effect beside it: drop "
                        "one of them."
                    )


def per_party(
    rule: Callable[[Array, Array, Context], Array],
) -> optax.GradientTransformationExtraArgs:
    """A stateless rule ``(key, g [B, D], context) -> g [B, D]`` as an optax transformation of the
    parties' cut gradients.

    Each party's tensor is treated alone, with draws from a key of its own: colluders could subtract
    equal noise.
    """

    def update(updates, state, params=None, *, context: Any = None, **extra):
        del params, extra
        chex.assert_rank(list(updates), 2)
        sent = tuple(rule(keys.fold(context.key, i), g, context) for i, g in enumerate(updates))
        return sent, state

    return optax.GradientTransformationExtraArgs(lambda params: optax.EmptyState(), update)


def with_gradient(x: Array, gradient: Array) -> Array:
    """0, whose gradient with respect to ``x`` is ``gradient``."""
    return jnp.sum(gradient * (x - jax.lax.stop_gradient(x)))


def stateless(check: Callable[[TrainingData], None]) -> Callable[[Array, TrainingData], PyTree]:
    """Returns an ``init`` without state, which raises what ``check(data)`` raises."""

    def init(key: Array, data: TrainingData) -> PyTree:
        del key
        check(data)
        return ()

    return init


def require_top_model(name: str, part: str, data: TrainingData) -> None:
    """Raise ``ValueError`` if there is no top model. ``part`` says what of the defense is before or in it."""
    if not data.cut_layer.split:
        raise ValueError(
            f"{name}'s {part} the top model and this federation has none: train it with model splitting."
        )


def require_two_classes(name: str, data: TrainingData) -> None:
    """Raise ``ValueError`` unless there are two classes."""
    if data.num_classes != 2:
        raise ValueError(
            f"{name} is defined for 2 classes and the data has {data.num_classes}: drop {name} or "
            "choose two-class data."
        )
