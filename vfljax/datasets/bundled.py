"""The embedded data sets: three of scikit-learn and a synthetic one. They need neither network nor folder."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits

from vfljax.datasets.core import Column, Dataset, classes, number_labels


def digits(folder: str = "") -> Dataset:
    """1,797 handwritten digits, 8x8 pixels 0..16, 10 classes; parties divide image columns."""
    del folder
    bunch: Any = load_digits()
    labels = classes("digits", bunch.target)
    return Dataset("digits", bunch.images.astype(np.uint8), labels, 10, "image")


def breast_cancer(folder: str = "") -> Dataset:
    """Breast cancer Wisconsin (diagnostic): 569 rows, 30 columns, 1 = malignant (37 %)."""
    del folder
    bunch: Any = load_breast_cancer()
    malignant = 1 - bunch.target  # scikit-learn's 1 is benign; the sensitive class is 1 here
    columns = bunch.data.astype(np.float32)
    return Dataset("breast_cancer", columns, classes("breast_cancer", malignant), 2)


def diabetes(folder: str = "") -> Dataset:
    """Diabetes: 442 patients, 10 columns (age, sex, body mass index, blood pressure, six serum measurements),
    and the progression of the disease after a year, a number from 25 to 346."""
    del folder
    bunch: Any = load_diabetes(scaled=False)
    columns = tuple(map(Column, bunch.feature_names))
    labels = number_labels("diabetes", bunch.target)
    return Dataset("diabetes", bunch.data.astype(np.float32), labels, 1, columns=columns)


def synthetic(folder: str = "", *, rows: int = 52_000, columns: int = 32) -> Dataset:
    """Draws two overlapping Gaussian classes of a fixed seed, half positive, to measure time and memory.

    Args:
      folder: not used.
      rows: number of rows.
      columns: number of columns of all parties together.
    """
    del folder
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, rows)
    x = rng.normal(size=(rows, columns)).astype(np.float32) + 0.3 * labels[:, None]
    return Dataset("synthetic", x.astype(np.float32), classes("synthetic", labels), 2)
