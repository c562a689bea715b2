"""The attack that breaks ``entries/exchanged_classes.py``: the direct attack, classes put back."""

import numpy as np

from vfljax.attacks import AttackRow
from vfljax.attacks.core import Attack
from vfljax.attacks.direct import direct


def exchanged_back(bottoms, num_classes: int, *, epoch: int | str = 0) -> Attack:
    """The direct attack's scores [N, C], by the class that each one stands for."""
    attack, classes = direct(bottoms, num_classes, epoch=epoch), np.arange(num_classes)
    exchanged = max(2, num_classes - 4) // 2 * 2
    classes[:exchanged] = classes[:exchanged].reshape(-1, 2)[:, ::-1].ravel()

    def run(key, view, known, knobs):
        scores = attack.run(key, view, known, knobs)
        return scores._replace(train=scores.train[:, classes])

    return attack._replace(run=run)


exchange_back = AttackRow(exchanged_back)
