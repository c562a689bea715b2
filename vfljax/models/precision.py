"""bfloat16: what ``config.training.precision = "bfloat16"`` changes in the parties' models.

Products of float32 arrays (dense layers, convolutions, attention), and those of their gradients, round their
operands to bfloat16. With r the rounding to the nearest bfloat16, which has 8 significant bits, a layer is

    z = r(x) r(W) + b        dL/dx = r(g) r(W)^T        dL/dW = r(x)^T r(g)        g = dL/dz

Networks with a field ``dtype``, which are those of dense layers and convolutions, also store their hidden
activations in bfloat16. A hidden layer returns r(r(r(x) r(W)) + b); normalization, activation function, dropout
and pooling return bfloat16, as do the gradients by all of these, and by the kernel.

All else is float32: weights, batch statistics, losses, optimizer states, defenses, teachers, attacks, the last
layer's result, and what crosses the wire. Products of float32 arrays are added up and returned in float32.
XLA's own convolutions of float32 arrays (not on a CPU) return bfloat16, because XLA has none on GPUs that
return float32. Layers outside of ``dtype`` need no change: the function of a network is traced, and evaluated
with its products of float32 arrays replaced.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from flax.linen.dtypes import promote_dtype
from jax import Array
from jax.extend.core import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Primitive, Var
from jax.extend.core.primitives import conv_general_dilated_p, dot_general_p, jit_p

# the operations that are products, and the type in which XLA returns them from bfloat16 operands
RESULTS: dict[Primitive, Any] = {dot_general_p: jnp.float32, conv_general_dilated_p: jnp.bfloat16}


def bfloat16_products(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a pure function of pytrees of arrays with its products of float32 arrays in bfloat16.

    Shapes and types of the results do not change. The function may be vmapped and jitted, and differentiated
    in reverse mode any number of times.

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
    """Evaluates a traced function with its products replaced."""
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
    """Evaluates one operation; ``_product`` replaces it if it is a product."""
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
    """Returns whether an operation is a product of float32 arrays. Products of other types are kept."""
    types = [getattr(variable.aval, "dtype", None) for variable in equation.invars]
    return equation.primitive in RESULTS and types == [jnp.float32] * 2


def _functions(equation: JaxprEqn) -> Iterable[Jaxpr]:
    """Yields the functions that an operation calls: bodies of loops, branches, and jitted functions."""
    for leaf in jax.tree.leaves(list(equation.params.values())):
        if isinstance(leaf, ClosedJaxpr | Jaxpr):
            yield leaf.jaxpr if isinstance(leaf, ClosedJaxpr) else leaf


def _has_product(jaxpr: Jaxpr) -> bool:
    return any(
        _is_product(equation) or any(map(_has_product, _functions(equation)))
        for equation in jaxpr.eqns
    )


def _product(primitive: Primitive, parameters: dict[str, Any]) -> Callable[[Array, Array], Array]:
    """Returns a product of float32 arrays whose operands, also in its gradient, are rounded to bfloat16."""

    def exact(x: Array, y: Array) -> Array:
        return primitive.bind(x, y, **parameters)

    # precision None, because the default precision of the process is meant for float32 operands
    result = {"precision": None, "preferred_element_type": jnp.dtype(RESULTS[primitive])}

    def of_rounded(x: Array, y: Array) -> Array:
        return primitive.bind(x, y, **{**parameters, **result}).astype(jnp.float32)

    @jax.custom_vjp
    def product(x: Array, y: Array) -> Array:
        return of_rounded(round_to_bfloat16(x), round_to_bfloat16(y))

    def forward(x: Array, y: Array) -> tuple[Array, tuple[Array, Array]]:
        x, y = round_to_bfloat16(x), round_to_bfloat16(y)
        return of_rounded(x, y), (x, y)  # the operands are kept at half the size

    def backward(operands: tuple[Array, Array], slope: Array) -> tuple[Array, Array]:
        x, y = (operand.astype(jnp.float32) for operand in operands)

        def transposed(slope: Array) -> tuple[Array, Array]:
            (by_x,) = jax.linear_transpose(lambda x: exact(x, y), x)(slope)
            (by_y,) = jax.linear_transpose(lambda y: exact(x, y), y)(slope)
            return by_x, by_y

        return bfloat16_products(transposed)(slope)

    product.defvjp(forward, backward)
    return product


def stored(x: Array, dtype: Any) -> Array:
    """Returns activations as they are stored: rounded to bfloat16 if that is ``dtype``, else as they are.

    XLA may keep more digits of a bfloat16 array than it has; it does not keep more of these.
    """
    return round_to_bfloat16(x.astype(jnp.float32)) if dtype == jnp.bfloat16 else x


def promoted(*operands: Array | None, dtype: Any = None, **options: Any) -> list[Array | None]:
    """``flax.linen.dtypes.promote_dtype``, which rounds to bfloat16 as ``stored`` does.

    Operands are those of a layer: x, the kernel, and the bias or None. The bias stays float32, because its
    gradient is a sum over rows, and XLA may add up bfloat16 numbers in bfloat16.
    """
    if dtype != jnp.bfloat16:
        return promote_dtype(*operands, dtype=dtype, **options)
    x, kernel, bias = operands
    assert x is not None
    assert kernel is not None
    return [stored(x, dtype), stored(kernel, dtype), bias]


def widened(x: Array) -> Array:
    """Returns activations that are stored in bfloat16 as float32, and others as they are.

    Their gradient is rounded to bfloat16, which XLA might leave out of a cast.
    """
    return stored(x, x.dtype).astype(jnp.float32) if x.dtype == jnp.bfloat16 else x


def round_to_bfloat16(x: Array) -> Array:
    """Rounds to the nearest bfloat16. A cast alone is not enough: XLA may drop a cast that is followed by its
    reverse (``xla_allow_excess_precision``), but it never drops ``reduce_precision``."""
    return jax.lax.reduce_precision(x, exponent_bits=8, mantissa_bits=7).astype(jnp.bfloat16)
