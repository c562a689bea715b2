"""3x3 convolutions of stride 1 on NVIDIA GPUs: implicit matrix products in Pallas (Triton).

With x(m) the C channels of pixel m of a batch, zero outside of its image, W(t) the C x O matrix of tap t, and
d(t) the offset of that tap's pixel, a convolution padded to the image's size and its gradients are

    y(m) = sum_t x(m + d(t)) W(t)    dL/dx(m) = sum_t g(m - d(t)) W(t)^T    dL/dW(t) = sum_m x(m + d(t))^T g(m)

with g = dL/dy. A program of a kernel computes one tile of a result in float32, reads the shifted rows from x
itself, and rounds once, to the type of x. So windows of pixels are never written to memory, which takes most
of the time of a convolution by products of windows. Under ``vmap`` each kernel stays one kernel, whose grid has
one more axis.

The tiles are the fastest of those tried on an H200 for ResNet-18 of width 64 (``analysis/guide/gpu.md``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from vfljax.types import Array

LEAST = 16  # the smallest side of a tile that Triton multiplies


class Tile(NamedTuple):
    """How a kernel divides its work."""

    rows: int  # of a result's tile
    columns: int
    depth: int  # of each product that is added to the tile
    warps: int
    stages: int  # of the pipeline that loads operands
    taps: int = 1  # tiles of dL/dW per program: 1, or 3 that share the loads of g
    parts: int = 1  # into which the rows of dL/dW's sum are divided


# by the channels that a convolution reads; more channels use the last row, and fewer the first
FORWARD = {
    64: Tile(128, 64, 64, 4, 4),
    128: Tile(128, 128, 64, 4, 3),
    256: Tile(128, 128, 64, 8, 3),
}
BY_INPUT = {
    64: Tile(128, 64, 64, 4, 4),
    128: Tile(128, 128, 64, 8, 3),
    256: Tile(128, 256, 64, 8, 3),
    512: Tile(128, 128, 64, 8, 3),
}
BY_KERNEL = {
    64: Tile(64, 64, 128, 8, 3, taps=3, parts=8),
    128: Tile(128, 128, 64, 4, 3, parts=4),
    256: Tile(128, 128, 64, 4, 3),
    512: Tile(128, 128, 64, 4, 4),
}


def _tile(table: dict[int, Tile], channels: int) -> Tile:
    return table[max((c for c in table if c <= channels), default=min(table))]


def _side(size: int, most: int) -> int:
    """Returns the largest power of two up to ``most`` that divides a multiple of ``LEAST``."""
    side = most
    while size % side:
        side //= 2
    return side


@jax.custom_vjp
def convolve(x: Array, kernel: Array) -> Array:
    """Returns x [B, H, W, C] convolved with a kernel [3, 3, C, O], padded to the image's size: [B, H, W, O].

    Both are of one type, bfloat16 or float32, which the result and the gradients have too. Products are
    of that type and are added up in float32. It has a reverse derivative only.
    """
    return _convolved(x, kernel, FORWARD, transposed=False)


def _forward(x: Array, kernel: Array) -> tuple[Array, tuple[Array, Array]]:
    return convolve(x, kernel), (x, kernel)


def _backward(operands: tuple[Array, Array], g: Array) -> tuple[Array, Array]:
    x, kernel = operands
    return _convolved(g, kernel, BY_INPUT, transposed=True), _by_kernel(x, g)


convolve.defvjp(_forward, _backward)


def _padded(a: Array, axes: tuple[int, ...]) -> Array:
    """Pads channels with zeros to a multiple of ``LEAST``."""
    widths = [(0, -n % LEAST if axis in axes else 0) for axis, n in enumerate(a.shape)]
    return jnp.pad(a, widths) if any(more for _, more in widths) else a


def _taps(
    m: Array, row: Array, column: Array, height: int, width: int, rows: int
) -> tuple[Array, Array]:
    """Returns the pixels beside the pixels m in direction (row, column), and whether they are in the image."""
    h, w = lax.rem(lax.div(m, width), height) + row, lax.rem(m, width) + column
    inside = (m < rows) & (h >= 0) & (h < height) & (w >= 0) & (w < width)
    return m + (row * width + column), inside


def _convolved(x: Array, kernel: Array, tiles: dict[int, Tile], *, transposed: bool) -> Array:
    """Returns the convolution of x; if ``transposed``, its gradient by the input, where x is the gradient."""
    batch, height, width, channels = x.shape
    out = kernel.shape[2 if transposed else 3]
    rows = batch * height * width
    flat = _padded(x.reshape(rows, channels), (1,))
    taps = _padded(kernel.reshape(9, *kernel.shape[2:]), (1, 2))
    inner, outer = flat.shape[1], taps.shape[1 if transposed else 2]
    tile = _tile(tiles, inner)
    side, columns, depth = tile.rows, _side(outer, tile.columns), _side(inner, tile.depth)
    depths = inner // depth

    def program(x_ref: Any, w_ref: Any, y_ref: Any) -> None:
        m = pl.program_id(0) * side + lax.iota(jnp.int32, side)
        first = pl.program_id(1) * columns

        def add(step: Array, total: Array) -> Array:
            tap, k = lax.div(step, depths), lax.rem(step, depths) * depth
            pixels, inside = _taps(m, lax.div(tap, 3) - 1, lax.rem(tap, 3) - 1, height, width, rows)
            part = _load(x_ref, pixels, _from(k, depth), inside=inside)
            if transposed:
                weights = _load(w_ref, _from(first, columns), _from(k, depth), 8 - tap)
                return total + triton.dot(part, weights, trans_b=True)
            weights = _load(w_ref, _from(k, depth), _from(first, columns), tap)
            return total + triton.dot(part, weights)

        total = lax.fori_loop(0, 9 * depths, add, jnp.zeros((side, columns), jnp.float32))
        y_ref[...] = total.astype(y_ref.dtype)

    tiles_of = pl.cdiv(rows, side)
    y = _called(
        program,
        (flat, taps),
        grid=(tiles_of, outer // columns),
        out_shape=jax.ShapeDtypeStruct((tiles_of * side, outer), x.dtype),
        out_specs=pl.BlockSpec((side, columns), lambda i, j: (i, j)),
        tile=tile,
        name="conv3x3_by_input" if transposed else "conv3x3",
    )
    return y[:rows, :out].reshape(batch, height, width, out)


def _by_kernel(x: Array, g: Array) -> Array:
    """Returns the gradient of a convolution of x by its kernel, where g is the gradient by its result."""
    batch, height, width, channels = x.shape
    out = g.shape[3]
    rows = batch * height * width
    x, g = (_padded(a.reshape(rows, a.shape[3]), (1,)) for a in (x, g))
    tile = _tile(BY_KERNEL, x.shape[1])
    side, columns = _side(x.shape[1], tile.rows), _side(g.shape[1], tile.columns)
    across, down = g.shape[1] // columns, x.shape[1] // side
    steps = pl.cdiv(pl.cdiv(rows, tile.parts), tile.depth)  # of each part

    def program(x_ref: Any, g_ref: Any, w_ref: Any) -> None:
        which, part = pl.program_id(0), pl.program_id(1)
        first = lax.div(which, down * across) * tile.taps
        c = lax.rem(lax.div(which, across), down) * side
        o = lax.rem(which, across) * columns

        def add(step: Array, totals: tuple[Array, ...]) -> tuple[Array, ...]:
            m = (part * steps + step) * tile.depth + lax.iota(jnp.int32, tile.depth)
            slopes = _load(g_ref, m, _from(o, columns), inside=m < rows)
            sums = []
            for number, total in enumerate(totals):
                row, column = lax.div(first, 3) - 1, lax.rem(first, 3) + number - 1
                pixels, inside = _taps(m, row, column, height, width, rows)
                shifted = _load(x_ref, pixels, _from(c, side), inside=inside)
                sums.append(total + triton.dot(shifted, slopes, trans_a=True))
            return tuple(sums)

        zeros = jnp.zeros((side, columns), jnp.float32)
        totals = lax.fori_loop(0, steps, add, (zeros,) * tile.taps)
        for number, total in enumerate(totals):
            w_ref[first + number, pl.ds(c, side), pl.ds(o, columns)] = total

    shape = (tile.parts, 9, x.shape[1], g.shape[1])
    sums = _called(
        program,
        (x, g),
        grid=(9 // tile.taps * down * across, tile.parts),
        out_shape=jax.ShapeDtypeStruct(shape, jnp.float32),
        out_specs=pl.BlockSpec((None, *shape[1:]), lambda i, part: (part, 0, 0, 0)),
        tile=tile,
        name="conv3x3_by_kernel",
    )
    kernel = jnp.sum(sums, axis=0)[:, :channels, :out]
    return kernel.reshape(3, 3, channels, out).astype(x.dtype)


def _called(
    program: Callable[..., None],
    operands: tuple[Array, ...],
    *,
    out_shape: jax.ShapeDtypeStruct,
    tile: Tile,
    **options: Any,
) -> Array:
    """Calls a kernel with whole operands; on a CPU, Pallas' interpreter does."""
    whole = [pl.BlockSpec(a.shape, lambda *_, axes=a.ndim: (0,) * axes) for a in operands]
    compiled = triton.CompilerParams(num_warps=tile.warps, num_stages=tile.stages)
    return lax.platform_dependent(
        *operands,
        cpu=pl.pallas_call(program, out_shape, in_specs=whole, **options, interpret=True),
        default=pl.pallas_call(
            program, out_shape, in_specs=whole, **options, compiler_params=compiled
        ),
    )


def _from(first: Array, count: int) -> Array:
    return first + lax.iota(jnp.int32, count)


def _load(
    ref: Any, rows: Array, columns: Array, *leading: Array, inside: Array | None = None
) -> Array:
    """Loads a matrix at ``leading``; zeros in the rows where ``inside`` is False."""
    # every index is an array of the matrix' shape, because the interpreter reads no slices beside arrays
    shape = rows.size, columns.size
    places = (*leading, rows[:, None], columns)
    at = ref.at[tuple(jnp.broadcast_to(place, shape) for place in places)]
    if inside is None:
        return triton.load(at)
    return triton.load(at, mask=jnp.broadcast_to(inside[:, None], shape), other=0.0)
