"""The sentences behind the first screen: what an answer rests on."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from vfljax.report import false_rates, records, verdict_tables
from vfljax.report.criteria import MEASURED, why, why_not
from vfljax.report.decision import Row, accepted, denied, failed
from vfljax.report.frames import Facts
from vfljax.report.limits import FEWEST_SEEDS, of_row
from vfljax.report.panel import Panel
from vfljax.report.verdict_frame import LOCAL_ONLY_LEADER
from vfljax.report.verdicts import MEANINGS, Verdict
from vfljax.report.words import count, figure, listed, share, signed

MOST = 4  # points of one reason are named at most


def details(p: Panel) -> dict[str, str]:
    """Returns titles and sentences on what the answer on a panel rests on."""
    return {
        "What can be read": _scale(p.facts) + _in_every_run(p),
        "What the defense leaves": _meaning(p),
        "How sure that is": _sure_in_full(p),
        "Why not the others": "\n\n".join(_instead(p)),
    }


def _scale(facts: Facts) -> str:
    """Returns the sentence that explains the scale of a leak."""
    if facts.classes > 2:
        return (
            f"A leak is the share of rows whose class, one of {facts.classes}, is named right, every class "
            f"weighed alike; a guess names {figure(facts.chance)}."
        )
    if facts.classes == 1:
        return (
            "A leak is a concordance: of how many pairs of rows with different labels the attacker knows which "
            "label is larger; a guess is right in .50."
        )
    positive, other = facts.both
    return (
        f"A leak is an AUC: how often, of one row of the class {positive} and one of the class {other}, the "
        "attacker knows which is which; a guess is right in .50."
    )


def _in_every_run(p: Panel) -> str:
    """Returns sentences on the leading attack, and on the rows that are read in every run."""
    of = p.competing.leading
    of = of[of["undefended"] & (of["panel"] == p.name)].to_dict("records")
    if not of or of[0]["leader"] in ("", LOCAL_ONLY_LEADER):
        return ""
    (v, *_) = of
    text = (
        f" In each run (one seed of training) the strongest of {count(v['variants'], 'attack')} of "
        f"{count(v['families'], 'family')} counts; on undefended {v['leader']} leads on {v['leader_seeds']} of "
        f"{v['seeds']} seeds."
    )
    if "right" not in p.competing.rows:
        return text
    found = [
        records.rows_of(p.competing, v, who)["right"] for who in (v["leader"], LOCAL_ONLY_LEADER)
    ]
    read, alone = map(records.share_in_every_run, found)
    if math.isnan(read):
        return text
    if p.facts.classes == 1:
        how, guess = "named within a tenth of the labels' interquartile range", ""
    else:
        how, guess = "read", f"; a guess {share(p.facts.chance)}"
    without = guess if math.isnan(alone) else f" ({share(alone)} without the federation{guess})"
    return f"{text} {share(read)} of the rows are {how} in every run that scores them{without}."


def _meaning(p: Panel) -> str:
    v = p.shown
    if v is None:
        return ""
    meaning = MEANINGS[Verdict(v["verdict"])]
    text = f"{v['label']}: '{v['verdict']}'. {meaning}"
    criterion = failed(v, p.facts.goal)
    if criterion is not None and not accepted(v, p.facts.goal):
        text += f" At the decision's limits {why(criterion, v, p.facts)}."
    claim = _claim(v)
    if p.decided.point is not None and claim:
        text += (
            f" It claims {claim} for one training at a strength that was fixed before. Here the "
            "strength was chosen by looking at labels, so that the whole procedure has a larger ε, which is "
            "not bounded here (private selection: Liu and Talwar 2019, Papernot and Steinke 2022)."
        )
    return text


def _claim(v: Mapping[str, Any]) -> str:
    """Returns the label differential privacy that a verdict's point claims; "" for none."""
    if not math.isnan(epsilon := v.get("epsilon claimed", math.nan)):
        return f"ε = {epsilon:g}"
    if not math.isnan(epsilon := v.get("approximate epsilon", math.nan)):
        return f"ε = {epsilon:g} with δ = {v['approximate delta']:g}"
    return ""


def _sure_in_full(p: Panel) -> str:
    parts = [
        "Brackets hold the lower and the upper limit of what further runs on this data set would show on "
        "average. Attacks that were not tried may read more."
    ]
    if p.decided.stage2:
        own = p.judged.experiment.seeds
        parts.append(
            f"The table below has verdicts at uncorrected limits, of the {count(own, 'seed')} on which points "
            "were explored; answer, ruler and rows have the seeds that were set aside to decide. In simulated "
            "sweeps at the edge of protecting, these seeds switched on a defense falsely in 3 to 5 %; a look "
            "at the seeds that explored may do so in another 5 % at most, and fresh seeds in another 5 %."
        )
    bare = p.decided.bare
    if bare is not None and bare["seeds"] >= FEWEST_SEEDS:
        learners = p.judged.rows.loc[p.judged.rows["role"] == "learner", "label"].nunique()
        rate = false_rates.false_rate(int(bare["seeds"]), int(bare["variants"]), learners)
        if rate is not None:
            parts.append(
                f"Of single verdicts at uncorrected limits {100 * rate.median:.1f} % were false in the median "
                f"case of ten simulated worlds with {rate.seeds} seeds, {share(rate.ordinary)} in the "
                f"worst one, and {share(rate.failing)} where the strongest attack fails on an eighth of seeds."
            )
    return " ".join(parts)


def _instead(p: Panel) -> Iterator[str]:
    """Yields why other methods are not switched on, those of one reason together."""
    shown = p.shown["configuration"] if p.shown else None
    rows = [
        v
        for v in p.table
        if v["representative"]
        and v["defenses"]
        and v["configuration"] != shown
        and v["leak"] == v["leak"]
    ]
    by_reason: dict[str, list[str]] = {}
    for v in sorted(rows, key=lambda v: v["leak"]):
        if reason := why_not(v, p.facts):
            by_reason.setdefault(reason, []).append(_with_figures(v, p.facts))
    for reason, names in by_reason.items():
        yield f"{listed(names, MOST)}: {reason}."


def _with_figures(v: Row, facts: Facts) -> str:
    """Returns a point with its leak and what it keeps."""
    criterion, kept = denied(v, facts.goal) or failed(v, facts.goal), v["share_kept"]
    parts = [f"leaks {figure(v['leak'])}"]
    if not math.isnan(kept):
        parts.append(verdict_tables.gain_kept(kept) if kept < 0 else f"keeps {share(kept)}")
    if criterion and criterion in MEASURED:
        parts.append(f"{criterion.value} {signed(*of_row(v, criterion.value))}")
    return f"{v['label']} ({', '.join(parts)})"
