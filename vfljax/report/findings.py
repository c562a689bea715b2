"""What a sweep says, in sentences made from its points; the numbers are ``summary``'s.

What is said of a defense are ``judging``'s verdicts, of a strength and a federation, with limits.
"""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence

from vfljax import attacks, defenses
from vfljax.attacks.core import Reading
from vfljax.report import guarantees, judging
from vfljax.report.strengths import Choice, choices
from vfljax.report.summary import Point, baseline, undefended
from vfljax.report.verdicts import Verdict, verdicts
from vfljax.report.worst import FEDERATIONS, AttackOn, Figure, Worst, attack_on, titles
from vfljax.store import Sweep
from vfljax.sweep.experiment import experiment_of
from vfljax.types import NO_SPLIT


def findings(sweep: Sweep, all_points: Sequence[Point]) -> list[str]:
    """What the numbers mean, in sentences made from them."""
    out: list[str] = []
    base = baseline(sweep)
    plain = undefended(all_points)
    if plain is not None:
        for federation, worst in plain.worst.items():
            out.append(
                f"{NAMES[federation]}, undefended: test accuracy {plain.accuracy[federation]}; the "
                f"strongest attack is {worst.name}, {base['scale']} {worst.leak} (chance "
                f"{base['chance']:.2f}{_beyond(worst)})."
            )
    judged = verdicts(all_points)
    on = {(id(verdict.point), verdict.federation): verdict for verdict in judged}
    max_cost = experiment_of(sweep).goal.max_cost
    for choice in choices(all_points, base["majority"], max_cost):
        place = f"{NAMES[choice.federation]}, {choice.arm}"
        if choice.point is None:
            out.append(f"{place}: no strength keeps the accuracy.")
            continue
        out.append(f"{place}: {_chosen(choice, on[id(choice.point), choice.federation])}")
    out += _verdict_counts(judged)
    out += _published_findings(all_points)
    out += _reading_findings(all_points)
    out += _passive_findings(sweep)
    out += _bound_findings(all_points)
    out += guarantees.warnings(sweep, all_points)
    out += _inverted_findings(all_points)
    out += _untrained_findings(all_points)
    diverged = sum(p.diverged for p in all_points)
    if diverged:
        total = sum(p.settings for p in all_points)
        out.append(
            f"{diverged} of {total} settings diverged; their figures are left out, not zero."
        )
    return out


NAMES = {federation: name.capitalize() for federation, name in FEDERATIONS.items()}


def _beyond(worst: Worst) -> str:
    """What it leaks beyond staying away, as part of a parenthesis; '' where that is not known."""
    excess = worst.excess
    return "" if math.isnan(excess.mean) else f"; excess over staying away {excess.signed}"


def _chosen(choice: Choice, verdict: Verdict) -> str:
    """Of the strength that keeps the accuracy and leaks least: what it does, leaks and costs."""
    assert choice.point is not None
    worst = choice.point.worst[choice.federation]
    return (
        f"of the strengths that keep the accuracy, {verdict.label} leaks least (chosen by {choice.chosen}; "
        f"test accuracy changes by {choice.accuracy_change}). {said(verdict, worst)}"
    )


SAID = {
    judging.NOTHING_TO_PROTECT: "There is nothing to protect",
    judging.PROTECTS: "It protects from what was tried",
    judging.REDUCES: "It reduces what leaks",
    judging.DOES_NOTHING: "It does nothing",
    judging.CANNOT_SAY: "Whether it protects cannot be said",
    judging.NO_VERDICT: f"There is no verdict with fewer than {judging.FEWEST_SEEDS} seeds",
}


def said(verdict: Verdict, worst: Worst) -> str:
    """A verdict as a sentence, with the figures and limits that it rests on."""
    excess = (
        "" if math.isnan(worst.excess.mean) else f", excess over staying away {worst.excess.signed}"
    )
    missing = ", ".join(verdict.judged.missing)
    why = f" ({missing} has figures on too few seeds)" if missing else ""
    return (
        f"{SAID[verdict.judged.verdict]}{why}: change to undefended {verdict.change.signed}{excess}; "
        f"{at_least(worst)}."
    )


