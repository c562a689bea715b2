"""bfloat16 products: what ``config.training.precision = "bfloat16"`` changes in the parties' models.

Products of float32 arrays (dense layers, convolutions, attention), and those of their gradients, round their
operands to bfloat16. With r the rounding to the nearest bfloat16, which has 8 significant bits, a layer is

    z = r(x) r(W) + b        dL/dx = r(g) r(W)^T        dL/dW = r(x)^T r(g)        g = dL/dz

All else is float32: weights, activations, statistics, losses, optimizer states, defenses, teachers, attacks,
and what crosses the wire. Matrix products are added up and returned in float32; XLA's own convolutions (not on
a CPU) return bfloat16, for on GPUs XLA has none that return float32. No network knows of this: its function is
traced, and evaluated with other products in their place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var
from jax.extend.core.primitives import conv_general_dilated_p, dot_general_p, jit_p

# the products, and what XLA returns of bfloat16 operands
RESULTS: dict[Primitive, Any] = {dot_general_p: jnp.float32, conv_general_dilated_p: jnp.bfloat16}


def bfloat16_products(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a pure function of pytrees of arrays with its products of float32 arrays in bfloat16.

    Shapes and types of the results are the same. It may be vmapped and jitted, and differentiated in reverse
    mode as often as wanted.

    Raises:
      ValueError: when traced, if a product is inside a loop, a branch or a function with its own derivative,
        which are not entered.
    """

    @functools.wraps(function)
    def rounded(*args: Any) -> Any:
        traced, shapes = jax.make_jaxpr(function, return_shape=True)(*args)
        results = _evaluate(traced, jax.tree.leaves(args))
        return jax.tree.unflatten(jax.tree.structure(shapes), results)

    return rounded


def _evaluate(traced: ClosedJaxpr, arguments: Sequence[Any]) -> list[Any]:
    """The results of a traced function, with other products."""
    jaxpr = traced.jaxpr
    values: dict[Var, Any] = dict(zip(jaxpr.constvars, traced.consts, strict=True))
    values.update(zip(jaxpr.invars, arguments, strict=True))

    def value(variable: Any) -> Any:
        return variable.val if isinstance(variable, Literal) else values[variable]

    for equation in jaxpr.eqns:
        results = _apply(equation, [value(variable) for variable in equation.invars])
        values.update(zip(equation.outvars, results, strict=True))
    return [value(variable) for variable in jaxpr.outvars]


def _apply(equation: JaxprEqn, operands: list[Any]) -> Sequence[Any]:
    """The results of one operation, of a product those of ``_product``."""
    primitive = equation.primitive
    if _is_product(equation):
        return [_product(primitive, equation.params)(*operands)]
    if any(map(_has_product, _functions(equation))):
        if primitive is jit_p:
            return _evaluate(equation.params["jaxpr"], operands)
        raise ValueError(
            f"a product inside a {primitive.name}, which precision 'bfloat16' does not enter: take it out "
            "of the network, or choose config.training.precision='float32'."
        )
    # as ``jax.core.eval_jaxpr`` does
    parameters: Any = primitive.get_bind_params(equation.params)
    results = primitive.bind(*operands, **parameters)
    return results if primitive.multiple_results else [results]


def _is_product(equation: JaxprEqn) -> bool:
    """Whether it multiplies float32 arrays; of other types products stay as they are."""
    types = [getattr(variable.aval, "dtype", None) for variable in equation.invars]
    return equation.primitive in RESULTS and types == [jnp.float32] * 2


def _functions(equation: JaxprEqn) -> Iterable[Jaxpr]:
    """The functions that an operation calls: a loop's body, branches, what is jitted."""
    for leaf in jax.tree.leaves(list(equation.params.values())):
        if isinstance(leaf, ClosedJaxpr | Jaxpr):
            yield leaf.jaxpr if isinstance(leaf, ClosedJaxpr) else leaf


def _has_product(jaxpr: Jaxpr) -> bool:
    return any(
        _is_product(equation) or any(map(_has_product, _functions(equation)))
        for equation in jaxpr.eqns
    )


def _product(primitive: Primitive, parameters: dict[str, Any]) -> Callable[[Array, Array], Array]:
    """A product of float32 arrays, and those of its gradient, with operands in bfloat16."""

    def exact(x: Array, y: Array) -> Array:
        return primitive.bind(x, y, **parameters)

    # the process's default precision is for operands in float32
    result = {"precision": None, "preferred_element_type": jnp.dtype(RESULTS[primitive])}

    def of_rounded(x: Array, y: Array) -> Array:
        return primitive.bind(x, y, **{**parameters, **result}).astype(jnp.float32)

    @jax.custom_vjp
    def product(x: Array, y: Array) -> Array:
        return of_rounded(_round(x), _round(y))

    def forward(x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
        x, y = _round(x), _round(y)
        return of_rounded(x, y), (x, y)  # kept at half the size

    def backward(operands: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
        x, y = (operand.astype(jnp.float32) for operand in operands)

        def transposed(slope: Array) -> tuple[Array, Array]:
            (by_x,) = jax.linear_transpose(lambda x: exact(x, y), x)(slope)
            (by_y,) = jax.linear_transpose(lambda y: exact(x, y), y)(slope)
            return by_x, by_y

        return bfloat16_products(transposed)(slope)

    product.defvjp(forward, backward)
    return product


def _round(x: Array) -> Array:
    """The nearest bfloat16. A cast alone is not enough: XLA may drop it where it casts back
    (``xla_allow_excess_precision``), which it never does with ``reduce_precision``."""
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7).astype(jnp.bfloat16)
