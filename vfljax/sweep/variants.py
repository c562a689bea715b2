"""The attack variants of a config, and the federations that must be trained for them. Host only."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import flax.linen as nn

from vfljax import attacks, store
from vfljax.attacks.core import Attack
from vfljax.config import Config, as_axis, combinations
from vfljax.errors import Field, UserError, check, unknown
from vfljax.models.making import make_network
from vfljax.sweep.grid import check_attacks
from vfljax.types import MALICIOUS, SPLIT, AttackIdentity, Federation, Input, federation_of


class AttackVariant(NamedTuple):
    """An attack with its static options fixed. It has a row of results per trial and point of its knobs.

    The last three fields are of a sweep, and say how it runs there (``attack_runs.jobs.planned``).
    """

    identity: AttackIdentity
    """What its rows have in common. Its attackers attack federations without malicious parties, and rows of
    others have other attackers."""
    knobs: list[dict[str, float]]  # points of its numeric knobs
    attack: Attack  # built with the bottoms of some parties; for others, only the bottoms differ
    # whether it also runs on malicious federations, which the malicious parties attack in place of its own
    with_malicious: bool = True
    groups: tuple[tuple[int, ...], ...] = ()  # the groups of parties that run it
    skipped: str = ""  # one line on why it cannot be run; "" if it can
    # the widest cut, and to how many numbers it is projected
    projected: tuple[int, int] | None = None

    @property
    def name(self) -> str:
        """Its row in ``attacks.TABLE``."""
        return self.identity.attack

    @property
    def label(self) -> str:
        """E.g. "direct/most_negative"."""
        return self.identity.label

    @property
    def key(self) -> str:
        """The variant's key in the header, which is also the name of the folder of its units."""
        return store.variant_of(self.identity)


def static_options(config: Config) -> dict[str, list[dict[str, Any]]]:
    """Returns the static options of every attack's variants, by the attack's name.

    Raises:
      UserError: for an unknown attack.
    """
    check_attacks(config)
    return {
        name: combinations(
            {option: values[option] for option in attacks.TABLE[name].options if option in values},
            f"attacks.{name}",
        )
        for name, values in config.attacks.items()
    }


def attack_variants(config: Config, num_classes: int, reads: Input) -> list[AttackVariant]:
    """Returns every attack variant of a config, attack by attack in listing order.

    Args:
      config: whose attacks they are.
      reads: the columns of the first party.

    Raises:
      UserError: for an option or knob that an attack does not have, and for values out of range.
    """
    bottoms = (_bottom(config, reads),)
    variants = []
    for name, chosen in static_options(config).items():
        values, static = config.attacks[name], attacks.TABLE[name].options
        built = [(options, _build(name, options, bottoms, num_classes)) for options in chosen]
        knobs = {knob: None for _, attack in built for knob in attack.knobs}
        for option in values:
            if option not in static and option not in knobs:
                raise unknown(f"option of the attack {name}", option, [*static, *knobs])
        for options, attack in built:
            given = {knob: values.get(knob, default) for knob, default in attack.knobs.items()}
            points = combinations(given, f"attacks.{name}")
            for knob, axis in given.items():
                for value in as_axis(axis):
                    check(Field(f"attacks.{name}.{knob}"), value, *attack.ranges.get(knob, ()))
            # malicious federations are attacked by their malicious parties: one variant suffices
            honest = [(0,)] if attack.federations == (MALICIOUS,) else config.attackers
            in_label = tuple(k for k, v in options.items() if _is_in_label(values[k], v))
            identity = AttackIdentity(
                attack=name,
                options=tuple(sorted(options.items())),
                label_options=in_label,
                rule=attacks.TABLE[name].rule,
            )
            variants += [
                AttackVariant(
                    identity._replace(attackers=parties), points, attack, parties == honest[0]
                )
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


def _is_in_label(values: Any, value: Any) -> bool:
    """Whether an option is in the label: it has several values, is a string or is True, and is not False."""
    several = len(as_axis(values)) > 1
    return (several or isinstance(value, str) or value is True) and value is not False


def _bottom(config: Config, reads: Input) -> nn.Module:
    """Returns a bottom model of the config, whose cut width does not matter here."""
    model = config.model
    return make_network(model, model.cut, model.output, reads)


def make_attack(
    identity: AttackIdentity, bottoms: tuple[nn.Module, ...], num_classes: int
) -> Attack:
    """Returns an attack.

    Args:
      identity: names the attack and its options.
      bottoms: of the parties that attack.
    """
    return attacks.TABLE[identity.attack](bottoms, num_classes, **dict(identity.options))


def attackers_of(variant: AttackVariant, name: str) -> tuple[int, ...]:
    """Returns the parties that attack: the malicious ones, else the variant's; () if the attack is not run.

    Args:
      variant: of the attack.
      name: of the federation.
    """
    federation = federation_of(name)
    if federation.kind not in variant.attack.federations:
        return ()
    if federation.malicious:
        return federation.malicious if variant.with_malicious else ()
    return variant.identity.attackers


def federations(
    config: Config, variants: Sequence[AttackVariant], num_classes: int
) -> list[Federation]:
    """Returns the federations to train: those that the config names, else the honest one with model
    splitting (for its utility) and the first one that each attack is defined on.
    """
    kinds = set(config.federations)
    if not kinds:
        built = [variant.attack for variant in variants]
        kinds = {SPLIT, *(a.federations[0] for a in built if not (a.binary and num_classes > 2))}
    malicious = [Federation(True, group) for group in config.malicious.parties]
    every = [Federation(), *malicious, Federation(False)]
    return [federation for federation in every if federation.kind in kinds]
