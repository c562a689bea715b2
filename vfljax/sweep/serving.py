"""Checks whether attacks can be run on a sweep: whether the federations and the known labels they need exist.

A new sweep with an attack that could never be run is refused before anything is trained. On a stored sweep
such an attack is skipped (``vfljax.attacking.jobs``). Attacks for two classes are always skipped on data of
more classes, so that one list of attacks serves several data sets.
"""

from __future__ import annotations

import numpy as np

from vfljax.errors import UserError
from vfljax.sweep.attack_variants import make_attack
from vfljax.sweep.plan import Plan, recorded


def check(plan: Plan) -> None:
    """Raises UserError for an attack that is defined on none of the federations that the config names, and
    for an attack with a number of known labels that is not available."""
    classes, known_to = plan.dataset.num_classes, recorded(plan)
    trained = {trial.federation.kind for group in plan.groups for trial in group.trials}
    named = plan.experiment.federations
    for variant in plan.attack_variants:
        for known in (point["known"] for point in variant.knobs if "known" in point):
            if error := known_error(variant.name, known, known_to):
                raise error
        bottoms = tuple(plan.groups[0].spec.bottoms[party] for party in variant.attackers)
        attack = make_attack(variant, bottoms, classes)
        skipped = attack.binary and classes > 2
        if named and not skipped and not trained.intersection(attack.federations):
            raise UserError(
                f"config.federations={list(named)} has none of the federations that the attack {variant.label} "
                f"is defined on: add {' or '.join(map(repr, attack.federations))}, or leave {variant.name!r} "
                "out of config.attacks."
            )


def known_error(name: str, known: float, plan: Plan) -> UserError | None:
    """Returns why an attack cannot know so many labels of the training rows; None if it can.

    Known rows are balanced (``plan.split_arrays``): an attacker knows as many labels of every class, or all
    labels. No attacker knows a canary's label.

    Args:
      name: the attack.
      known: the number of labels that it asks for.
      plan: has the training rows. The rarest class is that of all seeds.
    """
    canary = len(plan.dataset.labels) - plan.experiment.canaries * len(plan.splits)  # the first
    classes, free = plan.dataset.num_classes, [s.train[s.train < canary] for s in plan.splits]
    counts = [np.bincount(plan.dataset.labels[rows], minlength=classes) for rows in free]
    rows = len(free[0])
    rarest = int(min(count.min() for count in counts))
    remedy, given = "ask for one a class or more, up to all", len(plan.splits[0].known)
    if given and known == given:
        return None
    if given:
        what = "labels are asked for"
        remedy = f"the recording gives the labels of {given} rows: ask for those"
    elif known < classes:
        what = f"labels are fewer than the {classes} classes"
    elif known > rows:
        what = f"labels are more than the {rows} training rows"
    elif classes * rarest < known < rows:
        each = -(-known // classes)
        what = f"labels ask for {each:g} of each class and the rarest has {rarest} training rows"
        remedy = f"ask for at most {classes * rarest}, or for all {rows}"
    else:
        return None
    return UserError(what, field=f"attacks.{name}.known", value=known, remedy=remedy)


def most_known(plan: Plan) -> int:
    """Returns the largest number of known labels among the attacks' first knob values, which the report leads
    with; 0 if no attack knows any. So many labels name the classes of attacks that cannot name them."""
    known = [(variant.name, variant.knobs[0].get("known", 0)) for variant in plan.attack_variants]
    rows = len(plan.splits[0].train) - plan.experiment.canaries
    possible = (int(k) for name, k in known if k < rows and not known_error(name, k, plan))
    return max(possible, default=0)
