"""Attacks that a new sweep could never serve: refused before anything is trained.

What enters: a plan. What leaves: nothing, or a UserError of one line. A stored sweep is not asked: there,
what cannot be served is skipped and said (``vfljax.attacking.jobs``). An attack that is defined for two
classes is skipped on more in a new sweep too, so that one list of attacks serves several data sets.
"""

from __future__ import annotations

from vfljax.errors import UserError
from vfljax.sweep import known
from vfljax.sweep.attack_variants import Form, attack_forms, make_attack
from vfljax.sweep.plan import Plan
from vfljax.types import federation_of


def check(plan: Plan) -> None:
    """Refuse attacks on federations that are not trained, and budgets of labels without one a class."""
    known.check(plan)
    experiment, classes = plan.experiment, plan.dataset.num_classes
    for form in attack_forms(experiment, classes, plan.party_columns[0].input):
        bottoms = tuple(plan.groups[0].spec.bottoms[party] for party in form.attackers)
        attack = make_attack(form, bottoms, classes)
        if not (attack.binary and classes > 2):
            _check_federations(form, attack.federations, plan)


def _check_federations(form: Form, defined: tuple[str, ...], plan: Plan) -> None:
    trained = {
        federation_of(trial.federation.name).kind for group in plan.groups for trial in group.trials
    }
    named = plan.experiment.federations
    if named and not trained.intersection(defined):
        raise UserError(
            f"config.federations={list(named)} has none of the federations that the attack {form.label} is "
            f"defined on: add {' or '.join(map(repr, defined))}, or leave {form.name!r} out of "
            "config.attacks."
        )
