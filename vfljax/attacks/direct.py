"""The direct attack: the negative entry of a received gradient names the label (Fu et al. 2022).

Logits are the sum of the parties' outputs, so that each party receives g = (softmax - target) / B. For a
one-hot target exactly one entry is negative: the label's.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX Security 2022,
section 4.3. The released code reads epoch 0 by ``first_negative``.

Five rules read the label off the entries:

===============  ========================================================================================
first_negative   The first class with a negative entry (released). Under KDk up to k entries are negative,
                 and it guesses among them.
most_negative    The class with the most negative entry. It reads the label off the magnitudes as long as
                 the label carries more mass than each of its k - 1 companions:
                 1 - epsilon > epsilon / (k - 1).
least_negative   (ours) The class with the least negative of the negative entries: for an attacker that
                 knows of KDk beyond epsilon = (k - 1) / k, where the label's mass is the smallest.
most_positive    (ours) The class with the most positive entry: for targets that give the label no mass
                 and every other class some, as a confusing code of the classes does (CAE, Zou et al.
                 2022). While predictions are near uniform, the label's entry is the largest.
largest          (ours) The class with the entry of largest magnitude, for more than two classes. It is the
                 label's whatever factor multiplied the row, of either sign, since 1 - p_y is the sum of
                 all other p_c. It is for an attacker that knows of MaxNorm.
===============  ========================================================================================

A row without a negative entry has no guess, which counts as wrong. With ``most_positive`` this holds for rows
without a positive entry, and with ``largest`` for rows of zeros.

Of labels that are numbers (ours) every party receives g = 2 (f - y) / B of a squared loss, so that -g B / 2 is
the residual y - f in standard deviations of the label, with B the rows of the row's own batch, or of a full
one for sums over epochs. It is the label but for the prediction, which is near 0 at first; of Huber's loss it
is clipped. ``own`` adds what the attacker sent, its own part of f. If it is the only party with columns, that
is the label exactly.

Over epochs (ours): against zero-mean noise ``epoch="mean"`` reads a row's average gradient; against
compression, PPDL and rounding ``epoch="votes"`` reads its average sign. Colluders average what they received.
"""

from __future__ import annotations

from collections.abc import Callable

import chex
import jax
import jax.numpy as jnp

from vfljax import errors
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.types import NO_SPLIT, Array, Known, Scores, View


def _guessed(scores: Array, guessed: Array) -> Array:
    """The scores [N, C] of rows with an entry ``guessed`` [N, C] bool; NaN for the others."""
    chex.assert_rank([scores, guessed], 2)
    return jnp.where(jnp.any(guessed, axis=-1, keepdims=True), scores, jnp.nan)


def first_negative(g: Array) -> Array:
    """Scores [N, C] of gradients [N, C]: 1 for the first class with a negative entry, 0 elsewhere."""
    return _guessed(jax.nn.one_hot(jnp.argmax(g < 0, axis=-1), g.shape[-1]), g < 0)


def most_negative(g: Array) -> Array:
    """Scores [N, C] of gradients [N, C]: minus the gradient."""
    return _guessed(-g, g < 0)


def least_negative(g: Array) -> Array:
    """Scores [N, C] of gradients [N, C]: negative entries as they are, and lower scores for all others."""
    lowest = jnp.min(g, axis=-1, keepdims=True)
    return _guessed(jnp.where(g < 0, g, 2 * lowest - g), g < 0)


def most_positive(g: Array) -> Array:
    """Scores [N, C] of gradients [N, C]: the gradient. It is ``most_negative`` of -g."""
    return _guessed(g, g > 0)


def largest(g: Array) -> Array:
    """Scores [N, C] of gradients [N, C]: the magnitude."""
    return _guessed(jnp.abs(g), g != 0)


RULES: dict[str, Callable[[Array], Array]] = {
    "first_negative": first_negative,
    "most_negative": most_negative,
    "least_negative": least_negative,
    "most_positive": most_positive,
    "largest": largest,
}


