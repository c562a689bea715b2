"""The visible table of data sets: name -> loader(folder, **options) -> Dataset.

A loader's keyword-only parameters are its options (``config.data.options``). A folder written by
``prepared.write`` is read as it is, whatever the set: it holds what the loader once made.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from vfljax.config import unknown
from vfljax.datasets.bhi import bhi
from vfljax.datasets.bundled import breast_cancer, digits, synthetic
from vfljax.datasets.cifar import cifar10, cifar100
from vfljax.datasets.cinic10 import cinic10
from vfljax.datasets.core import Dataset
from vfljax.datasets.isic import isic
from vfljax.datasets.npz import npz
from vfljax.datasets.spambase import spambase
from vfljax.errors import UserError

TABLE: dict[str, Callable[..., Dataset]] = {
    "digits": digits,
    "breast_cancer": breast_cancer,
    "spambase": spambase,
    "synthetic": synthetic,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cinic10": cinic10,
    "isic": isic,
    "ham10000": isic,
    "bhi": bhi,
    "npz": npz,
}


def options_of(name: str) -> dict[str, Any]:
    """A loader's options and their defaults."""
    parameters = inspect.signature(TABLE[name]).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def load(name: str, folder: str, options: Mapping[str, Any]) -> Dataset:
    """The data set ``name`` from a folder or file; raises UserError for an unknown name or option,
    an option without a value, or any fault of the files."""
    if name not in TABLE:
        raise unknown("config.data.name", name, TABLE)
    known = options_of(name)
    for option in options:
        if option not in known:
            raise unknown(f"option of the data set {name}", option, known)
    for option, default in known.items():
        if default is inspect.Parameter.empty and option not in options:
            raise UserError(
                f"config.data.options gives no {option!r}: the data set {name} needs it."
            )
    values = {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    return TABLE[name](folder, **values)


__all__ = ["TABLE", "Dataset", "load", "options_of"]
