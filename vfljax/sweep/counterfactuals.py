"""Counterfactual labels, to audit a claimed epsilon without a change of any label that is trained on.

Some training rows are drawn without regard to their labels. A proxy, which was fitted on all columns of the
other rows, draws for each of them a label y' ~ Q(. | x) beside the true one y ~ P(. | x). Where they differ, an
attack guesses which of the two is true. By the columns alone the odds of a over b are

    P(a | x) Q(b | x) / (P(b | x) Q(a | x)),

which are 1 if Q = P. Under epsilon-label-DP the exchange, and the labels of all other rows, change them by at
most e^epsilon. If columns alone give odds of at most M / (1 - M), the number of right guesses among r is
therefore at most a Binomial(r, p) number with

    logit p = epsilon + logit M,

for any guesses, by the proof of label canaries (``sweep.canaries``), which is the case M = 1/2. It assumes that
labels of different rows are independent given their columns. M is not known: it is 1/2 only for a perfect
proxy. It is taken to be what the strongest of ``OPPONENTS``, other models of the same rows that know Q, tells
of the pairs, at its upper limit of 95 %. That no reader of columns tells more is an assumption, and a limit of
epsilon that rests on it is to be read with M.

Reference: Kalemaj, Melis, Boucher, Mironov, Mahloujifar, "Observational Auditing of Label Privacy",
arXiv 2511.14084. We know its abstract and its definition of the counterfactual label; the correction by M is
ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from vfljax import keys
from vfljax.datasets.core import Dataset, PartyColumns
from vfljax.datasets.numbers import joined_numbers, linear_model
from vfljax.datasets.splits import Split, label_groups
from vfljax.errors import UserError
from vfljax.types import HostArray

MOST_DENSE = 1000  # most columns of a model that reads no sparse numbers
LEAST = 1e-6  # probabilities below this count as this


def _extra_trees() -> Any:
    from sklearn.ensemble import ExtraTreesClassifier

    return ExtraTreesClassifier(100, min_samples_leaf=3, random_state=0, n_jobs=1)


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(max_iter=30, random_state=0)


OPPONENTS: Mapping[str, Callable[[], Any]] = {"extra trees": _extra_trees, "boosting": _boosting}
"""Models of columns whose guesses say how wrong the proxy is."""


def pairs_of(
    seed: int, dataset: Dataset, columns: Sequence[PartyColumns], split: Split, places: HostArray
) -> tuple[HostArray, dict[str, HostArray]]:
    """Draws a counterfactual label for some training rows of a seed.

    Args:
      seed: of the draw.
      dataset: whose labels are read.
      columns: of all parties.
      split: of the seed.
      places: [n] of the drawn rows among the training rows.

    Returns:
      The true and the counterfactual label [n, 2] of each row in ascending order, and -1 where they are equal
      or where another training row has the same person's label; and the scores [n, C] by which each opponent
      guesses.

    Raises:
      UserError: if the rows that are not drawn lack a class.
    """
    rows = split.train[places]
    every = np.unique(np.concatenate([split.train, split.validation, split.test]))
    rest, classes = np.setdiff1d(every, rows), dataset.num_classes
    if len(np.unique(dataset.labels[rest])) < classes:
        what = f"leaves {len(rest)} rows to a proxy, which lack a class"
        raise UserError(what, field="canaries", value=len(places), remedy="choose fewer")
    x, labels = joined_numbers(columns, rest), dataset.labels[rest]
    drawn_x = joined_numbers(columns, rows)
    q = _chances(linear_model(), x, labels, drawn_x)
    key = keys.fold(keys.run_key(seed), "counterfactuals")
    drawn = np.asarray(jax.random.categorical(key, jnp.log(q)))
    pairs = np.sort(np.stack([dataset.labels[rows], drawn], axis=1), axis=1).astype(np.int32)
    pairs[pairs[:, 0] == pairs[:, 1]] = -1
    groups = label_groups(dataset)
    if groups is not None:
        of_train = groups[split.train]
        pairs[np.bincount(of_train)[groups[rows]] > 1] = -1
    scores = {}
    for name, make in OPPONENTS.items():
        if name != "boosting" or x.shape[1] <= MOST_DENSE:
            given = (
                (x.toarray(), labels, drawn_x.toarray())
                if name == "boosting"
                else (x, labels, drawn_x)
            )
            scores[name] = np.log(_chances(make(), *given)) - np.log(q)
    return pairs, scores


def _chances(model: Any, x: Any, labels: HostArray, of: Any) -> HostArray:
    # threads of OpenMP that wait for each other on a busy machine take many times as long as one
    with threadpool_limits(1, "openmp"):
        return np.maximum(model.fit(x, labels).predict_proba(of), LEAST)
