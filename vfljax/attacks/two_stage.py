"""Two-stage: the labels that the direct attack reads are the known rows of a model completion (Fu et al. 2022).

Reference: Fu et al. "Label Inference Attacks Against Vertical Federated Learning", USENIX Security 2022,
section 4.3. The stages are ``direct`` and ``completion``.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from vfljax import keys
from vfljax.attacks.completion import KNOBS, PUBLISHED_STEPS, RANGES, completion_run
from vfljax.attacks.core import TRAIN, Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.direct import direct
from vfljax.types import Array, Known, Scores, View


def two_stage(
    bottoms: Bottoms,
    num_classes: int,
    *,
    rule: str = "first_negative",
    epoch: int | str = 0,
    finetune_bottom: bool = False,
    layers: int = 1,
    steps: int = PUBLISHED_STEPS,
    batch_size: int = 16,
    threshold: str = "plain",
) -> Attack:
    """Direct, then model completion.

    Every row for which the direct attack (``rule``, ``epoch``) has a guess is a known row of the
    completion, so that no label need be known at all. Unlike the direct attack it scores rows never
    trained on. Under label DP the direct attack reads the noisy labels, and the completion adds what
    can be predicted from the attacker's own columns. The other options and the scores are those of ``passive``.
    """
    first = direct(bottoms, num_classes, rule=rule, epoch=epoch)
    second = completion_run(
        bottoms, num_classes, finetune_bottom, layers, steps, batch_size, threshold
    )

    def named(key: Array, view: View, known: Known, knobs: Knobs) -> Known:
        """The labels that ``direct`` reads, as known rows."""
        del knobs
        guesses = first.run(key, view, known, {}).train
        guessed = jnp.all(jnp.isfinite(guesses), axis=-1)
        # rows with a guess first, in random order: they are the labeled ones
        draw = jax.random.uniform(keys.fold(key, "rows"), guessed.shape)
        rows = jnp.argsort(jnp.where(guessed, draw, 2.0)).astype(jnp.int32)
        labels = jnp.where(guessed, jnp.argmax(guesses, axis=-1), -1).astype(jnp.int32)
        return Known(rows, labels[rows], jnp.sum(guessed, dtype=jnp.int32))

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        return second(key, view, named(key, view, known, knobs), knobs)

    knobs = {name: value for name, value in KNOBS.items() if name != "known"}
    reads = ("columns", "gradients", "bottoms")
    return first._replace(
        run=run, stages=(named, second), knobs=knobs, ranges=RANGES, reads=reads, steps=steps
    )


# rule 2: with every row labeled lambda_u is 0, and a frozen bottom is neither decayed nor averaged
ROW = AttackRow(two_stage, PUBLISHED_STEPS, rule=2, cost=TRAIN)
