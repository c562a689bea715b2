"""Pretrained weights from a user's file: .safetensors, a PyTorch state dict, .npz, or a Hugging Face folder.

Nothing in a file is run: no pickled object is ever made. Each network's ``from_torch`` places the tensors.
"""

from __future__ import annotations

import functools
import hashlib
import os
import pathlib
from collections.abc import Callable
from typing import Any

import flax.linen as nn
import jax.numpy as jnp
import numpy as np

from vfljax.errors import UserError
from vfljax.models import bert, resnet, torchfile
from vfljax.types import PyTree

# (module, tensors, variables) -> (variables, names left out); what is placed is ``tensors.as_variable``
FromTorch = Callable[[Any, dict[str, np.ndarray], PyTree], tuple[PyTree, list[str]]]

FROM_TORCH: dict[type[nn.Module], FromTorch] = {
    bert.Bert: bert.from_torch,
    # a released ImageNet network has another stem and last layer than one for small images
    resnet.ResNet: functools.partial(resnet.from_torch, partial=True),
}

FOLDER = ("model.safetensors", "pytorch_model.bin")  # of a Hugging Face model, the first found

LARGEST = 8 << 30  # bytes that a .npz may unpack to


def digest(path: str) -> str:
    """Returns the SHA-256 of the file that ``read`` reads."""
    with _file(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def load(module: nn.Module, variables: PyTree, path: str) -> tuple[PyTree, list[str]]:
    """Places the weights of a file.

    Args:
      module: the network.
      variables: the module's.
      path: of the file.

    Returns:
      The variables with the weights in place, and the file's tensors left out.

    Raises:
      UserError: for a network without a rule, and for any fault of the file.
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
    """Returns every tensor of the file by name, with the file's type, bfloat16 as float32.

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
    """The file to read, known to exist and to begin as its name says."""
    file = pathlib.Path(path)
    if os.path.isdir(path):  # os.path answers False where pathlib raises: too long a name
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
    if start.startswith(b"\x80") and _READERS[suffix] is torchfile.read:
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
    try:
        from safetensors.numpy import load_file
    except ImportError as error:
        remedy = "pip install 'vfljax[text]' (or safetensors)"
        raise UserError(f"{file} needs the package safetensors", remedy=remedy) from error
    try:
        return load_file(file)
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


_READERS: dict[str, Callable[[pathlib.Path], dict[str, np.ndarray]]] = {
    ".safetensors": _read_safetensors,
    **dict.fromkeys((".pt", ".pth", ".bin"), torchfile.read),
    ".npz": _read_npz,
}
