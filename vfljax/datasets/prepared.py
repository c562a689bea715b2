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
import tempfile
from collections.abc import Mapping
from typing import Any

import numpy as np

from vfljax.datasets.core import (
    KINDS,
    Column,
    Dataset,
    Ragged,
    SourceColumn,
    Vocabulary,
    sum_of_arrays,
)
from vfljax.datasets.npy import AGAIN, Growing, mapped
from vfljax.datasets.table_errors import fault, reading, shown
from vfljax.errors import Field, UserError, user_path
from vfljax.errors import shown as short

Folder = str | os.PathLike[str]
# the fields of a ``Dataset`` that ``vfljax.json`` records as they are
ABOUT = ("kind", "columns", "classes", "tokens", "length", "notes", "reader", "sources")

SCHEMA = 2
MOST = 1 << 31  # numbers of classes, codes and tokens are below it
FILE, DIR = "vfljax.json", Field("data.dir")
RANKS = {"table": (2,), "image": (3, 4), "patches": (5,)}


class Writer:
    """Writes a data set block by block; its memory does not grow with the number of rows.

    ``with begin(folder) as writer: writer.append(...); ...; writer.finish(...)``. If the block ends
    without ``finish``, or by an exception, no file is left behind.
    """

    def __init__(self, folder: pathlib.Path, partial: pathlib.Path) -> None:
        self.folder, self.partial = folder, partial
        self._files: dict[str, Growing] = {}
        self._classes: set[int] = set()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):  # a full disk raises again
                file.close()
        shutil.rmtree(self.partial, ignore_errors=True)
        if isinstance(error, OSError):
            raise UserError(f"{self.folder} cannot be written: {error}.") from error

    def append(
        self, features: Any, labels: np.ndarray, *, test: Any = None, groups: Any = None
    ) -> None:
        """Adds rows.

        Args:
          features: [r, ...], or a ``Ragged``.
          labels: [r].
          test: [r], whether rows are of the published test part; given for all blocks or for none.
          groups: [r]; likewise.
        """
        if isinstance(features, Ragged):
            before = self._files["values"].rows if "values" in self._files else 0
            shared = int("offsets" in self._files)  # a block starts where the last one ended
            arrays = {"values": features.values, "offsets": (features.offsets + before)[shared:]}
        else:
            arrays = {"features": features}
        self._classes.update(np.unique(labels).tolist())
        for name, array in {**arrays, "labels": labels, "test": test, "groups": groups}.items():
            if array is not None:
                if name not in self._files:
                    self._files[name] = Growing(self.partial / f"{name}.npy", array)
                self._files[name].append(array)

    def finish(
        self, name: str, num_classes: int, *, options: Any = None, loader: str = "", **about: Any
    ) -> Dataset:
        """Closes the files, describes them, renames the folder to its own name and returns its ``Dataset``.

        Args:
          name: of the data set.
          num_classes: C.
          options: the loader's options that made the rows.
          loader: the loader's name in the table of data sets; "" for rows of no loader.
          **about: the fields of a ``Dataset`` that ``ABOUT`` lists.
        """
        if len(self._classes) < 2:
            held = f"all labels are {min(self._classes)}" if self._classes else "there are no rows"
            raise UserError(f"{name}: {held}: at least two classes are needed.")
        for file in self._files.values():
            file.finish()
        described = Dataset(name, None, np.zeros(0), num_classes, **about)
        spec = {
            "schema": SCHEMA,
            "name": name,
            "num_classes": num_classes,
            **{field: getattr(described, field) for field in ABOUT},
            "loader": loader,
            "options": dict(options or {}),
            "arrays": {
                array: {"dtype": str(file.dtype), "shape": [file.rows, *file.shape]}
                for array, file in self._files.items()
            },
        }
        spec |= _sums(_mapped(self.partial, spec))
        spec["sha256_description"] = sum_of(spec)
        with open(self.partial / FILE, "w", encoding="utf-8") as file:
            json.dump(spec, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        read(self.partial)  # a folder that cannot be read back must not appear
        os.replace(self.partial, self.folder)  # which does not exist, or is empty
        return read(self.folder)


def place(folder: Folder) -> pathlib.Path:
    """Returns the absolute path of a new folder; raises UserError if the path is taken."""
    if not str(folder):
        raise UserError("the folder to prepare into is empty: give one.")
    path = user_path(folder)
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise UserError(f"{path} exists and is not overwritten: name a new folder.")
    return path


def begin(folder: Folder) -> Writer:
    """Returns a ``Writer`` of a new folder; raises UserError as ``place`` does, or if it cannot be made."""
    path = place(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent)
        os.chmod(partial, 0o755)  # mkdtemp gives access to the owner alone
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error}.") from error
    return Writer(path, pathlib.Path(partial))


