"""Makes classes of labels that are numbers, by thresholds at their quantiles."""

from __future__ import annotations

import itertools

import numpy as np

MOST_CLASSES = 100  # of a label


def thresholds(values: np.ndarray, bins: int) -> np.ndarray | None:
    """Returns the quantiles [K-1] of values that cut them into K classes, with as few digits as make the same
    classes, so that what is said is what was done; None if a class would have no value.

    Args:
      values: [n] finite numbers.
      bins: K, at least 2.
    """
    exact = np.quantile(values, np.arange(1, bins) / bins)
    classes = classes_of(values, exact)
    if len(np.unique(classes)) < bins:
        return None
    for digits in range(3, 17):
        rounded = np.asarray([float(f"{threshold:.{digits}g}") for threshold in exact])
        if (classes_of(values, rounded) == classes).all():
            return rounded
    return exact


def classes_of(values: np.ndarray, thresholds: np.ndarray) -> np.ndarray:
    """Returns the class of each value, from low to high; a value equal to a threshold is in the lower one."""
    return np.searchsorted(thresholds, values, side="left").astype(np.int32)


def names_of(thresholds: np.ndarray) -> list[str]:
    """Returns the names of the classes.

    >>> names_of(np.array([1.5, 2.0]))
    ['at most 1.5', 'above 1.5 to 2', 'above 2']
    """
    texts = [*map(spelled, thresholds)]
    between = (f"above {low} to {high}" for low, high in itertools.pairwise(texts))
    return [f"at most {texts[0]}", *between, f"above {texts[-1]}"]


def spelled(number: float) -> str:
    """Returns the shortest text of a number, without a decimal point if it is whole."""
    return repr(float(number)).removesuffix(".0")


def most_often(values: np.ndarray) -> str:
    """Returns what keeps quantiles apart from making classes: the value of most rows, in words."""
    distinct, often = np.unique(values, return_counts=True)
    most = often.argmax()
    return f"{often[most]:,} of {len(values):,} rows have the value {spelled(distinct[most])}"
