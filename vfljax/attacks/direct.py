"""Direct: the sign of the gradient, without model splitting (Fu et al. 2022).

Logits are the sum of the parties' outputs, so each party receives g = (softmax - target) / B: for
a one-hot target exactly one entry is negative, the label's.

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX
Security 2022, section 4.3. Released: epoch 0 only, ``first_negative``.

Rules
    first_negative   the first class with a negative entry (released). Under KDk up to k entries are
                     negative and it guesses among them.
    most_negative    the class with the most negative entry: reads the label off the magnitudes as
                     long as it carries more mass than its k-1 companions, 1-epsilon > epsilon/(k-1).
    least_negative   (ours) the class with the least negative of the negative entries: for an attacker
                     who knows of KDk beyond epsilon = (k-1)/k, where the label's mass is the smallest.
No negative entry: no guess, which counts as wrong.
Over epochs (ours): against zero-mean noise epoch="mean" reads a row's average gradient, against
compression, PPDL and rounding epoch="votes" its average sign. Colluders average what they received.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax.attacks.core import NO_SPLIT, Attack, check_epoch, number_of, received
from vfljax.types import Array, Known, Scores, View


def first_negative(g: Array) -> Array:
    """Scores [N, C]: 1 for the first class with a negative gradient; NaN rows have no guess."""
    negative = g < 0
    guess = jax.nn.one_hot(jnp.argmax(negative, axis=-1), g.shape[-1])
    return jnp.where(jnp.any(negative, axis=-1, keepdims=True), guess, jnp.nan)


def most_negative(g: Array) -> Array:
    """Scores [N, C]: minus the gradient; NaN rows have no guess."""
    return jnp.where(jnp.any(g < 0, axis=-1, keepdims=True), -g, jnp.nan)


def least_negative(g: Array) -> Array:
    """Scores [N, C]: the gradient where it is negative, below that elsewhere; NaN rows: no guess."""
    lowest = jnp.min(g, axis=-1, keepdims=True)
    return jnp.where(lowest < 0, jnp.where(g < 0, g, 2 * lowest - g), jnp.nan)


RULES: dict[str, Callable[[Array], Array]] = {
    "first_negative": first_negative,
    "most_negative": most_negative,
    "least_negative": least_negative,
}


def direct(
    bottoms: tuple[nn.Module, ...],
    num_classes: int,
    *,
    rule: str = "first_negative",
    epoch: int | str = 0,
) -> Attack:
    """The direct attack on what was received in ``epoch`` (``core.received``)."""
    del bottoms
    if rule not in RULES:
        raise ValueError(f"rule={rule!r} is unknown: choose one of {', '.join(RULES)}.")
    check_epoch(epoch)

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        del key, known, knobs
        g, sent = received(view, epoch)
        # without a top model every party receives the same gradient: colluders average theirs
        g = jnp.mean(g.reshape(len(g), -1, num_classes), axis=1)
        return Scores(jnp.where(sent[:, None], RULES[rule](g), jnp.nan))

    adaptive = rule != "first_negative" or epoch != 0  # released: epoch 0
    return Attack(
        run, NO_SPLIT, adaptive=adaptive, epoch=number_of(epoch), over_epochs=isinstance(epoch, str)
    )
