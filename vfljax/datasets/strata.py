"""The strata of labels, by which rows are drawn: classes themselves, or tenths of labels that are numbers."""

from __future__ import annotations

import numpy as np

from vfljax.datasets.core import Dataset

TENTHS = 10


def strata(labels: np.ndarray) -> np.ndarray:
    """Returns the stratum of each row, [R] int32 from 0. Of float labels it is the tenth of all labels that the
    label is in; a label equal to a tenth's end is in the lower one, and a tenth that holds none is left out."""
    if labels.dtype.kind != "f":
        return labels
    ends = np.quantile(labels, np.arange(1, TENTHS) / TENTHS)
    return np.unique(np.searchsorted(ends, labels), return_inverse=True)[1].astype(np.int32)


def stratified(dataset: Dataset) -> Dataset:
    """Returns the data set with strata for labels, whose names are ranges; one of classes is unchanged."""
    if dataset.num_classes > 1:
        return dataset
    labels = strata(dataset.labels)
    members = [dataset.labels[labels == k] for k in range(labels.max() + 1)]
    names = tuple(f"{of.min():g} to {of.max():g}" for of in members)
    return dataset._replace(labels=labels, num_classes=len(names), classes=names)


def noun(dataset: Dataset) -> str:
    """Returns what messages call a stratum: a class, or labels in a range."""
    return "class" if dataset.num_classes > 1 else "labels from"


def tied(dataset: Dataset, rows: int) -> int:
    """Returns how many of the first ``rows`` rows have the most frequent number for a label; 0 of classes."""
    if dataset.num_classes > 1:
        return 0
    return int(np.unique(dataset.labels[:rows], return_counts=True)[1].max())


def class_counts(dataset: Dataset, rows: int) -> list[int]:
    """Returns how many of the first ``rows`` rows each class has; numbers count as one class."""
    if dataset.num_classes == 1:
        return [rows]
    return np.bincount(dataset.labels[:rows], minlength=dataset.num_classes).tolist()
