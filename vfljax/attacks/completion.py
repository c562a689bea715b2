"""Model completion: the passive and active label inference attacks (Fu et al. 2022).

After training the attacker keeps its bottom model, puts an inference head on top, and trains both
semi-supervised with the few rows whose labels it knows: MixMatch with one guess and no augmentation. The
active attack is the same on a bottom that a malicious optimizer trained (``vfljax.federation.malicious``).

    lam ~ Beta(alpha, alpha) once a batch, lam <- max(lam, 1 - lam)
    L = CE(labeled part, t~) + lambda_u ramp mean (p - t~)^2  (``attacks.mixmatch``)

The optimizer is Adam at rate 2e-3 on batches of 16 + 16 rows. The weights are averaged (EMA .999), and
the average is evaluated. The ramp grows linearly over the whole attack and reaches 1 at its end.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX Security 2022,
section 4.1 (passive) and 4.2 (active); MixMatch: Berthelot et al. 2019, algorithm 1.

``finetune_bottom=False`` trains the head only. The published numbers are of this form, as the released code
builds its optimizer before the trained bottom is plugged in. True is what the text describes. A frozen bottom
is evaluated as it was: it is neither decayed nor averaged, and its batch statistics do not move, as the
released code collects what it decays and averages before the bottom is plugged in. If every row is labeled,
lambda_u counts as 0.

For two classes the published lambda_u = 50 is five times the weight that it is for ten, as the error is a mean
over classes, and can push every row to one class. How much of a low accuracy is due to this is seen beside
``lambda_u = 1`` and ``threshold="known_share"``.

Labels that are numbers (ours): the head has one output, and the squared error takes the place of both terms.

Deviations:

* Batches are drawn with replacement (released: reshuffled passes over loaders).
* One forward pass covers labeled and unlabeled rows (released: interleaved in two, which matters to
  batch statistics only).
* The guess does not move batch statistics (released: it does).
* For texts Fu et al. use MixText, which mixes two rows in a hidden layer of BERT drawn from 7, 9 and 12;
  here they are mixed at the cut.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import optax

from vfljax import errors, keys, machine, tasks
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.mixmatch import Mixing, mixmatch_loss, mixup, permutations, sharpen
from vfljax.models import Head
from vfljax.models.parties import Party, from_module, together
from vfljax.models.reading import over_chunks
from vfljax.types import (
    CHUNK,
    HEAVY_CHUNK,
    MALICIOUS,
    NO_SPLIT,
    SPLIT,
    Array,
    Known,
    PyTree,
    Scores,
    View,
)

KNOBS = {
    "known": 40.0,  # how many labels the attacker knows; N or more: all
    "learning_rate": 2e-3,
    "temperature": 0.8,
    "alpha": 0.75,
    "lambda_u": 50.0,
    "ema": 0.999,
    "weight_decay": 0.02,  # a step multiplies what trains, and statistics, by 1 - weight_decay * rate
}
PUBLISHED_STEPS = 25 * 1024  # 25 epochs of 1,024 steps
DRAWN = 1024  # steps whose random numbers are drawn at once
OPTIMIZER = optax.scale_by_adam()
RANGES = {"temperature": (1e-3, 1e6), "alpha": (1e-3, 1e6), "ema": (0.0, 1.0)}

Mix = Callable[[Array], Array]  # of embeddings [2b, D]
Carry = tuple[
    tuple[PyTree, ...], tuple[PyTree, ...], PyTree
]  # what trains, its average, Adam's state


class Batch(NamedTuple):
    """What is prepared of a step with b labeled and b unlabeled rows.

    Rows are the bottoms' inputs, a tuple of arrays, where these train, and else their embeddings [..., D].
    """

    unlabeled: Any  # b rows
    mixed: (
        Any  # 2b rows, the labeled ones first; not mixed yet where a bottom that trains reads codes
    )
    targets: Array  # [b, C] of the labeled rows
    lam: Array  # []
    order: Array  # [2b]
    dropout: Array  # [2] keys: of the guess and of the loss


def at_known_share(logits: Array, among: Array, share: Array) -> Array:
    """Class scores [n, 2] from logits [n, 2], whose signs call the ``share`` of the rows ``among`` positive.

    They are minus and plus half of the log odds minus a threshold, which the given share of the log odds of
    ``among`` [m, 2] exceeds. Ranks are those of the log odds. ``share`` is a scalar in [0, 1].
    """
    chex.assert_rank([logits, among, share], [2, 2, 0])
    odds = logits[:, 1] - logits[:, 0]
    above = odds - jnp.quantile(among[:, 1] - among[:, 0], 1 - share)
    return jnp.stack([-above / 2, above / 2], axis=-1)


def _rows(x: tuple[Array, ...], which: Array | slice) -> tuple[Array, ...]:
    return tuple(part[which] for part in x)


def _floats(change: Callable[..., Array], variables: PyTree, *others: PyTree) -> PyTree:
    """Apply ``change`` to floating tensors; counters and other whole numbers stay as they are."""

    def change_if_floating(v: Array, *rest: Array) -> Array:
        return change(v, *rest) if jnp.issubdtype(v.dtype, jnp.floating) else v

    return jax.tree.map(change_if_floating, variables, *others)


class Completion(NamedTuple):
    """The attacker's model, the head that is put on it, and how they are trained."""

    bottom: Party  # the attacker's, or those of all colluders in one
    head: Party  # reads its embeddings
    num_classes: int
    steps: int
    batch_size: int  # b: labeled rows of a step, and as many unlabeled ones
    finetune_bottom: bool
    threshold: str = "plain"

    @property
    def drawn(self) -> int:
        """Steps whose random numbers are drawn at once: step by step would cost more than the step."""
        return min(self.steps, DRAWN)

    @property
    def chunk(self) -> int:
        """Rows that are evaluated at once."""
        return CHUNK if self.bottom.light else HEAVY_CHUNK


