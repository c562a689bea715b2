"""The configurations of a stored sweep: what was trained, and what each attack reads, summarized over seeds.

A *configuration* is one value for every knob; its trials, one per seed and federation, are its sample. The
scale of leakage is ``metrics.leak``: leak AUC for two classes (chance 1/2), balanced top-1 for more (chance
1/C). Leak AUC grants the attacker one bit, which way its scores point: single attacks get max(a, 1 - a), as
published, and the strongest attack takes the direction from the half of the rows on which it is not scored.
Top-1 success grants nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from vfljax import defenses
from vfljax.report import worth
from vfljax.report.estimates import Interval, interval
from vfljax.report.stored_rows import (
    KINDS,
    AttackFigures,
    StoredRows,
    TrialFigures,
    chance_of,
    grouped,
    read,
)
from vfljax.store import StoredSweep
from vfljax.sweep.experiment import Experiment
from vfljax.sweep.records import Goal
from vfljax.types import AttackIdentity

FIGURES = (
    *("leak", "excess", "leak_batch_mean", "auc_batch_q95", "success", "success_unlabeled", "f1"),
    *("success_top5", "test_success", "test_leak", "leak_named", "leak_matched"),
    *("untrained_leak", "logistic_leak", "all_labels_leak"),
)
NUMBERS = ("learning_rate", "momentum", "weight_decay", "decay", "strength")

Attacks = Mapping[AttackIdentity, Mapping[str, Interval]]
BySeed = Mapping[str, Mapping[int, float]]


class ConfigurationSummary(NamedTuple):
    """A method with a value for each of its knobs: utility and leakage, summarized over seeds.

    Utilities are by the kind of federation (split, malicious, no_split).
    """

    number: int
    method: str
    defenses: tuple[str, ...]  # of its chain, in listing order; () is undefended
    knobs: dict[str, Any]  # "kdk.epsilon" -> .45; only those of its own defenses
    named: tuple[str, ...]  # knobs in its label: those that vary in the method or have no default
    accuracy: Mapping[str, Interval]  # test accuracy (oriented, for C = 2)
    auc: Mapping[str, Interval]  # test AUC (oriented); empty for C > 2
    test: BySeed  # utility on test rows by seed, NaN where training diverged
    validation: BySeed  # likewise, on validation rows
    alone_test: BySeed  # of the label party alone, if it was scored
    alone_validation: BySeed
    attacks: Attacks  # each at the first point of its numeric knobs; see ``FIGURES``
    diverged: int  # number of trials
    inverted: int  # number of trials that learned two classes inverted
    trials: int

    @property
    def defended(self) -> bool:
        """Whether its chain has any defense."""
        return bool(self.defenses)

    def values_of(self, defense: str) -> tuple[dict[str, float], dict[str, Any]]:
        """Returns knobs and options of one defense of its chain, by their names in the defense."""
        prefix = f"{defense}."
        values = {k.removeprefix(prefix): v for k, v in self.knobs.items() if k.startswith(prefix)}
        return defenses.TABLE[defense].knobs_and_options(values)

    def figures_of(self, label: str, kind: str) -> Mapping[str, Interval] | None:
        """Returns the figures of an attack; None if it was not run.

        Args:
          label: the attack's.
          kind: of federation.
        """
        found = (v for k, v in self.attacks.items() if (k.label, k.federation) == (label, kind))
        return next(found, None)

    @property
    def label(self) -> str:
        """The method and its ``named`` knobs, such as 'kdk epsilon=0.45 k=3'."""
        last = [key.split(".")[-1] for key in self.named]
        names = []
        for key, value in self.knobs.items():
            if key not in self.named:
                continue
            word = key.split(".")[-1]
            if last.count(word) > 1:  # label_dp+kdk: two epsilons
                word = key
            defense, _, knob = key.partition(".")
            if defense in self.defenses:
                label = defenses.TABLE[defense].remarks.knob_label(knob, self.values_of(defense)[1])
                word = word if label == knob else label
            names.append(f"{word}={value:g}" if isinstance(value, float) else str(value))
        return " ".join([self.method, *names])


class Reference(NamedTuple):
    """What the figures of a sweep are compared with."""

    classes: int
    chance: float  # on the leak scale
    majority: float  # accuracy of guessing the largest class
    known: int  # number of labels an attacker may know, the first of ``knowledge``
    rows: int = 2000  # number of judged rows (``LeakSample.rows``)
    crossed: bool = True  # whether figures are of all rows; earlier versions stored half
    utility: str = "accuracy"  # or "AUC": what utility is (``worth``)
    label_columns: bool = True  # whether the label party owns columns
    goal: Goal = Goal()
    party_name: Callable[[int], str] = "passive party {}".format

    @property
    def guess(self) -> float:
        """The utility of a guess."""
        return self.majority if self.utility == "accuracy" else 0.5

    @property
    def scale(self) -> str:
        """The name of the leak scale."""
        return "leak AUC" if self.classes == 2 else "balanced top-1"


def reference_of(rows: StoredRows, experiment: Experiment | None = None) -> Reference:
    """Returns what the figures of a sweep are compared with.

    Args:
      rows: of the sweep.
      experiment: the sweep's, for its goal and the names of its parties; None gives default ones.
    """
    data, balance = rows.sweep.header["data"], rows.balance
    share = min(balance) / sum(balance)
    crossed = all(row.figures.get("leak_crossed") is not None for row in rows.attacks)
    # a balanced top-1 of more than two classes counts the rows of all classes
    judged = data.get("recorded", data["train"]) * share * (len(balance) if len(balance) > 2 else 1)
    reference = Reference(
        classes=len(balance),
        chance=chance_of(balance),
        majority=max(balance) / sum(balance),
        utility=worth.utility_of(balance),
        known=knowledge(rows)[0],
        rows=max(1, int(judged if crossed else judged / 2)),
        crossed=crossed,
    )
    if experiment is None:
        return reference
    parties = experiment.parties
    return reference._replace(
        goal=experiment.goal,
        party_name=parties.name_of,
        # a recorded exchange states it in its header
        label_columns=data.get("label_columns", parties.label_features),
    )


def knowledge(rows: StoredRows) -> tuple[int, ...]:
    """Returns the numbers of labels that attacks of a sweep know: the leading one, then the others ascending.

    The leading number is the most labels that any attack knows at the first point of its knobs. The report
    leads with it. Attacks that know more than an attacker can are left out.
    """
    fair = [row for row in rows.attacks if not row.oracle]
    leading = max((row.identity.known for row in fair if row.point == 0), default=0)
    return (leading, *sorted({row.identity.known for row in fair} - {leading}))


def configurations(rows: StoredRows) -> tuple[ConfigurationSummary, ...]:
    """Every configuration of a stored sweep, in grid order."""
    # sweeps of earlier versions have no strength; 0 stands for honest uploads
    varied = {n for n in NUMBERS if len({t.figures.get(n) or 0.0 for t in rows.trials}) > 1}
    named = _named(rows.trials, varied)
    attacked = attacks_of(rows)
    members = grouped(rows.trials, lambda trial: trial.configuration)
    return tuple(
        _configuration(
            trials, named, varied, attacked.get(number, ()), worth.utility_of(rows.balance)
        )
        for number, trials in sorted(members.items())
    )


def stored_configurations(sweep: StoredSweep) -> tuple[ConfigurationSummary, ...]:
    """Every configuration of a sweep, with its attacks as they are stored."""
    return configurations(read(sweep, named=False))


def attacks_of(rows: StoredRows) -> dict[int, list[AttackFigures]]:
    """Returns the rows of attacks on each configuration, in the order of trials."""
    place = {trial.trial: (trial.configuration, k) for k, trial in enumerate(rows.trials)}
    placed = [row for row in rows.attacks if row.trial in place]
    placed.sort(key=lambda row: place[row.trial][1])
    return grouped(placed, lambda row: place[row.trial][0])


def _configuration(
    trials: Sequence[TrialFigures],
    named: Mapping[str, tuple[str, ...]],
    varied: set[str],
    attacked: Iterable[AttackFigures],
    utility: str,
) -> ConfigurationSummary:
    first = trials[0]
    knobs = {k: v for k, v in first.figures.items() if "." in k and v is not None}
    knobs |= {name: first.figures[name] or 0.0 for name in sorted(varied)}
    kinds = grouped(trials, lambda trial: trial.federation)
    attacks = grouped((row for row in attacked if row.point == 0), lambda row: row.identity)
    oriented = "oriented_" if "test_oriented_accuracy" in first.figures else ""
    test = f"test_{oriented}accuracy"

    def by_seed(part: str) -> BySeed:
        name = f"{part}_oriented_auc" if utility == "AUC" else f"{part}_{oriented}accuracy"
        found = {k: {t.seed: _finite(t.figures.get(name)) for t in v} for k, v in kinds.items()}
        if part.startswith("alone"):
            scored = ({s: x for s, x in v.items() if not math.isnan(x)} for v in found.values())
            found = {k: v for k, v in zip(found, scored) if v}
        return found

    return ConfigurationSummary(
        number=first.configuration,
        method=first.method,
        defenses=first.defenses,
        knobs=knobs,
        named=named[first.method],
        accuracy={k: interval(t.figures[test] for t in v) for k, v in kinds.items()},
        auc={k: interval(t.figures["test_oriented_auc"] for t in v) for k, v in kinds.items()}
        if "test_oriented_auc" in first.figures
        else {},
        test=by_seed("test"),
        validation=by_seed("validation"),
        alone_test=by_seed("alone_test"),
        alone_validation=by_seed("alone_validation"),
        attacks={k: _summarized(v) for k, v in attacks.items()},
        diverged=sum(trial.diverged for trial in trials),
        inverted=sum(trial.figures.get("inverted") == 1 for trial in trials),
        trials=len(trials),
    )


def _summarized(rows: Sequence[AttackFigures]) -> dict[str, Interval]:
    out = {name: interval(row.figures.get(name) for row in rows) for name in FIGURES}
    return out | {"excess": interval(row.excess for row in rows)}


def _named(trials: Sequence[TrialFigures], varied: set[str]) -> dict[str, tuple[str, ...]]:
    """Returns for each method the knobs that vary between its configurations or have no default."""
    out = {}
    for method in dict.fromkeys(trial.method for trial in trials):
        rows = [trial.figures for trial in trials if trial.method == method]
        keys = [k for k, v in rows[0].items() if v is not None and ("." in k or k in varied)]
        out[method] = tuple(
            key
            for key in keys
            if len({row[key] for row in rows}) > 1 or key in varied or _required(key)
        )
    return out


def _required(key: str) -> bool:
    name, knob = key.split(".")
    if name == "model":  # a method has one model, which its name shows
        return False
    return name not in defenses.TABLE or knob in defenses.TABLE[name].required


def _finite(figure: float | None) -> float:
    return math.nan if figure is None else figure


def undefended(every: Iterable[ConfigurationSummary]) -> ConfigurationSummary | None:
    """The first configuration whose chain is empty; None where every method has a defense."""
    return next((configuration for configuration in every if not configuration.defended), None)


def varying_knobs(members: Sequence[ConfigurationSummary]) -> list[str]:
    """Returns the knobs of a method's configurations that take several values: the axes of its figures."""
    return [knob for knob in members[0].knobs if len({c.knobs[knob] for c in members}) > 1]


def titles(keys: Iterable[AttackIdentity]) -> dict[AttackIdentity, str]:
    """Returns a title for each attack: its label, with its federation if it ran on several."""
    keys = list(dict.fromkeys(keys))
    labels = [key.label for key in keys]
    return {
        key: key.label if labels.count(key.label) == 1 else f"{key.label} ({KINDS[key.federation]})"
        for key in keys
    }
