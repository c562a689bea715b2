"""Converters of published data sets: name -> ``convert(folder, **options) -> Conversion``.

A converter reads the publisher's files once; what it returns is written as a prepared folder. Its keyword-only
parameters are its options (``config.data.options``). A new published data set is one file here and one row of
``TABLE``; a converter that begins to read the same files differently gets a new version in
``datasets.READERS``.
"""

from __future__ import annotations

from collections.abc import Callable

from vfljax.datasets.converters.avazu import avazu
from vfljax.datasets.converters.bhi import bhi
from vfljax.datasets.converters.cifar import cifar10, cifar100, cinic10
from vfljax.datasets.converters.criteo import criteo
from vfljax.datasets.converters.imdb import imdb
from vfljax.datasets.converters.isic import isic
from vfljax.datasets.converters.spambase import spambase
from vfljax.datasets.converters.yahoo import yahoo
from vfljax.datasets.core import Conversion

TABLE: dict[str, Callable[..., Conversion]] = {
    "spambase": spambase,
    "cifar10": cifar10,
    "cifar100": cifar100,
    "cinic10": cinic10,
    "isic": isic,
    "ham10000": isic,
    "bhi": bhi,
    "criteo": criteo,
    "avazu": avazu,
    "imdb": imdb,
    "yahoo": yahoo,
}
