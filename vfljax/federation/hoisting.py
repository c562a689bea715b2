"""A scan that computes what its steps need of their inputs alone before its loop, for all steps at once.

Most of that are random numbers. A loop over small steps spends much of its time drawing, because on a CPU a
draw of thirty numbers takes nearly as long as one of thousands. ``scan`` finds by itself which operations of a
step depend on neither the carry nor on what the step closes over, so that no function that draws needs to know
of it. The draws are equal to the bit; what the compiler fuses with them may be rounded otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend import core

from vfljax.types import PyTree

LARGEST = (
    1 << 22
)  # bytes that a value may take for all steps of a scan; a larger one is computed step by step


def scan(
    step: Callable[[PyTree, PyTree], tuple[PyTree, PyTree]], carry: PyTree, xs: PyTree
) -> tuple[PyTree, PyTree]:
    """Computes ``jax.lax.scan(step, carry, xs)``.

    Args:
      step: ``step(carry, x) -> (carry, y)``. Its draws should take their keys from ``x``.
      carry: what the steps pass on.
      xs: arrays [n, ...].
    """
    flat, structure = jax.tree.flatten(xs)
    x = jax.tree.unflatten(structure, [a[0] for a in flat])
    closed, shapes = jax.make_jaxpr(step, return_shape=True)(carry, x)
    jaxpr = closed.jaxpr
    inputs = jaxpr.invars[len(jaxpr.invars) - len(flat) :]
    before, within, known = _split(jaxpr.eqns, inputs, len(flat[0]))
    read = [*(v for eqn in within for v in eqn.invars), *jaxpr.outvars]
    passed = list(dict.fromkeys(v for v in read if isinstance(v, core.Var) and v in known))
    ahead = _function(closed, before, inputs, passed)
    scope = [*jaxpr.constvars, *jaxpr.invars, *passed]
    rest = _function(closed, within, scope, jaxpr.outvars)

    def remaining(carry: PyTree, x: tuple[list[Any], list[Any]]) -> tuple[PyTree, PyTree]:
        values, ready = x
        outputs = rest(*closed.consts, *jax.tree.leaves(carry), *values, *ready)
        return jax.tree.unflatten(jax.tree.structure(shapes), outputs)

    return jax.lax.scan(remaining, carry, (flat, jax.vmap(ahead)(*flat)))


def _split(
    eqns: Sequence[core.JaxprEqn], inputs: Sequence[core.Var], length: int
) -> tuple[list[core.JaxprEqn], list[core.JaxprEqn], set[core.Var]]:
    """Returns the equations that depend on ``inputs`` alone, the others, and the results of the first.

    Each list is in order. Equations that depend on nothing are in both, because they are cheaper to compute
    again than to pass on.
    """
    before, within = [], []
    known, constant = set[core.Var](), set[core.Var]()
    for eqn in eqns:
        variables = {v for v in eqn.invars if isinstance(v, core.Var)}
        results: Any = [v.aval for v in eqn.outvars]
        largest = max((math.prod(a.shape) * a.dtype.itemsize for a in results), default=0)
        if eqn.effects or not variables <= known | constant | set(inputs):
            within.append(eqn)
        elif variables <= constant:
            constant.update(eqn.outvars)
            before.append(eqn)
            within.append(eqn)
        elif largest * length <= LARGEST:
            known.update(eqn.outvars)
            before.append(eqn)
        else:
            within.append(eqn)
    return before, within, known


def _function(
    closed: core.ClosedJaxpr,
    eqns: Sequence[core.JaxprEqn],
    inputs: Sequence[core.Var],
    outputs: Sequence[Any],
) -> Callable[..., list[Any]]:
    """Returns the function from ``inputs`` to ``outputs`` that some equations of a traced function compute."""
    jaxpr = closed.jaxpr.replace(
        constvars=[],
        invars=[*inputs],
        outvars=[*outputs],
        eqns=[*eqns],
        debug_info=core.DebugInfo("scan", "step", None, None),
    )
    return core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, []))
