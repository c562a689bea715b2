"""Label canaries: training rows whose labels are fair coins, to audit a claimed epsilon from below.

Before any label is used, a coin that depends on the seed alone gives each canary one of two candidate labels.
Of more than two classes, two are drawn without reading the row's label, so that its columns favor neither.
Epsilon-label-DP gives odds of at most e^epsilon on a coin, whatever the candidates and other labels are.

Reference: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023. There a coin
decides whether a row is included, here which label it has; the proof is the same.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import keys
from vfljax.config import Config
from vfljax.datasets.core import Dataset, PartyColumns
from vfljax.datasets.splits import Split
from vfljax.errors import UserError
from vfljax.types import Array, HostArray

SHARES = (100, 50, 25)  # percent of the canaries that are guessed, those with the surest guesses
PREFIX = "canaries_"  # of columns
HALVES = (f"{PREFIX}select_", PREFIX)  # of the half on which attacks are chosen, and of the other
NONE = np.full((1, 2), -1, np.int32)  # candidates of a row that is no canary
Columns = tuple[PartyColumns, ...]


def coins(seed: int, rows: int, count: int, num_classes: int) -> tuple[Array, Array, Array]:
    """Draws the places [count] of a seed's canaries among ``rows`` rows, their candidates [count, 2] in
    ascending order, and their labels [count]."""
    key = keys.fold(keys.run_key(seed), "canaries")
    places = jax.random.permutation(keys.fold(key, "rows"), rows)[:count]
    first = jax.random.randint(keys.fold(key, "first"), (count,), 0, num_classes)
    step = jax.random.randint(keys.fold(key, "second"), (count,), 1, num_classes)
    pairs = jnp.sort(jnp.stack([first, (first + step) % num_classes], axis=1), axis=1)
    heads = jax.random.bernoulli(keys.fold(key, "coin"), shape=(count,))
    return places, pairs, jnp.where(heads, pairs[:, 1], pairs[:, 0])


def plant(
    dataset: Dataset, columns: Columns, splits: list[Split], experiment: Config
) -> tuple[Dataset, Columns, list[Split], HostArray]:
    """Replaces training rows of every seed by copies whose labels are coins. The copies are the last rows.

    A row may therefore have different labels under different seeds. All features are copied in memory.

    Args:
      dataset: the data set, whose labels are read.
      columns: of each party that owns some.
      splits: one per seed.
      experiment: has the number of canaries per seed, of rows whose exchange is recorded; 0 changes nothing.

    Returns:
      The data set, columns and splits with the copies, and their candidates [copies + 1, 2], the last -1.

    Raises:
      UserError: if the canaries leave no recorded row for known labels.
    """
    count, recorded = experiment.canaries, experiment.training.scored_rows(len(splits[0].train))
    if not count:
        return dataset, columns, splits, NONE
    if count >= recorded:
        what = f"leaves none of the {recorded} recorded training rows for known labels"
        raise UserError(what, field="canaries", value=count, remedy="choose fewer")
    drawn = [coins(seed, recorded, count, dataset.num_classes) for seed in range(len(splits))]
    places, pairs, labels = (np.stack(parts) for parts in zip(*drawn, strict=True))
    rows = np.concatenate([s.train[at] for s, at in zip(splits, places, strict=True)])
    copies = len(dataset.labels) + np.arange(len(rows)).reshape(places.shape)
    train = np.stack([s.train for s in splits])
    np.put_along_axis(train, places, copies, axis=1)
    splits = [s._replace(train=of_seed) for s, of_seed in zip(splits, train, strict=True)]
    columns = tuple(
        owned._replace(features=np.concatenate([np.asarray(owned.features), owned.features[rows]]))
        for owned in columns
    )
    labels = np.concatenate([dataset.labels, labels.ravel()]).astype(dataset.labels.dtype)
    candidates = np.concatenate([*pairs, NONE]).astype(np.int32)
    groups = dataset.groups
    if groups is not None:
        # a coin is independent of the row that was copied, so each has a group of its own
        own = groups.max() + 1 + np.arange(len(rows))
        groups = np.concatenate([groups, own]).astype(np.int32)
    return dataset._replace(labels=labels, groups=groups), columns, splits, candidates


def guess_figures(scores: Array, labels: Array, candidates: Array, half: Array) -> dict[str, Array]:
    """Counts guesses of the coins, and the right ones. An attack guesses the candidate of higher score.

    A guess is surer if the difference of the two scores is larger. ``canaries_guessed_50`` counts the surest
    50 % of the guesses, which depends on no coin, and ``canaries_right_50`` the right ones among them. On the
    half on which an attack is chosen, the names begin with ``canaries_select_``.

    Args:
      scores: [N, C]; a difference that is NaN counts as 0.
      labels: [N], the coins' results among them.
      candidates: [N, 2], -1 where a row is no canary.
      half: [N] 1 for the half on which an attack is chosen, else 0.
    """
    pair = jnp.take_along_axis(scores, jnp.maximum(candidates, 0), axis=1)
    difference = jnp.nan_to_num(pair[:, 1] - pair[:, 0])
    right = (difference > 0) == (labels == candidates[:, 1])
    out = {}
    for name, member in zip(HALVES, (half > 0, half == 0), strict=True):
        among = member & (candidates[:, 0] >= 0)
        surest = jnp.argsort(jnp.where(among, -jnp.abs(difference), jnp.inf), stable=True)
        rank = jnp.zeros(len(labels), jnp.int32).at[surest].set(jnp.arange(len(labels)))
        for share in SHARES:
            guessed = -(-share * jnp.sum(among) // 100)
            out[f"{name}guessed_{share}"] = guessed.astype(jnp.float32)
            out[f"{name}right_{share}"] = jnp.sum(among & (rank < guessed) & right) * 1.0
    return out
