"""ONE BATCH of vertical federated learning. Read this first.

 1 embed          each party maps its own columns to its embedding and keeps the pullback;
                  a party may deviate in what it sends
 2 target         the label party turns labels into targets; defenses may soften them
 3 loss           the top model reads all embeddings, and defenses may change the loss; gradients with
                  respect to its own parameters and to every embedding, from the top model BEFORE its update
 4 defend         defenses of gradients treat the cut gradients
 5 exchange       what each passive party sent and received: all that crosses the wire, by default
                  embeddings and gradients (``vfljax.defenses.link``)
 6 backpropagate  each party pulls what it received back through its own bottom model
 7 update         each party applies its own optimizer; malicious parties have another

``make_step`` turns a static ``Spec`` into ``step(state, batch, hparams) -> (state, Exchange, metrics)``,
a pure function that the caller jits, scans and vmaps. Everything that may differ between trials of one
program is an array in ``hparams``. Cut gradients are those of the batch-MEAN loss: they carry 1/B, and
every absolute scale of a defense is relative to that.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import defenses, keys, tasks
from vfljax.defenses.core import LossFn, TrainingData
from vfljax.federation import optimizers, uploads
from vfljax.models.parties import Party, parties
from vfljax.types import Array, Batch, Context, Exchange, HParams, PyTree, Spec, State, Weights


class Metrics(NamedTuple):
    """Figures of one batch."""

    loss: Array  # [] the defended loss on the defended targets, as it was minimized
    # [] by outputs as defenses read them, and TRUE labels (``Task.credit``): rows whose largest score is the
    # label's, or of numbers the sum of 1 - (f - y)^2
    correct: Array


def undefended(top: Party, spec: Spec) -> LossFn:
    """Returns the undefended loss: that of the task, between the targets and the outputs top(f).

    Args:
      top: the label party's top model.
      spec: its task, class weights and delta of Huber's loss are read, and its ``heads``: the widths of groups
        of columns, whose losses are added.
    """
    task = tasks.of(spec.num_classes)

    def loss(
        active: PyTree,
        f: Array,
        embeddings: tuple[Array, ...],
        targets: Array,
        context: Context,
        state: PyTree,
    ) -> tuple[Array, tuple[Array, PyTree, PyTree]]:
        chex.assert_rank([f, targets, *embeddings], 2)
        chex.assert_equal_shape_prefix([f, targets, *embeddings], 1)
        del embeddings
        key = keys.fold(context.key, "top") if context.train else None
        outputs, (variables, _) = top.apply(active, f, context.train, key)
        chex.assert_equal_shape([outputs, targets])
        heads = spec.heads
        ends = [sum(heads[: i + 1]) for i in range(len(heads))] or [outputs.shape[1]]
        value = jnp.float32(0)
        for start, end in zip((0, *ends), ends):
            columns = slice(start, end)
            weights = spec.class_weights[columns]
            value += task.loss(outputs[:, columns], targets[:, columns], weights, spec.huber)
        return value, (outputs, variables, state)

    return loss


def _check_batch(spec: Spec, batch: Batch) -> None:
    """Asserts the shapes of a batch: features [B, ...] of every bottom, labels and index [B], scores [B, C]."""
    chex.assert_rank([batch.labels, batch.index], 1)
    chex.assert_type([batch.labels, batch.index], [tasks.of(spec.num_classes).label_type, int])
    chex.assert_equal_shape_prefix([batch.labels, batch.index, *batch.features], 1)
    _check_features(spec, batch.anchor)
    if batch.scores is not None:
        chex.assert_shape(batch.scores, (len(batch.labels), spec.num_classes))


def _check_numbers(spec: Spec, hparams: HParams) -> None:
    """Asserts that the numbers are those of one trial: all are scalars, except gamma, strength and absent
    [bottoms] and milestones [m]."""
    of_parties = [hparams.gamma, hparams.strength, hparams.absent]
    chex.assert_shape(of_parties, (len(spec.bottoms),))
    chex.assert_rank(hparams.milestones, 1)
    numbers = hparams._replace(gamma=None, strength=None, absent=None, milestones=None)
    chex.assert_rank(jax.tree.leaves(numbers), 0)


def _check_features(spec: Spec, features: tuple[Array, ...]) -> None:
    """Asserts that features are arrays [B, ...], one per bottom."""
    chex.assert_equal(len(features), len(spec.bottoms))
    chex.assert_equal_shape_prefix(features, 1)


def _with_params(variables: PyTree, params: PyTree) -> PyTree:
    return {**variables, "params": params} if variables else variables


def _in_scope(spec: Spec, cut: tuple[Array, ...]) -> tuple[Array, ...]:
    return cut if spec.scope == "all" else cut[: spec.passive]


def _strengths(spec: Spec, hparams: HParams) -> tuple[Array, ...]:
    """Returns the gamma of each optimizer: one per bottom, then 0 for the top model, whose owner is honest."""
    return (*(hparams.gamma[p] for p in range(len(spec.bottoms))), jnp.float32(0))


def make_weights(spec: Spec) -> Callable[[Array, tuple[Array, ...]], Weights]:
    """Makes ``weights(run_key, features) -> Weights``, which draws initial weights from the run key alone, so
    that trials of one seed are paired. ``features`` has a few example rows for each bottom."""
    embed, (bottoms, top, aggregate) = make_embed(spec), parties(spec)

    def weights(run_key: Array, features: tuple[Array, ...]) -> Weights:
        chex.assert_rank(run_key, 0)
        _check_features(spec, features)
        variables = tuple(
            party.init(keys.fold(run_key, "init", p), x)
            for p, (party, x) in enumerate(zip(bottoms, features, strict=True))
        )
        f = aggregate(embed(Weights(variables, {}), features))
        return Weights(variables, top.init(keys.fold(run_key, "init", "top"), f))

    return weights


def make_embed(spec: Spec) -> Callable[[Weights, tuple[Array, ...]], tuple[Array, ...]]:
    """Makes ``embed(weights, features)``, which returns each bottom's embedding [B, D] in evaluation mode."""
    bottoms, _, _ = parties(spec)

    def embed(weights: Weights, features: tuple[Array, ...]) -> tuple[Array, ...]:
        _check_features(spec, features)
        cut = tuple(
            party.apply(v, x, False, None)[0]
            for party, v, x in zip(bottoms, weights.bottoms, features, strict=True)
        )
        chex.assert_shape(cut, [(len(x), bottom.out) for x, bottom in zip(features, spec.bottoms)])
        return cut

    return embed


