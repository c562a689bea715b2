"""Learners on the host, fitted to what crossed the wire (ours).

The features are those of ``ranks``, and the learner is one of ``vfljax.attacks.learners``: the very learners
of the local-only baseline, such as extremely randomized trees, which see the exchange in addition to the
columns. What such an attack reads beyond the baseline is the federation's.
"""

from __future__ import annotations

from vfljax import errors
from vfljax.attacks import core, learners
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.joint import check_blocks, reads_of
from vfljax.attacks.ranks import features
from vfljax.types import KINDS, Array, Known, Scores, View


def reader(
    bottoms: Bottoms, num_classes: int, *, learner: str = "extra trees", blocks: str = "all"
) -> Attack:
    """Fit a learner of scikit-learn to the known rows' ranks, and score all rows sent.

    Knobs: how many labels are ``known``.

    Args:
      learner: a name in ``vfljax.attacks.learners.READERS``.
      blocks: what is read: "all", the attacker's own "columns" or the "exchange".

    Returns:
      An attack whose ``run`` gives the features [N, W] in place of scores, NaN for rows never sent, and
      whose ``host`` makes the scores.

    Raises:
      ValueError: where columns to be read are codes or token ids.
    """
    known_to = learners.table_of(num_classes)
    errors.check_choice("learner", learner, [n for n in learners.READERS if n in known_to])
    check_blocks(bottoms, blocks)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        del key, known, knobs
        sent = view.sums.count > 0
        return core.scored(features(view, blocks), sent)

    return Attack(
        run,
        KINDS,
        core.KNOWN,
        baselines=("logistic",),
        adaptive=True,
        reads=reads_of(blocks),
        epoch=None,
        host=learners.READERS[learner],
        draws=core.FEW_DRAWS if learner in learners.DEAR else core.MANY_DRAWS,
    )


ROW = AttackRow(
    reader,
    widest=core.WIDEST,
    rule=5,
    host_options=("learner",),
    cost=core.HOST,
    not_for_numbers="",
)
