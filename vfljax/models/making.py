"""Makes bottom networks from the fields of a config and the columns of a party."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import flax.linen as nn

from vfljax.config import Model, Teacher
from vfljax.errors import UserError, unknown
from vfljax.models import ACTIVATIONS, BOTTOMS, WEIGHTS, bert
from vfljax.types import Input

# which of the fields shared by networks each one reads (by default ``weights``); all others are its options
SHARED = {
    "mlp": ("hidden", "activation", "weights"),
    "wide_deep": ("hidden", "activation", "weights"),
}
MOST = 2**31 - 1  # XLA counts a dimension in int32
# a config cannot set these
NOT_OPTIONS = ("parent", "name", "out", "output", "vocabulary", "dtype")


def options_of(name: str) -> dict[str, Any]:
    """Returns a network's own fields and their defaults."""
    parameters = inspect.signature(BOTTOMS[name]).parameters.values()
    return {
        p.name: None if p.default is p.empty else p.default
        for p in parameters
        if p.name not in NOT_OPTIONS
    }


def networks_for(reads: Input) -> list[str]:
    """Returns the names of the bottom networks that can read these columns."""
    coded = reads.kind == "table" and any(reads.vocabulary)
    networks = {name: _network_class(name) for name in BOTTOMS}
    return [n for n, c in networks.items() if reads.kind in c.reads and not (coded and c.mixable)]


def _network_class(name: str) -> Any:
    """Returns a network's class, whose ``reads`` are kinds of columns. If ``mixable``, it reads no codes."""
    return getattr(BOTTOMS[name], "func", BOTTOMS[name])


def _checked(where: str, field: str, value: Any, default: Any) -> Any:
    """Returns an option's value, lists as tuples. Raises UserError for a wrong type or range."""
    value = tuples(value)
    kinds = {float: (int, float), tuple: (tuple,)}.get(type(default), (type(default),))
    whole = isinstance(value, bool) == isinstance(default, bool)
    if default is not None and not (isinstance(value, kinds) and whole):
        raise UserError(f"{where}.{field}={value!r} must be like its default, {default!r}.")
    if isinstance(default, tuple):
        return sizes(f"{where}.{field}", value)
    name = f"{where}.{field}={value}"
    if type(default) is int and not 1 <= value <= MOST:
        example = f"for example {default}"
        raise UserError(f"{name} must be at least 1 and at most {MOST:,}, {example}.")
    if field == "dropout" and not 0 <= value < 1:
        raise UserError(f"{name} must be in [0, 1): it is the share of units dropped.")
    return value


def sizes(name: str, values: Any) -> tuple[int, ...]:
    """Returns sizes of layers as a tuple.

    Args:
      name: the config's field, for the message.
      values: whole numbers.

    Raises:
      UserError: if one is no whole number from 1 to ``MOST``.
    """
    numbers = tuple(values)
    if not all(type(item) is int and 1 <= item <= MOST for item in numbers):
        bounds = f"whole numbers of at least 1 and at most {MOST:,}"
        raise UserError(f"{name}={numbers!r} must be {bounds}, for example (16,).")
    return numbers


def tuples(value: Any) -> Any:
    """Returns a value with its lists, as JSON has them, as tuples at every depth."""
    return tuple(map(tuples, value)) if isinstance(value, (list, tuple)) else value


def _refuse_unreadable(where: str, name: str, reads: Input) -> None:
    """Raises UserError if the network cannot read a party's columns."""
    network = _network_class(name)
    if reads.kind not in network.reads:
        others = ", ".join(n for n in BOTTOMS if reads.kind in _network_class(n).reads)
        raise UserError(
            f"{where}: the network {name!r} reads {' or '.join(network.reads)} and the data is of kind "
            f"{reads.kind!r}: choose {others}."
        )
    if reads.kind == "text" and reads.pad != bert.PAD:
        raise UserError(
            f"{where}: the network {name!r} reads token 0 as padding and the data pads with token "
            f"{reads.pad}: give config.data.options.vocabulary a vocab.txt with [PAD] first."
        )
    if any(reads.vocabulary) and network.mixable:
        what = f"{where}: the network {name!r} reads numbers and the data has columns of codes"
        remedy = "choose 'wide_deep', or give the data set's option that makes numbers of them"
        raise UserError(what, remedy=remedy)


def make_network(group: Model | Teacher, out: int, output: str, reads: Input) -> nn.Module:
    """Returns the network of a bottom, or of the teacher.

    Args:
      group: ``config.model`` or ``config.teacher``.
      out: width of its embedding.
      output: the activation that it ends in.
      reads: the columns of its party.

    Raises:
      UserError: for an unknown name, columns that the network cannot read, and fields or options that it does
        not have or whose values are not valid.
    """
    if isinstance(group, Model):
        where, field, name = "config.model", "bottom", group.bottom
        values: dict[str, Any] = {"activation": group.activation, "weights": group.weights}
    else:
        where, field, name = "config.teacher", "network", group.network
        values = {"activation": "relu", "weights": "default"}
    values["hidden"] = group.hidden
    if name not in BOTTOMS:
        raise unknown(f"{where}.{field}", name, BOTTOMS)
    if output not in ACTIVATIONS:
        raise unknown(f"{where}.output", output, ACTIVATIONS)
    _refuse_unreadable(where, name, reads)
    defaults, shared = options_of(name), SHARED.get(name, ("weights",))
    for field in group.options:
        if field not in defaults:
            raise unknown(f"field of {where}.options ({name})", field, defaults)
    for field in ("hidden", "activation"):
        chosen = values[field] != getattr(type(group)(), field, values[field])
        if chosen and field not in shared:
            remedy = f"use {where}.options.{field}" if field in defaults else "leave it out"
            what = f"{where}.{field}={tuples(values[field])!r} is not read by the network {name!r}"
            raise UserError(what, remedy=remedy)
    arguments: dict[str, Any] = {
        field: _checked(where, field, values[field], "" if field != "hidden" else ())
        for field in shared
        if field in defaults
    }
    for field, value in group.options.items():
        default = () if defaults[field] is None else defaults[field]  # None: the MLP's hidden
        arguments[field] = _checked(f"{where}.options", field, value, default)
    for field, table in (("activation", ACTIVATIONS), ("weights", WEIGHTS)):
        if field in arguments and arguments[field] not in table:
            raise unknown(f"{where}.{field}", arguments[field], table)
    if "vocabulary" in inspect.signature(BOTTOMS[name]).parameters:
        columns = reads.vocabulary or (0,) * reads.shape[0]
        arguments["vocabulary"] = reads.vocabulary[0] if reads.kind == "text" else columns
    make: Callable[..., nn.Module] = BOTTOMS[name]
    return make(out=out, output=output, **arguments)
