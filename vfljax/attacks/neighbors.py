"""Propagation of labels on a graph of nearest neighbors (Zhou et al. 2004).

    s <- alpha S s + (1 - alpha) Y,   S = D^-1/2 W D^-1/2

W = A + A^T, and D is diagonal with the sums of W's rows. A_ij = exp(-d_ij^2 / m) if row j is among the k
nearest of row i, at the distance d_ij, else 0; m is the mean of d^2 over these neighbors. Neighbors of one
another therefore weigh twice. Weights are at least ``LEAST``, because a row far from all others would have no
neighbor in float32. The limit is

    s = (1 - alpha) (I - alpha S)^-1 Y

Y is the one-hot class of a known row less the mean over known rows, and 0 for other rows. A row with s = 0 is
therefore no likelier of one class than known rows are; so are all rows of a component of the graph without
a known row. ``graph`` is made once for all Y, whose columns may be those of many draws of known rows.

The columns of x are weighed as they come: a caller scales them, by ``block`` for example.

Reference: Zhou, Bousquet, Lal, Weston, Schoelkopf. "Learning with Local and Global Consistency", NIPS 2003,
whose graph is complete. The sparse graph, m and the centered Y are ours. The limit is found by Chebyshev's
semi-iteration (Golub, Varga 1961). alpha S has its eigenvalues in [-alpha, alpha], and n products leave at most

    1 / T_n(1 / alpha) < 2 rho^n,   rho = alpha / (1 + sqrt(1 - alpha^2))

of the distance between (1 - alpha) Y and the limit, by the Euclidean norm: ``PRODUCTS`` leave .004 at alpha =
.97, 2e-5 at .9 and .06 at .99.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import chex
import jax
import jax.numpy as jnp

from vfljax.attacks import core
from vfljax.types import Array

NEAREST = 7
ALPHA = 0.97
LEAST = 1e-3  # of the weights, whose largest is 1
PRODUCTS = 25  # with S
MOST_ROWS = 20_000  # that neighbors are chosen among
AT_ONCE = 128  # rows whose distances to all others are held
GROUP = 16  # rows of which the nearest is found first


class Graph(NamedTuple):
    """S = B + B^T of n rows."""

    ends: Array  # [n, k] int32: the nearest rows of each
    weights: Array  # [n, k] B from each row to them; 0 where a row has fewer


def block(x: Array, usable: Array) -> Array:
    """The columns of x [n, W], centered and divided by one number, so that their variances over the rows
    ``usable`` [n] bool sum to 1. Other rows, and columns that are all constant, are 0."""
    chex.assert_rank([x, usable], [2, 1])
    count = jnp.maximum(jnp.sum(usable), 1)
    x = jnp.where(usable[:, None], x, 0.0)
    largest = jnp.max(jnp.abs(x))
    x = x / jnp.where(largest > 0, largest, 1.0)
    x = jnp.where(usable[:, None], x - jnp.sum(x, axis=0, keepdims=True) / count, 0.0)
    spread = jnp.sqrt(jnp.sum(x * x) / count)
    return jnp.where(spread > 1e-6, x / jnp.maximum(spread, 1e-6), 0.0)


def nearest(
    x: Array, usable: Array, k: int = NEAREST, among: Array | None = None
) -> tuple[Array, Array]:
    """The k nearest other rows of each row by Euclidean distance, exactly.

    Args:
      x: [n, W].
      usable: [n] bool. Other rows have no neighbors, and are none.
      k: how many. Of equally near rows those of least number are taken.
      among: [m] int32, the rows that may be neighbors; all by default.

    Returns:
      Their numbers [n, k] int32, and their squared distances [n, k]; infinite where a row has fewer.
    """
    chex.assert_rank([x, usable], [2, 1])
    among = jnp.arange(len(x), dtype=jnp.int32) if among is None else among
    squares, k, spare = jnp.sum(x * x, axis=1), min(k, len(among)), -len(among) % GROUP
    # rows that are not usable are infinitely far, and so are those that fill the last group
    far = jnp.where(usable[among], squares[among], jnp.inf)
    far = jnp.pad(far, (0, spare), constant_values=jnp.inf)
    others, numbers = jnp.pad(x[among], ((0, spare), (0, 0))), jnp.pad(among, (0, spare))

    def of_rows(rows: Array) -> tuple[Array, Array]:
        # |x_i - x_j|^2 less |x_i|^2, which moves no order
        apart = far[None] - 2 * core.multiply(x[rows], others.T)
        apart = jnp.where(numbers[None] == rows[:, None], jnp.inf, apart)
        # the k nearest are in the k groups whose first are nearest, of which far fewer rows are sorted
        least = jnp.min(apart.reshape(len(rows), -1, GROUP), axis=2)
        groups = jnp.sort(jax.lax.top_k(-least, min(k, least.shape[1]))[1], axis=1)
        places = groups[..., None] * GROUP + jnp.arange(GROUP)[None, None]
        places = places.reshape(len(rows), -1)
        negative, best = jax.lax.top_k(-jnp.take_along_axis(apart, places, axis=1), k)
        ends = numbers[jnp.take_along_axis(places, best, axis=1)]
        squared = jnp.maximum(squares[rows][:, None] - negative, 0.0)
        return ends, jnp.where(usable[rows][:, None], squared, jnp.inf)

    blocks = -(-len(x) // AT_ONCE)
    size = -(-len(x) // blocks)
    # the last block repeats the last row
    rows = jnp.minimum(jnp.arange(blocks * size, dtype=jnp.int32), len(x) - 1)
    ends, squared = jax.lax.map(of_rows, rows.reshape(blocks, size))
    return ends.reshape(-1, k)[: len(x)], squared.reshape(-1, k)[: len(x)]


def drawn(key: Array, rows: int) -> Array | None:
    """The rows that may be neighbors (``nearest``): all, or a drawn ``MOST_ROWS`` of more, for which each row
    has its nearest among the drawn ones alone."""
    if rows <= MOST_ROWS:
        return None
    return jnp.sort(jax.random.choice(key, rows, (MOST_ROWS,), replace=False)).astype(jnp.int32)


def graph(x: Array, usable: Array, k: int = NEAREST, among: Array | None = None) -> Graph:
    """The symmetric graph of the k ``nearest`` rows of x [n, W]; rows that are not usable are isolated."""
    ends, squared = nearest(x, usable, k, among)
    real = jnp.isfinite(squared)
    squared = jnp.where(real, squared, 0.0)
    mean = jnp.sum(squared) / jnp.maximum(jnp.sum(real), 1)
    near = jnp.maximum(jnp.exp(-squared / jnp.maximum(mean, 1e-12)), LEAST) * real
    degree = jnp.sum(near, axis=1).at[ends].add(near)
    root = jax.lax.rsqrt(jnp.maximum(degree, LEAST))
    return Graph(ends, near * root[:, None] * root[ends])


@jax.custom_batching.custom_vmap
def multiply(graph: Graph, s: Array) -> Array:
    """S s [n, C] of s [n, C]."""
    chex.assert_rank(s, 2)
    weights = graph.weights
    # a loop: an array of all edges [n, k, C] would be written and read again, which takes four times as long
    received = jnp.zeros_like(s)
    for j in range(weights.shape[1]):
        received += weights[:, j, None] * s[graph.ends[:, j]]
    return received.at[graph.ends].add(weights[..., None] * s[:, None])


@multiply.def_vmap
def _multiply_mapped(size: int, mapped: tuple[Graph, bool], graph: Graph, s: Array) -> Any:
    """``multiply`` under vmap. Several s of one graph become columns of one, because the time of a product is
    that of its edges, whatever the number of columns."""
    if not any(mapped[0]):
        columns = jnp.moveaxis(s, 0, 1).reshape(s.shape[1], -1)
        product = multiply(graph, columns).reshape(s.shape[1], size, -1)
        return jnp.moveaxis(product, 1, 0), True
    axes = jax.tree.map(lambda each: 0 if each else None, tuple(mapped))
    return jax.vmap(multiply.fun, axes)(graph, s), True


def propagate(graph: Graph, y: Array, alpha: Array | float, products: int = PRODUCTS) -> Array:
    """(1 - alpha) (I - alpha S)^-1 y [n, C] of y [n, C], within what a fixed number of ``products`` leaves.

    Args:
      graph: S.
      y: any number of columns, of several draws of known rows for example.
      alpha: from 0, which returns y, to less than 1.
      products: at least 1.
    """
    chex.assert_rank(y, 2)
    start = (1 - alpha) * y

    def step(carry: tuple[Array, Array, Array], _: None) -> tuple[tuple[Array, Array, Array], None]:
        s, before, factor = carry
        factor = 1 / (1 - alpha**2 * factor / 4)
        return (factor * (alpha * multiply(graph, s) + start - before) + before, s, factor), None

    # the first product has factor 1, and the second, of the recursion, 1 / (1 - alpha^2 / 2)
    first = alpha * multiply(graph, start) + start, start, jnp.full((), 2.0)
    return jax.lax.scan(step, first, None, length=products - 1)[0][0]


def seeds(classes: Array) -> Array:
    """Y [n, C] of the one-hot classes [n, C] of known rows, whose other rows are 0. Rows may also have shares
    of classes that sum to a weight."""
    weights = jnp.sum(classes, axis=1, keepdims=True)
    total = jnp.maximum(jnp.sum(weights), 1e-12)
    return classes - weights * jnp.sum(classes, axis=0, keepdims=True) / total


def scores(graph: Graph, classes: Array, alpha: Array | float) -> Array:
    """The scores [n, C] that ``propagate`` gives ``seeds``; a class of which no row is known scores least."""
    s = propagate(graph, seeds(classes), alpha)
    present = jnp.sum(classes, axis=0, keepdims=True) > 0
    return jnp.where(present, s, jnp.min(s, axis=1, keepdims=True) - 1.0)
