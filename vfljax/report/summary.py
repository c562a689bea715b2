"""From stored rows to the numbers of a sweep: points with intervals and worst attacks.

A *point* is one value for every knob; its seeds are its sample. Figures are keyed by attack and kind of
federation (``worst.AttackOn``): one attack may run on several. The scale of leakage is ``metrics.leak``:
leak AUC for two classes (chance 1/2), balanced top-1 for more (chance 1/C). Which strength to choose is
``strengths``'s business, and the sentences are ``findings``'s.

Leak AUC grants the attacker one bit, which way its scores point: single attacks are given
max(a, 1 - a), as published, and the worst case takes the direction from the half on which it is not
scored. Top-1 success grants nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from vfljax import defenses, plugins, store
from vfljax.report.confidence import Interval, interval
from vfljax.report.knowledge_table import Budget, budgets, known_of
from vfljax.report.worst import (
    FEDERATIONS,
    AttackOn,
    Marked,
    Run,
    Scale,
    Worst,
    WorstCases,
    attack_on,
    names_by_panel,
    titles,
    worst_cases,
)
from vfljax.store import Sweep
from vfljax.types import AttackIdentity, federation_of


class Point(NamedTuple):
    """One grid point: its knobs, utility and leakage, summarized over seeds."""

    number: int
    arm: str
    defenses: tuple[str, ...]  # of its chain, in listing order; () is undefended
    knobs: dict[str, Any]  # "kdk.epsilon" -> .45; only those of its own defenses
    named: tuple[
        str, ...
    ]  # the knobs a label names: what varies in the arm, and what has no default
    accuracy: dict[str, Interval]  # a federation's kind -> test accuracy (oriented, for C = 2)
    auc: dict[str, Interval]  # likewise, test AUC (oriented); empty for C > 2
    validation: dict[str, Interval]
    by_seed: dict[
        str, dict[int, float]
    ]  # a federation's kind -> seed -> test accuracy, NaN: diverged
    validated: dict[str, dict[int, float]]  # likewise, validation accuracy
    attacks: dict[AttackOn, Interval]  # top-1 success on all training rows
    figures: dict[AttackOn, dict[str, Interval]]  # figure -> value; see ``FIGURES``
    worst: dict[str, Worst]  # "split" (honest or malicious parties) and "no_split"
    published: dict[str, Worst]  # likewise; these three are those of ``WorstCases``
    oracle: dict[str, Worst]
    identities: Mapping[AttackOn, AttackIdentity]  # of the keys of ``attacks`` and ``figures``
    by_budget: dict[
        int, dict[str, Worst]
    ]  # ``worst`` with each number of known labels, the first leads
    diverged: int
    inverted: int  # runs that learned two classes the wrong way round
    settings: int

    @property
    def defended(self) -> bool:
        """Whether its chain has any defense."""
        return bool(self.defenses)

    def values_of(self, defense: str) -> tuple[dict[str, float], dict[str, Any]]:
        """Knobs and options of one defense of its chain, by their names there."""
        values = {
            key.removeprefix(f"{defense}."): value
            for key, value in self.knobs.items()
            if key.startswith(f"{defense}.")
        }
        return defenses.TABLE[defense].knobs_and_options(values)

    @property
    def label(self) -> str:
        """'kdk epsilon=0.45 k=3'; defaults and options that do not vary are the arm's own business."""
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
        return " ".join([self.arm, *names])


FIGURES = (
    *("leak", "excess", "leak_batch_mean", "auc_batch_q95", "success", "success_unlabeled", "f1"),
    *("success_top5", "test_success", "test_leak", "leak_named", "leak_matched"),
    *("untrained_leak", "logistic_leak", "all_labels_leak"),
)


NUMBERS = ("learning_rate", "momentum", "weight_decay", "decay", "gamma")


