"""What the attacks ``charge`` and ``correlation`` share: labels that explain a gradient of known formula.

A defense that adds its own term to the loss sends row i, beside the cross entropy's gradient, a force that
depends on the classes of the batch. If row i is of class c, and each row j with the probability p_jc, this
force has a mean M, and a variance V that is summed over all entries:

    M_ic = alpha sum_j U_ij w_jc(p),   V_ic = alpha^2 sum_j |U_ij|^2 v_jc(p).

An attacker that holds the embeddings of a batch knows U (``Pushes``), and w and v of any p (``Formula``).
The rest of the gradient is taken for noise whose square is the share r of |g_i|^2. A class has the log
likelihood l_ic, with s_ic = V_ic + r |g_i|^2:

    l_ic = -D |g_i - M_ic|^2 / (2 s_ic) - D / 2 log s_ic.

The logits L of p, of mean 0 over classes, start at a guess L0. They are refined in rounds over every recorded
epoch and batch, with each l centered over classes:

    L <- .7 L + .3 clip(.3 L0 + sum over batches of clip(l, -4, 4), -4, 4)

r falls from 1 to .25 and .05, with ``rounds`` rounds at each. alpha starts where the squares of gradients and
forces agree under L0, as the median over rows of sqrt(|g|^2 / (|M|^2 + V)), with M and V for alpha = 1. After
the rounds of each r it is the median of <g, M> / |M|^2 under the likeliest classes.

The rounds may end at a division of the rows that explains little. They therefore start from up to ``starts``
L0 in turn: a kernel ridge regression of the known labels on ranks of the exchange, then draws. The
result of least median over rows of |g - M|^2 / |g|^2 counts, and below ``EXPLAINED`` no other L0 is tried.
Known rows stay at their labels. Two classes are exchanged if the batches' evidence on the known rows is
against their labels. Without known labels every L0 is drawn, and any class may get any name.

Such an attack needs the batch mates of the rows that it is scored on: where few rows are scored
(``config.training.record_rows``) a sweep that names it records all rows under the defenses that it knows
(``View.mates``), and it is run on those trials alone. Where no force was added, scores are near those of L0.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
from jax.custom_batching import sequential_vmap

from vfljax.attacks import core, ranks
from vfljax.attacks.core import Attack, Bottoms, Knobs
from vfljax.types import NO_SPLIT, SPLIT, Array, Known, Scores, View

MOST = 4.0  # of logits, either way: log odds of two classes reach twice that
DAMPING, PRIOR = 0.7, 0.3  # shares of the earlier logits in a round, and of L0 beside the batches
NOISES = (1.0, 0.25, 0.05)  # r: the share of |g|^2 that is no force
MOST_TAUGHT = 256  # known labels that L0 is learned from
EXPLAINED = 0.02  # the most of |g|^2 that the right division leaves; others leave more
# what a pass over all batches computes: one of the figures of ``BatchEvidence``, or new logits
SLOPE, SIZE, MISFIT, LOGITS = range(4)
SURE = 1e3  # the logit of a class that is taken for certain


class Pushes(NamedTuple):
    """What the rows of a batch do to each other; 0 for rows that were not sent."""

    between: Array  # U [D, B, B]
    squares: Array  # [B, B] its squares summed over D
    same: Array  # [B, D] a direction of the gradient that no label decides, which is left out; 0: none


class Formula(NamedTuple):
    """How a defense's force depends on the classes of a batch."""

    push: Callable[[Array, Array, Array], Pushes]  # of embeddings [B, D], sent [B] and softening []
    weights: Callable[[Array], tuple[Array, Array]]  # w and v [B, C] of p [B, C], 0 where not sent
    softening: float  # the published or usual value of that knob


class PartyBatches(NamedTuple):
    """All recorded batches of one party: rows [T, B], whether sent, embeddings and gradients [T, B, D]."""

    rows: Array
    sent: Array
    embeddings: Array
    gradients: Array


