"""The local-only baseline: the strongest of several learners on the attackers' columns and known labels.

``store.load`` joins attacks on untrained bottom models to these learners.

It is what the passive party reaches without the federation, hence a candidate for the strongest attack like
any other, scored on the same seeds and rows. It depends on the seed, the attackers, the number of known
labels and the learner, but on no trial. Its rows, of the variant ``LABEL``, therefore name no trial.

All learners have one rule (``learners.RULE``), as each attack has its own. A sweep keeps the rows that it has
stored, and a version of another rule plans all of them anew, at the next command that trains or attacks it. The
new ones count once they are as many, and the earlier ones until then (``store.load``).
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
from scipy.sparse import hstack

from vfljax import store
from vfljax.attack_runs.bundles import Stored
from vfljax.attack_runs.processes import in_processes
from vfljax.attack_runs.scoring import AttackOutput
from vfljax.attack_runs.view import common_data
from vfljax.attacks.learners import OwnColumns, learn_draws, learners_of, table_of
from vfljax.datasets.numbers import numbers_of, width_of
from vfljax.federation.training import Table, labels_of, rows_of
from vfljax.store import LOCAL_ONLY_VARIANT as LABEL
from vfljax.store.units import rule_of_learners
from vfljax.sweep.plan import Plan
from vfljax.types import AttackIdentity, HostArray, Scores


def run(unit: store.Unit, stored: Stored) -> None:
    """Fits and scores the learners of a unit on the host, and stores their rows.

    Args:
      unit: of the baseline: some attackers, seeds, and pairs of a number of known labels and one of draws.
    """
    plan, arrays, began = stored.plan, stored.arrays, time.monotonic()
    attackers, points = tuple(unit.of["attackers"]), [(k, n) for k, n in unit.of["points"]]
    common = jax.device_get(common_data(plan.table, arrays, attackers))
    width = sum(width_of(plan.party_columns[party].input) for party in attackers)
    classes, train = plan.dataset.num_classes, len(plan.splits[0].train)
    learners = learners_of(classes, width, train)
    # by the number of draws, because outputs are scored together if their shapes are equal
    found: dict[int, list[tuple[dict[str, Any], AttackOutput]]] = {}
    for seed in unit.of["seeds"]:
        scores = fitted(plan, common, attackers, seed, learners, points)
        train = len(arrays["train"][seed])
        sent = np.ones(train, bool)  # nothing is sent, so every row counts
        for point, learner in itertools.product(points, learners):
            known, draws = point
            of_rows = scores[learner][point]
            parts: Any = Scores(of_rows[:, :train], of_rows[:, train:])
            on_host: Any = np.int32(seed), np.int32(known), sent, np.bool_(False), np.int32(known)
            # the rows of the learner that has the variant's own name need no option
            options = () if learner == LABEL else (("learner", learner),)
            named = ("learner",) * len(options)
            identity = AttackIdentity(
                LABEL,
                options,
                named,
                attackers=attackers,
                rule=rule_of_learners(unit.of),
                known=known,
            )
            head = {"variant": LABEL, "seed": seed, "what": LABEL, "draws": float(draws)}
            row = store.identity_columns(identity) | head
            found.setdefault(draws, []).append((row, AttackOutput(parts, *on_host)))
    rows = []
    for of_draws in found.values():
        heads, outputs = zip(*of_draws, strict=True)
        figures = stored.scorer.figures_on_host(outputs)
        rows += [head | values for head, values in zip(heads, figures, strict=True)]
    cost = {"seconds": time.monotonic() - began, "rows": len(rows)}
    store.write_rows(stored.begun.workdir, unit.name, rows, cost=cost)


def fitted(
    plan: Plan,
    common: Table,
    attackers: tuple[int, ...],
    seed: int,
    learners: Sequence[str],
    points: Sequence[tuple[int, int]],
) -> dict[str, dict[tuple[int, int], HostArray]]:
    """Returns the scores [draws, n, C] of training rows, then of test rows, by learner and point.

    A learner prepares the columns once for all draws and numbers of known labels.

    Args:
      common: the attackers' data, as NumPy arrays.
      attackers: numbers of parties.
      seed: whose rows and scaling are used.
      learners: their names.
      points: a number of known labels and one of draws each.
    """
    pairs = list(dict.fromkeys((known, draw) for known, draws in points for draw in range(draws)))
    columns = own_columns(plan, common, attackers, points[0][0], seed)
    drawn = [columns._replace(**_known(common, known, seed, draw)) for known, draw in pairs]
    table = table_of(plan.dataset.num_classes)
    jitted = [name for name in learners if table[name].jitted]
    others = [name for name in learners if name not in jitted]
    rows_read = len(others) * len(pairs) * columns.numbers.shape[0]
    found = in_processes(learn_draws, [(name, drawn) for name in others], rows_read)
    found += [learn_draws(name, drawn) for name in jitted]
    scores = dict(zip((*others, *jitted), found, strict=True))
    places = {
        (known, draws): [pairs.index((known, draw)) for draw in range(draws)]
        for known, draws in points
    }
    return {name: {point: scores[name][at] for point, at in places.items()} for name in learners}


def own_columns(
    plan: Plan, common: Table, attackers: tuple[int, ...], known: int, seed: int
) -> OwnColumns:
    """Returns the attackers' columns of all training rows, followed by those of all test rows.

    Args:
      common: the attackers' data, as NumPy arrays.
      attackers: numbers of parties.
      known: number of known labels.
      seed: whose rows and scaling are used.
    """
    train, test = (np.asarray(rows[seed]) for rows in (common.train, common.test))
    raw = np.concatenate([train, test])
    at: Any = np.int32(seed), raw
    parts = [np.asarray(part) for part in rows_of(common, *at)]
    inputs = [plan.party_columns[p].input for p in attackers]
    if any(any(reads.vocabulary) for reads in inputs):
        numbers = hstack([numbers_of(*pair) for pair in zip(parts, inputs, strict=True)], "csr")
    else:
        numbers = np.concatenate([part.reshape(len(raw), -1) for part in parts], axis=1)
    labeled = _known(common, known, seed)
    return OwnColumns(numbers, classes=plan.dataset.num_classes, seed=seed, **labeled)


def _known(common: Table, known: int, seed: int, draw: int = 0) -> dict[str, Any]:
    """Returns the known rows of a draw and their labels, as fields of ``OwnColumns``."""
    assert common.known_order is not None
    rows = np.asarray(common.known_order[draw * len(common.train) + seed][:known])
    at: Any = np.int32(seed), np.asarray(common.train[seed])[rows]
    return {"known": rows, "labels": np.asarray(labels_of(common, *at))}
