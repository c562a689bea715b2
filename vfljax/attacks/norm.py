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

from vfljax.attacks.core import SPLIT, Attack, check_epoch, place_of
from vfljax.types import Array, Known, Scores, View


def norm(bottom: nn.Module, num_classes: int, *, epoch: int = -1) -> Attack:
    """Gradient norms of what was sent in epoch ``epoch`` (0 the first, -1 the last), pooled over it."""
    del bottom, num_classes
    check_epoch(epoch)

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        del key, known, knobs
        place = place_of(epoch, view.epochs)
        sent = view.sent[place]
        length = jnp.linalg.norm(view.gradients[place], axis=-1)
        # the class guess calls the longer half of the rows positive
        centered = length - jnp.nanmedian(jnp.where(sent, length, jnp.nan))
        scores = jnp.stack([-centered, centered], axis=-1)
        return Scores(jnp.where(sent[:, None], scores, jnp.nan))

    return Attack(run, SPLIT, binary=True, epoch=epoch)
