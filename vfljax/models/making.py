"""A bottom network for what one party reads: a config's names and fields made a flax module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn

from vfljax.config import DEFAULT, unknown
from vfljax.datasets.core import Input
from vfljax.errors import UserError
from vfljax.models import ACTIVATIONS, BOTTOMS, WEIGHTS, bert

# what each network reads: kinds of input, and whether columns may hold codes
READS = {
    "mlp": (("table", "image"), False),
    "resnet18": (("image",), False),
    "resnet20": (("image",), False),
    "resnet50": (("image",), False),
    "cnn_gafm": (("image",), False),
    "cnn_marvell": (("image",), False),
    "wide_deep": (("table",), True),
    "bert": (("text",), True),
    "bert_tiny": (("text",), True),
}
# fields of config.model that a network shares; the others are its options
SHARED = {
    "mlp": ("hidden", "activation", "weights"),
    "wide_deep": ("hidden", "activation", "weights"),
}
GIVEN = ("parent", "name", "out", "output", "vocabulary", "pad")  # not a config's to choose


def options_of(name: str) -> dict[str, Any]:
    """A network's own fields and their defaults."""
    parameters = inspect.signature(BOTTOMS[name]).parameters.values()
    return {
        p.name: None if p.default is p.empty else p.default
        for p in parameters
        if p.name not in GIVEN and p.kind is not p.VAR_KEYWORD
    }


def _checked(where: str, field: str, value: Any, default: Any) -> Any:
    """An option's value, lists as tuples, if it is of its default's kind and builds something."""
    value = _tuples(value)
    kinds = {float: (int, float), tuple: (tuple,)}.get(type(default), (type(default),))
    whole = isinstance(value, bool) == isinstance(default, bool)
    if default is not None and not (isinstance(value, kinds) and whole):
        raise UserError(f"{where}.{field}={value!r} must be like its default, {default!r}.")
    if isinstance(default, tuple):
        return sizes(f"{where}.{field}", value)
    if type(default) is int and value < 1:
        raise UserError(f"{where}.{field}={value} must be at least 1, for example {default}.")
    if field == "dropout" and not 0 <= value < 1:
        raise UserError(
            f"{where}.dropout={value} must be in [0, 1): it is the share of units dropped."
        )
    return value


def sizes(name: str, given: Any) -> tuple[int, ...]:
    """``given`` as a tuple, if all of it are whole numbers of 1 and more; ``name``: its field."""
    value = tuple(given)
    if not all(_whole(item) and item >= 1 for item in value):
        raise UserError(f"{name}={value!r} must be whole numbers of at least 1, for example (16,).")
    return value


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def _whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _refuse_unread(where: str, name: str, model: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """A shared field that was given, not left at its default, to a network that does not read it."""
    defaults = DEFAULT[where.removeprefix("config.")]
    for field in ("hidden", "activation"):
        given = _tuples(model[field])
        if field in SHARED.get(name, ()) or given == defaults.get(field, given):
            continue
        remedy = f"use {where}.options.{field}" if field in own else "leave it out"
        raise UserError(f"{where}.{field}={given!r} is not read by the network {name!r}: {remedy}.")


def make_network(
    where: str, model: Mapping[str, Any], out: int, output: str, given: Input, name: str = "bottom"
) -> nn.Module:
    """The network ``model["bottom"]`` with the fields it shares (``SHARED``) and its own
    ``model["options"]``; ``where`` and ``name`` are the config's group and field, for messages."""
    field_name, name = name, model["bottom"]
    options = dict(model["options"])
    if name not in BOTTOMS:
        raise unknown(f"{where}.{field_name}", name, BOTTOMS)
    if output not in ACTIVATIONS:
        raise unknown(f"{where}.output", output, ACTIVATIONS)
    kinds, codes = READS[name]
    if given.kind not in kinds:
        raise UserError(
            f"{where}: the network {name!r} reads {' or '.join(kinds)} and the data is of kind "
            f"{given.kind!r}: choose {', '.join(n for n, (k, _) in READS.items() if given.kind in k)}."
        )
    parameters = inspect.signature(BOTTOMS[name]).parameters
    if given.kind == "text" and "pad" not in parameters and given.pad != bert.PAD:
        raise UserError(
            f"{where}: the network {name!r} reads token 0 as padding and the data pads with token "
            f"{given.pad}: give config.data.options.vocabulary a vocab.txt with [PAD] first."
        )
    if any(given.vocabulary) and not codes:
        raise UserError(
            f"{where}: the network {name!r} reads numbers and the data has columns of codes: choose "
            "'wide_deep', or give the data set's option that makes numbers of them."
        )
    own = options_of(name)
    for field in options:
        if field not in own:
            raise unknown(f"field of {where}.options ({name})", field, own)
    _refuse_unread(where, name, model, own)
    fields: dict[str, Any] = {
        field: _checked(where, field, model[field], "" if field != "hidden" else ())
        for field in SHARED.get(name, ("weights",))
        if field in own
    }
    for field, value in options.items():
        default = () if own[field] is None else own[field]  # only the MLP's hidden has none
        fields[field] = _checked(f"{where}.options", field, value, default)
    for field, table in (("activation", ACTIVATIONS), ("weights", WEIGHTS)):
        if field in fields and fields[field] not in table:
            raise unknown(f"{where}.{field}", fields[field], table)
    if "vocabulary" in parameters:
        text = given.kind == "text"
        columns = given.vocabulary or (0,) * given.shape[0]
        fields["vocabulary"] = given.vocabulary[0] if text else columns
    if "pad" in parameters:
        fields["pad"] = given.pad
    try:
        make: Callable[..., nn.Module] = BOTTOMS[name]
        return make(out=out, output=output, **fields)
    except TypeError as error:
        raise UserError(f"{where}.options={options}: {error}.") from error
