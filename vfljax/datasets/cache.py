"""The cache of converted data sets: a publisher's files are read once, and then the prepared folder is mapped.

A converted set lies beside the publisher's folder or file, in ``.vfljax/NAME-KEY``; if that cannot be written,
below ``~/.cache/vfljax/datasets`` (``XDG_CACHE_HOME``). The environment variable ``VFLJAX_DATA_CACHE`` names
another folder. The key is a hash of the converter's name and version, the options, and the paths, sizes and
times of change of the publisher's files. A folder of the cache may be removed at any time: its files are
converted again.
"""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vfljax.datasets import prepared
from vfljax.datasets.core import Block, Conversion, Dataset
from vfljax.datasets.files import files_below
from vfljax.errors import UserError, user_path

VARIABLE = "VFLJAX_DATA_CACHE"
SECONDS = 10  # between two lines of progress


def places(
    name: str, source: str, version: int, options: Mapping[str, Any]
) -> tuple[pathlib.Path, ...]:
    """Returns the folders where a converted set may lie, in the order in which they are tried.

    Args:
      name: the converter's.
      source: absolute path of the publisher's folder or file.
      version: of the converter's rules.
      options: all options of the converter, as JSON holds them. A text that is the path of a file, such as a
        vocabulary, stands for that file.
    """
    texts = (os.path.expanduser(value) for value in options.values() if isinstance(value, str))
    named = [text for text in texts if os.path.isfile(text)]
    read = [*_stats(source), *(stat for path in named for stat in _stats(path))]
    parts = [name, version, prepared.SCHEMA, options, read]
    key = hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:12]
    folder = f"{name}-{key}"
    if chosen := os.environ.get(VARIABLE):
        return (user_path(chosen, VARIABLE) / folder,)
    beside = pathlib.Path(source).parent / ".vfljax"
    home = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))
    # relative: XDG asks to ignore it, and without a home folder "~" stays
    below_home = (home / "vfljax" / "datasets" / folder,) if home.is_absolute() else ()
    return beside / folder, *below_home


def _stats(source: str) -> Iterator[tuple[str, int, int]]:
    """Yields (path below a folder, size, time of change) of each of its files, or of a file itself."""
    for name in files_below(source) if os.path.isdir(source) else ("",):
        path = os.path.join(source, name) if name else source
        if os.path.exists(path):  # no broken link
            stat = os.stat(path)
            yield name, stat.st_size, stat.st_mtime_ns


def found(places: Sequence[pathlib.Path]) -> pathlib.Path | None:
    """Returns the first place that holds a converted set, None if there is none."""
    # False also for a folder of another user that may not be entered
    return next((place for place in places if os.path.isfile(place / prepared.FILE)), None)


def write(
    conversion: Conversion,
    places: Sequence[pathlib.Path],
    options: Mapping[str, Any],
    loader: str,
    version: int,
) -> Dataset:
    """Writes a conversion to the first place that can be written, and returns it as it is read back.

    A process that finds the set there, because another one was faster, drops its own.

    Args:
      conversion: not read yet.
      places: as ``places`` returns them.
      options, loader, version: as of ``prepared.write``.

    Raises:
      UserError: for a fault of the publisher's files, or if no place can be written.
    """
    place = next((place for place in places if _is_writable(place.parent)), places[0])
    try:
        data = prepared.write(with_progress(conversion), place, options, loader, version)
    except UserError:
        if not found([place]):
            raise
        return prepared.read(place)
    print(f"converted {conversion.name}, {len(data.labels):,} rows: {place}", file=sys.stderr)
    return data


def _is_writable(folder: pathlib.Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def with_progress(conversion: Conversion) -> Conversion:
    """Returns a conversion that prints a line every ten seconds while its rows are read."""

    def blocks() -> Iterator[Block]:
        rows, last = 0, time.monotonic()
        for block in conversion.blocks:
            yield block
            rows += len(block.labels)
            if time.monotonic() - last > SECONDS:
                last = time.monotonic()
                print(f"converting {conversion.name}: {rows:,} rows so far", file=sys.stderr)

    return conversion._replace(blocks=blocks())
