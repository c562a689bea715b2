"""The prepared form: a folder that holds a ``Dataset`` as memory-mapped arrays.

The folder has ``vfljax.json``, which describes the set, ``features.npy`` (for texts ``values.npy`` and
``offsets.npy``), ``labels.npy`` and, if the set has them, ``test.npy`` and ``groups.npy``. It is written as a
sibling ``.NAME.partial-*``, which nothing reads, and renamed when it is complete. Nothing is pickled.

Features larger than ``data.resident_gb`` stay in their file and are fetched a batch at a time, however
columns or pixels are divided; texts are padded in memory, at 4 bytes a token.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import uuid
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import Meta

from vfljax.datasets.core import (
    Block,
    Column,
    Conversion,
    Dataset,
    Ragged,
    SourceColumn,
    Vocabulary,
    sum_of_arrays,
)
from vfljax.datasets.npy import AGAIN, Growing, mapped
from vfljax.datasets.table_errors import fault, reading
from vfljax.errors import Field, UserError, short_path, user_path

Folder = str | os.PathLike[str]
# the fields of a ``Dataset`` that ``vfljax.json`` records as they are
ABOUT = ("kind", "columns", "classes", "tokens", "length", "notes", "reader", "sources")

SCHEMA = 2
FILE, DIR = "vfljax.json", Field("data.dir")
RANKS = {"table": (2,), "image": (3, 4), "patches": (5,)}


class Description(msgspec.Struct):
    """The fields of ``vfljax.json`` that describe a ``Dataset``, whose types say which values they may have."""

    name: Annotated[str, Meta(min_length=1)]
    kind: Literal["table", "image", "patches", "text"]
    num_classes: Annotated[int, Meta(ge=1, lt=1 << 31)]
    columns: tuple[Column, ...]
    classes: tuple[str, ...]
    tokens: Vocabulary | None
    length: Annotated[int, Meta(ge=3)]  # two of a party's tokens are special
    notes: tuple[str, ...]
    # an earlier vfljax wrote none of these two
    reader: Annotated[int, Meta(ge=1)] = 1
    sources: tuple[SourceColumn, ...] = ()


def place(folder: Folder) -> pathlib.Path:
    """Returns the absolute path of a new folder; raises UserError if the path is taken."""
    if not str(folder):
        raise UserError("the folder to prepare into is empty: give one.")
    path = user_path(folder)
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise UserError(f"{path} exists and is not overwritten: name a new folder.")
    return path


def write(
    data: Dataset | Conversion,
    folder: Folder,
    options: Any = None,
    loader: str = "",
    reader: int = 0,
) -> Dataset:
    """Writes a data set and returns it as it is read back.

    Rows of a ``Conversion`` are written block by block, so that memory does not grow with their number. If
    writing ends by an exception, no file is left behind.

    Args:
      data: of any kind.
      folder: a new folder.
      options: the loader's options that made the rows.
      loader: the loader's name in the table of data sets; if "", the folder is loaded by the name "prepared".
      reader: the version of the loader's rules; 0 is that of ``data``.

    Raises:
      UserError: as ``place`` does, if the folder cannot be written, or if the rows are no data set.
    """
    path, rows = place(folder), _blocks_of(data)
    with _writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # unlike tempfile.mkdtemp, which gives access to the owner alone
        partial = path.parent / f".{path.name}.partial-{uuid.uuid4().hex[:12]}"
        partial.mkdir()
    files: dict[str, Growing] = {}
    present: set[int] = set()
    try:
        for block in rows.blocks:
            present.update(np.unique(block.labels).tolist())
            with _writing(path):
                _append(files, block, partial)
        if len(present) < 2:
            held = f"all labels are {min(present)}" if present else "there are no rows"
            raise UserError(f"{rows.name}: {held}: at least two labels are needed.")
        about: dict[str, Any] = {**rows.about, **({"reader": reader} if reader else {})}
        described = Dataset(rows.name, None, np.zeros(0), rows.num_classes, **about)
        spec = {
            "schema": SCHEMA,
            "name": rows.name,
            "num_classes": rows.num_classes,
            **{field: getattr(described, field) for field in ABOUT},
            "loader": loader,
            "options": dict(options or {}),
            "arrays": {
                name: {"dtype": str(file.dtype), "shape": [file.rows, *file.shape]}
                for name, file in files.items()
            },
        }
        with _writing(path):
            _finish(files, spec, partial)
            read(partial)  # a folder that cannot be read back must not appear
            os.replace(partial, path)  # which does not exist, or is empty
    finally:
        for file in files.values():
            with contextlib.suppress(OSError):  # a full disk raises again
                file.close()
        shutil.rmtree(partial, ignore_errors=True)
    return read(path)


def _blocks_of(data: Dataset | Conversion) -> Conversion:
    if isinstance(data, Conversion):
        return data
    about = {field: getattr(data, field) for field in ABOUT}
    block = Block(data.features, data.labels, data.test, data.groups)
    return Conversion(data.name, data.num_classes, [block], about)


@contextlib.contextmanager
def _writing(folder: pathlib.Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise UserError(f"{folder} cannot be written: {error}.") from error


def _append(files: dict[str, Growing], block: Block, folder: pathlib.Path) -> None:
    """Appends rows to the files of their arrays, which are made for the first block."""
    features, *others = block
    if isinstance(features, Ragged):
        before = files["values"].rows if "values" in files else 0
        shared = int("offsets" in files)  # a block starts where the last one ended
        arrays = {"values": features.values, "offsets": (features.offsets + before)[shared:]}
    else:
        arrays = {"features": features}
    for name, array in (arrays | dict(zip(Block._fields[1:], others))).items():
        if array is not None:
            if name not in files:
                files[name] = Growing(folder / f"{name}.npy", array)
            files[name].append(array)


def _finish(files: Mapping[str, Growing], spec: dict[str, Any], folder: pathlib.Path) -> None:
    """Closes the files of arrays, and writes the description with their hashes."""
    for file in files.values():
        file.finish()
    spec |= _sums(_mapped(folder, spec))
    spec["sha256_description"] = sum_of(spec)
    with open(folder / FILE, "w", encoding="utf-8") as file:
        json.dump(spec, file, indent=1)
        file.flush()
        os.fsync(file.fileno())


def is_prepared(folder: Folder) -> bool:
    """Returns True if the folder holds ``vfljax.json``; raises UserError if it may not be read."""
    with reading(folder):
        return bool(str(folder)) and (user_path(folder, DIR) / FILE).is_file()


def read(folder: Folder) -> Dataset:
    """Returns the data set in ``folder``. Features are mapped read-only; labels, test part and groups are in
    memory. Raises UserError if arrays and description do not fit together. Only ``verify`` looks at the
    values of features."""
    path = user_path(folder, DIR)
    spec = description(path)
    arrays = _mapped(path, spec)
    small = {n: np.array(a) for n, a in arrays.items() if n not in ("features", "values")}
    with reading(path / FILE, AGAIN):
        about = msgspec.convert(spec, Description)
    _agree(path / FILE, about, arrays | small)
    text = about.kind == "text"
    return Dataset(
        about.name,
        Ragged(arrays["values"], small["offsets"]) if text else arrays["features"],
        small["labels"],
        about.num_classes,
        test=small.get("test"),
        groups=small.get("groups"),
        **{field: getattr(about, field) for field in ABOUT},
    )


def verify(folder: Folder) -> Dataset:
    """Reads a data set as ``read`` does; raises UserError unless the hash of every array is as recorded."""
    dataset, spec, path = read(folder), description(folder), user_path(folder, DIR)
    for key, digest in _sums(_mapped(path, spec)).items():
        _must(path, spec[key] == digest, f"holds arrays that are not what was recorded ({key})")
    return dataset


def prepared(folder: str) -> Dataset:
    """Reads a prepared data set from its folder, whichever loader made it."""
    if not is_prepared(folder):
        what = f"is not a prepared data set (no {FILE})"
        raise UserError(
            what, field="data.dir", value=short_path(folder), remedy="prepare one there"
        )
    return read(folder)


def description(folder: Folder) -> dict[str, Any]:
    """Returns what ``vfljax.json`` holds; raises UserError unless its schema and its own hash are right."""
    path = user_path(folder, DIR) / FILE
    with reading(path, AGAIN):
        spec = json.loads(path.read_text(encoding="utf-8"))
        spec = spec if type(spec) is dict else {}
    _must(path, spec.get("schema") == SCHEMA, f"is not of schema {SCHEMA}")
    recorded = spec.get("sha256_description") == sum_of(spec)
    _must(path, recorded, "is not what was recorded: it was changed")
    return spec


def _agree(path: pathlib.Path, about: Description, arrays: Mapping[str, np.ndarray]) -> None:
    """Raises UserError unless the arrays have one length and fit the kind and the classes described."""
    classes, kind, named = about.num_classes, about.kind, len(about.classes)
    needed = {"values", "offsets", "labels"} if kind == "text" else {"features", "labels"}
    _must(path, set(arrays) - {"test", "groups"} == needed, f"has the arrays {sorted(arrays)}")
    right = (about.tokens is not None) == (kind == "text")
    _must(path, right, "has tokens and no text, or none: tokens are of texts alone")
    _must(path, named in (0, classes), f"names {named} of {classes} classes")
    labels = arrays["labels"]
    rows = labels.shape[0] if labels.ndim == 1 else -1
    whole = classes > 1  # else labels are numbers
    kinds, what = ("iu", "integer") if whole else ("f", "float")
    _must(path, labels.dtype.kind in kinds and rows > 0, f"has not one {what} label a row")
    outside = (labels < 0) | (labels >= classes) if whole else ~np.isfinite(labels)
    for row in np.flatnonzero(outside)[:1]:
        _must(path, False, f"has label {labels[row]} in row {row + 1} of {classes} classes")
    for name, kinds in (("test", "b"), ("groups", "iu")):
        array = arrays.get(name, np.zeros(rows, bool if kinds == "b" else int))
        right = array.shape == (rows,) and array.dtype.kind in kinds and array.min() >= 0
        _must(path, right, f"has not one value a row in {name}, or not of its type")
    if kind == "text":
        values, offsets = arrays["values"], arrays["offsets"]
        right = values.ndim == 1 and values.dtype.kind == "i" and offsets.dtype.kind == "i"
        _must(path, right, "has values and offsets that are not rows of integers")
        rising = offsets.shape == (rows + 1,) and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
        right = rising and offsets[-1] == len(values)
        _must(path, bool(right), "has offsets that do not divide the values into rows")
        return
    shape, columns = arrays["features"].shape, about.columns
    right = len(shape) in RANKS[kind] and shape[0] == rows
    _must(path, right, f"has features {shape}, which are no {kind} of {rows} rows")
    right = not columns or (kind == "table" and len(columns) == shape[1])
    _must(path, right, f"names {len(columns)} columns of features {shape}")


def _must(path: pathlib.Path, right: bool, what: str) -> None:
    if not right:
        raise fault(path, what, AGAIN)


def sum_of(spec: Mapping[str, Any]) -> str:
    """Returns the SHA-256 of a description without ``sha256_description``, as JSON with sorted names."""
    fields = {field: value for field, value in spec.items() if field != "sha256_description"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def _mapped(folder: pathlib.Path, spec: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Returns the arrays that a description names, mapped from their files in ``folder``."""
    return {
        name: mapped(folder / f"{name}.npy", about["dtype"], about["shape"])
        for name, about in spec["arrays"].items()
    }


def _sums(arrays: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Returns two SHA-256 sums of types, shapes and bytes: ``sha256``, which equals ``core.checksum``, and
    ``sha256_parts``, of the test part and groups."""
    main = ("values", "offsets", "labels") if "values" in arrays else ("features", "labels")
    return {
        key: sum_of_arrays(arrays[name] for name in names if name in arrays)
        for key, names in (("sha256", main), ("sha256_parts", ("test", "groups")))
    }
