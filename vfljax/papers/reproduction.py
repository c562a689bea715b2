"""Finds the figures of a sweep that are compared with the printed numbers of a paper's table.

A number is compared with one configuration. ``reproduces.arms`` maps its method to the number's defense, and
its knobs equal the number's setting (``KNOBS``). Other facts of a setting, such as how the columns were
divided, must be in ``reproduces.setting``, for the whole sweep or under a method's name. The map
``reproduces.attacks`` gives our labels of the paper's attacks. An attack is compared on the federation that
papers attack first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vfljax import papers, store
from vfljax.papers import Number, comparisons, gafm_gradients
from vfljax.papers.comparisons import Compared
from vfljax.report import tables
from vfljax.report.configurations import ConfigurationSummary, configurations
from vfljax.report.stored_rows import AttackFigures, TrialFigures, federations_of, grouped, read
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


def extend(sweep: store.StoredSweep, experiment: Experiment) -> tables.Extra:
    """Returns what a sweep's report adds on its paper: the comparison with the printed table.

    Args:
      sweep: a finished sweep.
      experiment: the sweep's; nothing is added if its ``reproduces`` is None.

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
        title="Published figures and ours",
        caption=comparisons.caption(compared, source, reproduces.scale),
        table=comparisons.table(compared),
    )
    return tables.Extra(sections=(section,) * bool(compared))


class _Finder:
    """Finds the figures of a stored sweep that printed numbers are compared with."""

    def __init__(self, sweep: store.StoredSweep, reproduces: Reproduces) -> None:
        self._sweep, self._reproduces = sweep, reproduces
        rows = read(sweep, named=False)
        self._configurations = configurations(rows)
        trained = (trial for trial in rows.trials if not trial.diverged)
        self._trials = grouped(trained, lambda trial: trial.configuration)
        self._attacks = [row for row in rows.attacks if row.point == 0]

    def compared(self, number: Number, variant: str) -> list[Compared]:
        """Returns the comparisons of a number, one per method that stands for the paper's defense.

        Args:
          number: the printed number.
          variant: the sweep's, or a key of ``AVERAGES``.
        """
        blank = Compared(number=number, variant=variant, scale=self._reproduces.scale)
        matching = [c for c in self._configurations if self._matches(number, c)]
        if len({c.method for c in matching}) < len(matching):  # several of one method fit
            return [blank._replace(figure=f"several: {', '.join(c.label for c in matching)}")]
        out = []
        for place, c in enumerate(matching):
            trials = self._trials.get(c.number, [])
            federation, figure, by_seed = self._found(number, trials, variant)
            values = (by_seed[seed] for seed in sorted(by_seed))
            names = (variant, c.method if place else "")
            out.append(
                blank._replace(
                    variant=" ".join(filter(None, names)),
                    point=c.label,
                    federation=federation,
                    figure=figure,
                    ours=tuple(filter(math.isfinite, values)),
                )
            )
        return out or [blank]

    def _matches(self, number: Number, c: ConfigurationSummary) -> bool:
        """Whether the method stands for the number's defense, and knobs and facts equal its setting."""
        if self._reproduces.arms.get(c.method) != number.defense:
            return False
        setting, knobs = self._reproduces.setting, KNOBS.get(number.defense, {})
        facts = {k: v for k, v in setting.items() if not isinstance(v, Mapping)}
        facts = {**NEUTRAL.get(number.defense, {}), **facts, **setting.get(c.method, {})}
        trials = self._trials.get(c.number)
        values = {**c.knobs, **(trials[0].figures if trials else {})}
        return all(
            _same(values.get(knobs[name]) if name in knobs else facts.get(name), value)
            for name, value in number.setting.items()
        )

    def _found(self, number: Number, trials: Sequence[TrialFigures], variant: str) -> Found:
        """Returns our figure on the trials of a configuration."""
        key = (number.metric, number.split)
        if key in ATTACKED:
            name = number.attack or number.metric
            label = self._reproduces.attacks.get(name, name)
            return self._attacked(label, ATTACKED[key], trials)
        split = [trial for trial in trials if trial.federation == SPLIT]
        if number.metric == "leak_auc_over_train_auc":
            return self._ratio(split)
        if number.metric in PARTS:
            over, oriented = AVERAGES.get(variant, AVERAGES[""])
            part = PARTS[number.metric]
            by_seed = {
                t.seed: gafm_gradients.averages(self._sweep, t.trial, over, oriented)[part]
                for t in split
            }
            return SPLIT, f"mean gradient, {over}{', oriented' * oriented}", by_seed
        if key in UTILITY:
            return _utility(UTILITY[key], split or [t for t in trials if t.federation == NO_SPLIT])
        return "", "", {}

    def _attacked(self, label: str, column: str, trials: Sequence[TrialFigures]) -> Found:
        """Returns an attack's figure on the federation that papers attack first."""
        numbers = {trial.trial for trial in trials}
        rows = [r for r in self._attacks if r.trial in numbers and r.identity.label == label]
        first = next((federations_of(row.variant)[0] for row in rows), "")
        rows = [row for row in rows if row.identity.federation == first]
        return first, f"{label} {column}", _by_seed(rows, column)

    def _ratio(self, trials: Sequence[TrialFigures]) -> Found:
        """Returns the mean over the norm, mean and median attacks of leak AUC / oriented training AUC."""
        labels = [self._reproduces.attacks.get(name, name) for name in AVERAGED]
        numbers = {trial.trial for trial in trials}
        attacked = {row.identity.label for row in self._attacks if row.trial in numbers}
        ratios = gafm_gradients.ratios(self._sweep, labels) if attacked >= set(labels) else {}
        by_seed = {t.seed: ratios[t.trial] for t in trials if t.trial in ratios}
        return SPLIT, f"leak / train_auc, mean of {', '.join(labels)}", by_seed


def _utility(column: str, trials: Sequence[TrialFigures]) -> Found:
    if column == "test_oriented_auc" and any(t.figures.get(POOLED) is not None for t in trials):
        column = POOLED  # the sweep evaluated as the released code does
    by_seed = _by_seed(trials, column)
    if column == "train_auc":
        by_seed = {seed: max(auc, 1 - auc) for seed, auc in by_seed.items()}
    return trials[0].federation if trials else NO_SPLIT, column, by_seed


def _by_seed(rows: Iterable[TrialFigures | AttackFigures], column: str) -> dict[int, float]:
    return {r.seed: r.figures[column] for r in rows if r.figures.get(column) is not None}


def _same(ours: Any, printed: Any) -> bool:
    if isinstance(ours, (int, float)) and isinstance(printed, (int, float)):
        return math.isclose(ours, printed, rel_tol=1e-6, abs_tol=1e-12)
    return ours == printed


def slug(dataset: str) -> str:
    """Returns a data set's name as configs spell it: 'yahoo', 'cifar10'."""
    letters = "".join(c for c in dataset.lower() if c.isalnum())
    return "yahoo" if letters == "yahooanswers" else letters
