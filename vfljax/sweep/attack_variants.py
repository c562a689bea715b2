"""The attack variants of an experiment, and the federations that must be trained for them. Host only."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flax.linen as nn

from vfljax import attacks, store
from vfljax.attacks.core import Attack
from vfljax.defenses.core import LARGEST
from vfljax.errors import UserError, unknown
from vfljax.models.making import make_network
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.methods import combinations
from vfljax.sweep.records import as_axis, is_number
from vfljax.types import MALICIOUS, SPLIT, AttackIdentity, Federation, Input, federation_of


class AttackVariant(NamedTuple):
    """One attack with its static options fixed. It has a row of results per trial and point of its knobs."""

    name: str  # its row in attacks.TABLE
    options: dict[str, Any]  # static
    knobs: list[dict[str, float]]  # points of its numeric knobs
    shown: tuple[str, ...] = ()  # names of the options that its label shows
    attackers: tuple[int, ...] = (0,)  # who attacks a federation without malicious parties
    # whether it also runs on malicious federations, which the malicious parties attack in place of these
    with_malicious: bool = True

    @property
    def identity(self) -> AttackIdentity:
        """What the variant's rows have in common. Rows of malicious federations have other attackers."""
        return AttackIdentity(
            attack=self.name,
            options=tuple(sorted(self.options.items())),
            shown=self.shown,
            attackers=self.attackers,
            rule=attacks.TABLE[self.name].rule,
        )

    @property
    def label(self) -> str:
        """E.g. "direct/most_negative"."""
        return self.identity.label

    @property
    def key(self) -> str:
        """The variant's key in ``attacks.json``, which is also the name of the folder of its rows."""
        return store.variant_of(self.identity)


def attack_variants(experiment: Experiment, num_classes: int, reads: Input) -> list[AttackVariant]:
    """Returns every attack variant of an experiment, attack by attack in listing order.

    Args:
      experiment: whose attacks they are.
      num_classes: of the data.
      reads: the columns of the first party.

    Raises:
      UserError: for an option or knob that an attack does not have, and for values out of range.
    """
    bottoms = (_bottom(experiment, reads),)
    variants = []
    for name, values in experiment.attacks.items():
        static, field = attacks.TABLE[name].options, f"attacks.{name}"
        axes = {option: values[option] for option in static if option in values}
        built = [
            (options, _build(name, options, bottoms, num_classes))
            for options in combinations(axes, field)
        ]
        knobs = {knob: None for _, attack in built for knob in attack.knobs}
        for option in values:
            if option not in static and option not in knobs:
                raise unknown(f"option of the attack {name}", option, [*static, *knobs])
        for options, attack in built:
            given = {knob: values.get(knob, default) for knob, default in attack.knobs.items()}
            points = combinations(given, field)
            _check_ranges(name, points, attack.ranges)
            # malicious federations are attacked by their malicious parties: one variant suffices
            honest = [(0,)] if attack.federations == (MALICIOUS,) else experiment.attackers
            shown = tuple(k for k, v in options.items() if _is_shown(axes[k], v))
            variants += [
                AttackVariant(name, options, points, shown, parties, parties == honest[0])
                for parties in honest
            ]
    return variants


def _build(
    name: str, options: Mapping[str, Any], bottoms: tuple[nn.Module, ...], num_classes: int
) -> Attack:
    try:
        return attacks.TABLE[name](bottoms, num_classes, **options)
    except Exception as error:  # a plugin's factory may raise anything
        expected = isinstance(error, ValueError | TypeError)
        if not expected and attacks.TABLE[name].origin is None:
            raise
        remedy = str(error) if expected else f"its factory raised {type(error).__name__}: {error}"
        raise UserError(field=f"attacks.{name}", remedy=remedy) from error


def _check_ranges(
    name: str, points: list[dict[str, Any]], ranges: Mapping[str, tuple[float, float]]
) -> None:
    for point in points:
        for knob, value in point.items():
            low, high = ranges.get(knob, (0, math.inf))  # inf: up to LARGEST
            if not is_number(value) or not low <= value <= min(high, LARGEST):
                most = f" and <= {high:g}" if high < math.inf else ""
                raise UserError(
                    f"config.attacks.{name}.{knob}={value!r} must be a number >= {low:g}{most}."
                )


def _is_shown(values: Any, value: Any) -> bool:
    """Whether the label shows an option: it has several values, is a string or is True, and is not False."""
    several = len(as_axis(values)) > 1
    return (several or isinstance(value, str) or value is True) and value is not False


def _bottom(experiment: Experiment, reads: Input) -> nn.Module:
    """Returns a bottom model of the experiment, whose cut width does not matter here."""
    model = experiment.model
    return make_network(model.network, model.cut, model.output, reads)


def make_attack(variant: AttackVariant, bottoms: tuple[nn.Module, ...], num_classes: int) -> Attack:
    """Returns the variant's attack.

    Args:
      variant: of the attack.
      bottoms: of the parties that attack.
      num_classes: of the data.
    """
    return attacks.TABLE[variant.name](bottoms, num_classes, **variant.options)


def attackers_of(variant: AttackVariant, attack: Attack, name: str) -> tuple[int, ...]:
    """Returns the parties that attack: the malicious ones, else the variant's; () if the attack is not run.

    Args:
      variant: of the attack.
      attack: as ``make_attack`` makes it.
      name: of the federation.
    """
    federation = federation_of(name)
    if federation.kind not in attack.federations:
        return ()
    if federation.malicious:
        return federation.malicious if variant.with_malicious else ()
    return variant.attackers


def federations(
    experiment: Experiment, variants: Sequence[AttackVariant], num_classes: int, reads: Input
) -> list[Federation]:
    """Returns the federations to train: those that the experiment names, else the honest one with model
    splitting (for its utility) and the first one that each attack is defined on.

    Args:
      experiment: what is trained.
      variants: of its attacks.
      num_classes: of the data.
      reads: the columns of the first party.
    """
    kinds = set(experiment.federations)
    if not kinds:
        bottom = _bottom(experiment, reads)
        built = [make_attack(variant, (bottom,), num_classes) for variant in variants]
        kinds = {SPLIT, *(a.federations[0] for a in built if not (a.binary and num_classes > 2))}
    malicious = [Federation(True, group) for group in experiment.malicious.parties]
    every = [Federation(), *malicious, Federation(False)]
    return [federation for federation in every if federation.kind in kinds]