def points(sweep: Sweep, attack_point: int = 0) -> list[Point]:
    """Every point of a stored sweep, in grid order. ``attack_point`` picks among the points of the
    attacks' own numeric axes (the first by default): what figures are of, and the leading budget of known
    labels (``budgets``)."""
    plugins.stand_in(sweep.plugins)
    rows, attacks = sweep.results.to_pylist(), sweep.attacks.to_pylist()
    marked = marks(sweep)
    names, chance = names_by_panel(attacks), baseline(sweep)["chance"]
    scale = Scale(chance, tuple(sorted({row["seed"] for row in rows})), judged_rows(sweep))
    allowed = budgets_of(sweep, attack_point)
    for attack in attacks:  # whoever knows more than an attacker can has no equal who stays away
        away = None if attack["label"] in marked.oracle else allowed.get(known_of(attack))
        attack["excess"] = None if away is None else away.excess(attack, chance)
    of_point: dict[int, list[dict]] = {}
    for row in rows:
        of_point.setdefault(row["point"], []).append(row)
    of_setting: dict[int, list[dict]] = {}
    for attack in attacks:
        of_setting.setdefault(attack["setting"], []).append(attack)
    varied = {n for n in NUMBERS[:-1] if len({row[n] for row in rows}) > 1}
    named = _named(rows, varied)
    out = []
    for number, members in sorted(of_point.items()):
        attacked: dict[Run, list[dict]] = {}
        for row in members:
            for attack in of_setting.get(row["setting"], []):
                run = Run(attack_on(attack), attack["point"])
                attacked.setdefault(run, []).append(attack)
        cases = {
            known: worst_cases(attacked, marked, names, budget, scale)
            for known, budget in allowed.items()
        }
        first = {run.on: x for run, x in attacked.items() if run.point == attack_point}
        out.append(_point(number, members, named[members[0]["arm"]], first, cases, varied))
    return out


def budgets_of(sweep: Sweep, attack_point: int = 0) -> dict[int, Budget]:
    """The sweep's budgets of known labels, the one that the report leads with first."""
    rows = sweep.attacks.to_pylist()
    oracle = marks(sweep).oracle
    return budgets(sweep, (row for row in rows if row["label"] not in oracle), attack_point)


def marks(sweep: Sweep) -> Marked:
    """The labels of the sweep's attacks that know more than an attacker can, and of adaptive ones."""
    summary = store.attack_summary(sweep.workdir)
    columns = ["label", "variant"] if sweep.attacks.num_rows else []
    rows = sweep.attacks.select(columns).to_pylist()

    def about(row: Mapping[str, Any]) -> Mapping[str, Any]:
        return summary.get(row["variant"], {})

    return Marked(
        oracle={row["label"] for row in rows if about(row).get("oracle")},
        adaptive={row["label"] for row in rows if about(row).get("adaptive")},
    )


