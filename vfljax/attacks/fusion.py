"""Fusion (ours): the attacker's own logits, combined with the row's gradients averaged over epochs.

    s_ic = zeta(o)_ic - w zeta(g)_ic

o is the attacker's share of the logits, which without model splitting is what it sends, in the last epoch;
g is the row's gradient averaged over all epochs; zeta standardizes each class's column over the rows.
Noise in g falls with the number of epochs, and o carries what the federation made of the columns. The sum
needs no label. w = 0 ranks by the logits alone. Where targets are soft, g = prediction - target depends
on the prediction as much as on the target, and a w well below 1 reads more (KDk).

``sign="subtract"`` is for the usual gradient, whose entry of the label is the smallest. Where a target
gives the label less mass than its companions (KDk beyond epsilon = (k - 1) / k, or a fixed code of the
classes), the label's entry is the largest, and ``sign="add"`` is the form that reads it. The two forms are
attack variants like any others, and the strongest attack is chosen among all.

If the gradients are destroyed, the attack is no better than the logits alone. With model splitting a party
has no logits: no entry of its embedding stands for a class.
"""

from __future__ import annotations

import jax.numpy as jnp

from vfljax import errors
from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.probe import standardized
from vfljax.types import NO_SPLIT, Array, Known, Scores, View

SIGNS = {"subtract": -1.0, "add": 1.0}


def fusion(bottoms: Bottoms, num_classes: int, *, sign: str = "subtract") -> Attack:
    """Score each row by its standardized logits less its standardized mean gradient.

    The knob ``weight`` is w. Of colluders, what they sent is added, as the federation adds it, and what
    they received is averaged.

    Args:
      sign: whether the gradient is subtracted ("subtract") or added ("add").

    Returns:
      An attack whose scores [N, C] are NaN for rows never sent. A row that was not sent in the last
      epoch is scored by its gradients alone.
    """
    del bottoms
    errors.check_choice("sign", sign, SIGNS)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known
        g, sent = core.received(view, "mean")
        g = jnp.mean(core.by_party(g, num_classes), axis=1)
        logits = jnp.sum(core.by_party(view.embeddings[-1], num_classes), axis=1)
        scores = standardized(logits, view.sent[-1])
        scores += SIGNS[sign] * knobs["weight"] * standardized(g, sent)
        return core.scored(scores, sent)

    reads = ("embeddings", "gradients")
    return Attack(run, (NO_SPLIT,), {"weight": 1.0}, adaptive=True, reads=reads, epoch=None)


ROW = AttackRow(fusion)
