"""Propagation of labels among rows that are near in all that an attacker has (ours, after Zhou et al. 2004).

    x_i = [columns_i, z_i, gradients_i],   s = (1 - alpha) (I - alpha S)^-1 Y

S is the normalized symmetric graph of the 7 nearest neighbors of x, and Y has the known labels
(``vfljax.attacks.neighbors``, which also says what ties and isolated rows mean). Each of the three blocks has
variances that sum to 1. z is of the last epoch and standardized by column. Half of the block of gradients is
their mean over epochs, standardized by column. The other half is directions: the gradients of each recorded
epoch, and their mean, at unit length. The attacker's own columns are divided by one number, so that a column of
little variance stays one. A defense that mixes a few of ten classes leaves rows of a class near each other,
where no linear classifier separates them.

``blocks="ranks"`` is for two classes and columns of different kinds: columns are midranks, as for ``ranks``.

The graph reads no label and is made once for all draws of known ones. Of more than 20,000 rows each row's
neighbors are chosen among a drawn 20,000.

Without known labels Y is what another attack names: the class to which ``enumeration``, ``spectral`` or
``direct`` gives the largest score, of every row that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp

from vfljax import errors, keys
from vfljax.attacks import core, neighbors
from vfljax.attacks.core import Attack, AttackRow, Bottoms, Knobs
from vfljax.attacks.direct import direct
from vfljax.attacks.enumeration import enumeration
from vfljax.attacks.probe import standardized
from vfljax.attacks.ranks import midranks
from vfljax.attacks.spectral import spectral
from vfljax.types import KINDS, Array, Known, Scores, View

BLOCKS: Mapping[str, tuple[str, ...]] = {
    "all": ("columns", "embeddings", "gradients"),
    "ranks": ("ranks", "embeddings", "gradients"),
    "columns": ("columns",),
    "exchange": ("embeddings", "gradients"),
}
"""The blocks that are joined, by the option ``blocks``."""

READS = {"ranks": "columns"}
"""What of a view (``Attack.reads``) a block is made of, if not what it is called."""

NAMING: Mapping[str, Callable[[Bottoms, int], Attack]] = {
    "enumeration": lambda bottoms, classes: enumeration(bottoms, classes, names="none"),
    "spectral": lambda bottoms, classes: spectral(bottoms, classes, whole=True),
    "direct": lambda bottoms, classes: direct(bottoms, classes, rule="most_negative", epoch="mean"),
}
"""The attacks that name classes without known labels."""


def of_gradients(view: View) -> Array:
    """The mean gradient and the directions [N, W] of all epochs and of the mean; both halves weigh alike."""
    mean, sent = core.received(view, "mean")
    of_epochs = jnp.where(view.sent[..., None], view.gradients, 0.0)
    directions = core.unit(jnp.concatenate([of_epochs, mean[None]]))
    directions = jnp.moveaxis(directions, 0, 1).reshape(len(sent), -1)
    halves = standardized(mean, sent), directions
    return jnp.concatenate([neighbors.block(half, sent) for half in halves], axis=1)


def features(view: View, blocks: str) -> Array:
    """x [N, W], the blocks of a name in ``BLOCKS``; 0 where a row was not sent."""
    sent, columns = view.sums.count > 0, core.columns_of(view.features)
    parts: Mapping[str, Callable[[], Array]] = {
        "columns": lambda: columns,
        "ranks": lambda: midranks(columns, sent),
        "embeddings": lambda: standardized(view.embeddings[-1], view.sent[-1]),
        "gradients": lambda: of_gradients(view),
    }
    return jnp.concatenate(
        [neighbors.block(parts[name](), sent) for name in BLOCKS[blocks]], axis=1
    )


@core.once
def graph_of(key: Array, view: View, blocks: str) -> neighbors.Graph:
    """The graph of the rows sent, by their ``features``. Draws, points and variants share it."""
    sent = view.sums.count > 0
    among = neighbors.drawn(keys.fold(key, "among"), len(sent))
    return neighbors.graph(features(view, blocks), sent, among=among)


def spreading(
    bottoms: Bottoms, num_classes: int, *, names: str = "known", blocks: str = "all"
) -> Attack:
    """Spread the known labels, or those that another attack names, to near rows, and score all rows sent.

    Knobs: how many labels are ``known``, and ``alpha``.

    Args:
      names: "known" for labels of known rows, or the attack that names classes for an attacker without any:
        "enumeration", "spectral" (two classes) or "direct" (without a top model).
      blocks: what is read, a name in ``BLOCKS``.

    Returns:
      An attack whose scores [N, C] are of either sign, NaN for rows never sent. Those rows teach nothing.

    Raises:
      ValueError: where columns to be read are codes or token ids.
    """
    errors.check_choice("names", names, ("known", *NAMING))
    errors.check_choice("blocks", blocks, BLOCKS)
    reads = tuple(dict.fromkeys(READS.get(name, name) for name in BLOCKS[blocks]))
    if "columns" in reads:
        core.check_numeric(bottoms, f"choose blocks='exchange' instead of blocks={blocks!r}")
    naming = None if names == "known" else NAMING[names](bottoms, num_classes)

    def classes_of(key: Array, view: View, known: Known) -> Array:
        """The classes [N, C] that are spread, one-hot; 0 for rows without one."""
        if naming is None:
            labels = core.labels_by_row(known, len(view.sums.count))
        else:
            knobs = {name: jnp.float32(value) for name, value in naming.knobs.items()}
            named = naming.run(keys.fold(key, "naming"), view, known, knobs).train
            labels = jnp.where(jnp.isfinite(named).all(axis=1), jnp.argmax(named, axis=1), -1)
        return jax.nn.one_hot(labels, num_classes)

    def run(key: Array, view: View, known: Known, knobs: Knobs) -> Scores:
        sent = view.sums.count > 0
        graph = graph_of(key, view, blocks)
        classes = classes_of(key, view, known) * sent[:, None]
        return core.scored(neighbors.scores(graph, classes, knobs["alpha"]), sent)

    fields: dict[str, Any] = {"knobs": core.KNOWN, "baselines": ("logistic",)}
    if naming is not None:
        reads = tuple(dict.fromkeys((*reads, *naming.reads)))
        # of more classes spectral reads known labels
        fields = {"federations": naming.federations, "binary": names == "spectral", "knobs": {}}
    fields["knobs"] = {**fields["knobs"], "alpha": neighbors.ALPHA}
    return Attack(
        **{"run": run, "federations": KINDS, **fields},
        ranges={"alpha": (0.0, 0.99)},
        adaptive=True,
        reads=reads,
        epoch=None,
    )


ROW = AttackRow(spreading, widest=core.WIDEST, cost=core.SOLVE, rule=3, full_effort=True)
