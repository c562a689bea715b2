"""A party's columns as numbers that a linear model reads, and scores of rows by a linear model of columns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix, hstack

from vfljax.datasets.core import PartyColumns
from vfljax.datasets.strata import strata

if TYPE_CHECKING:
    from vfljax.types import Input  # it imports JAX, which no data set needs

FOLDS = 5


def numbers_of(x: np.ndarray, reads: Input) -> Any:
    """Returns a party's columns [n, ...] as sparse numbers [n, W] that a linear model can read: numbers stay
    as they are, codes become one-hot, and texts become bags of tokens (0 or 1)."""
    x = x.reshape(len(x), -1)
    if not any(reads.vocabulary):
        return csr_matrix(x)
    sizes = np.asarray(reads.vocabulary)
    if reads.kind == "text":  # one vocabulary for all places
        starts, coded = np.zeros(x.shape[1], int), np.ones(x.shape[1], bool)
    else:
        coded = sizes > 0
        starts = (np.cumsum(sizes) - sizes)[coded]
    places = x[:, coded].astype(np.int64) + starts
    rows = np.repeat(np.arange(len(x)), places.shape[1])
    ones = np.ones(places.size, np.float32)
    codes = csr_matrix((ones, (rows, places.ravel())), shape=(len(x), int(sizes.sum())))
    codes.data[:] = 1.0  # a token that occurs twice was summed to 2
    return hstack([codes, x[:, ~coded]], "csr") if (~coded).any() else codes


def width_of(reads: Input) -> int:
    """Returns the number of columns of ``numbers_of``."""
    if not any(reads.vocabulary):
        return math.prod(reads.shape)
    numbers = 0 if reads.kind == "text" else sum(size == 0 for size in reads.vocabulary)
    return sum(reads.vocabulary) + numbers


def joined_numbers(columns: Sequence[PartyColumns], rows: np.ndarray | slice) -> Any:
    """Returns the columns of several parties as numbers [n, W], without missing ones, which become 0.

    Args:
      columns: of the parties.
      rows: n of the data set's rows.
    """
    numbers = hstack([numbers_of(np.asarray(c.features[rows]), c.input) for c in columns], "csr")
    numbers.data = np.nan_to_num(numbers.data)
    return numbers


def linear_model() -> Any:
    """Returns a logistic regression on columns at unit scale, not fitted, which draws nothing."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    return make_pipeline(MaxAbsScaler(), LogisticRegression(C=10.0, max_iter=200))


def out_of_fold(columns: Sequence[PartyColumns], labels: np.ndarray) -> np.ndarray:
    """Returns each row's probabilities [R, C] by ``linear_model`` on the rows of other folds, or its number
    [R, 1] by ridge regression.

    Args:
      columns: of the parties, of R rows.
      labels: [R], each of C classes, or stratum of numbers, at least ``FOLDS`` times.
    """
    from sklearn.linear_model import Ridge
    from sklearn.model_selection import StratifiedKFold, cross_val_predict
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import MaxAbsScaler

    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=0)
    x = joined_numbers(columns, slice(None))
    if labels.dtype.kind == "f":
        folds, model = [*folds.split(x, strata(labels))], make_pipeline(MaxAbsScaler(), Ridge())
        found: Any = cross_val_predict(model, x, labels.astype(np.float64), cv=folds)
        return found[:, None]
    chances: Any = cross_val_predict(linear_model(), x, labels, cv=folds, method="predict_proba")
    return chances
