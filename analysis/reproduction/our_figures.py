"""Finds the figures of a sweep that are compared with the printed numbers of a paper's table.

A number is compared with one configuration. ``reproduces.arms`` maps its method to the number's defense, and
its knobs equal the number's setting (``KNOBS``). Other facts of a setting, such as how the columns were
divided, must be in ``reproduces.setting``, for the whole sweep or under a method's name. The map
``reproduces.attacks`` gives our labels of the paper's attacks. An attack is compared on the federation that
papers attack first.
"""

# pandas annotates results as unions of all that an operation may return
# pyright: reportArgumentType=false, reportAttributeAccessIssue=false, reportCallIssue=false
# pyright: reportReturnType=false, reportAssignmentType=false, reportIndexIssue=false

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from analysis.reproduction import comparisons, gafm_gradients, papers
from analysis.reproduction.comparisons import Compared
from analysis.reproduction.papers import Number
from vfljax import attacks, store
from vfljax.config import Config, Reproduces
from vfljax.report import tables
from vfljax.report.frames import read_frames
from vfljax.report.points import points_of
from vfljax.types import NO_SPLIT, SPLIT, federation_of

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
    "isotropic": {"ratio": "noise.scale"},
}  # a paper's defense -> its setting's name -> our column
NEUTRAL = {"none": {"alpha_d": 0.0}}  # settings that mean no defense

UTILITY = {
    ("auc", "test"): "test_oriented_auc",
    ("auc", "train"): "train_auc",
    ("auc", ""): "test_oriented_auc",
    ("top1_accuracy", ""): "test_accuracy",
    ("top5_accuracy", ""): "test_top5_accuracy",
}  # metric and split -> column of a trial
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
AVERAGED = ("norm", "mean", "median")  # attacks that ``leak_auc_over_train_auc`` averages over
PARTS = {"gan_gradient_avg": 0, "ce_gradient_avg": 1}  # places in ``gafm_gradients.averages``
# the paper does not say what it averages over; the first entry is what the released code keeps
AVERAGES = {
    "": ("last_batch", False),
    "epoch": ("epoch", False),
    "oriented": ("last_batch", True),
    "epoch_oriented": ("epoch", True),
}  # variant -> ``over`` and ``oriented`` of ``gafm_gradients.averages``


Found = tuple[str, str, Mapping[int, float]]  # federation, our figure's name, its value by seed


def compare(sweep: store.StoredSweep, reproduces: Reproduces) -> list[Compared]:
    """Compares every number of a table and data set, in the paper's order.

    If several methods stand for the paper's defense, the first has the sweep's own variant. The name of each
    other method is added to its variant.

    Args:
      sweep: a finished sweep.
      reproduces: the table, and which of the sweep's methods and attacks are the paper's.

    Returns:
      The comparisons; ``ours`` is empty where the sweep has no figure.
    """
    numbers = papers.numbers_of(reproduces.table, reproduces.dataset)
    finder = _Finder(sweep, reproduces)
    averaged = any(number.metric in PARTS for number in numbers) and not reproduces.variant
    variants = AVERAGES if averaged else (reproduces.variant,)
    return [c for v in variants for number in numbers for c in finder.compared(number, v)]


def extend(sweep: store.StoredSweep, experiment: Config) -> tables.Extra:
    """Returns what a sweep's report adds on its paper: the comparison with the printed table.

    Args:
      sweep: a finished sweep.
      experiment: the sweep's; nothing is added if its ``reproduces`` is None.

    Raises:
      UserError: if the config names a table that no paper has.
    """
    reproduces = experiment.reproduces
    if reproduces is None:
        return tables.NO_EXTRA
    papers.check(reproduces)
    compared = compare(sweep, reproduces)
    paper = papers.PAPERS[papers.paper_of(reproduces.table)]
    source = f"{paper}, {reproduces.table}, {reproduces.dataset}"
    section = tables.Section(
        title="Published figures and ours",
        caption=comparisons.caption(compared, source, reproduces.scale),
        frame=comparisons.table(compared),
    )
    return tables.Extra(sections=(section,) * bool(compared))


