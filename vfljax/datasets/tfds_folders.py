"""Image sets prepared by TensorFlow Datasets, read without TensorFlow.

What enters: a folder. What leaves: encoded images, labels and names of the classes of one split.
Readable are the formats array_record and parquet; tfrecord, TFDS's default, needs TensorFlow.
"""

from __future__ import annotations

import json
import pathlib
from typing import Any

import numpy as np

from vfljax.datasets.given import content, explained, fault, inside

READABLE = ("array_record", "parquet")
INFO, FEATURES = "dataset_info.json", "features.json"
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
    """Refuse another data set, an unreadable format, or features that are not TFDS's own."""
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
    pending = [_json(version / FEATURES)]
    while pending:  # TFDS imports whatever class these name
        node = pending.pop()
        if isinstance(node, dict):
            own = node.get("pythonClassName", "tensorflow_datasets.core.features.")
            if not str(own).startswith("tensorflow_datasets.core.features."):
                raise fault(f"{version / FEATURES} names {own!r}, no feature of TFDS: {REMEDY}.")
            pending += node.values()
        elif isinstance(node, list):
            pending += node


def split(
    version: pathlib.Path, part: str, label: str, rows: int
) -> tuple[list[bytes], np.ndarray, tuple[str, ...]]:
    """The first ``rows`` (0: all) encoded images and labels of a split, and the classes' names (()
    where TFDS knows none)."""
    import tensorflow_datasets as tfds

    with explained(f"{version}, split {part!r},", REMEDY):
        builder: Any = tfds.builder_from_directory(version)
        encoded: Any = tfds.decode.SkipDecoding
        source = builder.as_data_source(part, decoders={"image": encoded()})
        total = len(source)
        examples = [source[i] for i in range(min(rows, total) if rows else total)]
        images = [bytes(example["image"]) for example in examples]
        labels = np.array([example[label] for example in examples], np.int64)
        names = tuple(builder.info.features[label].names)
    return images, labels, () if all(name.isdecimal() for name in names) else names
