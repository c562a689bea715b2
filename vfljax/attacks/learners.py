"""The list of learners, which score all rows from their columns and a few known labels.

A learner fits ``OwnColumns`` and returns scores. What it makes of the columns alone, such as ranks or a graph
of neighbors, it makes once for all draws of the known labels. On an attacker's own columns, learners are the
local-only baseline: an attack is worth what it reads beyond the strongest of them, because what a better
learner reads from the same columns does not come from the federation. On the exchange they are attacks
(``reader``).
Labels that are numbers have learners of their own, ``REGRESSORS``.
All are scikit-learn's, or a few lines of NumPy, but for propagation of labels, which is that of the attack
``spreading``. Ridge, kernel ridge and discriminants are those of the attack ``ranks``: jitted as there, they
would compile for 4 s for each number of known labels, and fit in a millisecond either way (measured).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import sklearn
from scipy import sparse, special, stats
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import ExtraTreeRegressor
from threadpoolctl import threadpool_limits

from vfljax.attacks import neighbors
from vfljax.attacks.core import HostReader
from vfljax.types import Array, HostArray

RANK_SCALE = 3.46  # a uniform variable of this width has a standard deviation of 1
WIDEST = 4096  # the most columns that others than linear models read; texts have more
SHARES = (0.1, 0.2, 0.4, 0.8)  # of each predicted class that the rounds of self-training add
PSEUDO_WEIGHT = 0.5
TREES = 150
"""Trees of ``extra_trees``. With 300 the leak at 40 labels is higher by .0006 on Spambase, by .0003 on default
of credit under label DP and by .0043 on digits, over twelve seeds or more, and fitting takes twice as long."""


class OwnColumns(NamedTuple):
    """What a learner reads: the columns of all rows, and the labels of a few."""

    numbers: Any  # [n, W] float32, or sparse
    known: HostArray  # [K] places of rows whose labels are known
    labels: HostArray  # [K]
    classes: int  # C, or 1 if labels are numbers
    seed: int

    @property
    def dense(self) -> HostArray:
        """The columns as an array [n, W]."""
        numbers = self.numbers.toarray() if sparse.issparse(self.numbers) else self.numbers
        return np.asarray(numbers, np.float32)


def ranked(own: OwnColumns) -> OwnColumns:
    """Returns the same with each column replaced by its midranks over all rows, centered, of width
    ``RANK_SCALE``; more than ``WIDEST`` columns stay as they are."""
    if own.numbers.shape[1] > WIDEST:
        return own
    ranks = stats.rankdata(own.dense, axis=0) / own.numbers.shape[0] - 0.5
    return own._replace(numbers=(RANK_SCALE * ranks).astype(np.float32))


class Learner(NamedTuple):
    """``fit(prepare(own))`` are the scores [n, C] of all rows, the larger the likelier the class, or the larger
    the number. ``prepare`` replaces the columns, and reads no label."""

    fit: Callable[[OwnColumns], HostArray]
    prepare: Callable[[OwnColumns], OwnColumns] = lambda own: own
    # a program of JAX, which uses all cores by itself, so that it is not run in several processes
    jitted: bool = False


def _of_classes(scores: HostArray, present: HostArray, classes: int) -> HostArray:
    """Scores [n, C] from those of the ``present`` classes; classes without a known label score least."""
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    out = np.tile(scores.min(axis=1, keepdims=True) - 1, classes)
    out[:, present] = scores
    return out.astype(np.float32)


def _fitted(model: Any, numbers: Any, labels: HostArray, **rest: Any) -> Any:
    # an unconverged baseline is still a baseline, and rows that no known label reaches divide zero by zero
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(numbers, labels, **rest)


def logistic(own: OwnColumns, c: float = 1.0, weights: HostArray | None = None) -> HostArray:
    """Returns the log odds of logistic regression with inverse regularization ``c``; known rows have
    ``weights`` [K]."""
    model = LogisticRegression(C=c, max_iter=1000)
    model = _fitted(model, own.numbers[own.known], own.labels, sample_weight=weights)
    return _of_classes(model.decision_function(own.numbers), model.classes_, own.classes)


def self_trained(own: OwnColumns, c: float = 0.1) -> HostArray:
    """Returns the log odds of logistic regression that is refitted to its own most confident rows.

    In each of four rounds the rows of highest score of every predicted class are added to the known ones,
    with half of their weight.
    """
    scores = logistic(own, c)
    unknown = np.setdiff1d(np.arange(len(scores)), own.known)
    for share in SHARES:
        odds = scores[unknown]
        guess, best = odds.argmax(1), special.softmax(odds, axis=1).max(1)
        added = []
        for label in np.unique(guess):
            members = np.flatnonzero(guess == label)
            most = np.argsort(-best[members], kind="stable")[: max(1, int(share * len(members)))]
            added.append(members[most])
        places = np.concatenate(added)
        rows = np.concatenate([own.known, unknown[places]])
        labels = np.concatenate([own.labels, guess[places]])
        weights = np.where(np.arange(len(rows)) < len(own.known), 1.0, PSEUDO_WEIGHT)
        scores = logistic(own._replace(known=rows, labels=labels), c, weights)
    return scores


def naive_bayes(own: OwnColumns) -> HostArray:
    """Returns the joint log likelihood of Gaussian naive Bayes."""
    model = _fitted(GaussianNB(var_smoothing=0.1), own.numbers[own.known], own.labels)
    return _of_classes(model.predict_joint_log_proba(own.dense), model.classes_, own.classes)


def extra_trees(own: OwnColumns) -> HostArray:
    """Returns the class shares of ``TREES`` extremely randomized trees."""
    present, places = np.unique(own.labels, return_inverse=True)
    shares = _of_trees(own, np.eye(len(present))[places]).reshape(-1, len(present))
    return _of_classes(shares, present, own.classes)


def extra_regression_trees(own: OwnColumns) -> HostArray:
    """Returns the mean numbers of ``TREES`` extremely randomized trees."""
    return _column(_of_trees(own, own.labels))


def _of_trees(own: OwnColumns, targets: HostArray) -> HostArray:
    """Returns the mean [n, ...] over ``TREES`` extremely randomized trees that are fitted to targets [K, ...].

    Of one-hot targets the squared error, summed over classes, is the Gini impurity, so that these are the trees
    of a classifier, but where splits are equally good up to rounding. Each tree of a classifier checks its
    labels, and a forest copies each tree, which takes 7 times as long (analysis/results/benchmark).
    """
    dense, near = own.dense, own.dense[own.known]
    some: Any = "sqrt"  # of the columns at each split
    tree = ExtraTreeRegressor(max_features=some, random_state=np.random.RandomState(own.seed))
    total = 0.0
    # checking the parameters takes long for a tree of few rows
    with sklearn.config_context(skip_parameter_validation=True):
        for _ in range(TREES):
            total += tree.fit(near, targets, check_input=False).predict(dense, check_input=False)
    return np.asarray(total) / TREES


def boosting(own: OwnColumns) -> HostArray:
    """Returns the numbers of histogram gradient boosting, whose leaves may have few rows."""
    leaf = max(2, min(20, len(own.known) // 10))
    model = HistGradientBoostingRegressor(
        max_iter=60, learning_rate=0.05, min_samples_leaf=leaf, random_state=own.seed
    )
    with threadpool_limits(1):  # others would wait beside those that train
        return _column(model.fit(own.dense[own.known], own.labels).predict(own.dense))


def nearest(own: OwnColumns, most: int = 5) -> HostArray:
    """Returns the mean numbers of the ``most`` nearest known rows, weighed by their inverse distance."""
    model = KNeighborsRegressor(min(most, len(own.known)), weights="distance")
    return _column(model.fit(own.dense[own.known], own.labels).predict(own.dense))


def _column(values: HostArray) -> HostArray:
    return np.asarray(values, np.float32)[:, None]


def neighborhood(own: OwnColumns, ranks: bool = False) -> OwnColumns:
    """Returns the same with the graph of nearest neighbors in place of the columns, which are on their own
    scale, or ``ranked``."""
    dense = (ranked(own) if ranks else own).dense
    graph = _graph(dense, jax.random.key(own.seed))
    return own._replace(numbers=jax.tree.map(np.asarray, graph))


@jax.jit
def _graph(x: Array, key: Array) -> neighbors.Graph:
    every = jnp.ones(len(x), bool)
    among = neighbors.drawn(key, len(x))
    return neighbors.graph(neighbors.block(x, every), every, among=among)


def propagation(own: OwnColumns) -> HostArray:
    """Returns the scores of labels that are propagated on a graph, as by the attack ``spreading``."""
    known = np.zeros((len(own.numbers.ends), own.classes), np.float32)
    known[own.known, own.labels] = 1
    return np.asarray(_propagated(own.numbers, known, neighbors.ALPHA))


_propagated = jax.jit(neighbors.scores)


def ridge(own: OwnColumns, penalty: float = 10.0) -> HostArray:
    """Returns the scores X (X_k^T X_k + ``penalty`` I)^-1 X_k^T t of the known rows X_k with ``_targets`` t."""
    dense = own.dense
    near, targets = dense[own.known], _targets(own)
    solved = np.linalg.solve(near @ near.T + penalty * np.eye(len(near)), targets)
    return (dense @ (near.T @ solved)).astype(np.float32)


def kernel_ridge(own: OwnColumns) -> HostArray:
    """Returns the scores K(rows, known) (K(known, known) + I)^-1 t of ``_targets`` t, with the Gaussian kernel
    whose width is the median of the squared distances between known rows."""
    dense = own.dense
    near = dense[own.known]
    squares = (near**2).sum(1)
    distances = (dense**2).sum(1)[:, None] + squares - 2 * dense @ near.T
    between = distances[own.known]
    width = max(float(np.median(between[~np.eye(len(near), dtype=bool)], axis=None)), 1e-6)
    kernel = np.exp(-np.maximum(distances, 0) / width)
    targets = _targets(own)
    return (kernel @ np.linalg.solve(kernel[own.known] + np.eye(len(near)), targets)).astype(
        np.float32
    )


def _targets(own: OwnColumns) -> HostArray:
    """Returns 1 for the class of each known row and -1 for others, [K, C]; numbers less their mean, [K, 1]."""
    if own.classes == 1:
        return (own.labels - own.labels.mean())[:, None]
    return 2 * np.eye(own.classes)[own.labels] - 1


def discriminants(own: OwnColumns, shrinkage: float = 0.2) -> HostArray:
    """Returns linear discriminants whose covariance is that of all rows, plus ``shrinkage`` on its diagonal."""
    x = own.dense - own.dense.mean(0)
    present = np.unique(own.labels)
    means = np.stack([x[own.known[own.labels == label]].mean(0) for label in present], axis=1)
    directions = np.linalg.solve(np.cov(x.T, bias=True) + shrinkage * np.eye(x.shape[1]), means)
    scores = x @ directions - (means * directions).sum(0) / 2
    return _of_classes(scores, present, own.classes)


def kernel_and_discriminants(own: OwnColumns) -> HostArray:
    """Returns the mean of the midranks of both learners' scores."""
    present = np.unique(own.labels)
    parts = (kernel_ridge(own)[:, present], discriminants(own)[:, present])
    ranked = np.mean([stats.rankdata(part, axis=0) for part in parts], axis=0)
    return _of_classes(ranked, present, own.classes)


