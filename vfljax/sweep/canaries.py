"""Label canaries: training rows whose labels are guessed, to audit a claimed epsilon from below.

Their labels are fair coins, or stay as they are and a proxy draws a second label (``sweep.counterfactuals``).

Before any label is used, a coin that depends on the seed alone gives each canary one of two candidate labels.
Of more than two classes, two are drawn without reading the row's label, so that its columns favor neither.
Epsilon-label-DP gives odds of at most e^epsilon on a coin, whatever the candidates and other labels are.

Reference: Steinke, Nasr, Jagielski, "Privacy Auditing with One (1) Training Run", NeurIPS 2023. There a coin
decides whether a row is included, here which label it has; the proof is the same.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from vfljax import keys
from vfljax.config import Config
from vfljax.datasets.core import Dataset, PartyColumns
from vfljax.datasets.splits import Split
from vfljax.errors import UserError
from vfljax.sweep import counterfactuals
from vfljax.types import Array, HostArray

GUESSED_PERCENTS = (
    100,
    50,
    25,
)  # percent of the canaries that are guessed, those with the surest guesses
PREFIX = "canaries_"  # of columns
HALVES = (f"{PREFIX}select_", PREFIX)  # of the half on which attacks are chosen, and of the other
NO_CANDIDATES = np.full((1, 2), -1, np.int32)  # candidates of a row that is no canary
Columns = tuple[PartyColumns, ...]
Told = dict[str, dict[str, float]]
"""For each opponent of a proxy the figures of ``guess_figures``, summed over seeds."""


class Planted(NamedTuple):
    """A data set whose last rows are copies of training rows, the canaries of each seed."""

    dataset: Dataset
    columns: Columns
    splits: list[Split]
    candidates: HostArray  # [copies + 1, 2] labels that each may have; -1 for none, and at the end
    told: Told  # what columns alone tell of counterfactual labels; {} for coins


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
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


def plant(dataset: Dataset, columns: Columns, splits: list[Split], experiment: Config) -> Planted:
    """Replaces training rows of every seed by copies, whose labels are coins or stay. The copies are the last
    rows.

    A row may therefore have different labels under different seeds. All features are copied in memory. Rows
    whose labels a recording gives to attackers are not replaced.

    Args:
      dataset: the data set, whose labels are read.
      columns: of each party that owns some.
      splits: one per seed.
      experiment: has the number of canaries per seed, of rows whose exchange is recorded; 0 changes nothing.

    Raises:
      UserError: if the canaries leave no recorded row for known labels, or none for a proxy.
    """
    count, recorded = experiment.canaries, experiment.training.scored_rows(len(splits[0].train))
    if not count:
        return Planted(dataset, columns, splits, NO_CANDIDATES, {})
    given = len(splits[0].known)
    if count >= recorded - given:
        what = f"leaves none of the {recorded - given} recorded training rows for known labels"
        raise UserError(what, field="canaries", value=count, remedy="choose fewer")
    observed = experiment.canary_labels == "observed"
    told: Told = {}
    drawn = []
    for seed, split in enumerate(splits):
        free = np.setdiff1d(np.arange(recorded), split.known)
        found = coins(seed, len(free), count, dataset.num_classes)
        places, pairs, labels = map(np.asarray, found)
        places = free[places]
        if observed:
            labels = dataset.labels[split.train[places]]
            pairs = _beside_counterfactuals(seed, dataset, columns, split, places, told)
        drawn.append((places, pairs, labels))
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
    candidates = np.concatenate([*pairs, NO_CANDIDATES]).astype(np.int32)
    groups, recording = dataset.groups, dataset.recording
    if groups is not None:
        # a coin is independent of the row that was copied, so each has a group of its own
        own = groups[rows] if observed else groups.max() + 1 + np.arange(len(rows))
        groups = np.concatenate([groups, own]).astype(np.int32)
    if recording is not None and recording.rows is not None:
        persons = np.concatenate([recording.rows, recording.rows[rows]])
        recording = recording._replace(rows=persons)
    dataset = dataset._replace(labels=labels, groups=groups, recording=recording)
    return Planted(dataset, columns, splits, candidates, told)


def _beside_counterfactuals(
    seed: int, dataset: Dataset, columns: Columns, split: Split, places: HostArray, told: Told
) -> HostArray:
    """Returns the pairs [n, 2] of ``counterfactuals.pairs_of``, and adds to ``told`` what opponents guess."""
    pairs, scores = counterfactuals.pairs_of(seed, dataset, columns, split, places)
    labels = dataset.labels[split.train[places]]
    nobody = np.zeros(len(places), np.float32)  # none is chosen on
    for name, of in scores.items():
        figures = guess_figures(of, labels, pairs, nobody)
        total = told.setdefault(name, {})
        for title in (title for title in figures if not title.startswith(HALVES[0])):
            total[title] = total.get(title, 0.0) + float(figures[title])
    return pairs


@jax.jit
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
        for share in GUESSED_PERCENTS:
            guessed = -(-share * jnp.sum(among) // 100)
            out[f"{name}guessed_{share}"] = guessed.astype(jnp.float32)
            out[f"{name}right_{share}"] = jnp.sum(among & (rank < guessed) & right) * 1.0
    return out