class _Finder:
    """Finds the figures of a stored sweep that printed numbers are compared with."""

    def __init__(self, sweep: store.StoredSweep, reproduces: Reproduces) -> None:
        self._sweep, self._reproduces = sweep, reproduces
        trials = read_frames(sweep).trials
        self._points = points_of(trials).sort_index()
        self._trials = trials[~trials["diverged"]]
        self._attacks = published_figures(sweep)

    def compared(self, number: Number, variant: str) -> list[Compared]:
        """Returns the comparisons of a number, one per method that stands for the paper's defense.

        Args:
          number: the printed number.
          variant: the sweep's, or a key of ``AVERAGES``.
        """
        blank = Compared(number=number, variant=variant, scale=self._reproduces.scale)
        matching = [c for c in self._points.index if self._matches(number, c)]
        fitting = self._points.loc[matching]
        if fitting["method"].duplicated().any():
            several = ", ".join(fitting["label"])
            return [blank._replace(figure=f"several: {several}")]
        out = []
        for place, c in enumerate(matching):
            trials = self._trials[self._trials["configuration"] == c]
            federation, figure, by_seed = self._found(number, trials, variant)
            values = (by_seed[seed] for seed in sorted(by_seed))
            names = (variant, fitting["method"][c] if place else "")
            out.append(
                blank._replace(
                    variant=" ".join(filter(None, names)),
                    point=fitting["label"][c],
                    federation=federation,
                    figure=figure,
                    ours=tuple(filter(math.isfinite, values)),
                )
            )
        return out or [blank]

    def _matches(self, number: Number, c: int) -> bool:
        """Whether the method stands for the number's defense, and knobs and facts equal its setting."""
        method, own = self._points.loc[c, ["method", "knobs"]]
        if self._reproduces.arms.get(method) != number.defense:
            return False
        setting, knobs = self._reproduces.setting, KNOBS.get(number.defense, {})
        facts = {k: v for k, v in setting.items() if not isinstance(v, Mapping)}
        of_method = setting.get(method, {})
        facts = {**NEUTRAL.get(number.defense, {}), **facts, **of_method}
        return all(
            _same(own.get(knobs[name]) if name in knobs else facts.get(name), value)
            for name, value in number.setting.items()
        )

    def _found(self, number: Number, trials: pd.DataFrame, variant: str) -> Found:
        """Returns our figure on the trials of a configuration."""
        key = (number.metric, number.split)
        if key in ATTACKED:
            name = number.attack or number.metric
            label = self._reproduces.attacks.get(name, name)
            return self._attacked(label, ATTACKED[key], trials)
        split = trials[trials["federation"] == SPLIT]
        if number.metric == "leak_auc_over_train_auc":
            return self._ratio(split)
        if number.metric in PARTS:
            over, oriented = AVERAGES.get(variant, AVERAGES[""])
            part = PARTS[number.metric]
            by_seed = {
                seed: gafm_gradients.averages(self._sweep, trial, over, oriented)[part]
                for seed, trial in zip(split["seed"], split["trial"])
            }
            return SPLIT, f"mean gradient, {over}{', oriented' * oriented}", by_seed
        if key in UTILITY:
            honest = split if len(split) else trials[trials["federation"] == NO_SPLIT]
            return _utility(UTILITY[key], honest)
        return "", "", {}

    def _attacked(self, label: str, column: str, trials: pd.DataFrame) -> Found:
        """Returns an attack's figure on the federation that papers attack first."""
        found = self._attacks
        found = found[found["trial"].isin(trials["trial"]) & (found["label"] == label)]
        if not len(found):
            return "", f"{label} {column}", {}
        first = found["first"].iloc[0]
        return first, f"{label} {column}", _by_seed(found[found["kind"] == first], column)

    def _ratio(self, trials: pd.DataFrame) -> Found:
        """Returns the mean over the norm, mean and median attacks of leak AUC / oriented training AUC."""
        names = [self._reproduces.attacks.get(name, name) for name in AVERAGED]
        found = self._attacks[self._attacks["label"].isin(names)]
        leaks = found.pivot(index="trial", columns="label", values="leak")
        leaks = leaks.reindex(index=trials["trial"], columns=names).to_numpy(float)
        auc = trials["train_auc"].to_numpy()
        ratios = leaks.mean(axis=1) / np.maximum(auc, 1 - auc)  # NaN without one of the attacks
        figure = f"leak / train_auc, mean of {', '.join(names)}"
        return SPLIT, figure, dict(zip(trials["seed"], ratios.tolist()))


def published_figures(sweep: store.StoredSweep) -> pd.DataFrame:
    """Returns the rows of attacks as papers score them, at the first point of their numeric knobs.

    A leak of two classes is max(a, 1 - a), in whichever direction reads more. Rows that another rule of an
    attack made are left out. Beside the stored columns, ``kind`` is that of the federation, and ``first`` the
    one that papers attack first.
    """
    found = sweep.attacks.to_pandas()
    if not len(found):
        return pd.DataFrame(columns=["trial", "seed", "label", "leak", "kind", "first"])
    summary = store.attack_summary(sweep.workdir)
    present = {name: row.rule for name, row in attacks.TABLE.items()}
    known = found["attack"].map(present)
    found = found[(found["attack_configuration"] == 0) & (known.isna() | (found["rule"] == known))]
    first = {key: (*entry.get("federations", ()), "")[0] for key, entry in summary.items()}
    return found.assign(
        kind=[federation_of(name).kind for name in found["federation"]],
        first=found["variant"].map(first),
    )


def _utility(column: str, trials: pd.DataFrame) -> Found:
    pooled = trials[POOLED].to_numpy(float) if POOLED in trials else []
    if column == "test_oriented_auc" and np.isfinite(pooled).any():
        column = POOLED  # the sweep evaluated as the released code does
    by_seed = _by_seed(trials, column)
    if column == "train_auc":
        by_seed = {seed: max(auc, 1 - auc) for seed, auc in by_seed.items()}
    return trials["federation"].iloc[0] if len(trials) else NO_SPLIT, column, by_seed


def _by_seed(found: pd.DataFrame, column: str) -> dict[int, float]:
    if column not in found:
        return {}
    given = found[found[column].notna()]
    return dict(zip(given["seed"].tolist(), given[column].tolist()))


def _same(ours: Any, printed: Any) -> bool:
    if isinstance(ours, (int, float)) and isinstance(printed, (int, float)):
        return math.isclose(ours, printed, rel_tol=1e-6, abs_tol=1e-12)
    return ours == printed


def slug(dataset: str) -> str:
    """Returns a data set's name as configs spell it: 'yahoo', 'cifar10'."""
    letters = "".join(c for c in dataset.lower() if c.isalnum())
    return "yahoo" if letters == "yahooanswers" else letters