RULE = 1
"""The number of the learners' rule. A change that moves the figures of any learner, or adds one, takes the next
number, as with ``core.AttackRow.rule``: a sweep that is continued fits all of them again. The attack ``reader``
uses some of these learners, and then has another rule too."""
LEARNERS: Mapping[str, Learner] = {
    "logistic": Learner(logistic),
    "logistic C=.1": Learner(functools.partial(logistic, c=0.1)),
    "logistic on ranks": Learner(functools.partial(logistic, c=0.1), ranked),
    "self-trained": Learner(functools.partial(self_trained, c=1.0)),
    "self-trained on ranks": Learner(self_trained, ranked),
    "naive Bayes on ranks": Learner(naive_bayes, ranked),
    "extra trees": Learner(extra_trees),
    "propagation": Learner(propagation, neighborhood, jitted=True),
    "propagation on ranks": Learner(
        propagation, functools.partial(neighborhood, ranks=True), jitted=True
    ),
    "ridge on ranks": Learner(ridge, ranked),
    "kernel ridge on ranks": Learner(kernel_ridge, ranked),
    "discriminants on ranks": Learner(discriminants, ranked),
    "kernel and discriminants": Learner(kernel_and_discriminants, ranked),
}
"""The learners by name. The first is the baseline beside every attack."""
REGRESSORS: Mapping[str, Learner] = {
    "ridge": Learner(ridge),
    "ridge on ranks": Learner(ridge, ranked),
    "kernel ridge on ranks": Learner(kernel_ridge, ranked),
    "extra trees": Learner(extra_regression_trees),
    "boosting": Learner(boosting),
    "nearest neighbors on ranks": Learner(nearest, ranked),
}
"""The learners of labels that are numbers."""
DEAR = (
    "extra trees",
    "self-trained",
    "self-trained on ranks",
    "propagation",
    "propagation on ranks",
)
"""The learners that take tens of milliseconds to fit to an exchange."""
MANY_ROWS = 100_000
"""With more rows the learners of ``DEAR`` are left out, as each takes minutes, and scoring saves memory."""
LINEAR = ("logistic", "logistic C=.1", "self-trained", "self-trained on ranks", "ridge")
"""The learners that read any number of columns."""


