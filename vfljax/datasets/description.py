"""``vfljax.json``: what a prepared folder says of itself, and whether its arrays agree.

What enters: a folder, or its arrays. What leaves: the description, every field of its form, or one
clear line; checksums of the files' bytes.
"""

from __future__ import annotations

import hashlib
import json
import math
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from vfljax.datasets.core import KINDS
from vfljax.datasets.faults import unpermitted
from vfljax.datasets.npy import BYTES
from vfljax.errors import UserError

SCHEMA = 2
MOST = 1 << 31  # classes and codes, which int32 counts
FILE = "vfljax.json"
RANKS = {"table": (2,), "image": (3, 4), "patches": (5,)}


def description(folder: pathlib.Path) -> dict[str, Any]:
    """``vfljax.json``, every field of its type; raises UserError if not."""
    path = folder / FILE
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except PermissionError as error:
        raise unpermitted(path) from error
    except (OSError, ValueError, RecursionError) as error:
        raise broken(path, " ".join(str(error).split())) from error
    if type(spec) is not dict or spec.get("schema") != SCHEMA:
        raise broken(path, f"its schema is not {SCHEMA}")
    for field, right in _FIELDS.items():
        if field not in spec or not right(spec[field]):
            raise broken(path, f"{field!r} is missing or not of its form")
    if not _counted(spec.get("reader", 1)):
        raise broken(path, "'reader' is not of its form")
    if len(spec["classes"]) not in (0, spec["num_classes"]):
        raise broken(path, f"{len(spec['classes'])} of {spec['num_classes']} classes are named")
    needed = {"values", "offsets", "labels"} if spec["kind"] == "text" else {"features", "labels"}
    if set(spec["arrays"]) - {"test", "groups"} != needed:
        raise broken(path, f"its arrays are {sorted(spec['arrays'])}")
    if (spec["kind"] == "text") != (spec["tokens"] is not None):
        raise broken(path, "tokens are given for texts, and only for them")
    return spec


def broken(path: pathlib.Path, why: str) -> UserError:
    """The error for a description, or arrays, that cannot be used."""
    return UserError(f"{path} does not describe a prepared data set ({why}): prepare it again.")


def _integer(value: Any) -> bool:
    return type(value) is int and value >= 0


def _counted(value: Any) -> bool:
    return _integer(value) and value <= MOST


def _strings(value: Any) -> bool:
    return type(value) is list and all(type(v) is str for v in value)


def _column(value: Any) -> bool:
    return (
        type(value) is list
        and len(value) == 4
        and _strings(value[:3])
        and value[1] in ("number", "category", "code")
        and _counted(value[3])
    )


def _array(value: Any) -> bool:
    return (
        type(value) is dict
        and set(value) == {"dtype", "shape"}
        and type(value["dtype"]) is str
        and type(value["shape"]) is list
        and all(map(_integer, value["shape"]))
    )


_FIELDS = {
    "name": lambda v: type(v) is str and v != "",
    "kind": lambda v: type(v) is str and v in KINDS,
    "num_classes": lambda v: _counted(v) and v >= 2,
    "columns": lambda v: type(v) is list and all(map(_column, v)),
    "classes": _strings,
    "tokens": lambda v: v is None or (type(v) is list and len(v) == 4 and all(map(_counted, v))),
    "length": lambda v: _counted(v) and v >= 1,
    "notes": _strings,
    "loader": lambda v: type(v) is str,
    "options": lambda v: type(v) is dict,
    "arrays": lambda v: type(v) is dict and all(map(_array, v.values())),
    "sha256": lambda v: type(v) is str,
    "sha256_parts": lambda v: type(v) is str,
    "sha256_description": lambda v: type(v) is str,
}


def agree(folder: pathlib.Path, spec: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Raise UserError unless the arrays are of one length and of the description's kind and classes."""
    path, labels = folder / FILE, arrays["labels"]
    rows = labels.shape[0] if labels.ndim == 1 else -1
    if labels.dtype.kind not in "iu" or rows < 1:
        raise broken(path, "labels are not one integer a row")
    if labels.min() < 0 or labels.max() >= spec["num_classes"]:
        row = int(np.argmax((labels < 0) | (labels >= spec["num_classes"])))
        raise broken(path, f"label {labels[row]} in row {row + 1} of {spec['num_classes']} classes")
    for name, kinds in (("test", "b"), ("groups", "iu")):
        if name in arrays and (
            arrays[name].shape != (rows,) or arrays[name].dtype.kind not in kinds
        ):
            raise broken(path, f"{name} has not one value a row, or not of its type")
    if "groups" in arrays and arrays["groups"].min() < 0:
        raise broken(path, "groups are not numbers from 0")
    if spec["kind"] == "text":
        values, offsets = arrays["values"], arrays["offsets"]
        if values.ndim != 1 or values.dtype.kind != "i" or offsets.dtype.kind != "i":
            raise broken(path, "values and offsets are not rows of integers")
        rising = offsets.shape == (rows + 1,) and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
        if not rising or offsets[-1] != len(values):
            raise broken(path, "offsets do not divide the values into rows")
        return
    features, columns = arrays["features"], spec["columns"]
    if features.ndim not in RANKS[spec["kind"]] or len(features) != rows:
        raise broken(path, f"features {features.shape} are no {spec['kind']} of {rows} rows")
    if columns and (spec["kind"] != "table" or len(columns) != features.shape[1]):
        raise broken(path, f"{len(columns)} columns are named and features are {features.shape}")


def sum_of(spec: Mapping[str, Any]) -> str:
    """SHA-256 of every other field of a description, as JSON with sorted names."""
    fields = {field: value for field, value in spec.items() if field != "sha256_description"}
    return hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).hexdigest()


def sums(folder: pathlib.Path, arrays: Mapping[str, Any]) -> dict[str, str]:
    """SHA-256 of types, shapes and bytes: ``sha256`` is ``core.checksum`` of the data set,
    ``sha256_parts`` is of its test part and groups."""
    main = ("values", "offsets", "labels") if "values" in arrays else ("features", "labels")
    out = {}
    for key, names in (("sha256", main), ("sha256_parts", ("test", "groups"))):
        digest = hashlib.sha256()
        for name in names:
            if name not in arrays:
                continue
            about = arrays[name]
            digest.update(f"{about['dtype']}{tuple(about['shape'])}".encode())
            with open(folder / f"{name}.npy", "rb") as file:
                file.seek(-math.prod((np.dtype(about["dtype"]).itemsize, *about["shape"])), 2)
                while data := file.read(BYTES):
                    digest.update(data)
        out[key] = digest.hexdigest()
    return out