def at_least(worst: Worst) -> str:
    """'it leaks at least 0.562 (strongest attack: active)'; of too few seeds the figure alone."""
    lower = float(worst.leak.limits.lower)
    much = f"{worst.leak}" if math.isnan(lower) else f"at least {lower:.3f}"
    return f"it leaks {much} (strongest attack: {worst.name})"


def _verdict_counts(judged: Sequence[Verdict]) -> list[str]:
    """How many strengths of each arm have which verdict, a sentence an arm and federation."""
    counts: dict[tuple[str, str], collections.Counter[str]] = {}
    for verdict in judged:
        if verdict.judged.verdict != judging.NO_VERDICT:
            key = verdict.point.arm, verdict.federation
            counts.setdefault(key, collections.Counter())[verdict.judged.verdict] += 1
    return [
        f"{NAMES[federation]}, {arm}, all strengths: "
        + ", ".join(
            f"{verdict} {of_arm[verdict]}" for verdict in judging.VERDICTS if of_arm[verdict]
        )
        + "."
        for (arm, federation), of_arm in counts.items()
    ]


def beyond(published: Worst, worst: Worst) -> Figure:
    """How much more the strongest attack reads than the strongest published one, seed by seed."""
    return Figure(*judging.beyond(worst.candidates, published.candidates))


def more_in_words(more: Figure) -> str:
    """Whether that is anything: 'at least .050 more', 'no more', or nothing that can be said."""
    lower, upper = (float(limit) for limit in more.limits)
    if math.isnan(lower):
        return judging.NO_VERDICT
    if lower > 0:
        return f"at least {lower:.3f} more"
    return "no more" if upper < judging.CHANGE else judging.CANNOT_SAY


def _published_findings(all_points: Sequence[Point]) -> list[str]:
    """Defenses whose published figures hold against published attacks only: by the limits, another attack
    reads more by as much as a defense may leave over staying away."""
    out = []
    for arm in dict.fromkeys(p.arm for p in all_points if p.defended):
        more = [
            (p, f, p.published[f], worst, beyond(p.published[f], worst))
            for p in all_points
            if p.arm == arm
            for f, worst in p.worst.items()
            if f in p.published and p.published[f].name != worst.name
        ]
        more = [one for one in more if float(one[-1].limits.lower) > judging.EXCESS]
        if more:
            p, f, published, worst, by = max(more, key=lambda one: float(one[-1].limits.lower))
            out.append(
                f"{arm}: published attacks understate what leaks, by more than {judging.EXCESS:.2f} at "
                f"{len(more)} of its points and federations, most of all at {p.label}, {FEDERATIONS[f]}: the "
                f"strongest published attack run here, or staying away ({published.name}), reads "
                f"{published.leak}, {worst.name} {worst.leak}, {more_in_words(by)}. Published figures show "
                "how that attack fails, not that labels are safe."
            )
    return out


def _reading_findings(all_points: Sequence[Point]) -> list[str]:
    """Whether a defense stops attacks that read gradients, or only the published way of reading."""
    return [
        text
        for name, row in attacks.TABLE.items()
        if row.reading is not None
        for text in _misread(name, row.reading, all_points)
    ]


