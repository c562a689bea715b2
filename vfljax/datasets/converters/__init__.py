"""Converters of published data sets: name -> ``convert(folder, **options) -> Conversion``.

A converter reads the publisher's files once; what it returns is written as a prepared folder.
"""

from __future__ import annotations

from collections.abc import Callable

from vfljax.datasets.converters.avazu import avazu
from vfljax.datasets.converters.criteo import criteo
from vfljax.datasets.converters.imdb import imdb
from vfljax.datasets.converters.yahoo import yahoo
from vfljax.datasets.core import Conversion

TABLE: dict[str, Callable[..., Conversion]] = {
    "criteo": criteo,
    "avazu": avazu,
    "imdb": imdb,
    "yahoo": yahoo,
}
