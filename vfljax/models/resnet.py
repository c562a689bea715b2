"""Residual networks for images: ResNet-18, ResNet-50 (He et al. 2016) and ResNet-20 for CIFAR.

They map images [B, H, W, C], with values of about [0, 1], to embeddings [B, out]. They sow each stage's map.

Fu et al.'s released bottoms are ResNet-20 with parameter-free shortcuts ("pad", the paper's option A):
269,722 parameters with 3 channels and out = 10. With 1x1 convolutions ("project", option B) there are
272,474. The KDk paper's Table 2 names ResNet-18.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import flax.linen as nn
import jax.numpy as jnp
import numpy as np
from flax import traverse_util

from vfljax.errors import UserError
from vfljax.models.convolution import conv, images
from vfljax.models.mlp import ACTIVATIONS, BatchNorm, dense
from vfljax.models.tensors import as_variable, torch_shape
from vfljax.types import Array, PyTree

BLOCKS = ("basic", "bottleneck")
STEMS = ("cifar", "imagenet")
SHORTCUTS = ("project", "pad")


class ResNet(nn.Module):
    """Stem, stages of residual blocks (each after the first halves the image and doubles the channels),
    mean over the image, Linear(out). ``width``: channels of the first stage's 3x3 convolutions.

    ``stem="cifar"``: 3x3, stride 1; "imagenet": 7x7, stride 2, then a 3x3 max pool of stride 2.
    Convolutions have no bias and start kaiming normal with the fan out, as in torchvision (the released code
    of Fu et al. takes the fan in). Scales start at 1, and the Linear as in ``dense``. Padding and strides are
    PyTorch's (a bottleneck strides in its 3x3 convolution, torchvision's "v1.5"). The running variance follows
    the biased batch variance, but PyTorch's the unbiased one, n / (n - 1) times as large with n = B H W.

    The mean over the image is float32 in every ``dtype``.
    """

    out: int
    output: str = "identity"
    blocks: tuple[int, ...] = (2, 2, 2, 2)
    width: int = 64
    block: str = "basic"
    stem: str = "cifar"
    shortcut: str = "project"
    weights: str = "default"  # of the last Linear; or "torch", see ``dense``
    convolution: str = "auto"
    dtype: Any = None  # see ``parties.from_module``
    reads: ClassVar[tuple[str, ...]] = ("image",)
    mixable: ClassVar[bool] = True
    batch_norm: ClassVar[bool] = True

    @nn.compact
    def __call__(self, x: Array, train: bool = False) -> Array:
        for field, table in (("block", BLOCKS), ("stem", STEMS), ("shortcut", SHORTCUTS)):
            if getattr(self, field) not in table:
                raise ValueError(f"{field}={getattr(self, field)!r}: choose one of {table}.")
        size, stride = (3, 1) if self.stem == "cifar" else (7, 2)
        form: Any = self.convolution, self.dtype
        x = _conv_norm(images(x), self.width, size, stride, form, train, "conv1", "bn1")
        x = nn.relu(x)
        if self.stem == "imagenet":
            pads: Any = ((1, 1), (1, 1))
            x = nn.max_pool(x, (3, 3), (2, 2), pads)
        for stage, count in enumerate(self.blocks):
            for b in range(count):
                channels, stride = self.width * 2**stage, 2 if stage and not b else 1
                options = self.block == "bottleneck", self.shortcut, *form
                x = ResidualBlock(channels, stride, *options, name=f"layer{stage + 1}_{b}")(
                    x, train
                )
            self.sow("layers", "hidden", x.astype(jnp.float32))
        x = jnp.mean(x.astype(jnp.float32), axis=(1, 2))
        return ACTIVATIONS[self.output](dense(x, self.out, self.weights))


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, or 1x1, 3x3 and 1x1 to four times the channels, around a shortcut."""

    channels: int
    stride: int
    bottleneck: bool
    shortcut: str
    convolution: str
    dtype: Any

    @nn.compact
    def __call__(self, x: Array, train: bool) -> Array:
        stride, form = self.stride, (self.convolution, self.dtype)
        if self.bottleneck:
            plan = ((1, 1), (3, stride), (1, 1))
            widths = (self.channels, self.channels, 4 * self.channels)
        else:
            plan, widths = ((3, stride), (3, 1)), (self.channels, self.channels)
        y = x
        for i, ((size, step), width) in enumerate(zip(plan, widths, strict=True), start=1):
            names = f"conv{i}", f"bn{i}"
            y = _conv_norm(y, width, size, step, form, train, *names)
            if i < len(plan):
                y = nn.relu(y)
        if x.shape != y.shape and self.shortcut == "project":
            names = "downsample_0", "downsample_1"
            x = _conv_norm(x, widths[-1], 1, stride, form, train, *names)
        elif x.shape != y.shape:
            more = widths[-1] - x.shape[-1]
            channels = (more // 2, more - more // 2)
            x = jnp.pad(x[:, ::stride, ::stride], ((0, 0), (0, 0), (0, 0), channels))
        return nn.relu(x + y)


_kaiming = nn.initializers.variance_scaling(2.0, "fan_out", "normal")


def _conv_norm(
    x: Array, features: int, size: int, stride: int, form: tuple[str, Any], train: bool, *names: str
) -> Array:
    """Applies a convolution without bias and its batch norm; their ``names`` are torchvision's.

    ``form``: implementation of the convolution, and type of activations.
    """
    pads = ((size // 2, size // 2),) * 2
    options: Any = {"kernel_init": _kaiming, "implementation": form[0], "dtype": form[1]}
    x = conv(x, features, size, stride, pads, name=names[0], **options)
    return BatchNorm(not train, dtype=form[1], name=names[1])(x)


def from_torch(
    module: ResNet, state: Mapping[str, np.ndarray], variables: PyTree
) -> tuple[PyTree, list[str]]:
    """Places the tensors of a torchvision state dict.

    The stem (conv1 with bn1) and the Linear (fc) keep their values if one of their tensors is missing or has
    another shape, for example that of a 7x7 stem or of 1000 classes.

    Args:
      module: the network.
      state: tensors by torchvision's names (conv1, bn1, layer1.0.conv1, layer2.0.downsample.0, fc, ...);
        ``num_batches_tracked`` is not read.
      variables: the module's.

    Returns:
      The variables with the tensors in place, and the names of the tensors left out.

    Raises:
      UserError: for the first tensor that is missing, has another shape, is no weight, or has no place.
    """
    flat: dict[Any, Any] = dict(traverse_util.flatten_dict(dict(variables)))
    names = {_torch_name(path): path for path in flat if path[0] in ("params", "batch_stats")}
    state = {name: a for name, a in state.items() if not name.endswith("num_batches_tracked")}
    faults = {}
    for name, path in names.items():
        expected = torch_shape(flat, path)
        if name not in state:
            faults[name] = f"tensor {name!r} is missing"
        elif state[name].shape != expected:
            what = f"tensor {name!r} is of shape {state[name].shape}"
            faults[name] = f"{what}, expected {expected}"
    sizes = f"blocks {module.blocks} of {module.block!r}, width {module.width}, out {module.out}"
    left_out = []
    for part in (("conv1.", "bn1."), ("fc.",)):
        if any(name.startswith(part) for name in faults):
            left_out += [name for name in state if name.startswith(part)]
            names = {n: path for n, path in names.items() if not n.startswith(part)}
    for name, path in names.items():
        if name in faults:
            raise UserError(f"{faults[name]}: these are not the weights of this ResNet ({sizes}).")
        flat[path] = as_variable(name, state[name], flat[path], path[-1] == "kernel")
    for name in state:
        if name not in names and name not in left_out:
            raise UserError(f"tensor {name!r} has no place in this ResNet ({sizes}).")
    return traverse_util.unflatten_dict(flat), left_out


_LEAVES = {"kernel": "weight", "scale": "weight", "mean": "running_mean", "var": "running_var"}


def _torch_name(path: tuple[str, ...]) -> str:
    """("params", "layer1_0", "conv1", "kernel") -> "layer1.0.conv1.weight"."""
    owner = [part.replace("_", ".") for part in path[1:-1]]
    return ".".join([*owner, _LEAVES.get(path[-1], path[-1])]).replace("Dense.0.", "fc.")
