"""The learners of the local-only baseline: what an attacker's own columns and known labels tell alone.

A learner is a function from ``OwnColumns`` to scores. An attack is worth what it reads beyond the strongest of
them; a single logistic regression on few known labels is weak, and what a better learner reads from the same
columns does not come from the federation. All are scikit-learn's, or a few lines of NumPy.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse, special, stats
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.semi_supervised import LabelSpreading

from vfljax.types import HostArray

RANK_SCALE = 3.46  # a uniform variable of this width has a standard deviation of 1
WIDEST = 4096  # columns that ranks, neighbors and kernels read; of more (texts) linear models do
SHARES = (0.1, 0.2, 0.4, 0.8)  # of a predicted class, that a round of self-training adds
PSEUDO_WEIGHT = 0.5


class OwnColumns(NamedTuple):
    """What a learner reads: the columns of all rows, and the labels of a few."""

    numbers: Any  # [n, W] float32, or sparse
    known: HostArray  # [K] places of rows whose labels are known
    labels: HostArray  # [K]
    classes: int  # C
    seed: int

    @property
    def dense(self) -> HostArray:
        """The columns as an array [n, W]."""
        numbers = self.numbers.toarray() if sparse.issparse(self.numbers) else self.numbers
        return np.asarray(numbers, np.float32)

    def ranked(self) -> OwnColumns:
        """Returns the same with each column replaced by its midranks over all rows, centered, of width
        ``RANK_SCALE``; wide columns stay as they are."""
        if self.numbers.shape[1] > WIDEST:
            return self
        ranks = stats.rankdata(self.dense, axis=0) / self.numbers.shape[0] - 0.5
        return self._replace(numbers=(RANK_SCALE * ranks).astype(np.float32))


Learner = Callable[[OwnColumns], HostArray]
"""Scores [n, C] of all rows, the larger the likelier the class."""


def _of_classes(scores: HostArray, present: HostArray, classes: int) -> HostArray:
    """Scores [n, C] from those of the classes that known labels have; the others are the least likely."""
    scores = np.stack([-scores, scores], axis=1) if scores.ndim == 1 else scores
    out = np.tile(scores.min(axis=1, keepdims=True) - 1, classes)
    out[:, present] = scores
    return out.astype(np.float32)


def _fitted(model: Any, own: OwnColumns, rows: HostArray, labels: HostArray, **rest: Any) -> Any:
    with warnings.catch_warnings():  # an unconverged baseline is still a baseline
        warnings.simplefilter("ignore")
        return model.fit(own.numbers[rows], labels, **rest)


def logistic(own: OwnColumns, c: float = 1.0) -> HostArray:
    """Returns the log odds of logistic regression with inverse regularization ``c``."""
    return _logistic(own, own.known, own.labels, None, c)


def _logistic(
    own: OwnColumns, rows: HostArray, labels: HostArray, weights: HostArray | None, c: float
) -> HostArray:
    model = LogisticRegression(C=c, max_iter=1000)
    model = _fitted(model, own, rows, labels, sample_weight=weights)
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
        scores = _logistic(own, rows, labels, weights, c)
    return scores


def naive_bayes(own: OwnColumns) -> HostArray:
    """Returns the joint log likelihood of Gaussian naive Bayes."""
    model = _fitted(GaussianNB(var_smoothing=0.1), own, own.known, own.labels)
    return _of_classes(model.predict_joint_log_proba(own.dense), model.classes_, own.classes)


def extra_trees(own: OwnColumns) -> HostArray:
    """Returns the class shares of 100 extremely randomized trees."""
    model = ExtraTreesClassifier(100, random_state=own.seed)
    model = _fitted(model, own, own.known, own.labels)
    return _of_classes(model.predict_proba(own.dense), model.classes_, own.classes)


def label_spreading(own: OwnColumns, neighbors: int = 15) -> HostArray:
    """Returns the class shares of label spreading on the graph of the nearest neighbors of all rows."""
    labels = np.full(own.numbers.shape[0], -1)
    labels[own.known] = own.labels
    neighbors = min(neighbors, len(labels) - 1)
    with warnings.catch_warnings():  # rows that no known label reaches divide zero by zero
        warnings.simplefilter("ignore")
        model = LabelSpreading(kernel="knn", n_neighbors=neighbors, max_iter=100)
        model = model.fit(own.dense, labels)
    shares = np.nan_to_num(model.label_distributions_, nan=1 / len(model.classes_))
    return _of_classes(shares, model.classes_, own.classes)


def kernel_ridge(own: OwnColumns) -> HostArray:
    """Returns the scores K(rows, known) (K(known, known) + I)^-1 (2 y - 1), with the Gaussian kernel whose
    width is the median of the squared distances between known rows."""
    dense = own.dense
    near = dense[own.known]
    squares = (near**2).sum(1)
    distances = (dense**2).sum(1)[:, None] + squares - 2 * dense @ near.T
    between = distances[own.known]
    width = max(float(np.median(between[~np.eye(len(near), dtype=bool)], axis=None)), 1e-6)
    kernel = np.exp(-np.maximum(distances, 0) / width)
    targets = 2 * np.eye(own.classes)[own.labels] - 1
    return (kernel @ np.linalg.solve(kernel[own.known] + np.eye(len(near)), targets)).astype(
        np.float32
    )


LEARNERS: Mapping[str, Learner] = {
    "logistic": logistic,
    "logistic C=.1": lambda own: logistic(own, 0.1),
    "logistic on ranks": lambda own: logistic(own.ranked(), 0.1),
    "self-trained": lambda own: self_trained(own, 1.0),
    "self-trained on ranks": lambda own: self_trained(own.ranked()),
    "naive Bayes on ranks": lambda own: naive_bayes(own.ranked()),
    "extra trees": extra_trees,
    "label spreading k=7": lambda own: label_spreading(own, 7),
    "label spreading k=15": label_spreading,
    "kernel ridge on ranks": lambda own: kernel_ridge(own.ranked()),
}
"""By name, the first of which is the baseline beside every attack."""
LINEAR = ("logistic", "logistic C=.1", "self-trained", "self-trained on ranks")
"""Those that read columns of any number."""


def learners_of(width: int) -> tuple[str, ...]:
    """Returns the names of the learners that read so many columns."""
    return LINEAR if width > WIDEST else tuple(LEARNERS)
