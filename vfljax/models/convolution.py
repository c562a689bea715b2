"""Convolutions that stay fast in a loop and over trials.

``conv`` is the layer of every convolutional network here. ``matmul`` replaces
``jax.lax.conv_general_dilated``, with the same parameters and result. On a CPU, XLA's convolution runs on one
thread inside ``scan`` and ``lax.map``, and becomes a grouped convolution over stacked parameters (``vmap``).
Either takes several times as long as the matrix product; on an H100, 1.8 to 2.7 times
(``analysis/results/gpu/README.md``). ``pallas`` multiplies 3x3 windows on NVIDIA GPUs without writing them to
memory (``vfljax.models.implicit_gemm``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import flax.linen as nn
import jax
import jax.numpy as jnp

from vfljax import machine
from vfljax.models import implicit_gemm
from vfljax.models.mlp import product_precision
from vfljax.types import Array

# "auto" is "matmul" if JAX's default backend is a CPU or a GPU, else "xla": other backends were not measured.
# "pallas" is "auto" for whatever ``pallas`` does not compute by its kernels
IMPLEMENTATIONS = ("auto", "xla", "matmul", "pallas")
LEAST_CAPABILITY = 8.0  # the first NVIDIA GPUs that multiply bfloat16

_NHWC = jax.lax.conv_dimension_numbers((1, 1, 1, 1), (1, 1, 1, 1), ("NHWC", "HWIO", "NHWC"))


def images(x: Array) -> Array:
    """Returns images [B, H, W] or [B, H, W, C] with a channel axis. Other shapes raise ValueError."""
    if x.ndim not in (3, 4):
        raise ValueError(
            f"features of shape {x.shape}: a convolutional network reads [B, H, W(, C)]."
        )
    return x[..., None] if x.ndim == 3 else x


def conv(
    x: Array,
    features: int,
    size: int,
    stride: int = 1,
    padding: Any = "SAME",
    *,
    use_bias: bool = False,
    implementation: str = "auto",
    dtype: Any = None,
    **options: Any,
) -> Array:
    """Returns ``flax.linen.Conv`` of x with a square kernel, a submodule of the caller.

    Args:
      x: [B, H, W, C].
      features: channels of the result [B, H', W', features].
      size: size of the kernel in both directions; ``stride`` likewise.
      implementation: one of ``IMPLEMENTATIONS``, which all have the same parameters.
      dtype: that of the computation and of the result, flax's argument; None is that of x and the parameters.
        The other arguments, ``options`` included, are those of ``flax.linen.Conv``.
    """
    if implementation not in IMPLEMENTATIONS:
        raise ValueError(f"convolution={implementation!r}: choose one of {IMPLEMENTATIONS}.")
    product = {"auto": _default(), "xla": None, "matmul": matmul, "pallas": pallas}[implementation]
    options = {**options, "use_bias": use_bias, "conv_general_dilated": product}
    options |= {"dtype": dtype, "precision": product_precision(dtype)}
    return nn.Conv(features, (size, size), stride, padding, **options)(x)


def _default() -> Any:
    return matmul if jax.default_backend() in ("cpu", "gpu") else None


def pallas(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    **options: Any,
) -> Array:
    """Returns the result of ``jax.lax.conv_general_dilated``, whose arguments it takes.

    It uses the kernels of ``vfljax.models.implicit_gemm`` for bfloat16 arrays, a 3x3 kernel, stride 1, no
    dilation and images padded to their size, on an NVIDIA GPU of compute capability 8 or more, if the batch has
    at least as many pixels as channels are read. Otherwise it returns what ``implementation="auto"`` does: with
    256 pixels and 512 channels, products of windows were faster on an H200.
    """
    if isinstance(padding, str):
        padding = jax.lax.padtype_to_pads(lhs.shape[1:3], rhs.shape[:2], window_strides, padding)
    pixels, channels = lhs.size // lhs.shape[-1], lhs.shape[-1]
    form = rhs.shape[:2], tuple(window_strides), [tuple(ends) for ends in padding]
    dilations = {d for side in ("lhs_dilation", "rhs_dilation") for d in options.get(side) or ()}
    fits = form == ((3, 3), (1, 1), [(1, 1)] * 2) and rhs.shape[2] == channels <= pixels
    fits = fits and dilations <= {1}
    if fits and lhs.dtype == jnp.bfloat16 and machine.capability() >= LEAST_CAPABILITY:
        return implicit_gemm.convolve(lhs, rhs)
    product = _default() or jax.lax.conv_general_dilated
    return product(lhs, rhs, window_strides, padding, **options)


def matmul(
    lhs: Array,
    rhs: Array,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    precision: Any = None,
) -> Array:
    """Returns the result of ``jax.lax.conv_general_dilated``, whose arguments it takes.

    It keeps k times the input for the gradient; for small images, strides above 1 or bfloat16, up to k k times.

    Args:
      lhs: images [B, H, W, C].
      rhs: the kernel [k, k, C, O]. Strides are equal, and there are no groups and no dilation.

    Raises:
      ValueError: for other kernels, strides, groups, dilations or orders of axes.
    """
    if lhs.ndim != 4 or rhs.ndim != 4 or rhs.shape[:3] != (*rhs.shape[:1] * 2, lhs.shape[-1]):
        raise ValueError(f"kernel {rhs.shape} on {lhs.shape}: only [k, k, C, O] on [B, H, W, C].")
    numbers = jax.lax.conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    dilated = any(d != 1 for d in (*(lhs_dilation or ()), *(rhs_dilation or ())))
    if len({*window_strides}) > 1 or dilated or feature_group_count != 1 or numbers != _NHWC:
        raise ValueError(
            f"window_strides={window_strides}, dilations {lhs_dilation} and {rhs_dilation}, "
            f"feature_group_count={feature_group_count}, dimension_numbers={dimension_numbers}: only equal "
            "strides, no dilation, one group and channels last are a matrix product of slices."
        )
    size, stride = rhs.shape[0], window_strides[0]
    if isinstance(padding, str):
        padding = jax.lax.padtype_to_pads(lhs.shape[1:3], rhs.shape[:2], window_strides, padding)
    (top, bottom), (left, right) = padding
    x = jnp.pad(lhs, ((0, 0), (top, bottom), (left, right), (0, 0)))
    if min(x.shape[1:3]) < size:
        image = x.shape[1:3]
        raise ValueError(f"an image of {image}, padding included, under a {size}x{size} kernel.")
    rows = x.shape[1] - size + 1
    # the sum of ``_by_rows`` would round each bfloat16 term
    if stride == 1 and 0 < 4 * (size - 1) <= rows and x.dtype != jnp.bfloat16:
        return _by_rows(x, rhs, precision)
    return _by_windows(x, rhs, stride, precision)


def _dot(x: Array, weights: Array, precision: Any) -> Array:
    # two-dimensional, because XLA otherwise transposes a copy of x for the weights' gradient
    flat = jnp.matmul(x.reshape(-1, x.shape[-1]), weights, precision=precision)
    return flat.reshape(*x.shape[:-1], weights.shape[-1])


def _by_windows(x: Array, kernel: Array, stride: int, precision: Any) -> Array:
    """Multiplies the window of each output pixel, k k C numbers, by the kernel."""
    size, _, _, out = kernel.shape
    rows, columns = ((n - size) // stride + 1 for n in x.shape[1:3])
    ends = stride * (rows - 1) + 1, stride * (columns - 1) + 1
    windows = [
        x[:, i : i + ends[0] : stride, j : j + ends[1] : stride]
        for i in range(size)
        for j in range(size)
    ]
    return _dot(jnp.concatenate(windows, axis=-1), kernel.reshape(-1, out), precision)


def _by_rows(x: Array, kernel: Array, precision: Any) -> Array:
    """Multiplies windows of one image row, k C numbers, by all rows of the kernel at once, [k C, k O], and
    adds the k results, each shifted by its row. For k = 3 it copies a third of what ``_by_windows`` copies,
    but some products of the first and last rows are not used."""
    size, _, channels, out = kernel.shape
    rows, columns = (n - size + 1 for n in x.shape[1:3])
    windows = jnp.concatenate([x[:, :, j : j + columns] for j in range(size)], axis=-1)
    weights = kernel.transpose(1, 2, 0, 3).reshape(size * channels, size * out)
    each = _dot(windows, weights, precision)
    parts = [each[:, i : i + rows, :, i * out : (i + 1) * out] for i in range(size)]
    return sum(parts[1:], start=parts[0])
