"""The contract that every row of the tables of defenses and attacks keeps, as functions to be called.

    vfljax.plugins.use("mine")
    vfljax.contract.check("mine:shuffle")

or with pytest, one test per rule:

    @pytest.mark.parametrize("rule", vfljax.contract.rules("mine:shuffle"))
    def test_the_contract(rule):
        vfljax.contract.check("mine:shuffle", rule=rule)

A broken rule raises ``ContractError``, one line that names the rule and, if possible, the line of code. Before
training or attacking, sweeps check the first part of the contract, which needs no arrays, for all plugins.
The contract does not judge how well a defense protects, or whether ``known_by`` names the attacks that matter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from vfljax import attacks, defenses
from vfljax.attacks import Attack
from vfljax.contract import of_attacks, of_defenses
from vfljax.contract.keeping import ContractError, broken
from vfljax.contract.keeping import rule as keeping
from vfljax.errors import unknown, unknown_row
from vfljax.types import SPLIT

__all__ = ["ContractError", "check", "check_plugins", "rules"]

MANY = 5  # number of classes that is tried if a row is defined for more than two
NOTHING: Mapping[str, Any] = MappingProxyType({})


def rules(name: str) -> tuple[str, ...]:
    """Returns the rules that a defense or an attack of the tables must keep, in the order of ``check``.

    >>> rules("noise")[2]
    'at its example it changes something'
    """
    if name in defenses.TABLE:
        return tuple(of_defenses.RULES)
    if name in attacks.TABLE:
        return tuple(of_attacks.RULES)
    raise unknown_row("defense or attack", name, [*defenses.TABLE, *attacks.TABLE])


def check(
    name: str,
    rule: str | None = None,
    *,
    options: Mapping[str, Any] = NOTHING,
    federation: Mapping[str, Any] = NOTHING,
    classes: Sequence[int] | None = None,
    knobs: Mapping[str, float] = NOTHING,
) -> None:
    """Checks, on small federations or exchanges, that a row keeps the contract. This takes some seconds.

    Args:
      name: name of the row, "mine:shuffle"; its plugin must be in use.
      rule: one of ``rules(name)``; None tries all of them.
      options: static options other than the row's defaults.
      federation: changes of the federation that a defense is tried in, fields of ``vfljax.types.Spec``, or
        ``label_features=False`` for a label party without columns.
      classes: the numbers of classes to try; by default 2, and 5 if the row is defined for more than two.
      knobs: values of an attack's knobs other than the published ones, which may take too many steps.

    Raises:
      ContractError: if the row breaks a rule.
      UserError: for a name or rule that is not known.
    """
    if rule is not None and rule not in rules(name):
        raise unknown("rule", rule, rules(name))
    for promise in rules(name) if rule is None else (rule,):
        if name in defenses.TABLE:
            row, table = defenses.TABLE[name], of_defenses.RULES
            counts = classes or ((2,) if row.two_classes else (2, MANY))
            cases = [of_defenses.TestedDefense(name, options, n, federation) for n in counts]
        else:
            row, table = attacks.TABLE[name], of_attacks.RULES
            counts = classes or _classes_of(name, options)
            cases = [of_attacks.TestedAttack(name, options, n, knobs) for n in counts]
        for tested in cases:
            _keep(name, promise, row.factory, table[promise], tested)


def _keep(name: str, promise: str, factory: Any, keeps: Callable[[Any], str], tested: Any) -> None:
    with keeping(name, promise, factory):
        why = keeps(tested)
    if why:
        raise broken(name, promise, why)


def _classes_of(name: str, options: Mapping[str, Any]) -> tuple[int, ...]:
    with keeping(name, of_attacks.SHAPES, attacks.TABLE[name].factory):
        attack = attacks.TABLE[name](of_attacks.BOTTOMS, 2, **options)
    return (2,) if isinstance(attack, Attack) and attack.binary else (2, MANY)


def check_plugins(
    points: Mapping[str, Iterable[tuple[Any, Mapping[str, Any]]]],
    requests: Mapping[str, Iterable[Mapping[str, Any]]],
) -> None:
    """Checks the first part of the contract for rows of plugins, without data.

    Slots of defenses return what they received, attacks give scores and declare what they read, and both take
    traced knobs.

    Args:
      points: the pairs of knobs and options of every defense by name (``sweep.grid.defense_values``).
      requests: by name of each attack, the static options of its variants.

    Raises:
      ContractError: if a row breaks a rule.
    """
    for name, pairs in points.items():
        row = defenses.TABLE[name]
        if row.origin is None or not row.origin.loaded:
            continue  # ``plugins.required`` refuses rows whose plugin is not at hand
        distinct = {repr(dict(options)): options for _, options in pairs}
        for options, kind in itertools.product(distinct.values(), row.known_by):
            of_defenses.slots(of_defenses.TestedDefense(name, options, 2), kind == SPLIT)
    for name, variants in requests.items():
        row = attacks.TABLE[name]
        for options in variants if row.origin is not None and row.origin.loaded else ():
            tested = of_attacks.TestedAttack(name, options, _classes_of(name, options)[-1])
            for promise in (of_attacks.SHAPES, of_attacks.DECLARED):
                _keep(name, promise, row.factory, of_attacks.RULES[promise], tested)
