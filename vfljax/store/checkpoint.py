"""Stores trees of arrays with a leading member axis. No other module uses orbax.

Arrays are chunked by member, so that one trial is read in milliseconds. They are restored as NumPy arrays, so
that the devices on which they were written do not matter.
"""

from __future__ import annotations

import contextlib
import pathlib
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import tensorstore
from absl import logging

from vfljax.store.sealed import reason
from vfljax.types import PyTree


@contextlib.contextmanager
def _orbax() -> Iterator[ocp.Checkpointer]:
    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)  # it warns about small chunks, which are what we want here
    try:
        with ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
            yield checkpointer
    finally:
        logging.set_verbosity(before)


@contextlib.contextmanager
def _reading(path: pathlib.Path) -> Iterator[tuple[ocp.Checkpointer, PyTree]]:
    """Yields a checkpointer and the tree of a folder's array metadata. Raises ValueError if the folder
    cannot be read."""
    try:
        with _orbax() as checkpointer:
            if not path.is_dir():
                raise ValueError("no such folder")
            metadata = checkpointer.metadata(path.absolute()).item_metadata
            if metadata is None:
                raise ValueError("it has no metadata")
            yield checkpointer, metadata.tree
    except Exception as error:  # orbax and tensorstore raise many types for a damaged file
        raise ValueError(reason(error)) from error


def save(path: pathlib.Path, tree: PyTree) -> None:
    """Writes arrays to a new folder.

    Args:
      path: path of the folder.
      tree: dicts of arrays with a leading member axis.
    """
    tree = jax.tree.map(np.asarray, tree)

    def by_member(a: np.ndarray) -> ocp.SaveArgs:
        return ocp.SaveArgs(chunk_byte_size=max(1, a.nbytes // max(1, len(a))), shard_axes=(0,))

    save_args = jax.tree.map(by_member, tree)
    with _orbax() as checkpointer:
        checkpointer.save(path.absolute(), args=ocp.args.PyTreeSave(tree, save_args=save_args))


def load(path: pathlib.Path) -> PyTree:
    """Returns the whole tree as NumPy arrays. Raises ValueError if it cannot be read."""
    with _reading(path) as (checkpointer, described):
        as_numpy = jax.tree.map(lambda _: ocp.RestoreArgs(restore_type=np.ndarray), described)
        return checkpointer.restore(
            path.absolute(), args=ocp.args.PyTreeRestore(restore_args=as_numpy)
        )


def load_member(path: pathlib.Path, member: int) -> PyTree:
    """Returns one member of a stored tree; only that member's chunks are read.

    Args:
      path: path of the folder.
      member: index of the member along the leading axis.

    Raises:
      ValueError: if it cannot be read.
    """
    base = path.absolute().as_uri()
    # with one context the index is read once for all arrays, and the arrays are read concurrently
    context = tensorstore.Context({"cache_pool": {"total_bytes_limit": 1 << 26}})

    def opened(described: Any) -> Any:
        kvstore = {"driver": "ocdbt", "base": base, "path": described.name}
        spec = {"driver": "zarr", "kvstore": kvstore}
        return tensorstore.open(spec, open=True, read=True, context=context)

    with _reading(path) as (_, described):
        arrays = jax.tree.map(opened, described)
        values = jax.tree.map(lambda array: array.result()[member].read(), arrays)
        return jax.tree.map(lambda value: value.result(), values)
