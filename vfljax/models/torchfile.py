"""A PyTorch state dict from the file torch.save writes, without PyTorch and without running it.

The file is a zip archive (PyTorch 1.6 and later) of ``data.pkl`` and one record of raw numbers a storage.

A pickle is a program. Here it may only build plain containers and the inert records below: the
operations it may use and the names it may refer to are listed, anything else is refused by name, and
tensors are made from the records once the program has ended.
"""

from __future__ import annotations

import collections
import functools
import io
import math
import pathlib
import pickle
import zipfile
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np

from vfljax.errors import UserError

LARGEST_REPEAT = 2**24  # elements a tensor may have beyond its storage's (an expanded tensor)
WEIGHTS_ONLY = "save the weights alone, torch.save(model.state_dict(), file), or as .safetensors"

_TYPES = {
    "Double": "<f8", "Float": "<f4", "Half": "<f2", "BFloat16": jnp.bfloat16, "Bool": "?",
    "Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "i1", "Byte": "u1",
}  # fmt: skip


class Storage(NamedTuple):
    """What a persistent id names: ``count`` numbers in the record ``data/<key>``."""

    dtype: np.dtype
    key: str
    count: int


class Tensor(NamedTuple):
    """A view of a storage; offset and strides count elements."""

    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


_NAMES: dict[str, Any] = {
    "collections.OrderedDict": collections.OrderedDict,
    "torch.Size": tuple,
    # the rest: whether a gradient is needed, hooks, metadata
    "torch._utils._rebuild_tensor_v2": lambda *args: Tensor(*args[:4]),
    "torch._utils._rebuild_parameter": lambda tensor, *rest: tensor,
    # only ever arguments
    **{f"torch.{name}Storage": np.dtype(kind) for name, kind in _TYPES.items()},
}

# What torch.save writes under pickle protocols 2 and 4. Not among them: every way to make an object
# other than calling a listed name, and BYTEARRAY8, which reserves memory before it reads.
_OPERATIONS = (
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "GLOBAL", "STACK_GLOBAL", "REDUCE",
    "BUILD", "BINPERSID", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET", "NONE",
    "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE",
    "SHORT_BINUNICODE", "EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "APPEND", "APPENDS",
    "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
)  # fmt: skip


class _TensorUnpickler(pickle._Unpickler):
    """pickle's reader written in Python: the one in C reserves memory by numbers found in the file."""

    dispatch: ClassVar[dict[int, Any]] = {
        code: pickle._Unpickler.dispatch[code]
        for code in (getattr(pickle, name)[0] for name in _OPERATIONS)
    }

    stack: list[Any]  # the base class's

    def __init__(self, path: pathlib.Path, program: bytes):
        super().__init__(io.BytesIO(program))
        self.path = path

    def find_class(self, module: str, name: str) -> Any:
        if f"{module}.{name}" not in _NAMES:
            what = f"{self.path} refers to {f'{module}.{name}'!r}, no part of plain tensors"
            raise UserError(what, remedy=f"refused, nothing of it was run; {WEIGHTS_ONLY}")
        return _NAMES[f"{module}.{name}"]

    def persistent_load(self, pid: Any) -> Storage:
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise ValueError("an unknown kind of storage")
        return Storage(dtype, key, count)

    def load_build(self) -> None:
        self.stack.pop()  # attributes (a state dict's _metadata) are never set: nothing changes here

    dispatch[pickle.BUILD[0]] = load_build


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Returns the file's tensors by name, bfloat16 as ``ml_dtypes`` has it.

    A dict {'state_dict': ...} or {'model': ...} is opened.

    Raises:
      UserError: for what is refused.
      Exception: whatever the libraries raise for a damaged file.
    """
    with zipfile.ZipFile(path) as archive:
        programs = [n for n in archive.namelist() if n.split("/")[-1] == "data.pkl"]
        if len(programs) != 1:
            raise UserError(f"{path} holds no data.pkl: it is not a file of torch.save.")
        folder = programs[0].removesuffix("data.pkl")

        @functools.cache  # tensors share storages
        def record(name: str) -> bytes:
            if archive.getinfo(folder + name).compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{name} is compressed, which torch.save never does")
            return archive.read(folder + name)

        if folder + "byteorder" in archive.namelist() and record("byteorder") != b"little":
            raise UserError(f"{path} was written on a big-endian machine, which is not read.")
        state = _TensorUnpickler(path, record("data.pkl")).load()
        for wrapper in ("state_dict", "model"):
            if isinstance(state, dict) and isinstance(state.get(wrapper), dict):
                state = state[wrapper]
                break
        if not isinstance(state, dict):
            what = f"{path} holds no state dict, but a {type(state).__name__}"
            raise UserError(what, remedy=WEIGHTS_ONLY)
        for name, tensor in state.items():
            if not isinstance(name, str) or not isinstance(tensor, Tensor):
                what = f"{path}: {str(name)[:80]!r} is a {type(tensor).__name__}, not a tensor"
                raise UserError(what, remedy=WEIGHTS_ONLY)
        return {name: _array(name, tensor, record) for name, tensor in state.items()}


def _array(name: str, tensor: Tensor, record: Callable[[str], bytes]) -> np.ndarray:
    """The tensor as an array of its own; NumPy checks that the view lies within its storage."""
    (dtype, key, count), offset, size, stride = tensor
    raw = record(f"data/{key}")
    if len(raw) != count * dtype.itemsize:
        raise ValueError(f"storage {key} has {len(raw)} bytes, not {count} numbers of {dtype}")
    if len(size) != len(stride) or min((offset, *size, *stride)) < 0:
        raise ValueError(f"tensor {name!r} has no valid shape")
    if math.prod(size) > max(count, LARGEST_REPEAT):
        raise ValueError(f"tensor {name!r} repeats {count} numbers {math.prod(size)} times")
    steps = [step * dtype.itemsize for step in stride]
    return np.ndarray(size, dtype, raw, offset * dtype.itemsize, steps).copy()