class BatchEvidence(NamedTuple):
    """A batch's evidence on its rows' classes. Where it has none, logits are 0 and the figures NaN."""

    logits: Array  # [B, C]
    slope: Array  # [B] alpha by the force of the row's likeliest class
    size: Array  # [B] alpha by the squares of gradient and force
    misfit: Array  # [B] the share of |g|^2 that this force leaves


class Division(NamedTuple):
    """The rows' classes, as the batches of all parties give them."""

    logits: Array  # [N, C]
    by_batches: Array  # [N, C] the sum over all batches of each row's l, of known rows too
    misfit: Array  # [] the median of |g - M|^2 / |g|^2


def _centered(x: Array) -> Array:
    return x - jnp.mean(x, axis=-1, keepdims=True)


def _beside(x: Array, direction: Array) -> Array:
    """x [..., D] without its part along directions [..., D]; a direction of 0 takes nothing away."""
    length = jnp.sum(direction * direction, axis=-1, keepdims=True)
    along = jnp.sum(x * direction, axis=-1, keepdims=True) / jnp.where(length > 0, length, 1.0)
    return x - along * direction


def evidence(
    formula: Formula, push: Pushes, g: Array, p: Array, alpha: Array, noise: Array
) -> BatchEvidence:
    """Returns the evidence of one batch on its rows' labels and on alpha.

    Args:
      formula: the defense's.
      push: of the batch.
      g: [B, D] the gradients.
      p: [B, C] each row's probability of each class; 0 for rows that were not sent.
      alpha: [] of the defense, in the units of g and of the pushes.
      noise: [] r.
    """
    chex.assert_rank([push.between, g, p, alpha, noise], [3, 2, 2, 0, 0])
    w, v = formula.weights(p)
    g = _beside(g, push.same)
    # [B, C, D]
    mean = _beside(jnp.moveaxis(core.multiply(push.between, w), 0, -1), push.same[:, None])
    spread = core.multiply(push.squares, v)
    square, width = jnp.sum(g * g, axis=-1), g.shape[-1]
    left = jnp.sum((g[:, None] - alpha * mean) ** 2, axis=-1)
    variance = alpha**2 * spread + noise * square[:, None] + 1e-12
    logs = -width / 2 * (left / variance + jnp.log(variance))
    likeliest = jax.nn.one_hot(jnp.argmax(p, axis=-1), p.shape[-1])
    mean = jnp.sum(mean * likeliest[:, :, None], axis=1)
    spread, left = (jnp.sum(x * likeliest, axis=-1) for x in (spread, left))
    force = jnp.sum(mean * mean, axis=-1)
    counts = (jnp.sum(p, axis=-1) > 0) & (square > 0) & (force > 0)
    logits = jnp.clip(jnp.nan_to_num(_centered(logs)), -MOST, MOST)
    slope, size = jnp.sum(mean * g, axis=-1) / force, jnp.sqrt(square / (force + spread))
    figures = (jnp.where(counts, x, jnp.nan) for x in (slope, size, left / square))
    return BatchEvidence(jnp.where(counts[:, None], logits, 0.0), *figures)


def guess(view: View, known: Known, classes: int) -> Array:
    """L0 [N, C], of variance 1/4: a kernel ridge regression of the known labels on ranks of the exchange."""
    exchange = jnp.concatenate([view.embeddings, view.gradients], axis=-1)
    ranked = jnp.moveaxis(jax.vmap(ranks.midranks)(exchange, view.sent), 0, 1)
    sent = jnp.any(view.sent, axis=0)
    taught = ranks.taught(known, sent, classes, MOST_TAUGHT)
    scores = _centered(ranks.kernel(ranked.reshape(len(sent), -1), sent, taught))
    return scores / jnp.maximum(2 * jnp.std(scores), 1e-6)


