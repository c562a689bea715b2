"""Makes the config of an audit: one federation for every table, with all attacks and defenses that apply.

With two classes the parties' embeddings are averaged and the top model is GAFM's generator, so that every
defense can be tried; with more they are concatenated. Batches and epochs follow the number of training rows.

Each defense is audited at three strengths of its row. ``stages`` orders the sweep so that its report says as
much as possible whenever it ends. No figure of an attack has an influence on the order.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import pathlib
import pprint
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np

from vfljax import attacks, defenses, plugins, tasks
from vfljax.attacks.core import Attack
from vfljax.auditing.survey import AuditRequest, Survey
from vfljax.config import as_axis, combinations
from vfljax.datasets.splits import distinct_rows
from vfljax.datasets.strata import stratified
from vfljax.errors import UserError
from vfljax.models.mlp import MLP
from vfljax.sweep import specs
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import Plan, trials_of
from vfljax.types import MALICIOUS, NO_SPLIT, SPLIT

__all__ = [
    "ATTACKS",
    "DRAWS",
    "FEDERATIONS",
    "OF_TREES",
    "SHARES",
    "SUITES",
    "TREES",
    "method",
    "middle",
    "model",
    "strengths",
    "suited",
    "trained",
]

SHARES = (0.6, 0.2, 0.2)  # training, validation, test
KNOWN = 40  # labels that an attacker knows
DRAWS = 5  # draws of the known labels over which figures are averaged
STEPS = 800  # batches that train a trial, about
EPOCHS = (5, 30)  # at least, at most
BATCHES = ((400, 16), (1500, 32), (8000, 64), (math.inf, 256))  # (training rows at most, size)
RECORDED = 2000  # most training rows whose exchange attackers keep
UNDEFENDED = "undefended"
FEDERATIONS = {
    "split": (SPLIT, MALICIOUS),
    "no_split": (NO_SPLIT,),
    "both": (SPLIT, MALICIOUS, NO_SPLIT),
}
"""The kinds of federations that are trained, by the argument ``federation`` of an audit."""
FEWEST_SEEDS = 3  # as many as a verdict needs
TOGETHER = 5  # defenses of a stage: their trials fill about a call of an attack
CANARIES = 1000  # most training rows whose labels are coins; at most a fifth of all rows
BOTTOM = MLP((4,), 4)  # stands for the attackers' bottom when only an attack's needs are read
CONFIG = '''"""What an audit trained and attacked; the same tables come from:

    vfljax sweep --config=config.py --workdir=NEW_DIR
