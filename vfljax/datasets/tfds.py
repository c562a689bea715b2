"""Sets prepared by TensorFlow Datasets, read without TensorFlow.

What enters: a folder. What leaves: examples, as TFDS has them, or pixels, labels and names of the classes.
Readable are the formats array_record and parquet; tfrecord, TFDS's default, needs TensorFlow. What a record
holds is taken from the installed TFDS's code, never from the folder's features.json: TFDS imports whatever
module that file names, so a builder is never made of the folder itself, as ``tfds.builder`` may do.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from vfljax.datasets.files import content, inside
from vfljax.datasets.images import decoded
from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import Field

READABLE = ("array_record", "parquet")
INFO = "dataset_info.json"
VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")


def _remedy(name: str) -> str:
    builder = f"tfds.builder({name!r}, data_dir=FOLDER, file_format='array_record')"
    return f"prepare it in a new folder, where TensorFlow is: {builder}.download_and_prepare()"


def locate(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """The version folder of ``name``: ``folder`` itself, or the newest of ``name/<version>`` in it.
    None where nothing of TFDS is there; UserError where it is but was never finished."""
    if (folder / INFO).is_file():
        return folder
    parents = [p for p in (folder / name, folder) if p.is_dir() and p.name == name]
    versions = [p for parent in parents for p in inside(parent) if VERSION.fullmatch(p.name)]
    ready = [p for p in versions if (p / INFO).is_file()]
    if ready:
        return max(ready, key=lambda p: tuple(map(int, p.name.split("."))))
    shards = [p for p in inside(folder) if p.name.startswith(f"{name}-") and "record" in p.name]
    if versions or shards:
        return versions[-1] if versions else folder
    return None


def examples(
    version: pathlib.Path,
    name: str,
    split: str,
    variant: Any = None,
    most: int = 0,
    **decoders: Any,
) -> tuple[Any, list[Any]]:
    """(the features of ``name``, the first ``most`` (0: all) examples of a split) in a version folder."""
    import tensorflow_datasets

    remedy = _remedy(f"{name}/{variant}" if variant else name)
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
        raise fault(
            version / INFO, what, ("correct ", Field("data.name"), " or ", Field("data.dir"))
        )
    home = pathlib.Path(os.path.abspath(version))
    official: Any = tensorflow_datasets.builder_cls(name)
    with reading(f"{version}, split {split!r}", remedy):
        builder = official(data_dir=home.parents[2 if variant else 1], config=variant)
        if pathlib.Path(builder.data_dir) != home:
            where = f"{name}/{builder.version}, where the installed tensorflow_datasets looks"
            raise fault(home, f"does not end in {where}", f"keep that path, or {remedy}")
        source = builder.as_data_source(split, decoders=decoders or None)
        rows = range(min(most or len(source), len(source)))
        records = [source[row] for row in rows]
        for row, record in enumerate(
            records
        ):  # damaged Parquet can hold nulls, which TFDS never writes
            lacking = [name for name, value in record.items() if value is None]
            if lacking:
                raise ValueError(f"row {row + 1} has no {lacking[0]}")
        return builder.info.features, records


def parts(
    version: pathlib.Path, name: str, label: str, rows: Sequence[int]
) -> tuple[list[tuple[np.ndarray, np.ndarray]], tuple[str, ...]]:
    """(pixels [R, 32, 32, 3], labels [R]) of train and test, each its first ``rows`` (0: all), and the
    classes' names (() where TFDS knows none)."""
    from tensorflow_datasets import decode

    encoded: Any = decode.SkipDecoding
    out, names = [], ()
    for split, most in zip(("train", "test"), rows, strict=True):
        features, records = examples(version, name, split, most=most, image=encoded())
        if not records:
            raise fault(f"{version}, split {split!r}", "has no row", _remedy(name))
        names = tuple(features[label].names)
        images = (bytes(record["image"]) for record in records)
        labels = np.array([record[label] for record in records], np.int64)
        where = [f"{version}, {split} row {row + 1}" for row in range(len(records))]
        out.append((decoded(enumerate(images), where, shape=(32, 32)), labels))
    return out, () if all(class_name.isdecimal() for class_name in names) else names
