"""Reads sets that TensorFlow Datasets (TFDS) prepared, without TensorFlow.

The formats array_record and parquet can be read; tfrecord, TFDS's default, needs TensorFlow. The fields of a
record are taken from the code of the installed TFDS, never from the folder's features.json: TFDS imports any
module that this file names, so a builder is never made from the folder itself, as ``tfds.builder`` may do.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from typing import Any

from vfljax.datasets.files import content, inside
from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import Field

READABLE = ("array_record", "parquet")
INFO = "dataset_info.json"
VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")


def locate(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """Returns the folder in which TFDS prepared a data set; None if nothing of it is there.

    Args:
      folder: the version folder, or a folder that holds ``name/<version>``; the newest version is taken.
      name: of the data set.
    """
    if (folder / INFO).is_file():
        return folder
    parents = [p for p in (folder / name, folder) if p.is_dir() and p.name == name]
    versions = [p for parent in parents for p in inside(parent) if VERSION.fullmatch(p.name)]
    ready = [p for p in versions if (p / INFO).is_file()]
    if ready:
        return max(ready, key=lambda p: tuple(map(int, p.name.split("."))))
    # a version that was never finished, which ``examples`` refuses
    shards = [p for p in inside(folder) if p.name.startswith(f"{name}-") and "record" in p.name]
    return versions[-1] if versions else folder if shards else None


def examples(
    version: pathlib.Path, name: str, split: str, most: int = 0, **decoders: Any
) -> tuple[Any, list[Any]]:
    """Reads a split.

    Args:
      version: the version folder.
      name: of the data set.
      split: its name.
      most: the number of examples to read, from the first on; 0 is all.
      **decoders: TFDS's decoders, by field.

    Returns:
      TFDS's features of the data set, and the examples.

    Raises:
      UserError: for a folder of another format, set or version, and for an unfinished or damaged one.
    """
    import tensorflow_datasets

    builder = f"tfds.builder({name!r}, data_dir=FOLDER, file_format='array_record')"
    remedy = f"prepare it in a new folder, where TensorFlow is: {builder}.download_and_prepare()"
    if not (version / INFO).is_file():
        raise fault(version, f"has no {INFO}: TFDS did not finish preparing it", remedy)
    with reading(version / INFO, remedy):
        info = json.loads(content(version / INFO))
        if not isinstance(info, dict):
            raise ValueError("no description")
    form = info.get("fileFormat") or "tfrecord"
    if form not in READABLE:
        raise fault(version, f"was prepared as {form!r}, which only TensorFlow reads", remedy)
    if info.get("name") != name:
        what = f"is of {info.get('name')!r} and not {name!r}"
        fields = ("correct ", Field("data.name"), " or ", Field("data.dir"))
        raise fault(version / INFO, what, fields)
    home = pathlib.Path(os.path.abspath(version))
    official: Any = tensorflow_datasets.builder_cls(name)
    with reading(f"{version}, split {split!r}", remedy):
        builder = official(data_dir=home.parents[1])
        if pathlib.Path(builder.data_dir) != home:
            where = f"{name}/{builder.version}, where the installed tensorflow_datasets looks"
            raise fault(home, f"does not end in {where}", f"keep that path, or {remedy}")
        source = builder.as_data_source(split, decoders=decoders or None)
        if not len(source):
            raise ValueError("it has no row")
        records = [source[row] for row in range(min(most or len(source), len(source)))]
        for row, record in enumerate(records):
            # damaged Parquet can hold nulls, which TFDS never writes
            lacking = [field for field, value in record.items() if value is None]
            if lacking:
                raise ValueError(f"row {row + 1} has no {lacking[0]}")
        return builder.info.features, records