def kinds_of(about: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of federation that an attack is defined on, from its entry of ``attacks.json``, the one
    that papers attack first; () for one that was skipped."""
    return tuple(about.get("federations", ()))


def kinds_trained(sweep: Sweep) -> set[str]:
    """The kinds of federation that were trained."""
    names = sweep.results["federation"].unique().to_pylist() if sweep.results.num_rows else []
    return {federation_of(name).kind for name in names}


def _named(rows: list[dict], varied: set[str]) -> dict[str, tuple[str, ...]]:
    """Per arm, the knobs that tell its points apart, and those whose value somebody had to choose."""
    out = {}
    for arm in dict.fromkeys(row["arm"] for row in rows):
        members = [row for row in rows if row["arm"] == arm]
        keys = [k for k, v in members[0].items() if v is not None and ("." in k or k in varied)]
        out[arm] = tuple(
            key
            for key in keys
            if len({row[key] for row in members}) > 1 or key in varied or _required(key)
        )
    return out


def _required(key: str) -> bool:
    name, knob = key.split(".")
    if name == "model":  # an arm has one, and is told apart by its own name
        return False
    return name not in defenses.TABLE or knob in defenses.TABLE[name].required


def _point(
    number: int,
    rows: list[dict],
    named: tuple[str, ...],
    attacked: Mapping[AttackOn, list[dict]],
    cases: Mapping[int, WorstCases],
    varied: set[str],
) -> Point:
    first, leading = rows[0], next(iter(cases.values()))
    knobs = {k: v for k, v in first.items() if "." in k and v is not None}
    knobs |= {name: first[name] for name in sorted(varied)}
    kinds: dict[str, list[dict]] = {}
    for row in rows:
        kinds.setdefault(federation_of(row["federation"]).kind, []).append(row)
    test, validation = (
        f"{part}_oriented_accuracy" if f"{part}_oriented_accuracy" in first else f"{part}_accuracy"
        for part in ("test", "validation")
    )
    return Point(
        number=number,
        arm=first["arm"],
        defenses=tuple(name for name in first["defenses"].split("+") if name),
        knobs=knobs,
        named=named,
        accuracy={k: interval(r[test] for r in v) for k, v in kinds.items()},
        auc={k: interval(r["test_oriented_auc"] for r in v) for k, v in kinds.items()}
        if "test_oriented_auc" in first
        else {},
        validation={k: interval(r[validation] for r in v) for k, v in kinds.items()},
        by_seed={k: {r["seed"]: _finite(r[test]) for r in v} for k, v in kinds.items()},
        validated={k: {r["seed"]: _finite(r[validation]) for r in v} for k, v in kinds.items()},
        attacks={k: interval(x["success"] for x in v) for k, v in attacked.items()},
        figures={
            k: {name: interval(x.get(name) for x in v) for name in FIGURES}
            for k, v in attacked.items()
        },
        worst=leading.worst,
        published=leading.published,
        oracle=leading.oracle,
        identities={k: store.identity_of(v[0]) for k, v in attacked.items()},
        by_budget={known: case.worst for known, case in cases.items()},
        diverged=sum(row["status"] != "ok" for row in rows),
        inverted=sum(row.get("inverted") == 1 for row in rows),
        settings=len(rows),
    )


def _finite(figure: float | None) -> float:
    return math.nan if figure is None else figure


def judged_rows(sweep: Sweep) -> int:
    """m: about how many rows of the rarest class a figure is of, half of those that were recorded."""
    data = sweep.header["data"]
    share = min(data["balance"]) / sum(data["balance"])
    return max(1, int(data.get("recorded", data["train"]) * share / 2))


def baseline(sweep: Sweep) -> dict[str, Any]:
    """The best label-free guesses: chance on the leak scale, and the majority class's share."""
    balance = sweep.header["data"]["balance"]
    classes = len(balance)
    return {
        "chance": 0.5 if classes == 2 else 1 / classes,
        "majority": max(balance) / sum(balance),
        "scale": "leak AUC" if classes == 2 else "balanced top-1",
        "classes": classes,
        "alone": _alone(sweep),
    }


def _alone(sweep: Sweep) -> float:
    """Leak of whoever stays away with the leading number of known labels, the best of the parties; of old
    sweeps that of the baseline beside the attacks. nan if none."""
    leading = next(iter(budgets_of(sweep).values()))
    by_parties = [interval(row["leak"] for row in x.values()).mean for x in leading.away.values()]
    if by_parties or "logistic_leak" not in sweep.attacks.column_names:
        return max(by_parties, default=math.nan)
    rows = sweep.attacks.select(["point", "logistic_leak"]).to_pylist()
    return interval(r["logistic_leak"] for r in rows if r["point"] == 0).mean


def undefended(all_points: Sequence[Point]) -> Point | None:
    """The first point whose chain is empty; None where every arm is defended."""
    return next((point for point in all_points if not point.defended), None)


def table(all_points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    """The summary table: header and rows of text, one a point."""
    attacks = titles(a for p in all_points for a in p.attacks)
    federations = list(dict.fromkeys(k for p in all_points for k in p.accuracy))
    header = [
        "setting",
        *(f"accuracy {f}" for f in federations),
        *(f"AUC {f}" for f in federations),
        *attacks.values(),
        *("worst (split)", "excess (split)", "worst (no split)", "excess (no split)"),
    ]
    rows = []
    for p in all_points:
        row = [p.label + (f" ({p.diverged} diverged)" if p.diverged else "")]
        row += [str(p.accuracy.get(f, "-")) for f in federations]
        row += [str(p.auc.get(f, "-")) for f in federations]
        row += [str(p.attacks.get(a, "-")) for a in attacks]
        for federation in FEDERATIONS:
            worst = p.worst.get(federation)
            row += [f"{worst.leak} {worst.name}", worst.excess.signed] if worst else ["-", "-"]
        rows.append(row)
    keep = [i for i in range(len(header)) if any(row[i] != "-" for row in rows)]
    return [header[i] for i in keep], [[row[i] for i in keep] for row in rows]
