"""A paper's table beside ours: which of our figures answers a printed number, and what is stored of it.

What enters: a finished sweep whose config names a table (``config.reproduces``). What leaves: for every
number of that table and data set our figure by seed, as ``Compared``; and a small CSV of them
(``text``, ``read``) from which every verdict is computed again, without the sweep.

A number is of one point of one arm. The arm is the one that ``reproduces.arms`` gives the paper's defense,
its point the one whose knobs are the number's setting (``KNOBS``); what else a setting names, such as how
the columns were divided, must stand in ``reproduces.setting``, for the whole sweep or under an arm's name.
Attacks are compared under the labels of ``reproduces.attacks``, on the federation that papers attack first.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping
from typing import Any

from vfljax import papers, store
from vfljax.papers import Number, comparisons, gafm_gradients, paper_figures
from vfljax.papers.comparisons import Compared
from vfljax.report import tables
from vfljax.report.configurations import ConfigurationSummary, stored_configurations
from vfljax.report.stored_rows import federations_of, identity_of
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.records import Reproduces
from vfljax.types import NO_SPLIT, SPLIT

GAFM = {name: f"gafm.{name}" for name in ("sigma", "delta", "gamma")}
KNOBS: dict[str, dict[str, str]] = {
    "none": {},
    "gafm": GAFM,
    "gafm+marvell": GAFM,
    "kdk": {"epsilon": "kdk.epsilon", "k": "kdk.k"},
    "noisy_gradient": {"noise_scale": "noise.scale"},
    "gradient_compression": {"keep_rate": "compression.keep_rate"},
    "ppdl": {"theta_u": "ppdl.theta"},
    "discrete_sgd": {"bins": "discrete_sgd.intervals"},
    "dcor": {"alpha_d": "dcor.alpha"},
    "label_dp": {"epsilon": "label_dp.epsilon"},
    "marvell": {"s": "marvell.power"},
}  # a paper's defense -> its setting's name -> our column
NEUTRAL = {"none": {"alpha_d": 0.0}}  # settings that say of no defense that it is none

UTILITY = {
    ("auc", "test"): "test_oriented_auc",
    ("auc", "train"): "train_auc",
    ("auc", ""): "test_oriented_auc",
    ("top1_accuracy", ""): "test_accuracy",
    ("top5_accuracy", ""): "test_top5_accuracy",
}  # metric and split -> column of a setting
POOLED = "test_pooled_oriented_auc"  # of sweeps with config.training.evaluation="released"
ATTACKED = {
    ("leak_auc", ""): "leak",
    ("asr_top1", "train"): "success",
    ("asr_top1", "test"): "test_success",
    ("asr_top5", "train"): "success_top5",
    ("asr_top5", "test"): "test_success_top5",
    ("f1", "train"): "f1",
    ("f1", "test"): "test_f1",
}  # metric and split -> column of an attack
AVERAGED = ("norm", "mean", "median")  # the attacks of ``leak_auc_over_train_auc``
PARTS = {"gan_gradient_avg": 0, "ce_gradient_avg": 1}  # of ``gafm_gradients.averages``
# the paper does not say over what it averages; the first is what the released code keeps
AVERAGES = {
    "": ("last_batch", False),
    "epoch": ("epoch", False),
    "oriented": ("last_batch", True),
    "epoch_oriented": ("epoch", True),
}  # variant -> over which rows, and whether runs that learned the labels inverted are turned


def compare(sweep: store.Sweep, reproduces: Reproduces) -> list[Compared]:
    """Every number of the table and data set, in the paper's order."""
    numbers = papers.numbers_of(reproduces.table, reproduces.dataset)
    reader = Reader(sweep, reproduces)
    out = [one for n in numbers for one in reader.compared(n)]
    if any(n.metric in PARTS for n in numbers) and not reproduces.variant:
        for variant in list(AVERAGES)[1:]:
            other = Reader(sweep, dataclasses.replace(reproduces, variant=variant))
            out += [one for n in numbers for one in other.compared(n)]
    return out


def extend(sweep: store.Sweep, experiment: Experiment) -> tables.Extra:
    """Returns the table and the figure of the paper that the sweep is a run of, for its report.

    Args:
      sweep: a finished sweep.
      experiment: the one that it was made by; without ``reproduces`` nothing is added.

    Raises:
      UserError: if the config names a table that no paper has.
    """
    reproduces = experiment.reproduces
    if reproduces is None:
        return tables.Extra()
    papers.check(reproduces)
    compared = compare(sweep, reproduces)
    paper = papers.PAPERS[papers.paper_of(reproduces.table)]
    source = f"{paper}, {reproduces.table}, {reproduces.dataset}"
    section = tables.Section(
        title="Beside the published figures",
        caption=comparisons.caption(compared, source, reproduces.scale),
        table=comparisons.table(compared),
    )
    draw = functools.partial(paper_figures.draw, sweep, reproduces)
    return tables.Extra(sections=(section,) * bool(compared), draw=draw)


