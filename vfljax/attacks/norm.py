"""The norm attack: rows of the rarer class receive longer gradients (Li et al. 2022).

    score_i = || g_i ||_2

Reference: Li, Sun, Yang, Gao, Zhang, Xie, Smith, Wang. "Label Leakage and Protection in Two-party Split
Learning", ICLR 2022, section 3 (norm-based attack). It is defined for two classes. The leak AUC takes
max(a, 1 - a), which grants the attacker the direction; it would know that from which class is rare.

Of labels that are numbers (ours) a gradient is as long as the residual is large, so that the score finds labels
far from their predictions.
"""

from __future__ import annotations

import jax.numpy as jnp

from vfljax.attacks import core
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.types import KINDS, Array, Known, Scores, View


def norm(bottoms: Bottoms, num_classes: int, *, epoch: int | str = -1) -> Attack:
    """Score each row by the length of its gradient.

    ``epoch`` is that of the gradients that are read (``core.received``). The scores [N, 2] are minus and plus
    the length less its median over the rows sent, in the gradients' units; of numbers, [N, 1], the length.
    """
    del bottoms
    core.check_epoch(epoch)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known, knobs
        g, sent = core.received(view, epoch)
        return Scores(core.from_one(jnp.linalg.norm(g, axis=-1), sent, num_classes))

    of_epoch = core.reads_epoch(epoch)
    return Attack(run, KINDS, binary=True, reads=("gradients",), **of_epoch)


ROW = AttackRow(norm, not_for_numbers="")
