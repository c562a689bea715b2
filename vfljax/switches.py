"""The switches of JAX on which a sweep depends. JAX reads them from its environment and from ``jax.config``.

Most switches of JAX, such as ``JAX_LOG_COMPILES`` or ``JAX_CHECK_TRACER_LEAKS``, change no figure, and all
may be set. Those with which no sweep can be trained are refused before anything is read or written. Those
that change figures are stored in ``sweep.json``.
"""

from __future__ import annotations

import os
import textwrap
from typing import Any, NamedTuple

import jax

from vfljax.errors import Field, UserError


class Needed(NamedTuple):
    """A switch that must have one of some values."""

    name: str  # in ``jax.config``; in upper case it is the environment variable
    values: tuple[Any, ...]  # JAX's default first
    why: str  # what else happens


_GUARDS = ("", "_host_to_device", "_device_to_host", "_device_to_device")
NEEDED = (
    Needed(
        "jax_disable_jit", (False,), "would take thousands of times as long as compiled programs"
    ),
    Needed("jax_debug_nans", (False,), "stops at the NaN that marks a figure which is not defined"),
    Needed("jax_debug_infs", (False,), "stops at the first trial that diverges"),
    Needed(
        "jax_enable_x64",
        (False,),
        "gives figures other types than the float32 in which they are kept",
    ),
    Needed("jax_default_prng_impl", ("threefry2x32",), "gives other keys than threefry's"),
    Needed("jax_numpy_dtype_promotion", ("standard",), "forbids sums of integers and floats"),
    *(
        Needed(f"jax_transfer_guard{way}", (None, "allow", "log"), "forbids copies to a device")
        for way in _GUARDS
    ),
)
# switches that change figures, and JAX's defaults; a changed generator gives every trial other numbers
GENERATOR: dict[str, Any] = {"jax_threefry_partitionable": True, "jax_random_seed_offset": 0}
FIGURES: dict[str, Any] = {**GENERATOR, "jax_default_matmul_precision": None}
FLAGS = "XLA_FLAGS"  # of the environment


def check() -> None:
    """Raises UserError if a switch of JAX has a value with which no sweep can be trained."""
    try:
        jax.default_backend()
    except (RuntimeError, AssertionError) as error:
        raise no_platform(error) from error
    for name, values, why in NEEDED:
        value = getattr(jax.config, name)
        value = getattr(value, "value", value)  # of an enumeration
        if value not in values:
            remedy = f"unset {name.upper()}, or jax.config.update({name!r}, {values[0]!r})"
            raise UserError(why, field=Field(name, name), value=value, remedy=remedy)


def no_platform(error: Exception) -> UserError:
    """Returns the error of a platform without devices here.

    Args:
      error: what JAX raised: a RuntimeError, or an AssertionError if the plugin of a GPU is not installed.
    """
    why = textwrap.shorten(str(error), 300, placeholder=" ...") or "no plugin"
    what = f"names no devices that JAX finds here ({why})"
    name, remedy = "jax_platforms", "unset it, or give cpu"
    field = Field(name.upper(), name.upper())
    return UserError(what, field=field, value=getattr(jax.config, name), remedy=remedy)


def changed() -> dict[str, Any]:
    """Returns the switches that change figures and have another value than JAX's default, by name."""
    values = {name: getattr(jax.config, name) for name in FIGURES}
    found = {name: value for name, value in values.items() if value != FIGURES[name]}
    return found | ({FLAGS: flags} if (flags := os.environ.get(FLAGS, "")) else {})
