"""What a sweep says, in sentences made from its judged points; the numbers are ``judging``'s."""

from __future__ import annotations

import math
from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np

from vfljax.defenses import NEEDS_TOP
from vfljax.defenses.label_dp import best_guess, channel
from vfljax.judging import TOLERANCE, Point, Worst, baseline, choices
from vfljax.store import Sweep

FEDERATIONS = {"split": "with model splitting", "no_split": "without model splitting"}


COMPLETIONS = ("passive", "active")


def findings(sweep: Sweep, all_points: Sequence[Point]) -> list[str]:
    """What the numbers mean, in sentences made from them."""
    out: list[str] = []
    base = baseline(sweep)
    by_arm = {p.arm: p for p in reversed(all_points)}
    plain = by_arm.get("undefended")
    names = {kind: name.capitalize() for kind, name in FEDERATIONS.items()}
    if plain is not None:
        for federation, worst in plain.worst.items():
            out.append(
                f"{names[federation]}, undefended: test accuracy {plain.accuracy[federation]}; the "
                f"strongest attack is {worst.attack}, {base['scale']} {worst.leak} (chance "
                f"{base['chance']:.2f})."
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
                f"validation accuracy leaks less than no defense (worst attack {worst.attack}, "
                f"{worst.leak})."
            )
            continue
        out.append(
            f"{federation}: of {choice.arm}'s strengths that cost at most {TOLERANCE:.0%} validation "
            f"accuracy, {choice.point.label} leaks least: worst attack {worst.attack} at {worst.leak} "
            f"(change to undefended {choice.leak_change}, test accuracy {choice.accuracy_change})."
        )
    out += _broken_findings(all_points)
    out += _direct_findings(all_points)
    out += _passive_findings(sweep)
    out += _label_dp_findings(all_points)
    out += _inverted_findings(all_points)
    out += _untrained_findings(sweep)
    diverged = sum(p.diverged for p in all_points)
    if diverged:
        total = sum(p.settings for p in all_points)
        out.append(
            f"{diverged} of {total} settings diverged; their figures are left out, not zero."
        )
    return out


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
                f"published attack run here ({published.attack}) reaches {published.leak}, {worst.attack} "
                f"{worst.leak}. Published figures show how that attack fails, not that labels are safe."
            )
    return out


def _direct_findings(all_points: Sequence[Point]) -> list[str]:
    """Whether a defense stops the direct attack or only the published way of reading the gradient."""
    names = dict.fromkeys(name for p in all_points for name in p.attacks)
    # the first epoch asked for, if several are
    first = next((name for name in names if name.startswith("direct/first_negative")), "")
    most = first.replace("first_negative", "most_negative")
    both = [p for p in all_points if first in p.attacks and most in p.attacks]
    fooled = [p for p in both if p.attacks[most].mean - p.attacks[first].mean > 0.2]
    if not fooled:
        return []
    sharpest = max(fooled, key=lambda p: p.attacks[most].mean - p.attacks[first].mean)
    text = (
        f"The published direct rule (first negative entry) is not the best reader of a gradient: at "
        f"{len(fooled)} of {len(both)} points the most negative entry names the label over 20 points "
        f"more often, most of all at {sharpest.label}: {sharpest.attacks[first]} against "
        f"{sharpest.attacks[most]}."
    )
    if any("kdk" in p.arm for p in fooled):
        text += (
            " KDk leaves up to k entries negative and so hides the label among k candidates from the "
            "published rule only: as long as the true class carries more mass than its companions, "
            "1 - epsilon > epsilon/(k-1), its entry is the most negative while predictions are near "
            "uniform (the first epoch), and the label is read off the magnitudes. The published "
            "figure understates the leak; it is not protection."
        )
    beyond = [
        p
        for p in both
        if p.knobs.get("kdk.k", 1) > 1
        and p.knobs["kdk.epsilon"] > (p.knobs["kdk.k"] - 1) / p.knobs["kdk.k"]
    ]
    if beyond:
        least = first.replace("first_negative", "least_negative")
        reads = [p.attacks[least] for p in beyond if least in p.attacks]
        said = (
            f"that reading reaches up to {max(reads, key=lambda r: r.mean)} there."
            if reads
            else "the rule least_negative is not among the attacks run, so low figures there show nothing."
        )
        text += (
            f" At {len(beyond)} points epsilon exceeds (k-1)/k and the true class carries the smallest of "
            f"the k masses: both rules fail there, but an attacker who knows k takes the LEAST negative "
            f"of the k entries: {said}"
        )
    return [text]


