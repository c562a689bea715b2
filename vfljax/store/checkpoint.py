"""Trees of arrays with a leading member axis, through orbax and nowhere else.

Chunked by member, so that one trial reads in milliseconds; restored as NumPy, so that the
devices they were written on do not matter.
"""

from __future__ import annotations

import pathlib
from typing import Any

import jax
import numpy as np
import orbax.checkpoint as ocp
import tensorstore
from absl import logging

from vfljax.types import PyTree


class Unreadable(ValueError):
    """A checkpoint that orbax cannot read; its text says why."""


def _broken(error: Exception) -> Unreadable:
    return Unreadable(str(error).splitlines()[0][:120] if str(error) else type(error).__name__)


class _Quiet:
    """Orbax warns about small chunks, which are what we want here."""

    def __enter__(self) -> None:
        self.before = logging.get_verbosity()
        logging.set_verbosity(logging.ERROR)

    def __exit__(self, *exc: Any) -> None:
        logging.set_verbosity(self.before)


def save(path: pathlib.Path, tree: PyTree) -> None:
    """Writes arrays to a new folder.

    Args:
      path: of the folder.
      tree: dicts of arrays with a leading member axis.
    """
    tree = jax.tree.map(np.asarray, tree)
    by_member = jax.tree.map(
        lambda a: ocp.SaveArgs(
            chunk_byte_size=max(1, a.nbytes // max(1, a.shape[0])), shard_axes=(0,)
        ),
        tree,
    )
    with _Quiet(), ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
        checkpointer.save(path.absolute(), args=ocp.args.PyTreeSave(tree, save_args=by_member))


def load(path: pathlib.Path) -> PyTree:
    """The whole tree as NumPy arrays; Unreadable when it cannot be read."""
    try:
        with _Quiet(), ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
            kept = jax.tree.map(
                lambda _: ocp.RestoreArgs(restore_type=np.ndarray), _names(checkpointer, path)
            )
            return checkpointer.restore(
                path.absolute(), args=ocp.args.PyTreeRestore(restore_args=kept)
            )
    except Unreadable:
        raise
    except Exception as error:  # orbax and tensorstore raise many kinds for a damaged file
        raise _broken(error) from error


def load_member(path: pathlib.Path, member: int) -> PyTree:
    """Returns one member of a stored tree; only that member's chunks are read.

    Args:
      path: of the folder.
      member: its place.
    """
    try:
        with _Quiet(), ocp.Checkpointer(ocp.PyTreeCheckpointHandler()) as checkpointer:
            names = _names(checkpointer, path)

        def read(meta: Any) -> np.ndarray:
            spec = {
                "driver": "zarr",
                "kvstore": {"driver": "ocdbt", "base": path.absolute().as_uri(), "path": meta.name},
            }
            return tensorstore.open(spec, open=True, read=True).result()[member].read().result()

        return jax.tree.map(read, names)
    except Unreadable:
        raise
    except Exception as error:
        raise _broken(error) from error


def _names(checkpointer: ocp.Checkpointer, path: pathlib.Path) -> PyTree:
    if not path.is_dir():
        raise Unreadable("no such folder")
    metadata = checkpointer.metadata(path.absolute()).item_metadata
    if metadata is None:
        raise Unreadable("it has no metadata")
    return metadata.tree
