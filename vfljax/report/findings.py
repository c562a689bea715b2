"""Sentences on what the figures of a sweep mean, rendered from assessments."""

from __future__ import annotations

import math
from collections.abc import Iterator

from vfljax import attacks, defenses
from vfljax.attacks.core import Reading
from vfljax.report import guarantees, judging
from vfljax.report.assessed import Assessed, Assessment, MethodOutcome
from vfljax.report.configurations import ConfigurationSummary
from vfljax.report.intervals import FEWEST_SEEDS, Estimate
from vfljax.report.judging import Strongest, Verdict
from vfljax.report.stored_rows import FEDERATIONS
from vfljax.types import NO_SPLIT, AttackIdentity

NAMES = {federation: name.capitalize() for federation, name in FEDERATIONS.items()}
SENTENCES = {
    Verdict.NOTHING_TO_PROTECT: "There is nothing to protect",
    Verdict.PROTECTS: "It protects from what was tried",
    Verdict.REDUCES: "It reduces what leaks",
    Verdict.DOES_NOTHING: "It does nothing",
    Verdict.CANNOT_SAY: "Whether it protects cannot be said",
    Verdict.NO_VERDICT: f"There is no verdict with fewer than {FEWEST_SEEDS} seeds",
}


def findings(assessed: Assessed) -> list[str]:
    """What the figures mean, in sentences."""
    out = [*_undefended(assessed), *_operating_points(assessed), *_unpublished(assessed)]
    for name, row in attacks.TABLE.items():
        if row.reading is not None:
            out += _misread(name, row.reading, assessed.configurations)
    out += _bounds(assessed)
    out += guarantees.warnings(assessed)
    out += _inverted(assessed.configurations)
    out += _untrained(assessed)
    every = assessed.configurations
    diverged, trials = sum(c.diverged for c in every), sum(c.trials for c in every)
    if diverged:
        out.append(f"{diverged} of {trials} trials diverged; their figures are left out, not zero.")
    return out


def _undefended(assessed: Assessed) -> Iterator[str]:
    reference = assessed.reference
    for entry in filter(None, map(assessed.undefended, FEDERATIONS)):
        assert entry.strongest is not None
        yield (
            f"{NAMES[entry.federation]}, undefended: test accuracy {entry.accuracy}; the strongest attack is "
            f"{entry.strongest.name}, {reference.scale} {entry.leak} (chance {reference.chance:.2f}"
            f"{_excess('; ', entry)})."
        )


def _excess(before: str, a: Assessment) -> str:
    """The excess over the local-only baseline as part of a sentence; '' where that was not scored."""
    excess = a.excess
    return "" if math.isnan(excess.mean) else f"{before}excess over local-only {excess.signed}"


def _operating_points(assessed: Assessed) -> Iterator[str]:
    """Of every method and federation: what its operating point does, leaks and costs."""
    for shown in in_grid_order(assessed):
        place = f"{NAMES[shown.federation]}, {shown.method}"
        if shown.choice is not None:
            yield (
                f"{place}: of the operating points that keep the accuracy, {shown.label} leaks least (chosen "
                f"by {shown.choice.text}; test accuracy changes by {shown.choice.cost}). {_sentence(shown)}"
            )
        elif shown.shown_as is not MethodOutcome.NOT_COMPARED:
            yield f"{place}: {shown.shown_as}."


def in_grid_order(assessed: Assessed) -> list[Assessment]:
    """The assessments that represent methods, in the order in which the sweep lists the methods."""
    order = list(dict.fromkeys(c.method for c in assessed.configurations))
    return sorted(assessed.methods, key=lambda a: order.index(a.method))


def _sentence(a: Assessment) -> str:
    """A verdict as a sentence, with the figures and limits that it rests on."""
    assert a.verdict is not None
    assert a.strongest is not None
    missing = f" ({', '.join(a.missing)} has figures on too few seeds)" if a.missing else ""
    return (
        f"{SENTENCES[a.verdict]}{missing}: change to undefended {a.change.signed}{_excess(', ', a)}; "
        f"{at_least(a.strongest)}."
    )


def at_least(strongest: Strongest) -> str:
    """'it leaks at least 0.562 (strongest attack: active)'; of too few seeds the figure alone."""
    lower = float(strongest.leak.limits.lower)
    much = f"{strongest.leak}" if math.isnan(lower) else f"at least {lower:.3f}"
    return f"it leaks {much} (strongest attack: {strongest.name})"


def more_in_words(more: Estimate) -> str:
    """Whether a difference is anything: 'at least .050 more', 'no more', or nothing that can be said."""
    lower, upper = (float(limit) for limit in more.limits)
    if math.isnan(lower):
        return str(Verdict.NO_VERDICT)
    if lower > 0:
        return f"at least {lower:.3f} more"
    return "no more" if upper < judging.CHANGE else str(Verdict.CANNOT_SAY)


