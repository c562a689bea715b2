"""The visible table of data sets: name -> loader(folder, **options) -> Dataset.

A loader's keyword-only parameters are its options (``config.data.options``). A folder written by
``prepared.write`` is read as it is, whatever the set: it holds what the loader once made.
"""

from __future__ import annotations

import inspect
import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

from vfljax.config import unknown
from vfljax.datasets import avazu, criteo, prepared
from vfljax.datasets.bhi import bhi
from vfljax.datasets.bundled import breast_cancer, digits, synthetic
from vfljax.datasets.cifar import cifar10, cifar100
from vfljax.datasets.cinic10 import cinic10
from vfljax.datasets.core import Dataset
from vfljax.datasets.imdb import imdb
from vfljax.datasets.isic import isic
from vfljax.datasets.npz import npz
from vfljax.datasets.own import table
from vfljax.datasets.spambase import spambase
from vfljax.datasets.yahoo import yahoo
from vfljax.errors import UserError

TABLE: dict[str, Callable[..., Dataset]] = {
    "digits": digits,
    "breast_cancer": breast_cancer,
    "spambase": spambase,
    "imdb": imdb,
    "synthetic": synthetic,
    "yahoo": yahoo,
    "table": table,
    "criteo": criteo.criteo,
    "avazu": avazu.avazu,
    "prepared": prepared.prepared,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cinic10": cinic10,
    "isic": isic,
    "ham10000": isic,
    "bhi": bhi,
    "npz": npz,
}

# what writes a prepared folder block by block: name -> prepare(folder, out, **options) -> Dataset
STREAMS = {"criteo": criteo.prepare, "avazu": avazu.prepare}


def options_of(name: str) -> dict[str, Any]:
    """A loader's options and their defaults."""
    parameters = inspect.signature(TABLE[name]).parameters.values()
    return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}


def _complete(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A loader's options with defaults for those not given, sequences as tuples; raises UserError
    for an unknown one."""
    known = options_of(name)
    for option in options:
        if option not in known:
            raise unknown(f"option of the data set {name}", option, known)
    return known | {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}


def load(name: str, folder: str, options: Mapping[str, Any]) -> Dataset:
    """The data set ``name`` from a folder or file, or from a folder that ``prepare`` made; raises
    UserError for an unknown name or option, an option without a value, or any fault of the files."""
    if folder and prepared.is_prepared(folder):
        dataset = prepared.read(folder, "" if name == "prepared" else name)
        _were(dataset.name, folder, options)
        return dataset
    if name not in TABLE:
        raise unknown("config.data.name", name, TABLE)
    values = _complete(name, options)
    for option, value in values.items():
        if value is inspect.Parameter.empty:
            raise UserError(
                f"config.data.options gives no {option!r}: the data set {name} needs it."
            )
    return TABLE[name](folder, **values)


def _were(name: str, folder: str, options: Mapping[str, Any]) -> None:
    """Raise UserError where options are asked for that a prepared folder was not made with."""
    made = prepared.description(pathlib.Path(folder))["options"]
    asked = _complete(name, options) if options and name in TABLE else dict(options)
    if options and json.loads(json.dumps(asked)) != made:
        raise UserError(
            f"{folder} was prepared with the options {made} and config.data.options are "
            f"{dict(options)}: prepare it anew, or leave the options out."
        )


def prepare(name: str, folder: str, out: str, options: Mapping[str, Any]) -> Dataset:
    """The data set ``name`` into the new folder ``out`` in its prepared form, block by block where
    its loader can; what ``load`` then reads there. Raises UserError as ``load`` does."""
    if name not in TABLE:
        raise unknown("config.data.name", name, TABLE)
    if name in STREAMS and not prepared.is_prepared(folder):
        return STREAMS[name](folder, out, **_complete(name, options))
    prepared.place(out)  # before a load that may take long
    dataset = load(name, folder, options)
    made = (
        prepared.description(pathlib.Path(folder))["options"]
        if prepared.is_prepared(folder)
        else None
    )
    return prepared.write(dataset, out, _complete(name, options) if made is None else made)


__all__ = ["STREAMS", "TABLE", "Dataset", "load", "options_of", "prepare"]
