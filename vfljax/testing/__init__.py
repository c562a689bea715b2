"""What authors of defenses and attacks call in their tests: the contract that every row of the tables keeps.

    vfljax.plugins.use("mine")
    vfljax.testing.check("mine:shuffle")

or with pytest, one test per rule:

    @pytest.mark.parametrize("rule", vfljax.testing.rules("mine:shuffle"))
    def test_the_contract(rule):
        vfljax.testing.check("mine:shuffle", rule=rule)

A broken rule raises ``ContractError``, one line that names the rule and, if possible, the line of code. Before
training or attacking, sweeps check the first part of the contract, which needs no arrays, for all plugins.
The contract does not judge how well a defense protects, or whether ``known_by`` names the attacks that matter.

``federations`` and ``exchanges`` make the small federations and stored runs on which rows are tried.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from vfljax import attacks, defenses
from vfljax.errors import unknown, unknown_row
from vfljax.testing import of_attacks, of_defenses
from vfljax.testing.rules import MANY, ContractError, broken
from vfljax.testing.rules import rule as keeping
from vfljax.types import SPLIT

__all__ = ["ContractError", "check", "check_attack", "check_defense", "rules"]

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


def check(name: str, rule: str | None = None, **given: Any) -> None:
    """Checks a row by its name: ``check_defense`` or ``check_attack``, with their arguments."""
    rules(name)  # raises for an unknown name
    of = check_defense if name in defenses.TABLE else check_attack
    of(name, rule, **given)


def check_defense(
    name: str,
    rule: str | None = None,
    *,
    options: Mapping[str, Any] = NOTHING,
    federation: Mapping[str, Any] = NOTHING,
    classes: Sequence[int] | None = None,
) -> None:
    """Checks, on small federations, that a defense keeps the contract. This takes some seconds.

    Args:
      name: name of the row, "mine:shuffle"; its plugin must be in use.
      rule: one of ``rules(name)``; None tries all of them.
      options: static options other than the row's defaults.
      federation: changes of the federation in which it is tried, fields of ``vfljax.types.Spec``, or
        ``label_features=False`` for a label party without columns.
      classes: the numbers of classes to try, 1 for labels that are numbers; by default 2, 5 if the row is
        defined for more than two, and 1 if it is defined for numbers and no options are given.

    Raises:
      ContractError: if the row breaks a rule.
      UserError: for a name or rule that is not known.
    """
    if name not in defenses.TABLE:
        raise unknown_row("defense", name, defenses.TABLE)
    row = defenses.TABLE[name]
    of_numbers = () if row.not_for_numbers or options else (1,)
    counts = classes or (*((2,) if row.two_classes else (2, MANY)), *of_numbers)
    cases = [
        of_defenses.TestedDefense(
            name, {**row.options_for_numbers, **options} if n == 1 else options, n, federation
        )
        for n in counts
    ]
    _keep_all(name, rule, row.factory, of_defenses.RULES, cases)


def check_attack(
    name: str,
    rule: str | None = None,
    *,
    options: Mapping[str, Any] = NOTHING,
    classes: Sequence[int] | None = None,
    knobs: Mapping[str, float] = NOTHING,
) -> None:
    """Checks, on constructed exchanges, that an attack keeps the contract. This takes some seconds.

    Args:
      name: name of the row, "mine:guess"; its plugin must be in use.
      rule: one of ``rules(name)``; None tries all of them.
      options: static options other than the row's defaults.
      classes: the numbers of classes to try, 1 for labels that are numbers; by default 2, 5 if the attack is
        defined for more than two, and 1 if it is defined for numbers.
      knobs: values of the attack's knobs other than the published ones, which may take too many steps.

    Raises:
      ContractError: if the row breaks a rule.
      UserError: for a name or rule that is not known.
    """
    if name not in attacks.TABLE:
        raise unknown_row("attack", name, attacks.TABLE)
    counts = classes or of_attacks.classes_of(name, options)
    cases = [of_attacks.TestedAttack(name, options, n, knobs) for n in counts]
    _keep_all(name, rule, attacks.TABLE[name].factory, of_attacks.RULES, cases)


def _keep_all(
    name: str,
    rule: str | None,
    factory: Any,
    table: Mapping[str, Callable[[Any], str]],
    cases: Iterable[Any],
) -> None:
    """Raises ContractError if a case breaks the rule, or any rule of the table."""
    if rule is not None and rule not in table:
        raise unknown("rule", rule, table)
    cases = list(cases)
    for promise in table if rule is None else (rule,):
        for tested in cases:
            with keeping(name, promise, factory):
                why = table[promise](tested)
            if why:
                raise broken(name, promise, why)


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
        if row.origin is None or row.factory is None:
            continue  # ``plugins.required`` refuses rows whose plugin is not at hand
        distinct = {repr(dict(options)): options for _, options in pairs}
        for options, kind in itertools.product(distinct.values(), row.known_by):
            of_defenses.slots(of_defenses.TestedDefense(name, options, 2), kind == SPLIT)
    for name, variants in requests.items():
        row = attacks.TABLE[name]
        for options in variants if row.origin is not None and row.factory is not None else ():
            classes = of_attacks.classes_of(name, options)[-1:]
            for promise in (of_attacks.SHAPES, of_attacks.DECLARED):
                check_attack(name, promise, options=options, classes=classes)
