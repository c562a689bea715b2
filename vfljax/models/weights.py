"""Pretrained weights from a user's file: .safetensors, a PyTorch state dict, .npz, or a Hugging Face folder.

Each network's ``from_torch`` places the tensors. No code of a file is run, and no pickled object is made.

PyTorch is not needed. A file of torch.save (1.6 and later) is a zip archive of ``data.pkl`` and, per storage,
one record of raw numbers. A pickle is a program; here it may only build plain containers and the inert records
below. The operations that it may use and the names that it may refer to are listed; any other is refused by
name. Tensors are made from the records after the program has ended.
"""

from __future__ import annotations

import collections
import functools
import hashlib
import io
import math
import os
import pathlib
import pickle
import zipfile
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

from vfljax.errors import UserError, imported, user_path
from vfljax.models import bert, resnet
from vfljax.types import PyTree

# (module, tensors, variables) -> (variables, names left out); ``tensors.as_variable`` converts the tensors
FROM_TORCH: dict[type[nn.Module], Callable[..., tuple[PyTree, list[str]]]] = {
    bert.Bert: bert.from_torch,
    # a released ImageNet network has another stem and last layer than one for small images
    resnet.ResNet: resnet.from_torch,
}

FOLDER = ("model.safetensors", "pytorch_model.bin")  # of a Hugging Face model: the first found

LARGEST = 8 << 30  # bytes that a .npz may unpack to
LARGEST_REPEAT = 2**24  # elements that an expanded tensor may have, which repeats its storage's
WEIGHTS_ONLY = "save the weights alone, torch.save(model.state_dict(), file), or as .safetensors"


def digest(path: str) -> str:
    """Returns the SHA-256 of the file that ``read`` reads."""
    with _file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load(module: nn.Module, variables: PyTree, path: str) -> tuple[PyTree, list[str]]:
    """Places the weights of a file.

    Args:
      module: the network.
      variables: variables of the network.
      path: path of the file.

    Returns:
      The variables with the weights in place, and the names of the file's tensors that have no place.

    Raises:
      UserError: for a network that is not in ``FROM_TORCH``, and for any fault of the file.
    """
    if type(module) not in FROM_TORCH:
        known = ", ".join(sorted(kind.__name__ for kind in FROM_TORCH))
        what = f"{type(module).__name__} has no rule for weights from a file ({path})"
        raise UserError(what, remedy=f"use {known}, or give no weights")
    state = read(path)
    try:
        return FROM_TORCH[type(module)](module, state, variables)
    except UserError as error:
        raise UserError((f"{path}: ", *error.parts)) from error


def read(path: str) -> dict[str, np.ndarray]:
    """Returns every tensor of a file by name, in the file's type; bfloat16 becomes float32.

    A ``module.`` before all names (DataParallel) is dropped.

    Raises:
      UserError: for any fault of the file.
    """
    file = _file(path)
    reader = _READERS[file.suffix.lower()]
    try:
        state = reader(file)
    except UserError:
        raise
    except Exception as error:  # a damaged file can fail anywhere inside the libraries
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        what = f"{file} cannot be read as {file.suffix.lower()} weights ({reason})"
        raise UserError(what, remedy="it is cut off or damaged; fetch it again") from error
    if not state:
        raise UserError(f"{file} holds no tensor: give a file of weights.")
    if all(name.startswith("module.") for name in state):
        state = {name.removeprefix("module."): value for name, value in state.items()}
    return {name: _number(file, name, value) for name, value in state.items()}


def _file(path: str) -> pathlib.Path:
    """Returns the file to read, after checking that it exists and that it begins as its name demands."""
    file = user_path(path, "weights")
    if os.path.isdir(file):  # os.path answers False where pathlib raises: too long a name
        files = [file / name for name in FOLDER if os.path.isfile(file / name)]
        if not files:
            what = f"{path} is a folder without {' or '.join(FOLDER)}"
            raise UserError(what, remedy="give a file, or a folder whose weights are in one")
        file = files[0]
    suffix = file.suffix.lower()
    if not os.path.isfile(file):
        raise UserError(f"{path} is missing: correct the path of the weights.")
    if suffix not in _READERS:
        raise UserError(f"{path} is none of {', '.join(_READERS)}: convert the weights.")
    try:
        with file.open("rb") as stream:
            start = stream.read(16)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}.") from error
    if start.startswith(b"version https://"):
        raise UserError(f"{file} is a Git LFS pointer: fetch the weights with git lfs pull.")
    if start.startswith(b"\x80") and _READERS[suffix] is _read_torch:
        what = f"{file} is in PyTorch's format from before 1.6, which is not read"
        raise UserError(what, remedy="torch.load it with weights_only=True and torch.save it again")
    if suffix != ".safetensors" and not start.startswith(b"PK"):
        raise UserError(f"{file} does not begin as a {suffix} file: fetch it again.")
    return file