def table_of(classes: int) -> Mapping[str, Learner]:
    """Returns the learners for C classes, or for numbers if ``classes`` is 1."""
    return REGRESSORS if classes == 1 else LEARNERS


def learn(learner: str, columns: OwnColumns) -> HostArray:
    """Returns the scores [n, C] that the learner of this name gives columns."""
    return learn_draws(learner, [columns])[0]


def learn_draws(learner: str, drawn: Sequence[OwnColumns]) -> HostArray:
    """Returns the scores [draws, n, C] that a learner gives the same columns with different known labels.

    Args:
      learner: a name in ``table_of`` the columns' classes.
      drawn: columns that differ in ``known`` and ``labels`` alone.
    """
    row = table_of(drawn[0].classes)[learner]
    numbers = row.prepare(drawn[0]).numbers
    return np.stack([row.fit(own._replace(numbers=numbers)) for own in drawn])


def learners_of(classes: int, width: int, rows: int) -> tuple[str, ...]:
    """Returns the names of the learners for so many classes, columns and rows.

    Args:
      classes: C, or 1 for numbers.
      width: number of columns.
      rows: number of rows to be scored, known ones included; more than ``MANY_ROWS`` leave out ``DEAR``.
    """
    every = tuple(table_of(classes))
    names = tuple(name for name in every if name in LINEAR) if width > WIDEST else every
    return names if rows <= MANY_ROWS else tuple(name for name in names if name not in DEAR)