def make_init(spec: Spec) -> Callable[..., State]:
    """Makes ``init(run_key, weights, hparams, data, cut) -> State``. ``cut`` are arrays in the shapes [B, D]
    of a batch's embeddings, one per bottom."""

    def init(
        run_key: Array,
        weights: Weights,
        hparams: HParams,
        data: TrainingData,
        cut: tuple[Array, ...],
    ) -> State:
        chex.assert_rank([run_key, data.labels], [0, 1])
        if data.scores is not None:
            chex.assert_shape(data.scores, (len(data.labels), spec.num_classes))
        _check_features(spec, cut)
        chex.assert_rank(cut, 2)
        _check_numbers(spec, hparams)
        defense = defenses.build(spec.defenses, hparams.defenses)
        optimizer = tuple(
            optimizers.TABLE[name](hparams, jnp.float32(0), gamma).init(v.get("params", {}))
            for name, v, gamma in zip(
                spec.optimizers,
                (*weights.bottoms, weights.active),
                _strengths(spec, hparams),
                strict=True,
            )
        )
        return State(
            step=jnp.int32(0),
            weights=weights,
            optimizer=optimizer,
            defense=defense.init(keys.fold(run_key, "defense"), data),
            gradient=defense.gradient.init(_in_scope(spec, cut)),
            run_key=run_key,
        )

    return init


