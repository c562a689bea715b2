"""Which attacks a config asks for, and which federations they need trained. Host only."""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import flax.linen as nn

from vfljax import arms, attacks, grid
from vfljax.attacks.core import MALICIOUS, NO_SPLIT, Attack
from vfljax.config import unknown
from vfljax.datasets.core import Input
from vfljax.errors import UserError
from vfljax.models.making import make_network


class Form(NamedTuple):
    """One attack with its options fixed: a row of results per setting it can serve."""

    label: str  # e.g. "direct/most_negative"
    name: str  # its row in attacks.TABLE
    options: dict[str, Any]  # static
    knobs: list[dict[str, float]]  # points of its numeric knobs
    attackers: tuple[int, ...] = (0,)  # who attacks a run without malicious parties


def forms(config: Mapping[str, Any], num_classes: int, reads: Input) -> list[Form]:
    """Every attack form of a config; unknown names and options are refused here. ``reads``: the first
    party's columns."""
    out = []
    for name, given in config["attacks"].items():
        if name not in attacks.TABLE:
            raise unknown("attack", name, attacks.TABLE)
        if not isinstance(given, Mapping):
            raise UserError(f"config.attacks.{name}={given!r} must be {{option: values}}.")
        factory = attacks.TABLE[name]
        parameters = inspect.signature(factory).parameters.values()
        static = {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}
        module = (_bottom(config, reads),)
        axes = {option: given[option] for option in static if option in given}
        made = [
            (options, _try(name, options, module, num_classes)) for options in arms.product(axes)
        ]
        knobs = {knob: None for _, attack in made for knob in attack.knobs}
        for option in given:
            if option not in static and option not in knobs:
                raise unknown(f"option of the attack {name}", option, [*static, *knobs])
        for options, attack in made:
            own = {knob: given.get(knob, value) for knob, value in attack.knobs.items()}
            points = arms.product(own)
            _check(name, points, attack.ranges)
            # a malicious run is attacked by those who were malicious in it
            honest = [(0,)] if attack.structure == MALICIOUS else _attackers(config)
            varied = [_word(k, v) for k, v in options.items() if _is_variant(axes, k, v, static)]
            for who in honest:
                label = by("/".join([name, *varied]), who)
                out.append(Form(label, name, options, points, who))
    return out


def by(label: str, attackers: tuple[int, ...]) -> str:
    """The label of an attack by these parties; by the first passive one it is the attack's own."""
    return label if attackers == (0,) else f"{label}/parties={'+'.join(map(str, attackers))}"


def _try(
    name: str, options: Mapping[str, Any], bottoms: tuple[nn.Module, ...], num_classes: int
) -> Attack:
    try:
        return attacks.TABLE[name](bottoms, num_classes, **options)
    except (ValueError, TypeError) as error:
        raise UserError(f"config.attacks.{name}: {error}") from error


def _check(
    name: str, points: list[dict[str, Any]], ranges: Mapping[str, tuple[float, float]]
) -> None:
    for point in points:
        for knob, value in point.items():
            low, high = ranges.get(knob, (0, math.inf))
            number = isinstance(value, (int, float)) and not isinstance(value, bool)
            if not number or not low <= value <= high or value == math.inf:
                most = f" and <= {high:g}" if high < math.inf else ""
                raise UserError(
                    f"config.attacks.{name}.{knob}={value!r} must be a number >= {low:g}{most}."
                )


def _attackers(config: Mapping[str, Any]) -> list[tuple[int, ...]]:
    return [tuple(arms.as_axis(group)) for group in config["attackers"]]


def _is_variant(
    axes: Mapping[str, Any], option: str, value: Any, static: Mapping[str, Any]
) -> bool:
    """Whether an option belongs in the label: it is an axis, or a string, and not a plain False."""
    several = len(arms.as_axis(axes[option])) > 1
    return (several or isinstance(value, str) or value is True) and value is not False


def _word(option: str, value: Any) -> str:
    if value is True:
        return option
    return str(value) if isinstance(value, str) else f"{option}={value}"


def _bottom(config: Mapping[str, Any], reads: Input) -> nn.Module:
    """A bottom model of the config; its cut width does not matter here."""
    model = config["model"]
    return make_network("config.model", model, model["cut"], model["output"], reads)


def make_attack(form: Form, bottoms: tuple[nn.Module, ...], num_classes: int) -> Attack:
    """The form's attack; one object, hence one program, for equal options and models."""
    return _made(form.name, tuple(form.options.items()), bottoms, num_classes)


@functools.cache
def _made(
    name: str, options: tuple[tuple[str, Any], ...], bottoms: tuple[nn.Module, ...], classes: int
) -> Attack:
    return attacks.TABLE[name](bottoms, classes, **dict(options))


def structures(
    config: Mapping[str, Any], all_forms: list[Form], num_classes: int, reads: Input
) -> list[grid.Structure]:
    """The federations to train for these attacks; the honest split one always (its utility)."""
    kinds = set()
    for form in all_forms:
        attack = make_attack(form, (_bottom(config, reads),), num_classes)
        if not (attack.binary and num_classes > 2):
            kinds.add(attack.structure)
    out = [grid.Structure()]
    if MALICIOUS in kinds:
        for group in config["malicious"]["parties"]:
            out.append(grid.Structure(True, tuple(arms.as_axis(group))))
    if NO_SPLIT in kinds:
        out.append(grid.Structure(False))
    return out


def kind(structure: str) -> str:
    """The attack.structure a structure's name serves."""
    return MALICIOUS if structure.startswith("malicious") else structure


def label_of(form: Form, attackers: tuple[int, ...]) -> str:
    """What the form is called when these attack: malicious runs have attackers of their own."""
    return form.label if attackers == form.attackers else by(form.label, attackers)


def attackers_of(structure: str, form: Form) -> tuple[int, ...]:
    """Who attacks: the malicious parties of a run that had any, else whom the config names."""
    if structure.startswith("malicious"):
        return tuple(int(p) for p in structure.split("-")[1:])
    return form.attackers
