"""The short rows of the first screen: who reads what, what it costs, how sure, what was tried, what is next."""

from __future__ import annotations

import math

from vfljax.report.criteria import keeps, why
from vfljax.report.decision import DENYING, ERROR, LOOKS, Answer, Decided, Reason, failed
from vfljax.report.limits import FEWEST_SEEDS, of_row
from vfljax.report.next_command import settle
from vfljax.report.panel import Panel, attackers, counts_tried
from vfljax.report.ruler import Mark, Ruler, mark
from vfljax.report.verdict_tables import AT_LEAST, FAINT
from vfljax.report.words import count, figure, points, share, with_limits


def reads_text(p: Panel) -> str:
    """Returns who reads what, undefended and with the point that is shown."""
    v = p.decided.bare or p.shown
    if v is None:
        return ""
    who = attackers(p, v) or "nobody"
    name = "" if v["undefended"] else f"with {v['label']} "
    if who == "nobody":
        text = f"{name}no attack reads more than the same party without the federation: "
        text += with_limits(*of_row(v, "leak"))
    else:
        honest, deviating = p.conduct.honest, p.conduct.deviating
        found = of_row(v, "leak") if math.isnan(honest.mean) or not v["undefended"] else honest[1:]
        text = f"{name}{who} {with_limits(*map(float, found))}"
        if v["undefended"] and p.conduct.blamed:
            text += f", by deviating {with_limits(*map(float, deviating[1:]))}"
        if p.facts.known and not math.isnan(v["local_only"]):
            text += f"; {figure(v['local_only'])} without the federation"
    if p.shown is not None and p.shown is not v:
        label = p.shown["label"]
        leak = AT_LEAST * p.shown["at_least"] + with_limits(*of_row(p.shown, "leak"))
        if p.decided.answer is Answer.NONE_PROTECTS and p.shown["at_least"]:
            text += f"; {label}, which keeps the gain, {leak}"
        elif p.decided.answer is Answer.NONE_PROTECTS:
            text += f"; of what keeps the gain {label} leaks least, {leak}"
        else:
            text += f"; with {label} {leak}"
    return f"{text} ({p.facts.scale}; a guess {figure(p.facts.chance)})."


def costs_text(p: Panel) -> str:
    """Returns what the federation gains, and what defenses keep of it."""
    bare, v, facts = p.decided.bare, p.shown, p.facts
    if bare is None or math.isnan(bare["utility"]):
        return ""
    if math.isnan(bare["gain"]):
        text = f"{facts.utility} {figure(bare['utility'], 3)}; the label party alone is not known"
    else:
        text = (
            f"the federation gains {points(*of_row(bare, 'gain'))} of {facts.utility} over the label party "
            f"alone ({figure(bare['alone'], 3)})"
        )
    closed = p.decided.answer in (Answer.NO_GAIN, Answer.NOTHING_TO_PROTECT)
    if v is not None and not closed:
        text += f"; {v['label']} {keeps(v, facts)}"
    d = p.decided
    if d.answer is Answer.NONE_PROTECTS and d.protects is not None:
        # limits need not show that it protects
        leak = AT_LEAST * d.protects["at_least"] + figure(d.protects["leak"])
        text += f"; {d.protects['label']} leaks {leak} and {keeps(d.protects, facts)}"
    if d.answer is Answer.SWITCH_ON and d.rival is not None:
        text += f"; {d.rival['label']} leaks {figure(d.rival['leak'])} and {keeps(d.rival, facts)}"
    return f"{text}."


def _seeds(p: Panel) -> int:
    """Returns the seeds of the point that is shown, which may be fewer than undefended's."""
    v = p.shown or p.decided.bare
    return int(v["seeds"]) if v else 0


def _corrected(d: Decided) -> str:
    """Returns what the limits of an answer are corrected for beside looks: of *no defense*, those that may deny
    a point; of others, the statements that were possible."""
    if d.answer is Answer.NONE_PROTECTS:
        return f"{DENYING} criteria"
    return count(d.corrected, "possible answer")


