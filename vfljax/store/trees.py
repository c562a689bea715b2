"""Stores a tree of arrays with a leading member axis as one file, of which one member can be read alone."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from safetensors import safe_open
from safetensors.numpy import save_file

from vfljax.store.sealed import reason
from vfljax.types import PyTree

BETWEEN = "/"  # the names of a leaf's dicts
EMPTY = "empty"  # in the metadata: the names of dicts without entries


def save(path: pathlib.Path, tree: PyTree) -> None:
    """Writes arrays to a new file.

    Args:
      path: path of the file.
      tree: dicts of arrays with a leading member axis.
    """
    arrays: dict[str, np.ndarray] = {}
    empty: list[str] = []

    def add(name: str, value: Any) -> None:
        if isinstance(value, Mapping):
            for key, part in value.items():
                add(f"{name}{BETWEEN}{key}" if name else str(key), part)
            if not value:
                empty.append(name)
        else:
            assert not isinstance(value, tuple | list), f"{name} is no array"
            arrays[name] = np.ascontiguousarray(value)

    add("", tree)
    save_file(arrays, path, metadata={EMPTY: json.dumps(empty)})


def load(path: pathlib.Path) -> PyTree:
    """Returns the whole tree as NumPy arrays. Raises ValueError if it cannot be read."""
    return _read(path, lambda stored: stored[:])


def load_member(path: pathlib.Path, member: int) -> PyTree:
    """Returns one member of a stored tree; only that member's part of the file is read.

    Args:
      path: path of the file.
      member: index of the member along the leading axis.

    Raises:
      ValueError: if it cannot be read.
    """
    return _read(path, lambda stored: stored[member])


def _read(path: pathlib.Path, part: Callable[[Any], np.ndarray]) -> PyTree:
    tree: dict[str, Any] = {}
    try:
        with safe_open(path, framework="np") as file:
            leaves = {name: part(file.get_slice(name)) for name in sorted(file.keys())}
            empty = json.loads((file.metadata() or {}).get(EMPTY, "[]"))
    except Exception as error:  # safetensors raises many types for a damaged file
        raise ValueError(reason(error)) from error
    for name, leaf in [*leaves.items(), *((name, {}) for name in empty)]:
        *groups, last = name.split(BETWEEN)
        group = tree
        for key in groups:
            group = group.setdefault(key, {})
        group[last] = leaf
    return tree
