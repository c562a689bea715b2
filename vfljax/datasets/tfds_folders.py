"""Image sets prepared by TensorFlow Datasets, read without TensorFlow.

What enters: a folder. What leaves: encoded images, labels and names of the classes of one split.
Readable are the formats array_record and parquet; tfrecord, TFDS's default, needs TensorFlow. What
a record holds is taken from the installed TFDS's code, never from the folder's features.json.
"""

from __future__ import annotations

import json
import os
import pathlib
from typing import Any

import numpy as np

from vfljax.datasets.given import content, explained, fault, inside

READABLE = ("array_record", "parquet")
INFO = "dataset_info.json"
REMEDY = "prepare it anew with file_format='array_record'"


def locate(folder: pathlib.Path, name: str) -> pathlib.Path | None:
    """The version folder of ``name``: ``folder`` itself, or the newest of ``name/<version>`` in it.
    None where nothing of TFDS is there; UserError where it is but was never finished."""
    if (folder / INFO).is_file():
        return folder
    for parent in (folder / name, folder):
        if parent.is_dir() and parent.name == name:
            versions = [p for p in inside(parent) if p.is_dir() and _version(p.name)]
            ready = [p for p in versions if (p / INFO).is_file()]
            if ready:
                return max(ready, key=lambda p: _version(p.name))
            if versions:
                raise fault(
                    f"{versions[-1]} has no {INFO}: TFDS did not finish preparing it; {REMEDY}."
                )
    if any(p.name.startswith(f"{name}-") and "record" in p.name for p in inside(folder)):
        raise fault(f"{folder} holds shards of {name} and no {INFO}: {REMEDY}.")
    return None


def _version(name: str) -> tuple[int, ...]:
    parts = name.split(".")
    return tuple(map(int, parts)) if all(p.isdecimal() and p.isascii() for p in parts) else ()


def _json(path: pathlib.Path) -> Any:
    with explained(path, REMEDY):
        return json.loads(content(path))


def check(version: pathlib.Path, name: str) -> None:
    """Refuse another data set, or a format that only TensorFlow reads."""
    info = _json(version / INFO)
    known = info if isinstance(info, dict) else {}
    if known.get("name") != name:
        raise fault(
            f"{version / INFO} is of {known.get('name')!r} and not {name!r}: correct data.name or dir."
        )
    if known.get("fileFormat") not in READABLE:
        raise fault(
            f"{version} was prepared as {known.get('fileFormat') or 'tfrecord'}, which only "
            f"TensorFlow reads: {REMEDY}, e.g. tfds.builder({name!r}, "
            "file_format='array_record').download_and_prepare()."
        )


def _builder(version: pathlib.Path, name: str) -> Any:
    """The installed official builder of ``name`` at this folder.

    Features come from its code: TFDS imports whatever module a folder's features.json names, so a
    builder is never made of the folder itself, as ``tfds.builder`` may do.
    """
    import tensorflow_datasets as tfds

    home = pathlib.Path(os.path.abspath(version))
    official: Any = tfds.builder_cls(name)
    builder = official(data_dir=home.parent.parent)
    if pathlib.Path(builder.data_dir) != home:
        raise fault(
            f"{home} does not end in {name}/{builder.version}, where the installed "
            f"tensorflow_datasets looks: keep that path, or {REMEDY}."
        )
    return builder


def split(
    version: pathlib.Path, name: str, part: str, label: str, rows: int
) -> tuple[list[bytes], np.ndarray, tuple[str, ...]]:
    """The first ``rows`` (0: all) encoded images and labels of a split, and the classes' names (()
    where TFDS knows none)."""
    import tensorflow_datasets as tfds

    with explained(f"{version}, split {part!r},", REMEDY):
        builder = _builder(version, name)
        encoded: Any = tfds.decode.SkipDecoding
        source = builder.as_data_source(part, decoders={"image": encoded()})
        total = len(source)
        examples = [source[i] for i in range(min(rows, total) if rows else total)]
        images = [bytes(example["image"]) for example in examples]
        labels = np.array([example[label] for example in examples], np.int64)
        names = tuple(builder.info.features[label].names)
    return images, labels, () if all(name.isdecimal() for name in names) else names