def divided(
    formula: Formula,
    parties: Sequence[PartyBatches],
    pushed: Sequence[Pushes],
    start: Array,
    fixed: Array,
    rounds: int,
) -> Division:
    """Refines one L0, ``start`` [N, C], by the batches of all parties, whose pushes are ``pushed``. The other
    arguments are those of ``explained``."""
    known = jnp.any(fixed != 0, axis=-1, keepdims=True)

    def pass_over(logits: Array, alpha: Array, noise: Array) -> tuple[Array, BatchEvidence]:
        """The sum over all batches of each row's l [N, C], and the evidence of each batch."""
        p = jax.nn.softmax(logits)
        p = jnp.concatenate([p, jnp.zeros_like(p[:1])])
        total, of_batches = jnp.zeros_like(p), []
        for party, push in zip(parties, pushed, strict=True):

            def of_batch(batch: tuple[PartyBatches, Pushes]) -> BatchEvidence:
                b, between = batch
                sent = jnp.where(b.sent[:, None], p[b.rows], 0.0)
                return evidence(formula, between, b.gradients, sent, alpha, noise)

            of_batches.append(jax.lax.map(of_batch, (party, push)))
            total = total.at[party.rows].add(of_batches[-1].logits)
        return total[:-1], jax.tree.map(lambda *x: jnp.concatenate(x), *of_batches)

    def step(carry: tuple[Array, Array, Division], at: tuple[Array, Array]) -> tuple[Any, None]:
        (logits, alpha, _), (wanted, noise) = carry, at
        certain = SURE * jax.nn.one_hot(jnp.argmax(logits, axis=-1), logits.shape[-1])
        input_logits = jnp.where((wanted == SLOPE) | (wanted == MISFIT), certain, logits)
        by_batches, of_rows = pass_over(input_logits, alpha, noise)
        new = jnp.clip(PRIOR * start + by_batches, -MOST, MOST)
        new = jnp.where(known, fixed, DAMPING * logits + (1 - DAMPING) * new)
        logits = jnp.where(wanted == LOGITS, new, logits)
        # every step is the same program, one pass over all batches; only the wanted figure is sorted
        medians = [lambda x=x: jnp.nan_to_num(jnp.nanmedian(x)) for x in of_rows[1:]]
        figure = jax.lax.switch(wanted, [*medians, lambda: alpha])
        alpha = jnp.where(wanted == MISFIT, alpha, figure)
        return (logits, alpha, Division(logits, by_batches, figure)), None

    rounds_of = [[(LOGITS, r)] * rounds + [(SLOPE, r)] for r in NOISES]
    steps = [(SIZE, 1.0), *itertools.chain(*rounds_of), (MISFIT, NOISES[-1])]
    wanted, noises = (jnp.array(x) for x in zip(*steps, strict=True))
    first = (start, jnp.float32(1), Division(start, jnp.zeros_like(start), jnp.float32(0)))
    return jax.lax.scan(step, first, (wanted, noises))[0][2]


def explained(
    formula: Formula,
    parties: Sequence[PartyBatches],
    draw: Callable[[Array], Array],
    fixed: Array,
    softening: Array,
    rounds: int,
    starts: int,
) -> Division:
    """The division that leaves least of the gradients.

    Args:
      formula: the defense's.
      parties: what each attacker sent and received.
      draw: gives the L0 [N, C] of a number from 0 to ``starts``.
      fixed: [N, C] the logits of known rows, 0 of all others.
      softening: [] of the defense, in the units of the embeddings.
      rounds: of each of ``NOISES``.
      starts: how many L0 are tried at most.
    """
    pushed = [
        jax.lax.map(lambda b: formula.push(b.embeddings, b.sent, softening), party)
        for party in parties
    ]

    def more(carry: tuple[Array, Division]) -> Array:
        return (carry[0] < starts) & (carry[1].misfit >= EXPLAINED)

    def another(carry: tuple[Array, Division]) -> tuple[Array, Division]:
        number, best = carry
        division = divided(formula, parties, pushed, draw(number), fixed, rounds)
        better = division.misfit < best.misfit
        return number + 1, jax.tree.map(lambda a, b: jnp.where(better, a, b), division, best)

    nothing = Division(fixed, jnp.zeros_like(fixed), jnp.float32(jnp.inf))
    return jax.lax.while_loop(more, another, (jnp.int32(0), nothing))[1]