def _unpublished(assessed: Assessed) -> Iterator[str]:
    """Methods whose published figures hold against published attacks only: by the limits, another attack
    reads more by as much as a defense may leave over the local-only baseline."""
    methods: dict[str, list[Assessment]] = {}
    for a in assessed.assessments:
        if a.unpublished.limits.lower > judging.EXCESS:
            methods.setdefault(a.method, []).append(a)
    for method, found in methods.items():
        most = max(found, key=lambda a: a.unpublished.limits.lower)
        assert most.published is not None
        assert most.strongest is not None
        yield (
            f"{method}: published attacks understate what leaks, by more than {judging.EXCESS:.2f} at "
            f"{len(found)} of its configurations and federations, most of all at {most.label}, "
            f"{FEDERATIONS[most.federation]}: the strongest published attack run here, or the local-only "
            f"baseline ({most.published.name}), reads {most.published.leak}, {most.strongest.name} "
            f"{most.leak}, {more_in_words(most.unpublished)}. Published figures show how that attack fails, "
            "not that labels are safe."
        )


def _misread(attack: str, rules: Reading, every: tuple[ConfigurationSummary, ...]) -> Iterator[str]:
    """Whether a defense stops attacks that read gradients, or only the published way of reading."""
    keys = dict.fromkeys(key for c in every for key in c.attacks if key.attack == attack)
    # the first epoch asked for, if several are
    first = next((key for key in keys if dict(key.options).get("rule") == rules.published), None)
    if first is None:
        return
    most, least = (_with_rule(first, rule, keys) for rule in (rules.largest, rules.smallest))

    def more(c: ConfigurationSummary) -> float:
        return c.attacks[most]["success"].mean - c.attacks[first]["success"].mean

    both = [c for c in every if first in c.attacks and most in c.attacks]
    fooled = [c for c in both if more(c) > 0.2]
    if not fooled:
        return
    sharpest = max(fooled, key=more)
    before, after = (sharpest.attacks[key]["success"] for key in (first, most))
    sentences = [
        f"The published {attack} rule (first negative entry) is not the best reader of a gradient: at "
        f"{len(fooled)} of {len(both)} configurations the most negative entry names the label over 20 points "
        f"more often, most of all at {sharpest.label}: {before} against {after}."
    ]
    sentences += [
        defenses.TABLE[name].remarks.misread
        for name in dict.fromkeys(name for c in fooled for name in c.defenses)
    ]
    for name in dict.fromkeys(name for c in both for name in c.defenses):
        remarks = defenses.TABLE[name].remarks
        smallest = [
            c for c in both if name in c.defenses and remarks.smallest_mass(c.values_of(name)[0])
        ]
        if smallest:
            reads = [c.attacks[least]["success"] for c in smallest if least in c.attacks]
            reached = (
                f"that reading reaches up to {max(reads, key=lambda r: r.mean)} there."
                if reads
                else f"the rule {rules.smallest} is not among the attacks run, so low figures there "
                "show nothing."
            )
            sentences.append(
                f"At {len(smallest)} configurations {remarks.smallest_mass_clause} {reached}"
            )
    yield " ".join(sentence for sentence in sentences if sentence)


def _with_rule(key: AttackIdentity, rule: str, keys: dict[AttackIdentity, None]) -> AttackIdentity:
    """The attack that differs from another in its option ``rule`` only, whether it was run or not."""
    options = dict(key.options) | {"rule": rule}
    wanted = key._replace(options=tuple(options.items()))
    return next((other for other in keys if _same(other, wanted)), wanted)


def _same(one: AttackIdentity, other: AttackIdentity) -> bool:
    """Whether two identities are of one attack, in whatever order their options stand."""
    alike = one._replace(options=()) == other._replace(options=())
    return alike and dict(one.options) == dict(other.options)


def _bounds(assessed: Assessed) -> list[str]:
    sentences = (
        defenses.TABLE[name].remarks.bound_sentence(c.values_of(name)[1])
        for c in assessed.configurations
        for name in c.defenses
    )
    return list(dict.fromkeys(sentence for sentence in sentences if sentence))


def _inverted(every: tuple[ConfigurationSummary, ...]) -> Iterator[str]:
    for method in dict.fromkeys(c.method for c in every):
        members = [c for c in every if c.method == method]
        count = sum(c.inverted for c in members)
        if count:
            yield (
                f"{method}: {count} of {sum(c.trials for c in members)} runs learned the two classes the "
                "wrong way round (training AUC below 1/2). The label party sees that on its own "
                "training labels and turns its predictions: accuracies here are after that; the "
                "results hold both (test_accuracy, test_oriented_accuracy)."
            )


def _untrained(assessed: Assessed) -> list[str]:
    """Methods that are not trained in a federation of the sweep."""
    every = assessed.configurations
    if not any(NO_SPLIT in c.accuracy for c in every):
        return []
    needed = dict.fromkeys(
        (c.method, name) for c in every for name in c.defenses if defenses.TABLE[name].needs_top
    )
    return [
        f"{method} is not trained without model splitting, and not attacked there: the top model is "
        f"part of {name}."
        for method, name in needed
    ]
