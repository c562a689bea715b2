"""Learners on the host that read what crossed the wire (ours).

The features are those of ``ranks``, and the learner is one of ``vfljax.attacks.learners``: the very learners
of the local-only baseline, such as extremely randomized trees, which see the exchange in addition to the
columns. What such an attack reads beyond the baseline is the federation's.
"""

from __future__ import annotations

from collections.abc import Mapping

import flax.linen as nn
import jax.numpy as jnp

from vfljax.attacks import core, learners
from vfljax.attacks.core import Attack, AttackRow
from vfljax.attacks.joint import BLOCKS
from vfljax.attacks.ranks import features
from vfljax.types import KINDS, Array, Known, Scores, View


def reader(
    bottoms: tuple[nn.Module, ...],
    num_classes: int,
    *,
    learner: str = "extra trees",
    blocks: str = "all",
) -> Attack:
    """Fit a learner of scikit-learn to the known rows' ranks, and score all rows sent.

    Knobs: how many labels are ``known``.

    Args:
      bottoms: the attackers' bottom models, which say whether their columns are numbers.
      num_classes: not read: the learner is told.
      learner: a name in ``vfljax.attacks.learners.LEARNERS``.
      blocks: what is read: "all", the attacker's own "columns" or the "exchange".

    Returns:
      An attack whose ``run`` gives the features [N, W] in place of scores, NaN for rows never sent, and
      whose ``host`` makes the scores.

    Raises:
      ValueError: for an unknown option, and where columns to be read are codes or token ids.
    """
    del num_classes
    core.check_choice("learner", learner, learners.LEARNERS)
    core.check_choice("blocks", blocks, BLOCKS)
    if BLOCKS[blocks][0]:
        core.check_numeric(bottoms, f"choose blocks='exchange' instead of blocks={blocks!r}")

    def run(key: Array, view: View, known: Known, knobs: Mapping[str, Array]) -> Scores:
        del key, known, knobs
        sent = view.sums.count > 0
        return Scores(jnp.where(sent[:, None], features(view, blocks), jnp.nan))

    return Attack(
        run,
        KINDS,
        {"known": 40.0},
        baselines=("logistic",),
        adaptive=True,
        over_epochs=True,
        host=learners.READERS[learner],
    )


ROW = AttackRow(reader, rule=2)