class Reader:
    """The rows of a stored sweep, by point."""

    def __init__(self, sweep: store.Sweep, reproduces: Reproduces) -> None:
        self._sweep, self._reproduces = sweep, reproduces
        self._arms: dict[str, list[str]] = {}
        for arm, defense in reproduces.arms.items():
            self._arms.setdefault(defense, []).append(arm)
        self._points = stored_configurations(sweep)
        self._results: dict[int, list[dict[str, Any]]] = {}
        for row in sweep.results.to_pylist():
            if row["status"] == "ok":
                self._results.setdefault(row["point"], []).append(row)
        self._attacks: dict[tuple[int, str], list[dict[str, Any]]] = {}
        of_setting = {row["setting"]: row for rows in self._results.values() for row in rows}
        for row in sweep.attacks.to_pylist():
            if row["point"] == 0 and row["setting"] in of_setting:
                key = (of_setting[row["setting"]]["point"], identity_of(row).label)
                self._attacks.setdefault(key, []).append(row)
        self._described = store.by_label(store.attack_summary(sweep.workdir))

    def compared(self, number: Number) -> list[Compared]:
        """One number, without figures of ours where the sweep has none. Of several arms for the paper's
        defense the first is the sweep's own variant, and each other one is a variant of its name."""
        blank = Compared(number, self._reproduces.variant, self._reproduces.scale, "", "", "", ())
        points = [p for p in self._points if self._matches(number, p)]
        if len({p.method for p in points}) < len(points):  # of one arm which is meant is not said
            return [blank._replace(figure=f"several: {', '.join(p.label for p in points)}")]
        return [
            self._compared(blank, point, point.method if place else "")
            for place, point in enumerate(points)
        ] or [blank]

    def _compared(self, blank: Compared, point: ConfigurationSummary, arm: str) -> Compared:
        federation, figure, ours = self._figures(blank.number, point.number)
        return blank._replace(
            variant=" ".join(filter(None, (blank.variant, arm))),
            point=point.label,
            federation=federation,
            figure=figure,
            ours=tuple(ours[seed] for seed in sorted(ours) if math.isfinite(ours[seed])),
        )

    def _matches(self, number: Number, point: ConfigurationSummary) -> bool:
        if point.method not in self._arms.get(number.defense, ()):
            return False
        knobs = KNOBS.get(number.defense, {})
        facts = {**NEUTRAL.get(number.defense, {}), **self._facts(point.method)}
        rows = self._results.get(point.number, [])
        values = {**point.knobs, **{k: v for k, v in (rows[0] if rows else {}).items() if "." in k}}
        for name, value in number.setting.items():
            ours = values.get(knobs[name]) if name in knobs else facts.get(name)
            if not _same(ours, value):
                return False
        return True

    def _facts(self, arm: str) -> dict[str, Any]:
        """What ``reproduces.setting`` says of the whole sweep and of one arm."""
        setting = self._reproduces.setting
        of_arm = setting.get(arm, {})
        return {k: v for k, v in setting.items() if not isinstance(v, Mapping)} | dict(of_arm)

    def _figures(self, number: Number, point: int) -> tuple[str, str, dict[int, float]]:
        """(Federation, figure, our values by seed)."""
        key = (number.metric, number.split)
        if key in ATTACKED:
            return self._attacked(number.attack or number.metric, ATTACKED[key], point)
        if number.metric == "leak_auc_over_train_auc":
            return self._ratio(point)
        if number.metric in PARTS:
            return self._part(PARTS[number.metric], point)
        if key in UTILITY:
            return self._utility(UTILITY[key], point)
        return "", "", {}

    def _utility(self, column: str, point: int) -> tuple[str, str, dict[int, float]]:
        rows = self._results.get(point, [])
        if column == "test_oriented_auc" and any(row.get(POOLED) is not None for row in rows):
            column = POOLED  # the sweep evaluated as the released code does
        kinds = {row["federation"] for row in rows}
        federation = SPLIT if SPLIT in kinds else NO_SPLIT
        turned: Callable[[float], float] = _oriented if column == "train_auc" else float
        ours = {
            row["seed"]: turned(row[column])
            for row in rows
            if row["federation"] == federation and row.get(column) is not None
        }
        return federation, column, ours

    def _attacked(self, attack: str, column: str, point: int) -> tuple[str, str, dict[int, float]]:
        label = self._reproduces.attacks.get(attack, attack)
        first, *_ = federations_of(self._described.get(label, {})) or ("",)
        rows = [
            r for r in self._attacks.get((point, label), []) if identity_of(r).federation == first
        ]
        ours = {row["seed"]: row[column] for row in rows if row.get(column) is not None}
        return first, f"{label} {column}", ours

    def _ratio(self, point: int) -> tuple[str, str, dict[int, float]]:
        """Mean over the norm, mean and median attacks of leak AUC / oriented training AUC."""
        labels = [self._reproduces.attacks.get(name, name) for name in AVERAGED]
        rows = [row for row in self._results.get(point, []) if row["federation"] == SPLIT]
        attacked = {key[1] for key in self._attacks if key[0] == point}
        by_setting = (
            gafm_gradients.ratios(self._sweep, labels) if attacked.issuperset(labels) else {}
        )
        ours = {r["seed"]: by_setting[r["setting"]] for r in rows if r["setting"] in by_setting}
        return SPLIT, f"leak / train_auc, mean of {', '.join(labels)}", ours

    def _part(self, number: int, point: int) -> tuple[str, str, dict[int, float]]:
        """The average gradient of one of GAFM's two losses."""
        over, oriented = AVERAGES.get(self._reproduces.variant, AVERAGES[""])
        rows = [row for row in self._results.get(point, []) if row["federation"] == SPLIT]
        ours = {
            row["seed"]: gafm_gradients.averages(self._sweep, row["setting"], over, oriented)[
                number
            ]
            for row in rows
        }
        return SPLIT, f"mean gradient, {over}{', oriented' * oriented}", ours


def _oriented(auc: float) -> float:
    return max(auc, 1 - auc)


def _same(ours: Any, printed: Any) -> bool:
    if isinstance(ours, (int, float)) and isinstance(printed, (int, float)):
        return math.isclose(ours, printed, rel_tol=1e-6, abs_tol=1e-12)
    return ours == printed


def slug(dataset: str) -> str:
    """A data set's name as configs spell it: 'yahoo', 'cifar10'."""
    letters = "".join(c for c in dataset.lower() if c.isalnum())
    return "yahoo" if letters == "yahooanswers" else letters
