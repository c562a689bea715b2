"""Who knows which defense: for every defense of the table, attack forms that take it into account.

Each is an attack and, where its plain form does not, the option that does. No paper here attacks these
defenses knowingly; where the idea is not ours it says whose it is.
"""

from __future__ import annotations

from collections.abc import Iterable

Knower = tuple[
    str, str
]  # an attack of the table, and the option its label must name ("": any form)

READING: tuple[Knower, ...] = (
    *(("direct", "mean"), ("direct", "votes"), ("two_stage", "mean"), ("two_stage", "votes")),
)
AVERAGING: tuple[Knower, ...] = (
    *(("norm", "mean"), ("mean", "mean"), ("median", "mean"), ("median", "votes")),
    *(("probe", "mean"), ("probe", "votes")),
)
"""Averages of a row's gradients, or of their signs, over epochs: zero-mean noise averages out, and what
is sent now and then adds up (averaging is as old as additive noise; here ours)."""

KNOWERS: dict[str, dict[str, tuple[Knower, ...]]] = {
    "kdk": {
        # k candidates: the label's entry is the most negative of them, beyond (k-1)/k the least
        "no_split": (("direct", "most_negative"), ("direct", "least_negative")),
        "split": (("probe", ""),),  # which of the k: a few known labels tell
    },
    "label_dp": {
        # the likeliest label given the noisy one is the noisy one: whoever reads it has guessed best
        # (label-only); model completion adds what the columns tell
        "no_split": (("direct", ""), ("two_stage", "")),
        # noise that is drawn once is learned away: embeddings average over rows
        "split": (("probe", ""), ("passive", ""), ("spectral", "")),
    },
    "dcor": {
        "no_split": (("direct", "most_negative"), *READING),  # gradients still carry the label
        "split": (("probe", ""), ("spectral", "gradients")),  # another direction than the leading
    },
    "gafm": {
        # normalization and the GAN's gradient undone; the embedding is the prediction
        "split": (("residual", ""), ("probe", ""), ("spectral", "")),
    },
    "noise": {"no_split": READING, "split": AVERAGING},
    "compression": {"no_split": READING, "split": AVERAGING},
    "ppdl": {"no_split": READING, "split": AVERAGING},
    "discrete_sgd": {"no_split": READING, "split": AVERAGING},
    # Sun et al. 2022: gradients are noised, embeddings are not
    "max_norm": {"no_split": READING, "split": (*AVERAGING, ("probe", ""), ("spectral", ""))},
    "marvell": {"no_split": READING, "split": (*AVERAGING, ("probe", ""), ("spectral", ""))},
}


def known(defense: str, federation: str, labels: Iterable[str]) -> bool:
    """Whether one of the attack forms (by label) run on that federation takes the defense into account."""
    words = [label.split("/") for label in labels]
    return any(
        form[0] == name and (not option or option in form[1:])
        for name, option in KNOWERS[defense].get(federation, ())
        for form in words
    )


def advice(defense: str, federation: str) -> str:
    """The forms, in a config's words."""
    return ", ".join(f"{name} {option}".strip() for name, option in KNOWERS[defense][federation])