"""

from vfljax.config import ordered


def get_config():
    return ordered(
{body}
    )
'''
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
    "joint": {"blocks": ("all", "best")},
    "ranks": {"learner": ("kernel", "lda")},
    "spreading": {"blocks": ("all", "ranks")},
    # of the baseline's other learners ``ranks`` and ``spreading`` have all but logistic regression and
    # self-training on ranks, which read less than ``spreading`` and would take half as long as these three
    "reader": {"learner": ("extra trees", "naive Bayes on ranks", "self-trained")},
    "charge": {},
    "correlation": {},
    "fusion": {"sign": ("subtract", "add"), "weight": (1.0, 0.2)},
    "posterior": {
        "signal": ("entries", "signs", "direction", "opposed"),
        "columns": "ranks",
        "epsilon": (1.0, 0.5, 2.0, 4.0, 8.0),
        "epoch": ("mean", 0),
    },
}
"""The attacks and their options, among them variants that know of a defense. ``suited`` leaves out what the
federations or the number of classes rule out."""


OF_NUMBERS: Mapping[str, Mapping[str, Any]] = {
    "passive": COMPLETION,
    "active": COMPLETION,
    "direct": {"epoch": (0, 1, "mean"), "own": (False, True)},
    "norm": {"epoch": (-1, "mean")},
    "cosine": {"epoch": (-1, 0)},
    "inner": {"epoch": (-1, "mean")},
    "spectral": {"signal": ("embeddings", "gradients"), "epoch": (-1, 0)},
    "residual": {},
    "probe": {"inputs": ("both", "gradients"), "epoch": (-1, "mean")},
    "surrogate": {"names": ("known", "none")},
    "joint": {"blocks": ("all", "best")},
    "ranks": {"learner": ("kernel", "ridge")},
    "reader": {"learner": ("extra trees", "boosting", "ridge")},
    "posterior": {
        "signal": ("entries", "direction"),
        "columns": "ranks",
        "epsilon": (1.0, 0.5, 2.0, 4.0, 8.0),
        "epoch": ("mean", 0),
    },
}
"""The attacks on labels that are numbers."""
SUITES = {"classification": ATTACKS, "regression": OF_NUMBERS}
"""The attacks by task."""
OF_TREES: Mapping[str, Mapping[str, Any]] = {
    "direct": {"rule": "most_negative", "epoch": (0, "mean")},
    # above 1: an attacker who is told first trees that say little reads them less
    "cohabitation": {"names": ("known", "none"), "first": (0.8, 1.0, 1.25)},
    "node_posterior": {"smooth": ("nodes", "graph")},
    "node_spreading": {"blocks": ("all", "exchange")},
    "probe": {"inputs": "embeddings"},
    "ranks": {"learner": ("kernel", "lda"), "blocks": ("all", "exchange")},
    "reader": {"learner": ("extra trees", "logistic"), "blocks": ("all", "exchange")},
}
"""The attacks on a federation of trees, of which paths through nodes are the embeddings. An audit of trees
gives ``node_posterior``, or ``posterior`` of numbers, the epsilons of its grid."""
TREES_OF_NUMBERS: Mapping[str, Mapping[str, Any]] = {
    "direct": {"epoch": (0, "mean")},
    "cohabitation": OF_TREES["cohabitation"],
    "node_spreading": OF_TREES["node_spreading"],
    "posterior": {"columns": "ranks", "epoch": 0, "own": False},
    "probe": {"inputs": "embeddings"},
    "ranks": {"learner": ("kernel", "ridge"), "blocks": ("all", "exchange")},
    "reader": {"learner": ("extra trees", "ridge"), "blocks": ("all", "exchange")},
}
TREES = {"classification": OF_TREES, "regression": TREES_OF_NUMBERS}
"""The attacks on trees by task."""


def model(classes: int) -> dict[str, Any]:
    """Returns the networks of an audit, ``config.model``, for a number of classes, or 1 for numbers."""
    two, few = classes == 2, classes <= 2
    return {
        "bottom": "mlp",
        "hidden": (32,),
        "activation": "leaky_relu",
        "cut": 4 if few else max(8, min(classes, 32)),
        "top": "generator" if two else "head" if classes > 2 else "head_plain",
        "top_hidden": (16,),
        "aggregation": "mean" if few else "concatenate",
    }


def trained(
    classes: int, data: Mapping[str, Any], parties: Mapping[str, Any], training: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the fields ``data``, ``parties``, ``model`` and ``training`` of a config, as audits have them.

    Args:
      classes: C.
      data: fields of ``config.data``; by default rows are divided by ``SHARES``, and columns are standardized.
      parties: of ``config.parties``.
      training: of ``config.training``, with at least ``epochs`` and ``batch_size``; by default Adam trains, and
        the exchange of the first two epochs and of the last is recorded.
    """
    shares = dict(zip(("train", "validation", "test"), SHARES, strict=True))
    return {
        "data": {**shares, "scaling": "standard", **data},
        "parties": dict(parties),
        "model": model(classes),
        "training": {
            "optimizer": "adam",
            "learning_rate": 1e-3,
            "momentum": 0.0,  # not read by Adam
            "weight_decay": 0.0,
            "record": (0, 1, -1),
            **training,
        },
    }


