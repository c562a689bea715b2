"""Label canaries: training rows whose labels fair coins decide, to audit a claimed epsilon from below.

Before anything sees a label, a coin that depends on the seed alone gives each canary one of two candidates.
With two classes both are; with more, two are drawn without the row's label, so that columns favor neither.
Epsilon-label-DP gives odds of at most e^epsilon on a coin, whatever candidates and other labels are.

Reference: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023. Their coins
include a row, these choose its label; the proof is the same.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import keys
from vfljax.datasets.core import Dataset, PartyColumns
from vfljax.datasets.splits import Split
from vfljax.errors import UserError
from vfljax.sweep.experiment import Experiment
from vfljax.types import Array, HostArray

SHARES = (100, 50, 25)  # percent of the guesses that are made, the surest ones
PREFIX = "canaries_"  # of columns
HALVES = (f"{PREFIX}select_", PREFIX)  # of the half on which an attack is chosen, and of the other
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
    dataset: Dataset, columns: Columns, splits: list[Split], experiment: Experiment
) -> tuple[Dataset, Columns, list[Split], HostArray]:
    """Replaces training rows of every seed by copies whose labels are coins, after all rows of the data set.

    Seeds may therefore give a row different labels. It needs memory for a copy of all features.

    Args:
      dataset: its labels are read.
      columns: of each party that owns some.
      splits: one a seed.
      experiment: how many canaries a seed has, of the rows whose exchange is recorded; 0 changes nothing.

    Returns:
      The data set, columns and splits with the copies, and the copies' candidates [copies + 1, 2], the last -1.

    Raises:
      UserError: where fewer rows are recorded.
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
    return dataset._replace(labels=labels), columns, splits, candidates


def guess_figures(scores: Array, labels: Array, candidates: Array, half: Array) -> dict[str, Array]:
    """Counts an attack's guesses: the candidate with the higher score, the surer the larger the difference.

    ``canaries_right_50`` of ``canaries_guessed_50`` are of the surest 50 %. Columns of the half on which an
    attack is chosen begin with ``canaries_select_``. How many are made depends on no coin.

    Args:
      scores: [N, C]; a difference that is not a number is 0.
      labels: [N], which tell the coins.
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
