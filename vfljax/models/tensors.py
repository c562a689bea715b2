"""The check of a file's tensor before it becomes a weight."""

from __future__ import annotations

import numpy as np

from vfljax.errors import UserError


def as_weight(name: str, value: np.ndarray) -> np.ndarray:
    """Returns a tensor as float32.

    Args:
      name: of the tensor, for messages.
      value: of any shape.

    Raises:
      UserError: if it is not of a floating type, has numbers that float32 cannot hold, or is a running
        variance below 0.
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
    return value
