"""How a broken rule is said: one line that names the row, the rule, and where the row's code broke it."""

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
def rule(name: str, says: str, factory: Any) -> Iterator[None]:
    """Whatever is raised within is said as the rule that it broke, with its line in the row's file."""
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
        raise broken(name, says, f"{where}{why}") from error


def broken(name: str, says: str, why: str) -> ContractError:
    """The error of a rule that ``name`` breaks."""
    return ContractError(
        f"{name} breaks a rule of the contract, {says!r}: {why.removesuffix('.')}."
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
    """'float32[8, 4]', or of a tree its leaves' texts."""
    leaves = [f"{leaf.dtype}{list(leaf.shape)}" for leaf in jax.tree.leaves(tree)]
    return leaves[0] if len(leaves) == 1 else f"({', '.join(leaves)})"


def same_shape(name: str, says: str, what: str, before: Any, after: Any) -> None:
    """Refuse another structure, shape or type than before."""
    if jax.tree.structure(before) != jax.tree.structure(after) or shape(before) != shape(after):
        raise broken(name, says, f"{what} is {shape(after)} where {shape(before)} is due")


def numbers(tree: Any) -> list[np.ndarray]:
    """All leaves of a tree as NumPy arrays; keys as their words."""

    def one(leaf: Any) -> np.ndarray:
        key = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        return np.asarray(jax.random.key_data(leaf) if key else leaf)

    return [one(leaf) for leaf in jax.tree.leaves(tree)]


def same_bits(one: Any, other: Any) -> bool:
    """Whether every number is equal, not just close; 0 and -0 are the same number."""
    pairs = zip(numbers(one), numbers(other), strict=True)
    return all(np.array_equal(a, b) for a, b in pairs)


def finite(tree: Any) -> bool:
    """Whether every number is finite."""
    return all(np.all(np.isfinite(leaf)) for leaf in numbers(tree))
