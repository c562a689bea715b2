"""Makes the config of an audit: one federation for every table, with all attacks and defenses that apply.

With two classes the parties' embeddings are averaged and the top model is GAFM's generator, so that every
defense can be tried; with more they are concatenated. Batches and epochs follow the number of training rows.
"""

from __future__ import annotations

import contextlib
import math
import pathlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from vfljax import attacks, defenses
from vfljax.attacks.core import Attack
from vfljax.auditing import planning
from vfljax.auditing.request import FEDERATIONS, Request
from vfljax.auditing.survey import Survey
from vfljax.config import as_axis, combinations
from vfljax.datasets.splits import distinct_rows
from vfljax.errors import UserError
from vfljax.models.mlp import MLP
from vfljax.sweep import grid, specs, variants
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import Plan
from vfljax.types import MALICIOUS

SHARES = (0.6, 0.2, 0.2)  # training, validation, test
KNOWN = 40  # labels that an attacker knows
DRAWS = 5  # draws of the known labels over which figures are averaged
STEPS = 800  # batches that train a trial, about
EPOCHS = (5, 30)  # at least, at most
BATCHES = ((400, 16), (1500, 32), (8000, 64), (math.inf, 256))  # (training rows at most, size)
RECORDED = 2000  # most training rows whose exchange attackers keep
UNDEFENDED = "undefended"
FIRST = ("label_dp", "noise", "proj_pert", "grad_perturb", "marvell")
"""The defenses that are tried first, because they protected in the stored audits."""
BOTTOM = MLP((4,), 4)  # stands for the attackers' bottom when only an attack's needs are read
# with lambda_u of 50, as published, an attack on two classes can call all rows one class
COMPLETION = {"steps": 500, "ema": 0.99, "lambda_u": (50, 1)}
ATTACKS: Mapping[str, Mapping[str, Any]] = {
    "passive": COMPLETION,
    "active": COMPLETION,
    "direct": {
        "rule": ("first_negative", "most_negative", "most_positive", "largest"),
        "epoch": (0, 1, "mean", "votes"),
    },
    "two_stage": {
        "rule": ("first_negative", "most_negative"),
        "epoch": (0, "mean"),
        "steps": 500,
        "ema": 0.99,
    },
    "norm": {"epoch": (-1, "mean")},
    "mean": {"epoch": (-1, "mean"), "scores": "distance"},
    "median": {"scores": "distance"},
    "cosine": {"epoch": (-1, 0)},
    "hint": {"count": 5, "epoch": (-1, 0)},
    "global_median": {},
    "spectral": {"signal": ("embeddings", "gradients"), "whole": (False, True)},
    "residual": {},
    "probe": {"inputs": ("both", "gradients"), "epoch": (-1, "mean")},
    "similarity": {"epoch": (-1, 0)},
    "surrogate": {"names": "none"},
    "enumeration": {"names": "none"},
    "joint": {"steps": 200, "blocks": ("all", "best")},
    "ranks": {"learner": ("kernel", "lda")},
    "reader": {"learner": ("extra trees", "naive Bayes on ranks", "self-trained")},
    "charge": {},
    "correlation": {},
    "fusion": {"sign": ("subtract", "add"), "weight": (1.0, 0.2)},
    "posterior": {
        "signal": ("entries", "direction"),
        "columns": "ranks",
        "epsilon": (1.0, 0.5, 2.0, 4.0, 8.0),
        "epoch": ("mean", 0),
    },
}
"""The attacks and their options, among them variants that know of a defense. ``suited`` leaves out what the
federations or the number of classes rule out."""


def model(classes: int) -> dict[str, Any]:
    """Returns the networks of an audit, ``config.model``, for a number of classes."""
    two = classes == 2
    return {
        "bottom": "mlp",
        "hidden": (32,),
        "activation": "leaky_relu",
        "cut": 4 if two else max(8, min(classes, 32)),
        "top": "generator" if two else "head",
        "top_hidden": (16,),
        "aggregation": "mean" if two else "concatenate",
    }


def config(
    request: Request, table: Survey, suite: Mapping[str, Mapping[str, Any]] = ATTACKS
) -> dict[str, Any]:
    """Returns the config of the undefended federation under all attacks.

    Stages change its ``grid``, ``seeds`` and ``attacks``.

    Args:
      request: of the audit.
      table: the survey of its table.
      suite: attacks and their options.
    """
    dataset, classes = table.dataset, table.dataset.num_classes
    rows = int(len(dataset.labels) * SHARES[0])
    batch = next(size for most, size in BATCHES if rows <= most)
    epochs = int(np.clip(round(STEPS * batch / max(rows, 1)), *EPOCHS))
    different = distinct_rows(dataset, np.arange(len(dataset.labels)))
    known = request.known or known_labels(dataset.labels[different], classes)
    parties = [*request.passive, request.label_party]
    attackers = tuple((request.passive.index(name),) for name in request.attacking)
    return {
        "name": f"audit of {_printable(pathlib.PurePath(request.data).name.split('.')[0])}",
        "seeds": request.seeds,
        "data": {
            "name": "table",
            "dir": str(pathlib.Path(request.data).resolve()),
            "options": {"label": request.label, **table.options},
            **dict(zip(("train", "validation", "test"), SHARES, strict=True)),
            "scaling": "standard",
        },
        "parties": {
            "passive": len(request.passive),
            "label_features": bool(table.owners[request.label_party]),
            "columns": tuple(table.owners[name] for name in parties if table.owners[name]),
            "names": tuple(parties),
        },
        "model": model(classes),
        "training": {
            "epochs": epochs,
            "batch_size": min(batch, rows),
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "momentum": 0.0,
            "weight_decay": 0.0,
            "record": (0, 1, -1),
            "record_rows": RECORDED if rows > RECORDED else 0,
        },
        "known_draws": DRAWS,
        "malicious": {"parties": attackers, "gamma": 1.0},
        "teacher": {
            "hidden": (20,),
            "epochs": 10,
            "batch_size": min(batch, rows),
            "learning_rate": 1e-3,
        },
        "grid": {UNDEFENDED: {}},
        "attackers": attackers,
        "federations": FEDERATIONS[request.federation],
        "goal": {
            "max_leak": 1.0 if request.max_leak is None else request.max_leak,
            "max_cost": request.max_cost,
            "keep_gain": request.keep_gain,
        },
        "attacks": suited(suite, FEDERATIONS[request.federation], known, classes),
    }