def _embed(
    of: Completion, bottoms: tuple[PyTree, ...], x: Any, key: Array
) -> tuple[Array, tuple[PyTree, ...]]:
    """Returns embeddings in training mode, and the bottoms with moved statistics."""
    z, (after, _) = of.bottom.apply(bottoms, x, True, key)
    return z, after


def _forward(
    of: Completion, networks: tuple[PyTree, ...], x: Any, key: Array, mix: Mix
) -> tuple[Array, tuple[PyTree, ...]]:
    """Returns logits in training mode, and the networks that train with moved statistics. ``x`` are the inputs
    of bottoms that train, and the embeddings of frozen ones."""
    z, after = _embed(of, networks[1:], x, key) if of.finetune_bottom else (x, ())
    logits, (after_head, _) = of.head.apply(networks[0], mix(z), True, key)
    return logits, (after_head, *after)


def _draw(
    of: Completion, key: Array, known: Known, rows: int, alpha: Array, number: Array
) -> Mixing:
    """Returns the random numbers of ``of.drawn`` steps, for batches out of so many rows."""
    drawn, batch_size = of.drawn, of.batch_size
    labeled_key, unlabeled_key, beta_key, mix_key = jax.random.split(
        keys.fold(key, "draws", number), 4
    )
    count = jnp.maximum(known.count, 1)
    i = jax.random.randint(labeled_key, (drawn, batch_size), 0, count)
    # with every label known there are no unlabeled rows: any row serves
    low = jnp.where(known.count >= rows, 0, known.count)
    j = jax.random.randint(unlabeled_key, (drawn, batch_size), low, rows)
    lam = jax.random.beta(beta_key, alpha, alpha, (drawn,))
    order = permutations(jax.random.uniform(mix_key, (drawn, 2 * batch_size)))
    return Mixing(i, j, jnp.maximum(lam, 1 - lam), order)


def _prepare(
    of: Completion, key: Array, view: View, known: Known, number: Array, draws: Mixing
) -> Batch:
    """Returns the batch of a step, as far as no network that trains is needed for it."""
    x = _rows(view.features, known.rows[jnp.concatenate([draws.labeled, draws.unlabeled])])
    unlabeled = _rows(x, slice(of.batch_size, None))
    # codes and token ids have no convex combinations: their embeddings are mixed, at the cut
    mixed = mixup(x, draws.lam, draws.order) if of.bottom.mixable else x
    dropout = jax.random.split(keys.fold(key, "dropout", number))
    if not of.finetune_bottom:
        unlabeled, _ = _embed(of, view.bottoms, unlabeled, dropout[0])
        mixed, _ = _embed(of, view.bottoms, mixed, dropout[1])
        mixed = mixed if of.bottom.mixable else mixup(mixed, draws.lam, draws.order)
    targets = tasks.of(of.num_classes).targets(known.labels[draws.labeled], of.num_classes)
    return Batch(unlabeled, mixed, targets, draws.lam, draws.order, dropout)