def attack_of(
    formula: Formula, bottoms: Bottoms, num_classes: int, names: str, rounds: int, starts: int
) -> Attack:
    """Returns the attack on the defense of a formula.

    Knobs: ``known`` where ``names`` is "known", and ``softening``.

    Args:
      formula: the defense's.
      bottoms: the attackers' bottom models, whose widths part the cut.
      names: "known" for classes named by the known rows, "none" for an attacker without any label.
      rounds: how often the logits are refined under each of ``NOISES``.
      starts: how many L0 are tried at most.

    Returns:
      An attack whose scores [N, C] are logits, of either sign; NaN for rows never sent.
    """
    named = core.named_by(names, {"softening": formula.softening})
    core.check_whole("rounds", rounds, 1)
    core.check_whole("starts", starts, 1)
    places = list(itertools.accumulate((bottom.out for bottom in bottoms), initial=0))

    # under vmap the products of many small matrices would take twice as long on CPU
    @sequential_vmap
    def solve(key: Array, whole: View, known: Known, softening: Array) -> Array:
        rows = whole.order.shape[1]
        # in units of the largest gradient: alpha is fitted, so that its unit does not matter
        largest = jnp.max(jnp.abs(jnp.where(whole.sent[:, :, None], whole.gradients, 0.0)))
        scale = jnp.where(largest > 0, largest, 1.0)
        learned = guess(whole, known, num_classes)

        def draw(number: Array) -> Array:
            drawn = jax.random.normal(jax.random.fold_in(key, number), learned.shape)
            return jnp.where((number == 0) & (known.count > 0), learned, _centered(drawn) / 2)

        teaches = (jnp.arange(len(known.rows)) < known.count)[:, None]
        labels = 2 * MOST * _centered(jax.nn.one_hot(known.labels, num_classes)) * teaches
        fixed = jnp.zeros((rows, num_classes)).at[known.rows].set(labels)
        parties = [_exchange(whole, *ends, scale) for ends in itertools.pairwise(places)]
        logits, by_batches, _ = explained(formula, parties, draw, fixed, softening, rounds, starts)
        if num_classes == 2:  # more classes have too many orders
            exchanged = jnp.sum(by_batches * fixed) < 0
            logits = jnp.where(exchanged & (fixed == 0), -logits, logits)
        return logits

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        logits = solve(key, _crossed(core.with_mates(view)), known, knobs["softening"])
        sent = view.sums.count > 0
        return core.scored(logits[: len(sent)], sent)

    return Attack(
        run,
        (SPLIT, NO_SPLIT),  # a malicious optimizer adds nothing to what it is sent
        **named,
        **core.reads_epoch("mean"),
        reads=("embeddings", "gradients", "order"),
        draws=1,  # because a draw takes seconds
    )


def _crossed(view: View) -> View:
    """The view without what is not read: what is mapped one by one counts as reading all that it is given."""
    return view._replace(
        sums=(),
        epochs=(),
        features=(),
        test_features=(),
        bottoms=(),
        diagnostics={},
        inputs=None,
        parameter_gradients=None,
        nodes=None,
    )


def _exchange(view: View, first: int, last: int, scale: Array) -> PartyBatches:
    """One party's columns ``first`` to ``last`` of the cut by batch, gradients in units of ``scale``."""
    of_epochs = [core.batches_at(view, place) for place in range(len(view.order))]

    def gathered(by_epoch: Array) -> Array:
        pairs = zip(of_epochs, by_epoch, strict=True)
        return jnp.concatenate([batches.gather(x[:, first:last]) for batches, x in pairs])

    return PartyBatches(
        rows=jnp.concatenate([batches.rows for batches in of_epochs]),
        sent=jnp.concatenate([batches.sent for batches in of_epochs]),
        embeddings=gathered(view.embeddings),
        gradients=gathered(view.gradients / scale),
    )