def _printable(name: str) -> str:
    """Returns a file's name without characters that a title must not have."""
    kept = "".join(c if c.isprintable() else "_" for c in name)
    return kept.strip()[:100] or "a table"


def known_labels(labels: np.ndarray, classes: int) -> int:
    """Returns how many labels an attacker knows by default: 40, or two per class if that is more.

    The number per class is at most half of the training rows of the rarest class, but at least 1.

    Args:
      labels: of all rows.
      classes: C.
    """
    rarest = int(np.bincount(labels, minlength=classes).min() * SHARES[0])
    most = classes * max(1, rarest // 2)
    return max(classes, min(max(KNOWN, 2 * classes), most))


def suited(
    suite: Mapping[str, Mapping[str, Any]], federations: Sequence[str], known: int, classes: int
) -> dict[str, dict[str, Any]]:
    """Returns the attacks of a suite, and those values of their options, that can be run.

    Args:
      suite: attacks and their options.
      federations: the kinds that are attacked.
      known: number of known labels.
      classes: C.
    """
    out = {}
    for name, options in suite.items():
        row = attacks.TABLE[name]
        static = {k: as_axis(v) for k, v in options.items() if k in row.options}
        run: list[tuple[Mapping[str, Any], Attack]] = []
        for chosen in combinations(static, f"attacks.{name}"):
            with contextlib.suppress(ValueError):  # the attack's factory refuses these options
                attack = row((BOTTOM,), classes, **chosen)
                if {*federations} & {*attack.federations}:
                    run.append((chosen, attack))
        if run and not (run[0][1].binary and classes > 2):
            least = {"known": known} if "known" in run[0][1].knobs else {}
            allowed = {
                k: tuple(v for v in axis if any(o[k] == v for o, _ in run))
                for k, axis in static.items()
            }
            out[name] = {**least, **options, **allowed}
    return out


def method(name: str, values: Iterable[float]) -> dict[str, dict[str, Any]]:
    """Returns the chain of one defense at these operating points.

    Args:
      name: of the defense.
      values: of its knob; not read if it has none.
    """
    row = defenses.TABLE[name]
    knobs = {knob: row.example[knob] for knob in row.required}
    if row.strengths is not None:
        knobs |= {**row.strengths.fixed, row.strengths.knob: tuple(values)}
    return {name: knobs}


def pilot(values: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Returns the config of a pilot: one seed, honest parties, every operating point, and no attack.

    Args:
      values: the config of the undefended federation.
      names: the defenses that the pilot tries.
    """
    methods = {name: method(name, planning.values_of(name)) for name in names}
    return {
        **values,
        "name": f"{values['name']}: pilot",
        "seeds": 1,
        "federations": [f for f in values["federations"] if f != MALICIOUS],
        "grid": {UNDEFENDED: {}, **methods},
        "attacks": {},
    }


def applicable(
    values: Mapping[str, Any], plan: Plan, names: Sequence[str] | None = None
) -> tuple[list[str], dict[str, str]]:
    """Finds the defenses that a federation and its data allow.

    Args:
      values: the config of the undefended federation.
      plan: of that config, for its data.
      names: the defenses to try; None for all.

    Returns:
      The defenses that apply, in the order in which they are tried, and by name why the others do not.
    """
    allowed, refused = [], {}
    every = [name for name in defenses.TABLE if names is None or name in names]
    for name in sorted(every, key=lambda n: FIRST.index(n) if n in FIRST else len(FIRST)):
        why = refusal(values, plan, method(name, planning.values_of(name)[:1]))
        if why:
            refused[name] = why
        else:
            allowed.append(name)
    return allowed, refused


def refusal(values: Mapping[str, Any], plan: Plan, chain: Mapping[str, Any]) -> str:
    """Returns why a federation and its data do not allow a chain of defenses; "" where they do.

    Args:
      values: the config of the federation.
      plan: of that config, for its data.
      chain: of defenses, as in ``config.grid``.
    """
    classes, inputs = plan.dataset.num_classes, tuple(block.input for block in plan.party_columns)
    shape = specs.DataShape(classes, len(plan.splits[0].train), inputs)
    try:
        experiment = parse({**values, "grid": {"chain": chain}})
        attacked = variants.attack_variants(experiment, classes, inputs[0])
        trained = variants.federations(experiment, attacked, classes, inputs[0])
        trials = grid.trials(experiment, trained)
        if trials.empty:
            raise UserError("it is part of a top model, which this federation has not.")
        specs.check(experiment, shape, trials)
    except UserError as error:
        return "".join(map(str, error.reason))
    return ""
