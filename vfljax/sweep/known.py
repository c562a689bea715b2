"""How many labels an attacker of a sweep can know: as many of every class, or all.

Known rows are balanced (``plan.split_arrays``), so that every class has one. A number that cannot be had is
refused when a sweep is planned, and an attack on a stored sweep that asks for one is skipped.
"""

from __future__ import annotations

import numpy as np

from vfljax.errors import UserError
from vfljax.sweep.attack_variants import attack_forms
from vfljax.sweep.plan import Plan, recorded


def error_of(name: str, known: float, plan: Plan) -> UserError | None:
    """Returns the error if an attacker by attack ``name`` cannot know so many training labels, else None."""
    field = f"attacks.{name}.known"
    remedy = "ask for one a class or more, up to all"
    classes, rows = plan.dataset.num_classes, len(plan.splits[0].train)
    counts = [np.bincount(plan.dataset.labels[s.train], minlength=classes) for s in plan.splits]
    rarest = int(min(count.min() for count in counts))
    if known < classes:
        what = f"labels are fewer than the {classes} classes"
        return UserError(what, field=field, value=known, remedy=remedy)
    if known > rows:
        what = f"labels are more than the {rows} training rows"
        return UserError(what, field=field, value=known, remedy=remedy)
    if known < rows and known > classes * rarest:
        return UserError(
            f"labels ask for {-(-known // classes):g} of each class and the rarest has {rarest} training "
            "rows",
            field=field,
            value=known,
            remedy=f"ask for at most {classes * rarest}, or for all {rows}",
        )
    return None


def check(plan: Plan) -> None:
    """Raise UserError where an attack of the sweep asks for a number of labels that cannot be had."""
    known_to = recorded(plan)
    for form in attack_forms(
        plan.experiment, plan.dataset.num_classes, plan.party_columns[0].input
    ):
        for point in form.knobs:
            error = error_of(form.name, point["known"], known_to) if "known" in point else None
            if error:
                raise error


def most_known(plan: Plan) -> int:
    """The most labels that an attack of the sweep knows at its first point, as the report leads with; 0
    where none knows any. By as many are classes named that an attack cannot name."""
    forms = attack_forms(plan.experiment, plan.dataset.num_classes, plan.party_columns[0].input)
    known = [(form.name, form.knobs[0].get("known", 0)) for form in forms]
    rows = len(plan.splits[0].train)
    possible = (int(k) for name, k in known if k < rows and not error_of(name, k, plan))
    return max(possible, default=0)
