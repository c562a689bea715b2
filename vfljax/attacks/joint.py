"""The joint learner (ours): one classifier of all that its attacker has, trained semi-supervised.

    x_i = [columns_i, z_i, g mean_i, votes_i, g_i of each recorded epoch]

An attacker owns columns, sent embeddings and received gradients, and need not choose among them. Each block
is standardized by column over the rows that have it. The classifier is a linear softmax, fitted to all labeled
rows at once (``softmax``), which minimizes

    sum_i w_i CE(f(x_i), y_i) + ridge / 2 || W ||^2,   w_i = 1, or tau for a row it labels itself

W the weights without the biases. ridge = 1 is logistic regression as scikit-learn has it by default, which
matters with few labels: blocks of noise are given little weight. In place of these steps, rule 1 took 500 of
AdamW: its knobs ``learning_rate`` and ``weight_decay``, and an MLP of ``hidden`` units, which no config asked
for, are gone.

``scale="column"`` lets every column count alike. ``scale="block"`` divides each block by the square root of
its width, so that wide blocks do not drown narrow ones; with it a penalty falls on the wide ones most, and
ridge = 0 is the better choice, where the number of steps alone ends the fit.

The classifier is fitted to the known rows and to at most ``softmax.MOST_ROWS`` others, evenly spaced if there
are more. They stand for all others: their weights are so much larger. All rows are called and scored.

Self-training: each of the ``rounds`` calls the rows by the last classifier and trains a new one, from the
start, on the known rows and on the most confident share of the rows called each class, whose calls count
``tau`` times as much as a known label. The shares are .1, .2, .4 and .8. tau = 0 is no self-training.

``blocks="columns"`` is the same learner on the attacker's own columns, without what any federation sent. Its
figure belongs beside those of the other blocks: what it reaches, the federation did not leak.
``blocks="exchange"`` leaves the columns out, and is a self-trained ``probe``.
``blocks="best"`` replaces "all" by one of these two if, in cross-validation on the known rows with ``FOLDS``
parts, its mean cross-entropy is less by more than ``SURE`` standard errors. All that a defense leaves of an
exchange may be noise, which drowns the columns.

Of labels that are numbers the classifier is a ridge regression of the known ones, without self-training:
whatever it is sure of, it would only be taught what it predicts. Blocks are compared by squared error.

Scores are logits: probabilities near 1 are equal in float32, and logits still rank them. Confidence is the
log odds of the class called, for the same reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import chex
import jax
import jax.numpy as jnp

from vfljax import errors, tasks
from vfljax.attacks import core, softmax
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.probe import standardized
from vfljax.types import KINDS, Array, Known, Scores, View

Blocks = Mapping[str, tuple[bool, bool]]
BLOCKS: Blocks = {"all": (True, True), "columns": (True, False), "exchange": (False, True)}
"""Whether the columns, and what crossed the wire, are read."""
CHOICES: Blocks = {**BLOCKS, "best": (True, True)}
MOST, FOLDS, SURE = 200, 5, 2.5  # by which the best blocks are chosen, from ``MOST`` known rows

TENTHS = (1, 2, 4, 8)
"""The share of the rows called each class that a round learns from, in tenths."""


def check_blocks(bottoms: Bottoms, blocks: str, choices: Blocks = BLOCKS) -> None:
    """Raise ValueError unless ``blocks`` is a name in ``choices`` whose columns are numbers."""
    errors.check_choice("blocks", blocks, choices)
    if choices[blocks][0]:
        core.check_numeric(bottoms, f"choose blocks='exchange' instead of blocks={blocks!r}")


def reads_of(blocks: str) -> tuple[str, ...]:
    """``Attack.reads`` of an attack that reads ``blocks``, a name in ``CHOICES``."""
    with_columns, with_exchange = CHOICES[blocks]
    return ("columns",) * with_columns + ("embeddings", "gradients") * with_exchange


@core.once
def exchanged(view: View) -> list[Array]:
    """The blocks [N, W] of what crossed the wire, standardized; rows that a block misses are 0 in it."""
    mean, ever = core.received(view, "mean")
    votes, _ = core.received(view, "votes")
    by_epoch = jax.vmap(standardized)(view.gradients, view.sent)  # [E, N, D]
    return [
        standardized(view.embeddings[-1], view.sent[-1]),
        standardized(mean, ever),
        standardized(votes, ever),
        jnp.moveaxis(by_epoch, 0, 1).reshape(len(ever), -1),
    ]


def log_odds(logits: Array) -> Array:
    """The log odds [N] of the class of the largest of logits [N, C]; larger is more confident."""
    chex.assert_rank(logits, 2)
    best = jax.nn.one_hot(jnp.argmax(logits, axis=1), logits.shape[1], dtype=bool)
    others = jax.nn.logsumexp(jnp.where(best, -jnp.inf, logits), axis=1)
    return jnp.max(logits, axis=1) - others


def most_confident(logits: Array, usable: Array, tenths: Array | int) -> Array:
    """Which rows [N] bool are among the most confident ``tenths`` of those called their class.

    Only rows ``usable`` [N] bool are called. A share that is no whole number of rows is rounded up.
    """
    chex.assert_rank([logits, usable], [2, 1])
    chex.assert_equal_shape_prefix([logits, usable], 1)
    classes = logits.shape[1]
    called = jnp.where(usable, jnp.argmax(logits, axis=1), classes)
    order = jnp.lexsort((-log_odds(logits), called))
    count = jnp.bincount(called, length=classes + 1)
    first = jnp.cumsum(count) - count
    rank = jnp.zeros_like(order).at[order].set(jnp.arange(len(order))) - first[called]
    return usable & (10 * rank < tenths * count[called])


def best_blocks(
    fitted: Callable[..., Array], x: Array, columns: Array, known: Known, sent: Array, classes: int
) -> Array:
    """Which columns of x [N, W] are read [W] bool: all, the attacker's ``columns`` [W] bool, or the others.

    ``fitted(x [W, n], labels [C, n], weights [n])`` trains on these rows and gives their logits [C, n].
    """
    rows = known.rows[:MOST]
    usable = (jnp.arange(len(rows)) < known.count) & sent[rows]
    part = jnp.arange(len(rows)) // classes % FOLDS  # known rows come with their classes in turn
    called = tasks.of(classes).targets(known.labels[:MOST], classes).T
    called = jnp.where(usable[None], called, 1.0)  # padding has no label, and no weight either

    def loss_of(outputs: Array, called: Array) -> Array:
        if classes == 1:
            return (outputs - called)[0] ** 2
        return -jnp.sum(called * jax.nn.log_softmax(outputs, axis=0), axis=0)

    def left_out(mask: Array, number: Array) -> Array:
        held = usable & (part == number)
        logits = fitted((x[rows] * mask[None]).T, called, usable & ~held)
        return held * loss_of(logits, called)

    masks = jnp.stack([jnp.ones_like(columns), columns, ~columns])
    every = jax.vmap(jax.vmap(left_out, (None, 0)), (0, None))
    losses = jnp.sum(every(masks, jnp.arange(FOLDS)), axis=1)
    less, within = losses[:1] - losses, usable[None]
    error = jnp.std(less, axis=1, where=within, ddof=1) / jnp.sqrt(jnp.sum(usable))
    return masks[jnp.argmax(jnp.mean(less, axis=1, where=within) - SURE * error)]


def joint(
    bottoms: Bottoms,
    num_classes: int,
    *,
    blocks: str = "all",
    scale: str = "column",
    rounds: int = 4,
    steps: int = 60,
) -> Attack:
    """Train a classifier on the known rows, then on the rows it is sure of, and score all rows sent.

    Knobs: how many labels are ``known``, ``tau`` and ``ridge``.

    Args:
      blocks: what the classifier reads, a name in ``CHOICES``.
      scale: whether each "column" has the same weight, or each "block".
      rounds: of self-training, 0 to 4.
      steps: of ``softmax.fitted`` in a round, each on all rows.

    Returns:
      An attack whose scores are logits [N, C], NaN for rows never sent. Those rows teach nothing.

    Raises:
      ValueError: where columns to be read are codes or token ids.
    """
    check_blocks(bottoms, blocks, CHOICES)
    with_columns, with_exchange = CHOICES[blocks]
    errors.check_choice("scale", scale, ("column", "block"))
    core.check_whole("rounds", rounds, 0, len(TENTHS))
    core.check_whole("steps", steps, 1)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key
        parts = exchanged(view) if with_exchange else []
        if with_columns:
            columns = core.columns_of(view.features)
            parts = [standardized(columns, jnp.ones(len(columns), bool)), *parts]
        if scale == "block":
            parts = [part / part.shape[1] ** 0.5 for part in parts]
        x = jnp.concatenate(parts, axis=1)
        sent = view.sums.count > 0
        labels, taught = core.labels_by_row(known, len(x)), core.known_by_row(known, len(x)) & sent
        given = tasks.of(num_classes).targets(labels, num_classes)

        def fitted(x: Array, called: Array, weights: Array) -> Array:
            return softmax.linear_model(x, called, weights, knobs["ridge"], steps).logits(x)

        if blocks == "best":
            columns = jnp.arange(x.shape[1]) < parts[0].shape[1]
            x = x * best_blocks(fitted, x, columns, known, sent, num_classes)[None]

        if num_classes == 1:
            return core.scored(fitted(x.T, given.T, taught.astype(jnp.float32)).T, sent)
        rows, counts = jnp.arange(len(x)), jnp.ones(len(x))
        if len(x) > softmax.MOST_ROWS:
            some = softmax.some_rows(len(x))
            rows = jnp.concatenate([known.rows, some])
            real, others = jnp.arange(len(known.rows)) < known.count, ~taught[some]
            counts = jnp.concatenate([real, others * (len(x) / len(some))])
        near = x[rows].T

        def train(logits: Array, tenths: Array) -> tuple[Array, None]:
            sure = most_confident(logits, sent & ~taught, tenths)
            guesses = jax.nn.one_hot(jnp.argmax(logits, axis=1), num_classes)
            called = jnp.where(taught[:, None], given, guesses)[rows].T
            weights = counts * (taught + knobs["tau"] * sure)[rows]
            model = softmax.linear_model(near, called, weights, knobs["ridge"], steps)
            return model.logits(x.T).T, None

        tenths = jnp.array((0, *TENTHS[:rounds]))
        logits, _ = jax.lax.scan(train, jnp.zeros((len(x), num_classes)), tenths)
        return core.scored(logits, sent)

    return Attack(
        run,
        KINDS,
        {**core.KNOWN, "tau": 0.5, "ridge": 1.0},
        {"tau": (0.0, 1.0)},
        baselines=("logistic",),
        adaptive=True,
        steps=steps * (rounds + 1),
        reads=reads_of(blocks),
        epoch=None,
        draws=core.FEW_DRAWS,
    )


ROW = AttackRow(joint, widest=core.WIDEST, rule=2, cost=core.TRAIN, not_for_numbers="")