def write(dataset: Dataset, folder: Folder, options: Any = None, loader: str = "") -> Dataset:
    """Writes a whole data set and returns it as it is read back.

    Args:
      dataset: of any kind.
      folder: a new folder.
      options: as of ``Writer.finish``.
      loader: as of ``Writer.finish``; if "", the folder is loaded by the name "prepared".
    """
    with begin(folder) as writer:
        writer.append(dataset.features, dataset.labels, test=dataset.test, groups=dataset.groups)
        about: Any = {field: getattr(dataset, field) for field in ABOUT}
        name, classes = dataset.name, dataset.num_classes
        return writer.finish(name, classes, options=options, loader=loader, **about)


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
    _agree(path / FILE, spec, arrays | small)
    tokens = spec["tokens"] and Vocabulary(*spec["tokens"])
    return Dataset(
        spec["name"],
        Ragged(arrays["values"], small["offsets"]) if tokens else arrays["features"],
        small["labels"],
        spec["num_classes"],
        spec["kind"],
        tuple(Column(*column) for column in spec["columns"]),
        tuple(spec["classes"]),
        small.get("test"),
        small.get("groups"),
        tokens,
        spec["length"],
        tuple(spec["notes"]),
        spec.get("reader") or 1,  # a folder of an earlier vfljax has none
        sources=tuple(SourceColumn(*source) for source in spec.get("sources", ())),  # likewise
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
        raise UserError(what, field="data.dir", value=short(folder), remedy="prepare one there")
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


def _agree(path: pathlib.Path, spec: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Raises UserError unless every field of the description is valid, and the arrays have one length and fit
    the kind and the classes that are described."""
    fields = {  # including those that a caller of ``Writer.finish`` gave
        "name": _are([spec["name"]], str),
        "kind": spec["kind"] in KINDS,
        "num_classes": _are([spec["num_classes"]], int, range(2, MOST)),
        "columns": type(spec["columns"]) is list and all(map(_is_column, spec["columns"])),
        "classes": _are(spec["classes"], str),
        "tokens": spec["tokens"] is None or _are(spec["tokens"], int, range(MOST)),
        "length": _are([spec["length"]], int, range(1, MOST)),
        "notes": _are(spec["notes"], str),
        "loader": _are([spec["loader"]], str),
        "reader": _are([spec.get("reader") or 1], int, range(MOST)),  # an earlier vfljax wrote none
        "sources": all(map(_is_source, spec.get("sources", ()))),  # likewise
    }
    for field, right in fields.items():
        _must(path, right, f"has {field}={shown(spec.get(field))}, which no data set may have")
    classes, kind, named = spec["num_classes"], spec["kind"], len(spec["classes"])
    needed = {"values", "offsets", "labels"} if kind == "text" else {"features", "labels"}
    _must(path, set(arrays) - {"test", "groups"} == needed, f"has the arrays {sorted(arrays)}")
    _must(path, spec["name"] != "", "has no name")
    right = (spec["tokens"] is not None) == (kind == "text")
    _must(path, right, "has tokens and no text, or none: tokens are of texts alone")
    _must(path, named in (0, classes), f"names {named} of {classes} classes")
    labels = arrays["labels"]
    rows = labels.shape[0] if labels.ndim == 1 else -1
    _must(path, labels.dtype.kind in "iu" and rows > 0, "has not one integer label a row")
    for row in np.flatnonzero((labels < 0) | (labels >= classes))[:1]:
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
    shape, columns = arrays["features"].shape, spec["columns"]
    right = len(shape) in RANKS[kind] and shape[0] == rows
    _must(path, right, f"has features {shape}, which are no {kind} of {rows} rows")
    right = not columns or (kind == "table" and len(columns) == shape[1])
    _must(path, right, f"names {len(columns)} columns of features {shape}")


def _are(values: Any, kind: type, within: range = range(0)) -> bool:
    """Returns True if values of JSON are a list of texts, or of integers (no bools) within a range."""
    return type(values) is list and all(
        type(value) is kind and (kind is str or value in within) for value in values
    )


def _is_column(column: list[Any]) -> bool:
    name, kind, value, vocabulary = column
    known = kind in ("number", "category", "code")
    return known and _are([name, value], str) and _are([vocabulary], int, range(MOST))


def _is_source(source: list[Any]) -> bool:
    name, read_as, *counts, note = source
    return len(counts) == 3 and _are([name, read_as, note], str) and _are(counts, int, range(MOST))


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