def make_step(spec: Spec) -> Callable[[State, Batch, HParams], tuple[State, Exchange, Metrics]]:
    """Makes the pure function of (state, batch, hparams) that does the module's seven steps."""
    bottoms, top, aggregate = parties(spec)
    send, task = uploads.TABLE[spec.upload].send, tasks.of(spec.num_classes)

    def step(state: State, batch: Batch, hparams: HParams) -> tuple[State, Exchange, Metrics]:
        _check_batch(spec, batch)
        _check_numbers(spec, hparams)
        chex.assert_rank([state.step, state.run_key], 0)
        defense = defenses.build(spec.defenses, hparams.defenses)
        epoch = state.step // spec.steps_per_epoch
        key = keys.fold(state.run_key, "step", state.step)
        context = Context(
            index=batch.index,
            labels=batch.labels,
            scores=batch.scores,
            step=state.step,
            epoch=epoch,
            steps_per_epoch=jnp.int32(spec.steps_per_epoch),
            key=key,
            run_key=state.run_key,
            train=True,
            cut_layer=spec.cut_layer,
            epochs=spec.epochs,
        )

        # 1 embed
        cut, moved, pullbacks = [], [], []
        for p, (party, variables, x, row) in enumerate(
            zip(bottoms, state.weights.bottoms, batch.features, batch.anchor, strict=True)
        ):
            anchor = party.apply(variables, row, False, None)[0]

            def forward(
                params: PyTree, party=party, variables=variables, x=x, p=p, anchor=anchor
            ) -> Any:
                z, aux = party.apply(
                    _with_params(variables, params), x, True, keys.fold(key, "bottom", p)
                )
                sent = send(keys.fold(key, "upload", p), z, anchor, hparams.strength[p])
                return uploads.unlearned(sent, hparams.absent[p]), aux

            sent, pullback, (after, _) = defense.link.send(
                forward, variables["params"], keys.fold(key, "direction", p)
            )
            # a link may have tried other parameters: what moves on are the party's own
            after = _with_params(after, variables["params"])
            cut, moved, pullbacks = [*cut, sent], [*moved, after], [*pullbacks, pullback]
        cut = tuple(cut)
        chex.assert_rank(cut, 2)

        # 2 target
        targets = task.targets(batch.labels, spec.num_classes)
        targets, context, defense_state = defense.targets(targets, context, state.defense)

        # 3 loss
        loss_fn = defense.loss(undefended(top, spec))

        def loss(params: PyTree, cut: tuple[Array, ...]) -> Any:
            active = _with_params(state.weights.active, params)
            f, sent = aggregate(cut), cut[: spec.passive]
            return loss_fn(active, f, sent, targets, context, defense_state)

        own = state.weights.active.get("params", {})
        (value, (logits, active, defense_state)), active_gradient, cut_gradients = (
            defense.link.answer(loss, own, cut, targets, context)
        )
        active = _with_params(active, own)

        # 4 defend
        gradient_slot = optax.with_extra_args_support(defense.gradient)
        treated: Any
        treated, gradient_state = gradient_slot.update(
            _in_scope(spec, cut_gradients), state.gradient, None, embeddings=cut, context=context
        )
        received = (*treated, *cut_gradients[len(treated) :])

        # 5 exchange
        crossed = map(defense.link.seen, cut[: spec.passive], received)
        embeddings, gradients = zip(*crossed, strict=True)
        exchange = Exchange(embeddings, gradients, batch.index)

        # 6 backpropagate
        gradients = [pullback(g) for pullback, g in zip(pullbacks, received, strict=True)]

        # 7 update
        rate = optimizers.learning_rate(hparams, epoch)
        updated, optimizer_state = [], []
        for name, gamma, variables, gradient, before in zip(
            spec.optimizers,
            _strengths(spec, hparams),
            (*moved, active),
            (*gradients, active_gradient),
            state.optimizer,
            strict=True,
        ):
            params = variables.get("params", {})
            optimizer = optimizers.TABLE[name](hparams, rate, gamma)
            update, after = optimizer.update(gradient, before, params)
            updated.append(_with_params(variables, optax.apply_updates(params, update)))
            optimizer_state.append(after)

        scores = defense.read(defense_state, logits)
        correct = task.credit(scores, batch.labels)
        state = State(
            step=state.step + 1,
            weights=Weights(tuple(updated[:-1]), updated[-1]),
            optimizer=tuple(optimizer_state),
            defense=defense_state,
            gradient=gradient_state,
            run_key=state.run_key,
        )
        return state, exchange, Metrics(value, correct)

    return step


def make_predict(spec: Spec) -> Callable[..., Array]:
    """Makes ``predict(weights, features, states) -> scores [B, C]`` of the joint model in evaluation mode. The
    scores are the logits as the defenses of the ``spec`` read them. ``states`` are the states, by name, of the
    defenses that do so (``defenses.readers``), and may be left out if there are none."""
    embed, (_, top, aggregate) = make_embed(spec), parties(spec)
    read = defenses.reader(spec.defenses)

    def predict(
        weights: Weights, features: tuple[Array, ...], states: Mapping[str, PyTree] = {}
    ) -> Array:
        cut = embed(weights, features)
        logits = top.apply(weights.active, aggregate(cut), False, None)[0]
        scores = read(states, logits)
        chex.assert_shape(scores, (len(cut[0]), spec.num_classes))
        return scores

    return predict