def _misread(attack: str, rules: Reading, all_points: Sequence[Point]) -> list[str]:
    identities = {key: attack for p in all_points for key, attack in p.identities.items()}
    # the first epoch asked for, if several are
    published = [
        key
        for key, identity in identities.items()
        if identity.attack == attack and dict(identity.options).get("rule") == rules.published
    ]
    if not published:
        return []
    first = published[0]

    def with_rule(rule: str) -> AttackOn:
        options = {**dict(identities[first].options), "rule": rule}
        wanted = identities[first]._replace(options=tuple(sorted(options.items())))
        return first._replace(attack=wanted.label)

    most = with_rule(rules.largest)
    both = [p for p in all_points if first in p.attacks and most in p.attacks]
    fooled = [p for p in both if p.attacks[most].mean - p.attacks[first].mean > 0.2]
    if not fooled:
        return []
    sharpest = max(fooled, key=lambda p: p.attacks[most].mean - p.attacks[first].mean)
    sentences = [
        f"The published {attack} rule (first negative entry) is not the best reader of a gradient: at "
        f"{len(fooled)} of {len(both)} points the most negative entry names the label over 20 points "
        f"more often, most of all at {sharpest.label}: {sharpest.attacks[first]} against "
        f"{sharpest.attacks[most]}."
    ]
    sentences += [
        defenses.TABLE[name].remarks.misread
        for name in dict.fromkeys(name for p in fooled for name in p.defenses)
    ]
    least = with_rule(rules.smallest)
    for name in dict.fromkeys(name for p in both for name in p.defenses):
        remarks = defenses.TABLE[name].remarks
        beyond = [
            p for p in both if name in p.defenses and remarks.smallest_mass(p.values_of(name)[0])
        ]
        if beyond:
            reads = [p.attacks[least] for p in beyond if least in p.attacks]
            reached = (
                f"that reading reaches up to {max(reads, key=lambda r: r.mean)} there."
                if reads
                else f"the rule {rules.smallest} is not among the attacks run, so low figures there "
                "show nothing."
            )
            sentences.append(f"At {len(beyond)} points {remarks.smallest_mass_clause} {reached}")
    return [" ".join(sentence for sentence in sentences if sentence)]


def _passive_findings(sweep: Sweep) -> list[str]:
    """How often an attack beats what its attacker had without taking part."""
    rows = sweep.attacks.to_pylist()
    out = []
    # the others' baselines stand in their table
    completions = titles(attack_on(row) for row in rows if attacks.TABLE[row["attack"]].completion)
    for key, title in completions.items():
        outcomes = [row for row in rows if attack_on(row) == key and row["point"] == 0]
        comparisons = []
        for what, name in (
            ("untrained", "the same attack on an untrained bottom"),
            (
                "logistic",
                "logistic regression on the same {known:.0f} labels and the attacker's own columns",
            ),
        ):
            both = [r for r in outcomes if r.get(f"{what}_leak") is not None]
            if both:
                above = sum(r["leak"] > r[f"{what}_leak"] for r in both)
                name = name.format(known=both[0].get("attack.known") or 0)
                comparisons.append(f"{name} in {above} of {len(both)} settings")
        if comparisons:
            out.append(
                f"{title} leaks more than {', and more than '.join(comparisons)}. Where it does not, taking "
                "part in the federation told the attacker nothing new."
            )
    return out


def _bound_findings(all_points: Sequence[Point]) -> list[str]:
    sentences = (
        defenses.TABLE[name].remarks.bound_sentence(p.values_of(name)[1])
        for p in all_points
        for name in p.defenses
    )
    return list(dict.fromkeys(sentence for sentence in sentences if sentence))


def _inverted_findings(all_points: Sequence[Point]) -> list[str]:
    out = []
    for arm in dict.fromkeys(p.arm for p in all_points):
        points = [p for p in all_points if p.arm == arm]
        count = sum(p.inverted for p in points)
        if count:
            out.append(
                f"{arm}: {count} of {sum(p.settings for p in points)} runs learned the two classes the "
                "wrong way round (training AUC below 1/2). The label party sees that on its own "
                "training labels and turns its predictions: accuracies here are after that; the "
                "results hold both (test_accuracy, test_oriented_accuracy)."
            )
    return out


def _untrained_findings(all_points: Sequence[Point]) -> list[str]:
    """Arms that are not trained in a federation of the sweep."""
    if not any(NO_SPLIT in p.accuracy for p in all_points):
        return []
    needed = dict.fromkeys(
        (p.arm, name) for p in all_points for name in p.defenses if defenses.TABLE[name].needs_top
    )
    return [
        f"{arm} is not trained without model splitting, and not attacked there: the top model is "
        f"part of {name}."
        for arm, name in needed
    ]