def _number(file: pathlib.Path, name: str, value: np.ndarray) -> np.ndarray:
    if value.dtype == jnp.bfloat16:
        value = value.astype(np.float32)
    if value.dtype.kind not in "fiub":
        raise UserError(f"{file}: tensor {name!r} is of type {value.dtype}, not numbers.")
    if value.dtype.kind == "f" and not np.isfinite(value).all():
        raise UserError(f"{file}: tensor {name!r} holds numbers that are not finite.")
    return value.astype(value.dtype.newbyteorder("="), copy=False)


def _read_safetensors(file: pathlib.Path) -> dict[str, np.ndarray]:
    safetensors = imported("safetensors.numpy", extra="text", needed_by=str(file))
    try:
        return safetensors.load_file(file)
    except AttributeError as error:  # a type that NumPy lacks, and safetensors looks up there
        raise UserError(f"{file} has a type that is not read ({error}): convert to F32.") from error


def _read_npz(file: pathlib.Path) -> dict[str, np.ndarray]:
    # numpy leaves a file that is no zip open, so it is opened here
    with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:
        if sum(member.file_size for member in archive.zip.infolist()) > LARGEST:
            raise UserError(f"{file} unpacks to more than {LARGEST:,} bytes: these are no weights.")
        state = {name: archive[name] for name in archive.files}
    for name, value in state.items():
        if not isinstance(value, np.ndarray):
            raise UserError(f"{file}: entry {name!r} is not an array: write it with numpy.savez.")
    return state


_TYPES = {
    "Double": "<f8", "Float": "<f4", "Half": "<f2", "BFloat16": jnp.bfloat16, "Bool": "?",
    "Long": "<i8", "Int": "<i4", "Short": "<i2", "Char": "i1", "Byte": "u1",
}  # fmt: skip


class _Storage(NamedTuple):
    """The storage that a persistent id names: ``count`` numbers in the record ``data/<key>``."""

    dtype: np.dtype
    key: str
    count: int


class _Tensor(NamedTuple):
    """A view of a storage; offset and strides count elements."""

    storage: _Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


_NAMES: dict[str, Any] = {
    "collections.OrderedDict": collections.OrderedDict,
    "torch.Size": tuple,
    # the arguments after the fourth are ignored: requires_grad, hooks, metadata
    "torch._utils._rebuild_tensor_v2": lambda *args: _Tensor(*args[:4]),
    "torch._utils._rebuild_parameter": lambda tensor, *rest: tensor,
    # storage types only appear as arguments
    **{f"torch.{name}Storage": np.dtype(kind) for name, kind in _TYPES.items()},
}

# The operations that torch.save writes under pickle protocols 2 and 4. Left out are all ways to make an
# object other than calling a listed name, and BYTEARRAY8, which reserves memory before it reads.
_OPERATIONS = (
    "PROTO", "FRAME", "STOP", "MARK", "POP", "POP_MARK", "GLOBAL", "STACK_GLOBAL", "REDUCE",
    "BUILD", "BINPERSID", "BINPUT", "LONG_BINPUT", "MEMOIZE", "BINGET", "LONG_BINGET", "NONE",
    "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE",
    "SHORT_BINUNICODE", "EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_LIST", "APPEND", "APPENDS",
    "EMPTY_TUPLE", "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3",
)  # fmt: skip


class _TensorUnpickler(pickle._Unpickler):
    """pickle's reader in Python, since the reader in C reserves memory by numbers found in the file."""

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

    def persistent_load(self, pid: Any) -> _Storage:
        kind, dtype, key, _, count = pid
        if kind != "storage" or not isinstance(dtype, np.dtype):
            raise ValueError("an unknown kind of storage")
        return _Storage(dtype, key, count)

    def load_build(self) -> None:
        self.stack.pop()  # attributes (a state dict's _metadata) are never set: nothing changes here

    dispatch[pickle.BUILD[0]] = load_build


def _read_torch(path: pathlib.Path) -> dict[str, np.ndarray]:
    """Returns the tensors of a file of torch.save by name, bfloat16 in the type of ``ml_dtypes``. If the file
    holds a dict {'state_dict': ...} or {'model': ...}, its value is read."""
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
            if not isinstance(name, str) or not isinstance(tensor, _Tensor):
                what = f"{path}: {str(name)[:80]!r} is a {type(tensor).__name__}, not a tensor"
                raise UserError(what, remedy=WEIGHTS_ONLY)
        return {name: _array(name, tensor, record) for name, tensor in state.items()}


def _array(name: str, tensor: _Tensor, record: Callable[[str], bytes]) -> np.ndarray:
    """Returns a copy of the tensor as an array. NumPy checks that the view lies within its storage."""
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


_READERS: dict[str, Callable[[pathlib.Path], dict[str, np.ndarray]]] = {
    ".safetensors": _read_safetensors,
    **dict.fromkeys((".pt", ".pth", ".bin"), _read_torch),
    ".npz": _read_npz,
}