def _step(of: Completion, knobs: Knobs, number: Array, carry: Carry, batch: Batch) -> Carry:
    """Returns what trains, its average and Adam's state after a step."""
    networks, averaged, state = carry
    guess, _ = _forward(of, networks, batch.unlabeled, batch.dropout[0], lambda z: z)
    q = sharpen(guess, knobs["temperature"])
    targets = jnp.concatenate([batch.targets, q])
    soft = jax.lax.stop_gradient(mixup(targets, batch.lam, batch.order))
    weight = knobs["lambda_u"] * jnp.minimum(1.0, number / of.steps)

    def at_cut(z: Array) -> Array:
        whole = of.finetune_bottom and not of.bottom.mixable
        return mixup(z, batch.lam, batch.order) if whole else z

    def loss(params: list[PyTree]) -> tuple[Array, tuple[PyTree, ...]]:
        joined = tuple({**n, "params": p} for n, p in zip(networks, params, strict=True))
        logits, after = _forward(of, joined, batch.mixed, batch.dropout[1], at_cut)
        return mixmatch_loss(logits, soft, of.batch_size, weight), after

    params = [network["params"] for network in networks]
    gradient, after = jax.grad(loss, has_aux=True)(params)
    updates, state = OPTIMIZER.update(gradient, state, params)
    params = jax.tree.map(lambda p, u: p - knobs["learning_rate"] * u, params, updates)
    after = tuple({**n, "params": p} for n, p in zip(after, params, strict=True))
    averaged = _floats(lambda v, a: knobs["ema"] * a + (1 - knobs["ema"]) * v, after, averaged)
    # as released, decay shrinks EVERY state tensor of what trains, batch statistics too
    decay = 1 - knobs["weight_decay"] * knobs["learning_rate"]
    return _floats(lambda v: v * decay, after), averaged, state


