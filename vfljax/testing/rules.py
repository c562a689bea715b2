"""The error of a broken rule: one line that names the row, the rule, and the line of the row's code."""

from __future__ import annotations

import contextlib
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.errors import UserError, raised

BRANCHES = (
    jax.errors.TracerIntegerConversionError,
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
)
TRACED = (
    "a knob or an array is traced, and its value is needed there: take jax.numpy for NumPy, branch by "
    "jnp.where, and refuse bad knobs by vfljax.errors.check or Attack.ranges"
)
MANY = 5  # number of classes that is tried if a row is defined for more than two
LONGEST = 300  # characters that are kept of an error that a row's code raised


class ContractError(UserError):
    """A row breaks a rule that every row of its table keeps."""


@contextlib.contextmanager
def rule(name: str, promise: str, factory: Any) -> Iterator[None]:
    """Turns any error that is raised in the block into the error of a broken rule.

    Args:
      name: name of the row.
      promise: the rule.
      factory: factory of the row; the message names the line of its file.
    """
    try:
        yield
    except UserError:  # a clear line already: a broken rule, or a plugin that is not in use
        raise
    except Exception as error:  # a row's factory may raise anything
        code = getattr(inspect.unwrap(factory), "__code__", None)
        if isinstance(error, BRANCHES):
            error = UserError(TRACED).with_traceback(error.__traceback__)
        why = raised(error, code.co_filename if code else name)
        raise broken(name, promise, textwrap.shorten(why, LONGEST, placeholder="...")) from error


def broken(name: str, promise: str, why: str) -> ContractError:
    """Returns the error of a broken rule.

    Args:
      name: name of the row.
      promise: the rule.
      why: what was found instead.
    """
    return ContractError(
        f"{name} breaks a rule of the contract, {promise!r}: {why.removesuffix('.')}."
    )


def shape(tree: Any) -> str:
    """Returns types and shapes of a tree's leaves: 'float32[8, 4]', or '(..., ...)' of several leaves."""
    leaves = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree)] or ["nothing"]
    return leaves[0] if len(leaves) == 1 else f"({', '.join(leaves)})"


def numbers(tree: Any) -> list[np.ndarray]:
    """Returns all leaves of a tree as NumPy arrays, random keys as their words."""

    def one(leaf: Any) -> np.ndarray:
        key = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if key else leaf)

    return [one(leaf) for leaf in jax.tree.leaves(tree)]


def same_bits(a: Any, b: Any, equal_nan: bool = False) -> bool:
    """Returns whether all numbers of two trees are equal, not just close; 0 and -0 are equal.

    Args:
      a: a tree of arrays.
      b: a tree of the same structure.
      equal_nan: whether NaN equals NaN.
    """
    pairs = zip(numbers(a), numbers(b), strict=True)
    return all(np.array_equal(x, y, equal_nan=equal_nan) for x, y in pairs)


def finite(tree: Any) -> bool:
    """Returns whether every number is finite."""
    return all(np.all(np.isfinite(leaf)) for leaf in numbers(tree))
