"""A PyTorch state dict from the file torch.save writes, without PyTorch and without running it.

What enters: the path of a zip archive (PyTorch 1.6 and later) holding ``data.pkl`` and one record of
raw numbers a storage. What leaves: the tensors as NumPy arrays, bfloat16 as float32.

A pickle is a program. Here it may only build plain containers and the inert records below: the
operations it may use and the names it may refer to are listed, anything else is refused by name, and
tensors are made from the records once the program has ended.
"""

from __future__ import annotations

import collections
import io
import math
import pathlib
import pickle
import zipfile
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import numpy as np

from vfljax.errors import UserError

LARGEST_REPEAT = 2**24  # elements a tensor may have beyond its storage's (an expanded tensor)

_STORAGES = {
    "DoubleStorage": "float64",
    "FloatStorage": "float32",
    "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16",
    "LongStorage": "int64",
    "IntStorage": "int32",
    "ShortStorage": "int16",
    "CharStorage": "int8",
    "ByteStorage": "uint8",
    "BoolStorage": "bool",
}


class Storage(NamedTuple):
    """What a persistent id names: ``count`` numbers in the record ``data/<key>``."""

    dtype: str
    key: str
    count: int


class Tensor(NamedTuple):
    """A view of a storage; offset and strides count elements."""

    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


def _tensor(storage: Any, offset: Any, size: Any, stride: Any, *rest: Any) -> Tensor:
    del rest  # requires_grad, hooks, metadata
    return Tensor(storage, offset, size, stride)


def _parameter(tensor: Any, *rest: Any) -> Any:
    del rest
    return tensor


_NAMES: dict[str, Any] = {
    "collections.OrderedDict": collections.OrderedDict,
    "torch.Size": tuple,
    "torch._utils._rebuild_tensor_v2": _tensor,
    "torch._utils._rebuild_parameter": _parameter,
    **{f"torch.{name}": dtype for name, dtype in _STORAGES.items()},  # only ever an argument
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


class _Reader(pickle._Unpickler):
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
            raise UserError(
                f"{self.path} refers to {f'{module}.{name}'!r}, which is no part of plain tensors: "
                "refused, nothing of it was run; save the weights alone, "
                "torch.save(model.state_dict(), file), or as .safetensors."
            )
        return _NAMES[f"{module}.{name}"]

    def persistent_load(self, pid: Any) -> Storage:
        kind, dtype, key, _, count = pid
        if kind != "storage" or dtype not in _STORAGES.values():
            raise ValueError("an unknown kind of storage")
        return Storage(dtype, key, count)

    def load_build(self) -> None:
        self.stack.pop()  # attributes (a state dict's _metadata) are never set: nothing changes here

    dispatch[pickle.BUILD[0]] = load_build


def read(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The file's tensors by name, {'state_dict': ...} and {'model': ...} opened.

    Raises UserError for what is refused and whatever the libraries raise for a damaged file."""
    with zipfile.ZipFile(path) as archive:
        programs = [n for n in archive.namelist() if n.split("/")[-1] == "data.pkl"]
        if len(programs) != 1:
            raise UserError(f"{path} holds no data.pkl: it is not a file of torch.save.")
        folder = programs[0].removesuffix("data.pkl")

        def record(name: str) -> bytes:
            if archive.getinfo(folder + name).compress_type != zipfile.ZIP_STORED:
                raise ValueError(f"{name} is compressed, which torch.save never does")
            return archive.read(folder + name)

        if folder + "byteorder" in archive.namelist() and record("byteorder") != b"little":
            raise UserError(f"{path} was written on a big-endian machine, which is not read.")
        state = _Reader(path, record("data.pkl")).load()
        for wrapper in ("state_dict", "model"):
            if isinstance(state, dict) and isinstance(state.get(wrapper), dict):
                state = state[wrapper]
                break
        if not isinstance(state, dict):
            raise UserError(f"{path} holds no state dict, but {_kind(state)}.")
        return _arrays(path, state, record)


def _arrays(
    path: pathlib.Path, state: dict[Any, Any], record: Callable[[str], bytes]
) -> dict[str, np.ndarray]:
    storages: dict[Storage, np.ndarray] = {}
    arrays = {}
    for name, tensor in state.items():
        if not isinstance(name, str) or not isinstance(tensor, Tensor):
            raise UserError(
                f"{path}: entry {str(name)[:80]!r} is {_kind(tensor)}, not a tensor: save the weights "
                "alone, torch.save(model.state_dict(), file)."
            )
        if not isinstance(tensor.storage, Storage):
            raise ValueError(f"tensor {name!r} has no storage")
        if tensor.storage not in storages:
            storages[tensor.storage] = _numbers(tensor.storage, record)
        arrays[name] = _strided(name, tensor, storages[tensor.storage])
    return arrays


def _kind(value: Any) -> str:
    return f"of type {type(value).__name__}"


def _numbers(storage: Storage, record: Callable[[str], bytes]) -> np.ndarray:
    raw = record(f"data/{storage.key}")
    if storage.dtype == "bfloat16":
        values = from_bfloat16(raw)
    else:
        values = np.frombuffer(raw, np.dtype(storage.dtype).newbyteorder("<"))
    if len(values) != storage.count:
        raise ValueError(f"storage {storage.key} has {len(values)} numbers, not {storage.count}")
    return values


def from_bfloat16(raw: bytes | bytearray) -> np.ndarray:
    """Little-endian bfloat16 numbers as float32: they are its upper halves."""
    return (np.frombuffer(raw, "<u2").astype(np.uint32) << 16).view(np.float32)


def _strided(name: str, tensor: Tensor, values: np.ndarray) -> np.ndarray:
    """The tensor as an array of its own. Bounds are checked here: NumPy would read past the end."""
    offset, size, stride = tensor.offset, tuple(tensor.size), tuple(tensor.stride)
    if len(size) != len(stride) or not all(
        isinstance(n, int) and 0 <= n < 2**48 for n in (offset, *size, *stride)
    ):
        raise ValueError(f"tensor {name!r} has no valid shape")
    count = math.prod(size)
    last = offset + sum((n - 1) * step for n, step in zip(size, stride))
    if count and last >= len(values):
        raise ValueError(f"tensor {name!r} reaches beyond its storage")
    if count > max(len(values), LARGEST_REPEAT):
        raise ValueError(f"tensor {name!r} repeats {len(values)} numbers {count} times")
    if not count:
        return np.empty(size, values.dtype)
    steps = [step * values.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(values[offset:], size, steps).copy()