def config(surveyed: Survey, request: AuditRequest, federation: str) -> dict[str, Any]:
    """Returns the config of the undefended federation under all attacks.

    Args:
      surveyed: the survey of the table.
      request: who attacks, how many labels they know, the seeds and the goal.
      federation: a key of ``FEDERATIONS``.
    """
    label_party = surveyed.table.label_party
    dataset, classes = surveyed.dataset, surveyed.dataset.num_classes
    rows = int(len(dataset.labels) * SHARES[0])
    batch = next(size for most, size in BATCHES if rows <= most)
    epochs = int(np.clip(round(STEPS * batch / max(rows, 1)), *EPOCHS))
    different, drawn = distinct_rows(dataset, np.arange(len(dataset.labels))), stratified(dataset)
    known = request.known or known_labels(drawn.labels[different], drawn.num_classes)
    passive = [name for name in surveyed.owners if name != label_party]
    parties = [*passive, label_party]
    groups = tuple((passive.index(name),) for name in request.attackers)
    return {
        "name": f"audit of {printable(pathlib.PurePath(surveyed.table.data).name.split('.')[0])}",
        "seeds": request.seeds,
        **trained(
            classes,
            data={
                "name": "table",
                "dir": str(pathlib.Path(surveyed.table.data).resolve()),
                "options": surveyed.options,
            },
            parties={
                "passive": len(passive),
                "label_features": bool(surveyed.owners[label_party]),
                "columns": tuple(
                    surveyed.owners[name] for name in parties if surveyed.owners[name]
                ),
                "names": tuple(parties),
            },
            training={
                "epochs": epochs,
                "batch_size": min(batch, rows),
                "record_rows": RECORDED if rows > RECORDED else 0,
            },
        ),
        "known_draws": DRAWS,
        "malicious": {"parties": groups, "gamma": 1.0},
        "teacher": {
            "hidden": (20,),
            "epochs": 10,
            "batch_size": min(batch, rows),
            "learning_rate": 1e-3,
        },
        "grid": {UNDEFENDED: {}},
        "attackers": groups,
        "federations": FEDERATIONS[federation],
        "goal": msgspec.structs.asdict(request.goal),
        "attacks": suited(SUITES[tasks.of(classes).name], FEDERATIONS[federation], known, classes),
    }


def printable(name: str) -> str:
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


def method(name: str, values: Iterable[float], classes: int = 2) -> dict[str, dict[str, Any]]:
    """Returns the chain of one defense at these operating points.

    Args:
      name: of the defense.
      values: of its knob; not read if it has none.
      classes: C, or 1 for numbers, of which a defense may have options of its own.
    """
    row = defenses.TABLE[name]
    knobs: dict[str, Any] = {knob: row.example[knob] for knob in row.required}
    knobs |= row.options_for_numbers if classes == 1 else {}
    if row.strengths is not None:
        knobs |= {**row.strengths.fixed, row.strengths.knob: tuple(values)}
    return {name: knobs}


def strengths(name: str) -> tuple[float, ...]:
    """Returns the first, the middle and the last strength of a defense's row, from weak to strong; () if it
    has none.

    >>> strengths("kdk"), strengths("max_norm")
    ((0.1, 0.3, 0.45), ())
    """
    row = defenses.TABLE[name].strengths
    if row is None:
        return ()
    return tuple(dict.fromkeys((row.values[0], *middle(name), row.values[-1])))


