"""Released weights from a .safetensors file, or from a Hugging Face folder that has model.safetensors.

Each network's ``from_torch`` places the tensors. Other files are not read, because a file of torch.save is a
program (a pickle). Where PyTorch is installed, these lines convert a state dict. Tensors are copied because
``save_file`` refuses tensors that share memory, as BERT's embedding and decoder do::

    import safetensors.torch, torch
    state = torch.load(FILE, weights_only=True)
    safetensors.torch.save_file({k: v.clone().contiguous() for k, v in state.items()}, "model.safetensors")
"""

from __future__ import annotations

import hashlib
import os
import pathlib
from collections.abc import Callable

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file

from vfljax.errors import UserError, user_path
from vfljax.models import bert, resnet
from vfljax.types import PyTree

# (module, tensors, variables) -> (variables, names left out); ``tensors.as_variable`` converts the tensors
FROM_TORCH: dict[type[nn.Module], Callable[..., tuple[PyTree, list[str]]]] = {
    bert.Bert: bert.from_torch,
    # a released ImageNet network has another stem and last layer than one for small images
    resnet.ResNet: resnet.from_torch,
}

NAME = "model.safetensors"  # the weights' file of a Hugging Face folder


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
      UserError: for a file that is missing, damaged or of another format, and for a type that NumPy lacks.
    """
    file = _file(path)
    try:
        state = load_file(file)
    except (
        SafetensorError,
        OSError,
        AttributeError,
    ) as error:  # the last for a type that NumPy lacks
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        remedy = "it is damaged, or a Git LFS pointer; fetch it again"
        raise UserError(f"{file} cannot be read ({reason})", remedy=remedy) from error
    if all(name.startswith("module.") for name in state):
        state = {name.removeprefix("module."): value for name, value in state.items()}
    return {
        name: value.astype(np.float32) if value.dtype == jnp.bfloat16 else value
        for name, value in state.items()
    }


def _file(path: str) -> pathlib.Path:
    """Returns the .safetensors file that a path names, or that the folder which it names holds."""
    file = user_path(path, "weights")
    if os.path.isdir(file):  # os.path answers False where pathlib raises: too long a name
        file /= NAME
    if not os.path.isfile(file):
        raise UserError(f"{file} is missing: correct the path of the weights.")
    if file.suffix.lower() != ".safetensors":
        remedy = (
            "convert it: state = torch.load(FILE, weights_only=True); safetensors.torch.save_file("
            "{k: v.clone().contiguous() for k, v in state.items()}, 'model.safetensors')"
        )
        raise UserError(f"{file} is no .safetensors file", remedy=remedy)
    return file
