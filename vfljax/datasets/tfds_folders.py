"""Image sets prepared by TensorFlow Datasets, read without TensorFlow.

What enters: a folder. What leaves: pixels, labels and names of the classes. Readable are the
formats array_record and parquet; tfrecord, TFDS's default, needs TensorFlow. What a record holds is
taken from the installed TFDS's code, never from the folder's features.json.
"""

from __future__ import annotations

import json
import os
import pathlib
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from vfljax.datasets.given import content, explained, fault, inside
from vfljax.datasets.images import decoded

READABLE = ("array_record", "parquet")
INFO = "dataset_info.json"
VERSION = re.compile(r"[0-9]+(\.[0-9]+)*")
REMEDY = "prepare it anew with file_format='array_record'"


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
        place = versions[-1] if versions else folder
        raise fault(f"{place} has no {INFO}: TFDS did not finish preparing it; {REMEDY}.")
    return None


def _check(version: pathlib.Path, name: str) -> None:
    """Refuse another data set, or a format that only TensorFlow reads."""
    with explained(version / INFO, REMEDY):
        info = dict(json.loads(content(version / INFO)))
    of, form = info.get("name"), info.get("fileFormat") or "tfrecord"
    if of != name:
        raise fault(f"{version / INFO} is of {of!r} and not {name!r}: correct data.name or dir.")
    if form not in READABLE:
        raise fault(
            f"{version} was prepared as {form}, which only TensorFlow reads: {REMEDY}: "
            f"tfds.builder({name!r}, file_format='array_record').download_and_prepare()."
        )


def parts(
    version: pathlib.Path, name: str, label: str, rows: Sequence[int]
) -> tuple[list[tuple[np.ndarray, np.ndarray]], tuple[str, ...]]:
    """(pixels [R, 32, 32, 3], labels [R]) of train and test, each its first ``rows`` (0: all), and the
    classes' names (() where TFDS knows none).

    Features come from the installed official builder's code: TFDS imports whatever module a folder's
    features.json names, so a builder is never made of the folder itself, as ``tfds.builder`` may do.
    """
    import tensorflow_datasets as tfds

    _check(version, name)
    home = pathlib.Path(os.path.abspath(version))
    official: Any = tfds.builder_cls(name)
    encoded: Any = tfds.decode.SkipDecoding
    out, names = [], ()
    for part, most in zip(("train", "test"), rows, strict=True):
        with explained(f"{version}, split {part!r},", REMEDY):
            builder = official(data_dir=home.parent.parent)
            if pathlib.Path(builder.data_dir) != home:
                place = f"{name}/{builder.version}, where the installed tensorflow_datasets looks"
                raise fault(f"{home} does not end in {place}: keep that path, or {REMEDY}.")
            source = builder.as_data_source(part, decoders={"image": encoded()})
            total = len(source)
            examples = [source[at] for at in range(min(most or total, total))]
            files = [bytes(example["image"]) for example in examples]
            labels = np.array([example[label] for example in examples], np.int64)
            names = tuple(builder.info.features[label].names)
        if not files:
            raise fault(f"{version}: split {part!r} has no row: {REMEDY}.")
        where = [f"{version}, {part} row {row + 1}" for row in range(len(files))]
        out.append((decoded(iter(enumerate(files)), where, shape=(32, 32)), labels))
    return out, () if all(one.isdecimal() for one in names) else names
