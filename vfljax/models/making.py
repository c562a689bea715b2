"""A bottom network for what one party reads: a config's names and fields made a flax module."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import flax.linen as nn

from vfljax.config import unknown
from vfljax.datasets.core import Input
from vfljax.errors import UserError
from vfljax.models import ACTIVATIONS, BOTTOMS, WEIGHTS

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
GIVEN = ("parent", "name", "out", "output", "vocabulary", "pad")  # not a config's to choose


def options_of(name: str) -> dict[str, Any]:
    """A network's own fields and their defaults."""
    parameters = inspect.signature(BOTTOMS[name]).parameters.values()
    return {
        p.name: None if p.default is p.empty else p.default
        for p in parameters
        if p.name not in GIVEN and p.kind is not p.VAR_KEYWORD
    }


def make_network(
    where: str, model: Mapping[str, Any], out: int, output: str, given: Input
) -> nn.Module:
    """The network ``model["bottom"]`` with its shared fields (hidden, activation, weights, where it
    has them) and its own ``model["options"]``; ``where`` is the config's group, for messages."""
    name, options = model["bottom"], dict(model["options"])
    if name not in BOTTOMS:
        raise unknown(f"{where}.bottom", name, BOTTOMS)
    if output not in ACTIVATIONS:
        raise unknown(f"{where}.output", output, ACTIVATIONS)
    kinds, codes = READS[name]
    if given.kind not in kinds:
        raise UserError(
            f"{where}: the network {name!r} reads {' or '.join(kinds)} and the data is of kind "
            f"{given.kind!r}: choose {', '.join(n for n, (k, _) in READS.items() if given.kind in k)}."
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
    fields: dict[str, Any] = {
        field: tuple(model[field]) if isinstance(model[field], list) else model[field]
        for field in ("hidden", "activation", "weights")
        if field in own and field in model
    }
    fields |= {k: tuple(v) if isinstance(v, list) else v for k, v in options.items()}
    for field, table in (("activation", ACTIVATIONS), ("weights", WEIGHTS)):
        if field in fields and fields[field] not in table:
            raise unknown(f"{where}.{field}", fields[field], table)
    parameters = inspect.signature(BOTTOMS[name]).parameters
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