def middle(name: str) -> tuple[float, ...]:
    """Returns the middle strength of a defense's row, alone in a tuple; () if it has none."""
    row = defenses.TABLE[name].strengths
    return () if row is None else (row.values[len(row.values) // 2],)


def defended(values: Mapping[str, Any], names: Iterable[str], classes: int = 2) -> dict[str, Any]:
    """Returns the config of the whole audit.

    Args:
      values: the config of the undefended federation.
      names: the defenses.
      classes: C, or 1 for numbers.
    """
    chains = {name: method(name, strengths(name), classes) for name in names}
    return {**values, "grid": {UNDEFENDED: {}, **chains}}


def config_file(values: Mapping[str, Any]) -> str:
    """Returns a config as the text of a file, for ``vfljax sweep``."""
    body = pprint.pformat(dict(values), width=92, sort_dicts=False)  # literals only
    return CONFIG.format(body=textwrap.indent(body, "        "))


def stages(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns the parts of an audit in the order in which they are trained and attacked, as configs: undefended
    on all seeds; each defense's middle strength on three seeds; its other strengths; all on the other seeds.

    Args:
      values: the config of the whole audit.
    """
    whole = values["grid"]
    names = [name for name in whole if name != UNDEFENDED]
    some = [names[k : k + TOGETHER] for k in range(0, len(names), TOGETHER)]
    few = min(FEWEST_SEEDS, values["seeds"])
    out = [{**values, "grid": {UNDEFENDED: {}}}]
    for points, seeds in ((middle, few), (strengths, few), (strengths, values["seeds"])):
        for of in some:
            chains = {
                name: {name: {**whole[name][name], **method(name, points(name))[name]}}
                for name in of
            }
            out.append({**values, "grid": chains, "seeds": seeds})
    return out


def waves(configs: Sequence[Mapping[str, Any]]) -> list[int]:
    """Returns the wave of each stage: those of the middle strengths are one, and so are those of all strengths
    on as many seeds. In a wave cheap attacks run on all that it trains before dear ones do.

    Args:
      configs: of the stages of a stored audit.
    """
    kinds = []
    for of in configs:
        chains = [knobs for chain in of["grid"].values() for knobs in chain.values()]
        points = max(
            (len(as_axis(axis)) for of_one in chains for axis in of_one.values()), default=0
        )
        kinds.append((of["seeds"], points))
    return [*itertools.accumulate((a != b for a, b in itertools.pairwise(kinds)), initial=0)]


def canaries(values: Mapping[str, Any], rows: int) -> dict[str, Any] | None:
    """Returns the config of a sweep of all defenses that claim an epsilon, on one seed with label canaries;
    None if no defense claims one.

    Args:
      values: the config of the whole audit.
      rows: of training.
    """
    claims = {name: chain for name, chain in values["grid"].items() if _claims(name)}
    title = f"{values['name']}: canaries"
    fields = {"name": title, "notes": (), "seeds": 1, "known_draws": 1, "grid": claims}
    return {**values, **fields, "canaries": min(CANARIES, rows // 5)} if claims else None


def _claims(name: str) -> bool:
    """Returns whether a defense claims an epsilon of label differential privacy."""
    row = defenses.TABLE.get(name)  # undefended is none
    return row is not None and row.remarks(row.example, {}).epsilon is not None


def applicable(values: Mapping[str, Any], plan: Plan) -> tuple[list[str], dict[str, str]]:
    """Finds the defenses that a federation and its data allow.

    Args:
      values: the config of the undefended federation.
      plan: of that config, for its data.

    Returns:
      The defenses that apply, in the order in which they are tried, and by name why the others do not. Those
      with a formal guarantee come first, then those that some attack takes into account.
    """
    kinds = {NO_SPLIT if kind == NO_SPLIT else SPLIT for kind in values["federations"]}

    def rank(name: str) -> tuple[bool, bool]:
        known = any(defenses.TABLE[name].known_by.get(kind) for kind in kinds)
        return not _claims(name), not known

    allowed, refused = [], {}
    trained = [name for name, row in defenses.TABLE.items() if not plugins.is_recorded(row)]
    for name in sorted(trained, key=rank):
        chain = method(name, strengths(name)[:1], plan.shape.num_classes)
        why = refusal(values, plan, chain)
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
    try:
        experiment = parse({**values, "grid": {"chain": chain}})
        trials = trials_of(experiment, plan.shape)
        if trials.empty:
            raise UserError("it is part of a top model, which this federation has not.")
        specs.check(experiment, plan.shape, trials)
    except UserError as error:
        return "".join(map(str, error.reason))
    return ""
