"""Converters of published data sets: name -> ``convert(folder, **options) -> Conversion``.

A converter reads the publisher's files once; what it returns is written as a prepared folder.
"""

from __future__ import annotations

from collections.abc import Callable

from vfljax.datasets.core import Conversion

TABLE: dict[str, Callable[..., Conversion]] = {}
