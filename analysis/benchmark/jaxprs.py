"""Reads from a program, before it runs, its operations and the memory that its arrays take."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
from jax.extend.core import Jaxpr, JaxprEqn, Literal

# XLA allocates no memory for results of these: they share their operand's memory, or are computed
# where they are read. Computed ones that a program returns do take memory
COMPUTED = ("broadcast_in_dim", "iota")
VIEWS = ("reshape", "squeeze", "expand_dims", *COMPUTED)


def equations(
    jaxpr: Jaxpr, platform: str = "cuda", within: tuple[JaxprEqn, ...] = ()
) -> Iterator[tuple[JaxprEqn, ...]]:
    """Yields (outermost caller, ..., operation) for every operation of a program and of functions it calls.

    Args:
      jaxpr: the program.
      platform: which of the branches of ``jax.lax.platform_dependent`` is compiled.
      within: the operations that call the program.
    """
    for equation in jaxpr.eqns:
        yield (*within, equation)
        for function in _called(equation, platform):
            yield from equations(function, platform, (*within, equation))


def live_bytes(jaxpr: Jaxpr, platform: str = "cuda") -> int:
    """Returns the most bytes that a program's arrays take at one time, before XLA fuses its operations.

    Arguments live as long as the program, any other array until its last use. A loop takes the memory of all
    its results and of one iteration.

    Args:
      jaxpr: the program.
      platform: as for ``equations``.
    """
    return _bytes([*jaxpr.constvars, *jaxpr.invars]) + _added(jaxpr, platform)


def _called(equation: JaxprEqn, platform: str) -> list[Jaxpr]:
    """Returns the functions that an operation calls: a jitted one, a loop's body, a condition's branches."""
    for place, names in enumerate(equation.params.get("branches_platforms") or ()):
        if names is None or platform in names:
            return [equation.params["branches"][place].jaxpr]
    values = (v if isinstance(v, (tuple, list)) else (v,) for v in equation.params.values())
    functions = (getattr(each, "jaxpr", each) for several in values for each in several)
    return [function for function in functions if isinstance(function, Jaxpr)]


def _added(jaxpr: Jaxpr, platform: str) -> int:
    """Returns the most bytes that a program's arrays take at one time, besides its arguments."""
    origin: dict[Any, Any] = {}  # view -> the array whose memory it shares; None if it has none
    last: dict[Any, int] = {}  # array -> the place of its last use
    for place, equation in enumerate([*jaxpr.eqns, None]):
        used = jaxpr.outvars if equation is None else equation.invars
        arrays = [origin.get(v, v) for v in used if not isinstance(v, Literal)]
        last.update((array, place) for array in arrays)
        if equation is None or equation.primitive.name not in VIEWS:
            continue
        if equation.primitive.name not in COMPUTED or equation.outvars[0] not in jaxpr.outvars:
            origin[equation.outvars[0]] = arrays[0] if arrays else None
    for argument in (*jaxpr.constvars, *jaxpr.invars, None):
        last.pop(argument, None)
    ending: dict[int, list[Any]] = {}
    for array, place in last.items():
        ending.setdefault(place, []).append(array)
    live = most = 0
    for place, equation in enumerate(jaxpr.eqns):
        made = [v for v in equation.outvars if v not in origin]
        most = max(most, live + _bytes(made))
        for function in _called(equation, platform):
            running = _added(function, platform)
            if equation.primitive.name in ("scan", "while"):
                running += _bytes(equation.outvars)
            if equation.primitive.name == "scan":  # an iteration takes a slice
                arguments: Any = zip(equation.invars, function.invars, strict=True)
                running += _bytes(v for whole, v in arguments if whole.aval.ndim != v.aval.ndim)
            most = max(most, live + running)
        live += _bytes(v for v in made if v in last) - _bytes(ending.get(place, ()))
    return most


def _bytes(variables: Iterable[Any]) -> int:
    total = 0
    for aval in (variable.aval for variable in variables):
        if hasattr(aval, "shape"):
            key = jnp.issubdtype(aval.dtype, jax.dtypes.prng_key)  # threefry's, of two words
            total += math.prod(aval.shape) * (8 if key else aval.dtype.itemsize)
    return total
