"""What a sweep says, in sentences made from its points; the numbers are ``summary``'s."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vfljax import attacks, defenses
from vfljax.attacks.core import Reading
from vfljax.report.summary import TOLERANCE, Point, baseline, choices, undefended
from vfljax.report.worst import FEDERATIONS, AttackOn, Worst, attack_on, titles
from vfljax.store import Sweep
from vfljax.types import NO_SPLIT


def findings(sweep: Sweep, all_points: Sequence[Point]) -> list[str]:
    """What the numbers mean, in sentences made from them."""
    out: list[str] = []
    base = baseline(sweep)
    plain = undefended(all_points)
    names = {federation: name.capitalize() for federation, name in FEDERATIONS.items()}
    if plain is not None:
        for federation, worst in plain.worst.items():
            out.append(
                f"{names[federation]}, undefended: test accuracy {plain.accuracy[federation]}; the "
                f"strongest attack is {worst.name}, {base['scale']} {worst.leak} (chance "
                f"{base['chance']:.2f}{_beyond(worst)})."
            )
    for choice in choices(all_points):
        federation = names[choice.federation]
        if choice.point is None:
            out.append(
                f"{federation}: no strength of {choice.arm} keeps validation accuracy within "
                f"{TOLERANCE:.0%} of undefended."
            )
            continue
        worst = choice.point.worst[choice.federation]
        if choice.leak_change.mean >= 0:
            out.append(
                f"{federation}: none of {choice.arm}'s strengths that cost at most {TOLERANCE:.0%} "
                f"validation accuracy leaks less than no defense (worst attack {worst.name}, "
                f"{worst.leak})."
            )
            continue
        out.append(
            f"{federation}: of {choice.arm}'s strengths that cost at most {TOLERANCE:.0%} validation "
            f"accuracy, {choice.point.label} leaks least: worst attack {worst.name} at {worst.leak} "
            f"(change to undefended {choice.leak_change}, test accuracy {choice.accuracy_change}"
            f"{_beyond(worst)})."
        )
    out += _broken_findings(all_points)
    out += _reading_findings(all_points)
    out += _passive_findings(sweep)
    out += _bound_findings(all_points)
    out += _inverted_findings(all_points)
    out += _untrained_findings(all_points)
    diverged = sum(p.diverged for p in all_points)
    if diverged:
        total = sum(p.settings for p in all_points)
        out.append(
            f"{diverged} of {total} settings diverged; their figures are left out, not zero."
        )
    return out


def _beyond(worst: Worst) -> str:
    """What it leaks beyond the attacker who stays away, as part of a parenthesis; '' where he was not
    scored."""
    return f"; excess over staying away {worst.excess}" if worst.excess.count else ""


BROKEN = 0.25  # advantage over chance by which an attacker who knows the defense does better


def verdict(published: Worst, worst: Worst) -> str:
    """How much more than the published attacks somebody reads who is in no paper. "Broken" takes a
    quarter of the way from chance to certainty and intervals that do not meet."""
    gained = worst.advantage.mean - published.advantage.mean
    apart = worst.leak.mean - _half(worst) > published.leak.mean + _half(published)
    if gained > BROKEN and apart:
        return "far more: the published figures hold for published attacks only"
    return "more" if gained > 0.05 and apart else "about as much"


def _half(worst: Worst) -> float:
    return 0.0 if math.isnan(worst.leak.half) else worst.leak.half


def _broken_findings(all_points: Sequence[Point]) -> list[str]:
    """Defenses whose published figures hold against published attacks only."""
    out = []
    for arm in dict.fromkeys(p.arm for p in all_points):
        pairs = [
            (p, f, p.published[f], worst)
            for p in all_points
            if p.arm == arm and p.defended
            for f, worst in p.worst.items()
            if f in p.published and verdict(p.published[f], worst).startswith("far")
        ]
        if pairs:
            p, f, published, worst = max(
                pairs, key=lambda x: x[3].advantage.mean - x[2].advantage.mean
            )
            out.append(
                f"{arm} does not protect against an attacker who knows it, at {len(pairs)} of its points "
                f"and federations, most of all at {p.label}, {FEDERATIONS[f].lower()}: the strongest "
                f"published attack run here, or staying away ({published.name}), reaches {published.leak}, "
                f"{worst.name} {worst.leak}. Published figures show how that attack fails, not that labels "
                "are safe."
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
    keys = dict.fromkeys(key for p in all_points for key in p.attacks)
    # the first epoch asked for, if several are
    start = f"{attack}/{rules.published}"
    first = next((key for key in keys if key.attack.startswith(start)), AttackOn("", ""))
    most = first._replace(attack=rules.label_with(first.attack, rules.largest))
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
    least = first._replace(attack=rules.label_with(first.attack, rules.smallest))
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
    completions = titles(
        attack_on(row) for row in rows if attacks.TABLE[row["attack"].split("/")[0]].completion
    )
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


def bound_table(sweep: Sweep, all_points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    """What defenses with a formal guarantee bound, and beside it what the attacks reached; no rows
    without one."""
    balance = np.asarray(sweep.header["data"]["balance"], float)
    prior = np.asarray(balance / balance.sum(), np.float32)
    federations = list(dict.fromkeys(f for p in all_points for f in p.worst))
    header = [
        "setting",
        "posterior odds at most (times prior odds)",
        "best guess from the noisy label alone",
        *(f"worst attack, {FEDERATIONS[f]}" for f in federations),
    ]
    rows = []
    for p in all_points:
        for name in p.defenses:
            bound = defenses.TABLE[name].remarks.bound(*p.values_of(name), prior)
            if bound is None:
                continue
            worst = [p.worst.get(f) for f in federations]
            reached = (f"{w.leak} {w.name}" if w else "-" for w in worst)
            rows.append([p.label, *bound, *reached])
    return header, rows


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