def read(
    learner: str, features: HostArray, known: HostArray, labels: HostArray, classes: int, seed: int
) -> HostArray:
    """Returns the scores [draws, n, C] that a learner gives features of an exchange.

    Args:
      learner: a name in ``table_of`` these classes.
      features: [n, W], NaN in the rows that were not sent, which teach nothing and get NaN.
      known: [draws, K] places of known rows.
      labels: [draws, K].
      classes: C.
      seed: of the learner's random numbers.
    """
    sent = np.isfinite(features).all(axis=1)
    scores = np.full((len(known), len(features), classes), np.nan, np.float32)
    scores[:, sent] = 0.0
    drawn = {}
    for draw, (rows, called) in enumerate(zip(known, labels, strict=True)):
        taught = sent[rows]
        if len(np.unique(called[taught])) > 1:  # else there are no classes to separate
            places = np.searchsorted(np.flatnonzero(sent), rows[taught])
            drawn[draw] = OwnColumns(features[sent], places, called[taught], classes, seed)
    if drawn:
        found = learn_draws(learner, [*drawn.values()])
        scores[np.ix_([*drawn], sent)] = found
    return scores


READERS: Mapping[str, HostReader] = {
    name: functools.partial(read, name)
    for name, learner in {**REGRESSORS, **LEARNERS}.items()
    if not learner.jitted
}
"""The functions that score the features of an attack, by the name of their learner. Those that are jitted are
attacks of their own."""