def _passive_findings(sweep: Sweep) -> list[str]:
    """How often an attack beats what its attacker had without taking part."""
    rows = sweep.attacks.to_pylist()
    out = []
    # the others' baselines stand in their table
    completions = dict.fromkeys(r["attack"] for r in rows if r["attack"].startswith(COMPLETIONS))
    for label in completions:
        own = [r for r in rows if r["attack"] == label and r["point"] == 0]
        said = []
        for what, name in (
            ("untrained", "the same attack on an untrained bottom"),
            (
                "logistic",
                "logistic regression on the same {known:.0f} labels and the attacker's own columns",
            ),
        ):
            both = [r for r in own if r.get(f"{what}_leak") is not None]
            if both:
                above = sum(r["leak"] > r[f"{what}_leak"] for r in both)
                name = name.format(known=both[0].get("attack.known") or 0)
                said.append(f"{name} in {above} of {len(both)} settings")
        if said:
            out.append(
                f"{label} leaks more than {', and more than '.join(said)}. Where it does not, taking "
                "part in the federation told the attacker nothing new."
            )
    return out


def label_dp_table(sweep: Sweep, all_points: Sequence[Point]) -> tuple[list[str], list[list[str]]]:
    """What each epsilon bounds, and beside it what the attacks reached; no rows without label DP."""
    balance = np.asarray(sweep.header["data"]["balance"], float)
    prior = jnp.asarray(balance / balance.sum(), jnp.float32)
    uniform = jnp.full(len(balance), 1 / len(balance))
    federations = list(dict.fromkeys(f for p in all_points for f in p.worst))
    header = [
        "setting",
        "posterior odds at most (times prior odds)",
        "best guess from the noisy label alone",
        *(f"worst attack, {FEDERATIONS[f]}" for f in federations),
    ]
    rows = []
    for p in all_points:
        epsilon = p.knobs.get("label_dp.epsilon")
        if epsilon is None:
            continue
        odds = f"{math.exp(epsilon):.3g}" if epsilon < 700 else "no bound"
        guess = "differs from row to row"
        if p.knobs.get("label_dp.guarantee") == "none":
            odds = guess = "no guarantee (its prior has seen the raw labels)"
        elif p.knobs.get("label_dp.mechanism") != "rr_with_prior":
            guess = f"{float(best_guess(prior, channel(uniform, epsilon))):.3f}"
        worst = [p.worst.get(f) for f in federations]
        rows.append([p.label, odds, guess, *(f"{w.leak} {w.attack}" if w else "-" for w in worst)])
    return header, rows


def _label_dp_findings(all_points: Sequence[Point]) -> list[str]:
    bound = [p for p in all_points if "label_dp.epsilon" in p.knobs]
    if all(p.knobs.get("label_dp.guarantee") == "none" for p in bound):
        return []
    return [
        "Label DP bounds how much an attacker learns, not how often it is right: its posterior odds of "
        "two labels are at most e^epsilon times its prior odds, and the prior includes whatever it "
        "knows from features. Attacks that use features may exceed what the noisy label alone gives "
        "without breaking the guarantee; the table below has both."
    ]


def _inverted_findings(all_points: Sequence[Point]) -> list[str]:
    out = []
    for arm in dict.fromkeys(p.arm for p in all_points):
        own = [p for p in all_points if p.arm == arm]
        count = sum(p.inverted for p in own)
        if count:
            out.append(
                f"{arm}: {count} of {sum(p.settings for p in own)} runs learned the two classes the "
                "wrong way round (training AUC below 1/2). The label party sees that on its own "
                "training labels and turns its predictions: accuracies here are after that; the "
                "results hold both (test_accuracy, test_oriented_accuracy)."
            )
    return out


def _untrained_findings(sweep: Sweep) -> list[str]:
    """Arms that some federations of the sweep cannot train."""
    structures = {row["structure"] for row in sweep.results.select(["structure"]).to_pylist()}
    out = []
    for arm, chain in sweep.config["grid"].items():
        for name in NEEDS_TOP & set(chain) if "no_split" in structures else ():
            out.append(
                f"{arm} is not trained without model splitting, and not attacked there: the top model "
                f"is part of {name}."
            )
    return out