def check_rule(rule: str, num_classes: int) -> None:
    """Raise ValueError unless ``rule`` is a name in ``RULES`` that is defined for so many classes."""
    errors.check_choice("rule", rule, RULES)
    if num_classes == 1 and rule != "first_negative":
        raise ValueError(
            f"rule={rule!r} reads classes, and these labels are numbers: leave it out."
        )
    if rule == "largest" and num_classes == 2:
        raise ValueError(
            "rule='largest' is for more than two classes: of two, both entries are equally large."
        )


def direct(
    bottoms: Bottoms,
    num_classes: int,
    *,
    rule: str = "first_negative",
    epoch: int | str = 0,
    own: bool = False,
) -> Attack:
    """Read the label off the signs of what was received, without model splitting.

    Args:
      rule: which entry is the label's, a name in ``RULES``; of classes.
      epoch: which gradients are read, see ``core.received``.
      own: of labels that are numbers, whether what the attackers sent in that epoch, or on average in the
        recorded ones, is added.

    Returns:
      An attack whose scores [N, C] are NaN for rows never sent and for rows without a guess.
    """
    del bottoms
    check_rule(rule, num_classes)
    core.check_epoch(epoch)
    if own and (num_classes > 1 or epoch == "votes"):
        raise ValueError(
            f"own=True adds what was sent to residuals of numbers, and not to epoch={epoch!r} of "
            f"{num_classes} classes: choose False."
        )
    if num_classes == 1:
        return _of_numbers(epoch, own)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known, knobs
        g, sent = core.received(view, epoch)
        # without a top model every party receives the same gradient: colluders average theirs
        g = jnp.mean(core.by_party(g, num_classes), axis=1)
        return core.scored(RULES[rule](g), sent)

    adaptive = rule != "first_negative" or epoch != 0  # released: epoch 0
    of_epoch = core.reads_epoch(epoch, adaptive)
    return Attack(run, (NO_SPLIT,), reads=("gradients",), **of_epoch)


def _of_numbers(epoch: int | str, own: bool) -> Attack:
    """``direct`` of labels that are numbers, whose scores [N, 1] are residuals, or with ``own`` labels."""

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known, knobs
        score, sent = residuals(view, epoch, own)
        return core.scored(score[:, None], sent)

    reads = ("gradients", "order", *["embeddings"] * own)
    of_epoch = core.reads_epoch(epoch, own or epoch != 0)
    return Attack(run, (NO_SPLIT,), reads=reads, **of_epoch)


def residuals(view: View, epoch: int | str, own: bool) -> tuple[Array, Array]:
    """What ``direct`` reads of numbers without a top model: y - f, or with ``own`` what is left of y [N], and
    which rows were sent [N] bool. See ``direct`` for the arguments."""
    g, sent = core.received(view, epoch)
    place = core.place_of(view, epoch)
    # without a top model every party receives the same gradient, and f is the sum of their outputs
    size = batch_sizes(view, place)
    if isinstance(epoch, str):  # over epochs nearly all of a row's batches are full ones
        size = jnp.max(size)
    score = -jnp.mean(g, axis=1) * size / 2
    if own:
        z = jnp.sum(view.embeddings, axis=2)
        among = view.sent if epoch == "mean" else view.sent[place][None]
        z = z if epoch == "mean" else z[place][None]
        score += jnp.sum(z * among, axis=0) / jnp.maximum(jnp.sum(among, axis=0), 1)
    return score, sent


def batch_sizes(view: View, place: Array | int) -> Array:
    """The number of rows [N] of each row's batch in the epoch at this place of the axis E."""
    batch = view.order[place] // view.agreed.batch_size
    rows = jax.ops.segment_sum(view.sent[place].astype(jnp.float32), batch, len(batch))
    return rows[batch]


ROW = AttackRow(direct, not_for_numbers="")
