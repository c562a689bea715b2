"""The prepared form: a folder that holds a ``Dataset`` as memory-mapped arrays.

What enters: a ``Dataset``, or blocks of rows one after another (``begin``). What leaves: a folder
with ``vfljax.json`` (what the set is) beside ``features.npy`` (of texts ``values.npy`` and
``offsets.npy``), ``labels.npy`` and, where there are such, ``test.npy`` and ``groups.npy``; and from
such a folder the ``Dataset`` again, its features mapped from disk, not read.

A folder appears under its name when it is whole, by one rename; until then it is a sibling
``.NAME.partial-*`` that nothing reads. Nothing is pickled.

Features larger than ``data.resident_gb`` stay in this file, whoever owns which columns or pixels, and
are fetched a batch at a time; texts are padded in memory, at 4 bytes a token. Criteo and Avazu are
prepared block by block.
"""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import shutil
import tempfile
from typing import Any

import numpy as np

from vfljax.datasets.columns import Column
from vfljax.datasets.core import Dataset, Vocabulary
from vfljax.datasets.description import FILE, SCHEMA, agree, description, sum_of, sums
from vfljax.datasets.faults import unpermitted
from vfljax.datasets.npy import Growing, mapped
from vfljax.datasets.ragged import Ragged
from vfljax.errors import UserError

Folder = str | os.PathLike[str]
# of a ``Dataset``
ABOUT = ("kind", "columns", "classes", "tokens", "length", "notes", "reader")


class Writer:
    """Takes a data set block by block; what it holds does not grow with the rows.

    ``with begin(folder) as writer: writer.append(...); ...; writer.finish(...)``. Left without
    ``finish``, by an exception too, nothing is left behind.
    """

    def __init__(self, folder: pathlib.Path, partial: pathlib.Path) -> None:
        self.folder, self.partial = folder, partial
        self._files: dict[str, Growing] = {}
        self._classes: set[int] = set()

    def __enter__(self) -> Writer:
        return self

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        for file in self._files.values():
            with contextlib.suppress(OSError):  # of a full disk, once more
                file.close()
        shutil.rmtree(self.partial, ignore_errors=True)
        if isinstance(error, OSError):
            raise UserError(f"{self.folder} cannot be written: {error}.") from error

    def append(
        self, features: Any, labels: np.ndarray, *, test: Any = None, groups: Any = None
    ) -> None:
        """Rows [r, ...] (or a ``Ragged``), their labels [r] and, in all blocks or in none, whether
        they are of the published test part and their groups."""
        if isinstance(features, Ragged):
            before = self._files["values"].rows if "values" in self._files else 0
            shared = int("offsets" in self._files)  # a block starts where the last one ended
            self._add("values", features.values)
            self._add("offsets", (features.offsets + before)[shared:])
        else:
            self._add("features", features)
        self._add("labels", labels)
        self._classes.update(np.unique(labels).tolist())
        for name, array in (("test", test), ("groups", groups)):
            if array is not None:
                self._add(name, array)

    def _add(self, name: str, array: np.ndarray) -> None:
        if name not in self._files:
            self._files[name] = Growing(self.partial / f"{name}.npy", array)
        self._files[name].append(array)

    def finish(
        self, name: str, num_classes: int, *, options: Any = None, loader: str = "", **about: Any
    ) -> Dataset:
        """Close the files, record what they hold and let the folder appear; its ``Dataset``.
        ``loader`` (its name in the table of data sets; "" for rows of no loader) made the rows, with
        ``options``; ``about`` are those fields of a ``Dataset`` that are no arrays."""
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
        spec |= sums(self.partial, spec["arrays"])
        spec["sha256_description"] = sum_of(spec)
        with open(self.partial / FILE, "w", encoding="utf-8") as file:
            json.dump(spec, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        read(self.partial)  # what could not be read again must not appear
        os.replace(self.partial, self.folder)  # nothing, or an empty folder, is there
        return read(self.folder)


def place(folder: Folder) -> pathlib.Path:
    """Where a new folder would appear; raises UserError where something is in its place."""
    if not str(folder):
        raise UserError("the folder to prepare into is empty: give one.")
    path = pathlib.Path(folder).absolute()
    if path.exists() and not (path.is_dir() and not any(path.iterdir())):
        raise UserError(f"{path} exists and is not overwritten: name a new folder.")
    return path


def begin(folder: Folder) -> Writer:
    """A ``Writer`` of a new folder; raises UserError as ``place`` does, or where none can be made."""
    path = place(folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = tempfile.mkdtemp(prefix=f".{path.name}.partial-", dir=path.parent)
        os.chmod(partial, 0o755)  # mkdtemp's folders are their owner's alone
    except OSError as error:
        raise UserError(f"{path} cannot be written: {error}.") from error
    return Writer(path, pathlib.Path(partial))


def write(dataset: Dataset, folder: Folder, options: Any = None, loader: str = "") -> Dataset:
    """The whole data set into the new ``folder``; the same, read from there. Without a ``loader`` it
    is loaded by the name "prepared"."""
    with begin(folder) as writer:
        writer.append(dataset.features, dataset.labels, test=dataset.test, groups=dataset.groups)
        about: Any = {field: getattr(dataset, field) for field in ABOUT}
        about |= {"options": options, "loader": loader}
        return writer.finish(dataset.name, dataset.num_classes, **about)


def is_prepared(folder: Folder) -> bool:
    """Whether the folder is one that a ``Writer`` made; raises UserError where one may not look."""
    try:
        return bool(str(folder)) and (pathlib.Path(folder) / FILE).is_file()
    except PermissionError as error:
        raise unpermitted(folder) from error


def read(folder: Folder) -> Dataset:
    """The data set in ``folder``, features mapped read-only; labels, test part and groups in memory.
    Raises UserError for whatever does not fit together. Values of features are not looked at: that is
    ``verify``'s."""
    path = pathlib.Path(folder)
    spec = description(path)
    arrays = {
        name: mapped(path / f"{name}.npy", about["dtype"], about["shape"])
        for name, about in spec["arrays"].items()
    }
    small = {n: np.array(a) for n, a in arrays.items() if n not in ("features", "values")}
    agree(path, spec, arrays | small)
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
        spec.get("reader") or 1,  # which a folder of an earlier vfljax does not say
    )


def verify(folder: Folder) -> Dataset:
    """``read``, once every byte of every array and every field of the description is what was
    recorded; raises UserError if not."""
    dataset, spec = read(folder), description(pathlib.Path(folder))
    if spec["sha256_description"] != sum_of(spec):
        raise UserError(
            f"{folder}: {FILE} is not what was recorded: it was changed; prepare the data set again."
        )
    for key, digest in sums(pathlib.Path(folder), spec["arrays"]).items():
        if spec[key] != digest:
            raise UserError(
                f"{folder}: {key} of the arrays is {digest} and {spec[key]} is recorded: they were "
                "changed; prepare the data set again."
            )
    return dataset


def prepared(folder: str) -> Dataset:
    """A prepared data set of whatever name, from its folder."""
    if not is_prepared(folder):
        raise UserError(
            f"data.dir={folder!r} is not a prepared data set (no {FILE}): prepare one there."
        )
    return read(folder)