def sure_text(p: Panel) -> str:
    """Returns on how many seeds the answer rests, and what its limits are corrected for."""
    d, seeds = p.decided, _seeds(p)
    # fresh seeds closed what others left open
    by_fresh = d.fresh is not None and (d.fresh is d.point or d.answer is Answer.NONE_PROTECTS)
    parts = 1 + d.stage2 + by_fresh
    if seeds < FEWEST_SEEDS:
        return f"{count(seeds, 'seed')}: no limits; {FEWEST_SEEDS} give some."
    if d.fresh is not None and d.fresh is d.point:
        before = count(int(d.bare["seeds"]) if d.bare else 0, "seed")
        text = f"left open by {before}; {count(seeds, 'fresh seed')} alone, one look at 95 %"
    elif d.stage2 and not d.candidates:
        # the point that is shown has none of these
        own = count(int(d.bare["seeds"]) if d.bare else 0, "seed")
        text = f"{own} were set aside for undefended alone"
    elif d.stage2:
        text = (
            f"{count(seeds, 'seed')} were set aside to decide; limits are corrected for "
            f"{_corrected(d)} and {len(LOOKS)} looks"
        )
    else:
        text = f"{count(seeds, 'seed')}; limits are corrected for {_corrected(d)} and further looks"
    if d.answer is Answer.NONE_PROTECTS and d.fresh is not None:
        again = count(int(d.fresh["seeds"]), "fresh seed")
        text += f"; {d.fresh['label']} is denied by {again} alone"
    if d.fresh is not None and d.fresh is not d.point and d.point is not None:
        again = failed(d.fresh, p.facts.goal)
        same = d.fresh["verdict"] == d.point["verdict"] and d.fresh["cost"] == d.point["cost"]
        fresh = f"{count(int(d.fresh['seeds']), 'fresh seed')}"
        if same or again is None:
            text += f"; {fresh} agree"
        else:
            text += f"; {fresh} leave open: {why(again, d.fresh, p.facts)}"
    if d.answer in (Answer.SWITCH_ON, Answer.NONE_PROTECTS):
        text += f" (at most {share(parts * ERROR)} false"
        text += ", all seeds that were looked at included)" if parts > 1 else ")"
    return f"{text}."


def tried_text(p: Panel) -> str:
    """Returns how many attacks and defenses were tried."""
    v = p.shown or p.decided.bare
    if v is None:
        return ""
    bare, families = p.decided.bare, len(v["tried"])
    every = max(families, len((bare or v)["tried"] | p.decided.untried))
    whole = f"{families} of {every} families that apply" if families < every else ""
    every_one = (
        f"all {families:,} families that apply" if families != 1 else "the one family that applies"
    )
    text = whole or every_one
    on = "undefended" if v["undefended"] else v["label"]
    faint = f" {FAINT.capitalize()}." if p.decided.answer is Answer.SWITCH_ON and v["faint"] else ""
    tried = f"{count(int(v['variants']), 'attack')} of {text} on {on}"
    return f"{tried}; {counts_tried(p.judged)} in all.{faint}"


def next_text(p: Panel) -> str:
    """Returns what would settle what is open."""
    if of := settle(p.judged, p.name, p.decided):
        return of[0].why + ":"
    if p.judged.experiment.data.name == "wire" and p.decided.answer is Answer.OPEN:
        if p.judged.grown:
            return "Audit with more seeds in another folder, or with more strengths."
        if p.decided.reason is Reason.NO_DEFENSE:
            return "Record the same runs under a defense, and name their files with --after."
        return "Record more runs of the federation, or more defenses."
    if p.decided.reason is Reason.CONTRADICTED:
        return "Try other strengths."
    return ""


def ruler(p: Panel) -> Ruler | None:
    """Returns the ruler of a panel; None without undefended."""
    bare, v = p.decided.bare, p.shown
    if bare is None:
        return None
    marks = []
    if not math.isnan(bare["local_only"]) and p.facts.known:
        marks.append(Mark("without the federation", "without", bare["local_only"]))
    honest, deviating = p.conduct
    marks += mark("undefended", "undefended", honest)
    marks += mark("undefended, deviating", "deviating", deviating) if p.conduct.blamed else []
    if not any(m.kind in ("undefended", "deviating") for m in marks):
        marks.append(Mark("undefended", "undefended", *of_row(bare, "leak")))
    kept, none = math.nan, p.decided.answer is Answer.NONE_PROTECTS
    if v is not None:
        name = f"{v['label']}, keeps the gain" if none else f"with {v['label']}"
        marks.append(Mark(name, "defended", *of_row(v, "leak")))
        kept = v["share_kept"]
    if none and (other := p.decided.protects):
        marks.append(Mark(other["label"], "defended", *of_row(other, "leak")))
    return Ruler(p.facts.chance, tuple(marks), kept)
