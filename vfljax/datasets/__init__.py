"""The visible table of data sets: name -> loader(folder) -> Dataset."""

from collections.abc import Callable

from vfljax.datasets.bundled import breast_cancer, digits, synthetic
from vfljax.datasets.core import Dataset
from vfljax.datasets.spambase import spambase

TABLE: dict[str, Callable[[str], Dataset]] = {
    "digits": digits,
    "breast_cancer": breast_cancer,
    "spambase": spambase,
    "synthetic": synthetic,
}

__all__ = ["TABLE", "Dataset"]