def _averaged(
    of: Completion, key: Array, view: View, known: Known, knobs: Knobs, networks: tuple[PyTree, ...]
) -> tuple[PyTree, ...]:
    """Trains networks, the head first, and returns the average of their weights over all steps."""
    rows, drawn = len(view.features[0]), of.drawn
    # the inputs of a group of steps are prepared by large products
    group = min(drawn, max(1, machine.rows_at_once(of.chunk) // (3 * of.batch_size)))
    lambda_u = jnp.where(known.count >= rows, 0.0, knobs["lambda_u"])
    knobs = {**knobs, "lambda_u": lambda_u}

    def many(number: Array, carry: Carry) -> Carry:
        draws = _draw(of, key, known, rows, knobs["alpha"], number)
        first = number * drawn
        prepare = jax.vmap(functools.partial(_prepare, of, key, view, known))

        def some(place: Array, carry: Carry) -> Carry:
            """The steps of a group. Those beyond the last are not taken."""
            places = place * group + jnp.arange(group)
            of_group = jax.tree.map(lambda a: a[jnp.minimum(places, drawn - 1)], draws)
            batches = prepare(first + places, of_group)

            def one(i: Array, carry: Carry) -> Carry:
                batch = jax.tree.map(lambda a: a[i], batches)
                return _step(of, knobs, first + place * group + i, carry, batch)

            left = jnp.minimum(drawn, of.steps - first) - place * group
            return jax.lax.fori_loop(0, jnp.minimum(group, left), one, carry)

        groups = -(-jnp.minimum(drawn, of.steps - first) // group)
        return jax.lax.fori_loop(0, groups, some, carry)

    state = OPTIMIZER.init([network["params"] for network in networks])
    start = (networks, networks, state)
    return jax.lax.fori_loop(0, -(-of.steps // drawn), many, start)[1]


def complete(key: Array, view: View, known: Known, knobs: Knobs, of: Completion) -> Scores:
    """Train the completed model, and score all training and test rows.

    ``view``, ``known`` and ``knobs`` (``KNOBS``) are those of ``Attack.run``.

    Returns class probabilities of all training rows [N, C] and test rows [M, C], with the ``threshold``
    "known_share" their scores by ``at_known_share``, or predicted numbers [N, 1] and [M, 1].
    """
    chex.assert_rank([known.rows, known.labels, known.count], [1, 1, 0])
    chex.assert_equal_shape([known.rows, known.labels])
    chex.assert_type([known.rows, known.count], int)
    chex.assert_equal_shape_prefix([*view.features, known.rows], 1)
    example, _ = of.bottom.apply(view.bottoms, _rows(view.features, slice(2)), False, None)
    networks = (of.head.init(keys.fold(key, "head"), example), *view.bottoms)
    trained = len(networks) if of.finetune_bottom else 1  # the first so many networks
    averaged = _averaged(of, key, view, known, knobs, networks[:trained])
    evaluated = (*averaged, *networks[trained:])  # a frozen bottom is the one that was given

    def logits_of_rows(x: tuple[Array, ...]) -> Array:
        z, _ = of.bottom.apply(evaluated[1:], x, False, None)
        return of.head.apply(evaluated[0], z, False, None)[0]

    def logits_of(x: tuple[Array, ...]) -> Array:
        rows = jnp.arange(len(x[0]))
        return over_chunks(lambda r: logits_of_rows(_rows(x, r)), rows, of.chunk)

    train, test = logits_of(view.features), logits_of(view.test_features)
    if of.num_classes == 1:
        return Scores(train, test)
    if of.threshold == "plain":
        return Scores(jax.nn.softmax(train), jax.nn.softmax(test))
    positive = jnp.sum(known.labels == 1) / jnp.maximum(known.count, 1)
    return Scores(*(at_known_share(part, train, positive) for part in (train, test)))


@functools.cache  # one object, hence one program, for equal options, however they are spelled
def completion_run(
    bottoms: Bottoms,
    num_classes: int,
    finetune_bottom: bool,
    layers: int,
    steps: int,
    batch_size: int,
    threshold: str,
) -> Callable[[Array, View, Known, Mapping[str, Array]], Scores]:
    """Returns the ``run`` of an attack that completes a model with the options of ``passive``."""
    core.check_whole("layers", layers, 1, 5)
    core.check_whole("steps", steps, 1)
    core.check_whole("batch_size", batch_size, 1)
    if type(finetune_bottom) is not bool:
        raise ValueError(f"finetune_bottom={finetune_bottom!r} must be True or False.")
    if batch_size == 1:
        raise ValueError("batch_size=1 has no batch statistics: choose 2 or more.")
    errors.check_choice("threshold", threshold, ("plain", "known_share"))
    if threshold != "plain" and num_classes != 2:
        raise ValueError(
            f"threshold={threshold!r} is for two classes and there are {num_classes}: choose 'plain'."
        )
    # ones, as released, would keep all hidden units of more layers equal
    weights = "ones" if layers == 1 else "default"
    of = Completion(
        bottom=together([from_module(module) for module in bottoms]),
        head=from_module(Head((num_classes,) * (layers - 1), num_classes, weights=weights)),
        num_classes=num_classes,
        steps=steps,
        batch_size=batch_size,
        finetune_bottom=finetune_bottom,
        threshold=threshold,
    )
    return functools.partial(complete, of=of)


def passive(
    bottoms: Bottoms,
    num_classes: int,
    *,
    finetune_bottom: bool = False,
    layers: int = 1,
    steps: int = PUBLISHED_STEPS,
    batch_size: int = 16,
    threshold: str = "plain",
) -> Attack:
    """Complete the attacker's own model with a few known labels, after honest training (Fu et al. 2022, 4.1).

    Without model splitting its bottom gives it C numbers a row, its share of the logits, and the head reads
    those.

    Args:
      finetune_bottom: whether the bottom is trained with the head.
      layers: of the head, 1 to 5. A single one starts at ones (released), more as flax initializes them.
      steps: optimizer steps. Published: 25 epochs of 1,024.
      batch_size: labeled rows a step, and as many unlabeled ones.
      threshold: which rows are called positive, for two classes: those more likely so ("plain"), or as
        large a share of the training rows as of the known ones ("known_share", ours). Ranks, hence AUCs,
        are the same.

    Returns:
      An attack whose scores are class probabilities of training rows [N, C] and test rows [M, C]; for
      "known_share", minus and plus half the log odds less their threshold.
    """
    run = completion_run(
        bottoms, num_classes, finetune_bottom, layers, steps, batch_size, threshold
    )
    return Attack(
        run,
        (SPLIT, NO_SPLIT),
        KNOBS,
        RANGES,
        baselines=core.BASELINES,
        reads=("columns", "bottoms"),
        steps=steps,
        draws=core.FEW_DRAWS,
    )


@functools.wraps(passive, assigned=())  # the same options
def active(bottoms: Bottoms, num_classes: int, **options: Any) -> Attack:
    """``passive``, after training with the malicious optimizer (Fu et al. 2022, section 4.2)."""
    return passive(bottoms, num_classes, **options)._replace(federations=(MALICIOUS,))


# rule 2: unlabeled rows are drawn, uniformly as before, from an order that does not depend on labels
# rule 3: a frozen bottom is neither decayed nor averaged, and with every row labeled lambda_u is 0
PASSIVE = AttackRow(passive, PUBLISHED_STEPS, rule=3, cost=core.TRAIN, not_for_numbers="")
ACTIVE = dataclasses.replace(PASSIVE, factory=active, computed_as="passive")
