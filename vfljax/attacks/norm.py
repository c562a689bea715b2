"""Norm: rows of the rarer class receive longer gradients (Li et al. 2022).

    score_i = || g_i ||_2

Reference: Li, Sun, Yang, Chen, Tian, Yao, Zhang. "Label Leakage and Protection in Two-party Split
Learning", ICLR 2022, section 3.2. Two classes only. The leak AUC takes max(a, 1-a): the attacker
is granted the direction, which it would know from which class is rare.
"""

from __future__ import annotations

from collections.abc import Mapping

import flax.linen as nn
import jax.numpy as jnp

from vfljax.attacks.core import SPLIT, Attack
from vfljax.types import Array, Known, Scores, View


def norm(bottom: nn.Module, num_classes: int, *, epoch: int = -1) -> Attack:
    """Gradient norms of recorded epoch ``epoch`` (-1 the last, 0 the first), pooled over it."""
    del bottom, num_classes
    if epoch not in (0, -1):
        raise ValueError(f"epoch={epoch} is not recorded: choose 0 (first) or -1 (last).")

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        del key, known, knobs
        length = jnp.linalg.norm(view.gradients[epoch], axis=-1)
        # the class guess calls the longer half of the rows positive
        centered = length - jnp.median(length)
        scores = jnp.stack([-centered, centered], axis=-1)
        return Scores(jnp.where(view.sent[epoch][:, None], scores, jnp.nan))

    return Attack(run, SPLIT, binary=True)
