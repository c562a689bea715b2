"""The error of a broken rule: one line that names the row, the rule, and the line of the row's code."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from vfljax.errors import UserError, shown

BRANCHES = (
    jax.errors.TracerBoolConversionError,
    jax.errors.TracerIntegerConversionError,
    jax.errors.TracerArrayConversionError,
    jax.errors.ConcretizationTypeError,
)
LONGEST = 200  # characters of what somebody's code raised


class ContractError(UserError):
    """A row breaks a rule that every row of its table keeps."""


@contextlib.contextmanager
def rule(name: str, promise: str, factory: Any) -> Iterator[None]:
    """Turns whatever is raised within into the error of a broken rule.

    Args:
      name: of the row.
      promise: the rule.
      factory: of the row, whose file the message names a line of.
    """
    try:
        yield
    except UserError:  # a line for a person already: a broken rule, or a plugin that is not in use
        raise
    except Exception as error:  # it is somebody's code
        where = _line(error, factory)
        if isinstance(error, BRANCHES):
            why = (
                "a knob is traced, and its value is needed there: branch by jnp.where, and refuse bad knobs by "
                "vfljax.defenses.core.check (of a defense) or Attack.ranges"
            )
        else:
            text = " ".join(str(error).split())
            short = text if len(text) <= LONGEST else f"{text[:LONGEST]}..."
            why = f"{type(error).__name__}: {short}".removesuffix(": ")
        raise broken(name, promise, f"{where}{why}") from error


def broken(name: str, promise: str, why: str) -> ContractError:
    """Returns the error of the row ``name`` that breaks the rule ``promise``, and why."""
    return ContractError(
        f"{name} breaks a rule of the contract, {promise!r}: {why.removesuffix('.')}."
    )


def _line(error: BaseException, factory: Any) -> str:
    """'mine.py, line 12: ', the last line of the factory's file that the error passed; "" elsewhere."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(factory))
    except TypeError:
        return ""
    lines = [f.lineno for f in traceback.extract_tb(error.__traceback__) if f.filename == file]
    return f"{shown(file)}, line {lines[-1]}: " if file and lines else ""


def shape(tree: Any) -> str:
    """Returns 'float32[8, 4]', or '(..., ...)' of a tree's leaves."""
    leaves = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree)]
    return leaves[0] if len(leaves) == 1 else f"({', '.join(leaves)})"


def same_shape(name: str, promise: str, what: str, before: Any, after: Any) -> None:
    """Raises ContractError if ``what`` has another structure, shape or type after than before."""
    if jax.tree.structure(before) != jax.tree.structure(after) or shape(before) != shape(after):
        raise broken(name, promise, f"{what} is {shape(after)} where {shape(before)} is due")


def numbers(tree: Any) -> list[np.ndarray]:
    """Returns all leaves of a tree as NumPy arrays; of keys their data."""

    def host(leaf: Any) -> np.ndarray:
        key = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if key else leaf)

    return [host(leaf) for leaf in jax.tree.leaves(tree)]


def same_bits(a: Any, b: Any) -> bool:
    """Returns whether all numbers of two trees are equal, not just close; 0 and -0 are equal."""
    return all(np.array_equal(x, y) for x, y in zip(numbers(a), numbers(b), strict=True))


def finite(tree: Any) -> bool:
    """Returns whether every number is finite."""
    return all(np.all(np.isfinite(leaf)) for leaf in numbers(tree))
