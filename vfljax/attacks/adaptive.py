"""Who knows which defense: for every defense of the table, attack forms that take it into account.

Each is an attack and, where its plain form does not, the option that does. No paper here attacks these
defenses knowingly; where the idea is not ours it says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable

OVER_EPOCHS = (
    *(("direct", "mean"), ("two_stage", "mean"), ("norm", "mean"), ("mean", "mean")),
    *(("probe", "mean"), ("direct", "votes"), ("median", "votes")),
)
"""Averages of a row's gradients, or of their signs, over epochs: zero-mean noise averages out, and what
is sent now and then adds up (averaging: as old as additive noise; here ours)."""

KNOWERS: dict[str, tuple[tuple[str, str], ...]] = {
    # k candidates: the label's entry is the most negative of them, beyond (k-1)/k the least
    "kdk": (("direct", "most_negative"), ("direct", "least_negative"), ("probe", "")),
    # the likeliest label given the noisy one is the noisy one: whoever reads it has guessed best
    # (label-only); columns add to it: model completion on the noisy labels
    "label_dp": (("direct", ""), ("two_stage", "")),
    # it decorrelates embeddings linearly; gradients still carry the label
    "dcor": (("probe", ""), ("direct", ""), ("spectral", "gradients")),
    # normalization and the GAN's gradient undone; the embedding is the prediction
    "gafm": (("residual", ""), ("probe", ""), ("spectral", "")),
    "noise": OVER_EPOCHS,
    "compression": OVER_EPOCHS,
    "ppdl": OVER_EPOCHS,
    "discrete_sgd": OVER_EPOCHS,
    "max_norm": (*OVER_EPOCHS, ("probe", ""), ("spectral", "")),
    # Sun et al. 2022: gradients are noised, embeddings are not
    "marvell": (*OVER_EPOCHS, ("probe", ""), ("spectral", "")),
}


def known(defense: str, labels: Iterable[str]) -> bool:
    """Whether one of the attack forms (by label) takes the defense into account."""
    words = [label.split("/") for label in labels]
    return any(
        form[0] == name and (not option or option in form[1:])
        for name, option in KNOWERS[defense]
        for form in words
    )


def advice(defense: str) -> str:
    """The forms, in a config's words."""
    return ", ".join(f"{name} {option}".strip() for name, option in KNOWERS[defense])
