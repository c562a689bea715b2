"""A deliberately weak defense: most classes train as their neighbor, and predictions are exchanged back.

It hides names of classes and nothing else. Of ten classes the first six are exchanged in pairs, of two classes
both, which flips the sign of every gradient.
"""

import numpy as np

from vfljax.defenses import Defense, DefenseRow, Knower


def order(num_classes: int) -> np.ndarray:
    """Returns the class [C] that each class trains as; it is its own inverse."""
    classes = np.arange(num_classes)
    exchanged = max(2, num_classes - 4) // 2 * 2
    classes[:exchanged] = classes[:exchanged].reshape(-1, 2)[:, ::-1].ravel()
    return classes


def exchanged_classes() -> Defense:
    """Targets [B, C] of exchanged classes; no knob."""

    def targets(targets, context, state):
        return targets[:, order(targets.shape[-1])], context, state

    return Defense(targets=targets, read=lambda state, logits: logits[..., order(logits.shape[-1])])


exchanged = DefenseRow(
    exchanged_classes,
    example={},
    known_by={"split": (Knower("probe"),), "no_split": (Knower("exchange_back:exchange_back"),)},
)
