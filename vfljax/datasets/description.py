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
MOST = (1 << 31) + 1  # classes and codes are below, which int32 counts
FILE = "vfljax.json"
RANKS = {"table": (2,), "image": (3, 4), "patches": (5,)}

# what ``fits`` reads: a list of its one form, tuples as lists of that length, one form of a set
FORM = {
    "schema": range(SCHEMA, SCHEMA + 1),
    "name": str,
    "kind": set(KINDS),
    "num_classes": range(2, MOST),
    "columns": [(str, {"number", "category", "code"}, str, range(MOST))],
    "classes": [str],
    "tokens": {None, (range(MOST),) * 4},
    "length": range(1, MOST),
    "notes": [str],
    "loader": str,
    "reader": {None, range(MOST)},  # absent where an earlier vfljax wrote the folder: version 1
    "options": dict,
    "arrays": dict,
    "sha256": str,
    "sha256_parts": str,
    "sha256_description": str,
}
ARRAY = {"dtype": str, "shape": [range(1 << 62)]}


def fits(value: Any, form: Any) -> bool:
    """Whether a value read from JSON has the form; a bool is no integer."""
    if isinstance(form, list):
        return type(value) is list and all(fits(one, form[0]) for one in value)
    if isinstance(form, dict):
        return type(value) is dict and all(fits(value.get(k), of) for k, of in form.items())
    if isinstance(form, tuple):
        return type(value) is list and len(value) == len(form) and all(map(fits, value, form))
    if isinstance(form, range):
        return type(value) is int and value in form
    if isinstance(form, set):
        return any(fits(value, one) for one in form)
    return type(value) is form if isinstance(form, type) else value == form


def description(folder: pathlib.Path) -> dict[str, Any]:
    """``vfljax.json``, every field of its form; raises UserError if not."""
    path = folder / FILE
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except PermissionError as error:
        raise unpermitted(path) from error
    except (OSError, ValueError, RecursionError) as error:
        raise broken(path, " ".join(str(error).split())) from error
    spec = spec if type(spec) is dict else {}
    wrong = [field for field, form in FORM.items() if not fits(spec.get(field), form)]
    if not wrong and not fits(list(spec["arrays"].values()), [ARRAY]):
        wrong = ["arrays"]
    if wrong:
        raise broken(path, f"{wrong[0]!r} is missing or not of its form")
    classes, text = spec["num_classes"], spec["kind"] == "text"
    needed = {"values", "offsets", "labels"} if text else {"features", "labels"}
    named, arrays = len(spec["classes"]), sorted(spec["arrays"])
    faults = {
        "it has no name": spec["name"] == "",
        f"{named} of {classes} classes are named": named not in (0, classes),
        f"its arrays are {arrays}": set(arrays) - {"test", "groups"} != needed,
        "tokens are given for texts, and only for them": text != (spec["tokens"] is not None),
    }
    for why in [why for why, met in faults.items() if met]:
        raise broken(path, why)
    return spec


def broken(path: pathlib.Path, why: str) -> UserError:
    """The error for a description, or arrays, that cannot be used."""
    return UserError(f"{path} does not describe a prepared data set ({why}): prepare it again.")


def agree(folder: pathlib.Path, spec: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> None:
    """Raise UserError unless the arrays are of one length and of the description's kind and classes."""
    path, labels, kind = folder / FILE, arrays["labels"], spec["kind"]
    rows = labels.shape[0] if labels.ndim == 1 else -1
    if labels.dtype.kind not in "iu" or rows < 1:
        raise broken(path, "labels are not one integer a row")
    if labels.min() < 0 or labels.max() >= spec["num_classes"]:
        row = int(np.argmax((labels < 0) | (labels >= spec["num_classes"])))
        raise broken(path, f"label {labels[row]} in row {row + 1} of {spec['num_classes']} classes")
    for name, kinds in (("test", "b"), ("groups", "iu")):
        array = arrays.get(name, np.zeros(rows, bool if kinds == "b" else int))
        if array.shape != (rows,) or array.dtype.kind not in kinds or array.min() < 0:
            raise broken(path, f"{name} has not one value a row, or not of its type")
    if kind == "text":
        values, offsets = arrays["values"], arrays["offsets"]
        if values.ndim != 1 or values.dtype.kind != "i" or offsets.dtype.kind != "i":
            raise broken(path, "values and offsets are not rows of integers")
        rising = offsets.shape == (rows + 1,) and offsets[0] == 0 and (np.diff(offsets) >= 0).all()
        if not rising or offsets[-1] != len(values):
            raise broken(path, "offsets do not divide the values into rows")
        return
    features, columns = arrays["features"], spec["columns"]
    if features.ndim not in RANKS[kind] or len(features) != rows:
        raise broken(path, f"features {features.shape} are no {kind} of {rows} rows")
    if columns and (kind != "table" or len(columns) != features.shape[1]):
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
