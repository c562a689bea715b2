"""Conversion of PyTorch's tensors to flax's variables."""

from __future__ import annotations

from collections.abc import Mapping

import jax.numpy as jnp
import numpy as np

from vfljax.errors import UserError
from vfljax.types import Array

Path = tuple[str, ...]


def torch_shape(flat: Mapping[Path, Array], path: Path) -> tuple[int, ...]:
    """Returns the shape that a variable has as a tensor of PyTorch.

    Args:
      flat: all variables of the network by path.
      path: path of a kernel ([out, in] or [out, in, k, k] in PyTorch), of an embedding, or of a vector.
    """
    shape = flat[path].shape
    if path[-1] != "kernel":
        return shape if path[-1] == "embedding" else (flat[path].size,)
    if len(shape) == 4:
        return tuple(shape[axis] for axis in (3, 2, 0, 1))
    # an attention kernel has an axis of heads among its inputs or its outputs
    outputs = flat[*path[:-1], "bias"].size
    return outputs, flat[path].size // outputs


def as_variable(name: str, value: np.ndarray, like: Array, kernel: bool) -> Array:
    """Returns a tensor as a variable.

    Args:
      name: name of the tensor, for messages.
      value: the tensor, in the shape ``torch_shape``.
      like: the variable that it replaces.
      kernel: whether it is a kernel, whose axes have another order in PyTorch.

    Raises:
      UserError: if its type is not floating, if it has numbers that float32 cannot hold, or if it is a running
        variance with numbers below 0.
    """
    if value.dtype.kind != "f":
        what = f"tensor {name!r} is {value.dtype} and weights are floating numbers"
        raise UserError(what, remedy="give the weights as trained, not quantized")
    with np.errstate(over="ignore"):
        value = value.astype(np.float32)
    if not np.isfinite(value).all():
        what = f"tensor {name!r} has numbers that float32 cannot hold"
        raise UserError(what, remedy="the weights are damaged or of a network that diverged")
    if name.endswith("running_var") and (value < 0).any():
        what = f"tensor {name!r} has the variance {value.min():g}, and none is below 0"
        raise UserError(what, remedy="the weights are damaged; fetch them again")
    if kernel:
        value = value.transpose(2, 3, 1, 0) if value.ndim == 4 else value.T
    # a copy: jax may otherwise share the memory of a network that trains on
    return jnp.array(value.reshape(like.shape), like.dtype, copy=True)
