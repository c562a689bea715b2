"""What one arm of a config's grid says: its chain's knobs and options, point by point, and its own top."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Mapping
from typing import Any

from vfljax import defenses
from vfljax.config import DEFAULT, typed, unknown
from vfljax.errors import UserError

ARM_MODEL = ("top", "top_hidden")  # the label party's own; every bottom is the whole sweep's


def text(value: Any) -> str:
    """'generator', '16-8', 'none': a model field as a table column or a part of a name."""
    return "-".join(map(str, value)) or "none" if isinstance(value, (list, tuple)) else str(value)


def arm_model(arm: str, chain: Any) -> tuple[dict[str, Any], Any]:
    """An arm's own model fields, and its chain without them."""
    if not isinstance(chain, Mapping) or "model" not in chain:
        return {}, chain
    given = chain["model"]
    if not isinstance(given, Mapping):
        raise UserError(
            f"config.grid.{arm}.model={given!r} must be a group of fields: {', '.join(ARM_MODEL)}."
        )
    for field in given:
        if field not in ARM_MODEL:  # an attack holds one bottom, and baselines one cut
            raise unknown(f"field of config.grid.{arm}.model", field, ARM_MODEL)
    own = {
        field: typed(DEFAULT["model"][field], value, f"grid.{arm}.model.{field}")
        for field, value in given.items()
    }
    return own, {name: knobs for name, knobs in chain.items() if name != "model"}


def _signature(name: str) -> tuple[dict[str, inspect.Parameter], dict[str, inspect.Parameter]]:
    """A defense's knobs (positional parameters) and static options (keyword-only ones)."""
    parameters = inspect.signature(defenses.TABLE[name]).parameters
    knobs = {n: p for n, p in parameters.items() if p.kind is not p.KEYWORD_ONLY}
    options = {n: p for n, p in parameters.items() if p.kind is p.KEYWORD_ONLY}
    return knobs, options


def as_axis(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def product(axes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """All combinations of axes, the last axis fastest."""
    lists = [as_axis(values) for values in axes.values()]
    if any(not values for values in lists):
        empty = [name for name, values in axes.items() if not as_axis(values)]
        raise UserError(f"the axis {empty[0]} is empty: give at least one value.")
    return [dict(zip(axes, values, strict=True)) for values in itertools.product(*lists)]


def arm_points(arm: str, chain: Any) -> list[tuple[dict, dict]]:
    """(knobs, options) of every point of one arm."""
    if not isinstance(chain, Mapping):
        raise UserError(f"config.grid.{arm}={chain!r} must be {{defense: {{knob: values}}}}.")
    axes: dict[str, Any] = {}
    for name, given in chain.items():
        if name not in defenses.TABLE:
            raise unknown("defense", name, defenses.TABLE)
        if not isinstance(given, Mapping):
            raise UserError(f"config.grid.{arm}.{name}={given!r} must be {{knob: values}}.")
        knobs, options = _signature(name)
        for knob in given:
            if knob not in knobs and knob not in options:
                raise unknown(f"knob of {name}", knob, [*knobs, *options])
        for knob, parameter in knobs.items():
            if knob not in given and parameter.default is parameter.empty:
                raise UserError(f"config.grid.{arm}.{name} gives no {knob}: name its value(s).")
        axes.update({f"{name} {knob}": values for knob, values in given.items()})
    points = []
    for values in product(axes):
        knob_values: dict[str, dict] = {name: {} for name in chain}
        option_values: dict[str, dict] = {name: {} for name in chain}
        for key, value in values.items():
            name, knob = key.split(" ")
            if knob in _signature(name)[0]:
                if isinstance(value, bool) or not isinstance(value, (int, float)):
                    raise UserError(f"{name}.{knob}={value!r} is not a number.")
                try:
                    knob_values[name][knob] = float(value)
                except OverflowError:  # an integer of hundreds of digits
                    raise UserError(f"{name}.{knob} is too large: choose a smaller one.") from None
            else:
                option_values[name][knob] = value
        for name in chain:  # defaulted knobs are columns too
            for knob, parameter in _signature(name)[0].items():
                knob_values[name].setdefault(knob, parameter.default)
        points.append((knob_values, option_values))
    return points
