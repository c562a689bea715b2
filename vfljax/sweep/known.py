"""Which labels of training rows attackers know, and whether the attacks of a plan can be run with them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from vfljax import tasks
from vfljax.datasets.splits import Split, distinct_rows
from vfljax.datasets.strata import strata
from vfljax.errors import UserError
from vfljax.sweep.canaries import NO_CANDIDATES
from vfljax.sweep.plan import Plan, recorded
from vfljax.types import HostArray, federation_of


def check_known_labels(plan: Plan) -> None:
    """Checks, before anything is trained, whether attacks can be run.

    On a stored sweep an attack that cannot be run is skipped. Attacks for two classes are always skipped on
    data of more classes, so that one list of attacks serves several data sets.

    Raises:
      UserError: for an attack that is defined on none of the federations that the config names, and for one
        with a number of known labels that is not available.
    """
    classes, known_to = plan.dataset.num_classes, recorded(plan)
    names = {name for group in plan.groups for name in group.trials["federation"].unique()}
    trained = {federation_of(name).kind for name in names}
    named = plan.experiment.federations
    for variant in plan.attack_variants:
        for known in (point["known"] for point in variant.knobs if "known" in point):
            if error := known_error(variant.name, known, known_to):
                raise error
        attack = variant.attack
        skipped = attack.binary and classes > 2
        if named and not skipped and not trained.intersection(attack.federations):
            raise UserError(
                f"config.federations={list(named)} has none of the federations that the attack {variant.label} "
                f"is defined on: add {' or '.join(map(repr, attack.federations))}, or leave {variant.name!r} "
                "out of config.attacks."
            )


def known_error(name: str, known: float, plan: Plan) -> UserError | None:
    """Returns why an attack cannot know so many labels of the training rows; None if it can.

    Known rows are balanced (``split_arrays``): an attacker knows as many labels of every class, or all
    labels. No attacker knows a canary's label. Of a group of one label, such as copies of a row, one row
    counts, because attacks are not scored on rows whose group has a known one.

    Args:
      name: the attack.
      known: the number of labels that it asks for.
      plan: has the training rows. The rarest class is that of all seeds.
    """
    canary = len(plan.dataset.labels) - plan.experiment.canaries * len(plan.splits)  # the first
    dataset, free = plan.dataset, [s.train[s.train < canary] for s in plan.splits]
    classes, different = dataset.num_classes, [distinct_rows(dataset, rows) for rows in free]
    task, drawn = tasks.of(classes), strata(dataset.labels)
    counts = [np.bincount(drawn[rows], minlength=classes) for rows in different]
    rows, least = len(free[0]), task.least_known(classes)
    rarest = int(min(count.min() for count in counts))
    most = task.most_known(classes, rarest, rows)
    few = "one a class" if classes > 1 else str(least)
    remedy, given = f"ask for {few} or more, up to all", len(plan.splits[0].known)
    if given and known == given:
        return None
    if given:
        what = "labels are asked for"
        remedy = f"the recording gives the labels of {given} rows: ask for those"
    elif known < least:
        what = f"labels are fewer than {f'the {classes} classes' if classes > 1 else least}"
    elif known > rows:
        what = f"labels are more than the {rows} training rows"
    elif most < known < rows:
        each = -(-known // classes)
        what = f"labels ask for {each:g} of each class and the rarest has {rarest} training rows"
        what += " of different groups" * (len(different[0]) < rows)
        remedy = f"ask for at most {most}, or for all {rows}"
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


def split_arrays(
    labels: np.ndarray,
    splits: Sequence[Split],
    draws: int = 1,
    candidates: HostArray = NO_CANDIDATES,
    groups: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Returns the arrays of splits that are stored, with each seed's orders of known rows. If there are
    canaries, ``selects`` has the half of each seed's rows on which attacks on them are chosen. If there are
    groups of one label each, ``groups`` numbers those of each seed's training rows from 0.

    Args:
      labels: [R]; known rows are drawn by their ``strata``.
      splits: one per seed.
      draws: number of draws of known rows. With Q seeds, draw r of seed s is row r Q + s of ``known_order``.
      candidates: of the last rows, which are canaries, as ``plant`` returns them.
      groups: [R] of ``splits.label_groups``.
    """
    orders, halves = [], []
    first, of_rows = len(labels) - (len(candidates) - 1), strata(labels)
    pairs = candidates[[np.maximum(s.train - first, -1) for s in splits]]
    for draw, (seed, split) in itertools.product(range(draws), enumerate(splits)):
        rng = np.random.default_rng([seed, 7919, draw] if draw else [seed, 7919])
        classes = of_rows[split.train]
        queue = rng.permutation(len(classes))
        # the j-th row of every class precedes the (j+1)-th of any: the first n are balanced; canaries last
        turn, free = np.full(len(classes), len(classes)), split.train < first
        for c in np.unique(classes):
            of_class = queue[(classes[queue] == c) & free[queue]]
            turn[of_class] = np.arange(len(of_class))
        turn[split.known] = -1
        orders.append(queue[np.argsort(turn[queue], kind="stable")])
        if not draw:
            halves.append(rng.permutation(len(classes)) < len(classes) // 2)
    of_train = [] if groups is None else [groups[s.train] for s in splits]
    numbered = [np.unique(part, return_inverse=True)[1].astype(np.int32) for part in of_train]
    return {
        "labels": labels,
        **{part: np.stack([getattr(s, part) for s in splits]) for part in Split._fields[:3]},
        "known_order": np.stack(orders).astype(np.int32),
        **({"candidates": pairs, "selects": np.stack(halves)} if len(candidates) > 1 else {}),
        **({"groups": np.stack(numbered)} if numbered else {}),
    }
