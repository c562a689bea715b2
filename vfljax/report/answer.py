"""The first screen of a report: for each panel an answer in a sentence, a ruler, and a few short rows.

What they rest on follows in sentences behind it. All of it is made of the decision and of the verdict frame, as
the tables are, so that they agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from vfljax.report import false_rates, records, tables
from vfljax.report.costs import Cost
from vfljax.report.decision import (
    CANDIDATES,
    ERROR,
    LOOKS,
    Answer,
    Criterion,
    Decided,
    Reason,
    Row,
    accepted,
    denied,
    failed,
)
from vfljax.report.judge import LOCAL_ONLY
from vfljax.report.judged import Judged
from vfljax.report.limits import FEWEST_SEEDS, of_row
from vfljax.report.rows import Facts
from vfljax.report.ruler import Conduct, Mark, Ruler, by_conduct, mark
from vfljax.report.settle import Command, on_sweep, remaining, settle
from vfljax.report.verdicts import EXCESS, MEANINGS, Verdict
from vfljax.report.words import count, figure, listed, points, share, signed, with_limits
from vfljax.types import NO_SPLIT, SPLIT

TITLES = {SPLIT: "With a top model", NO_SPLIT: "Without a top model"}
MOST = 4  # rows that look better are named at most
CRITERIA = {
    Criterion.EXCESS: f"beyond the federation's absence it leaks {{}}; to protect, less than {figure(EXCESS)}",
    Criterion.SHARE: "what it leaves, less a quarter of what undefended adds, is {}; to protect, below 0",
    Criterion.CHANGE: "against undefended the leak changes by {}; to protect, below 0",
    Criterion.COST: "{}",
    Criterion.UNDEFENDED: "its utility and leaks are undefended's",
    Criterion.KNOWN: "no attack that knows it was tried",
    Criterion.INCOMPLETE: "attacks on it lack figures",
    Criterion.SEEDS: "fewer than three seeds have figures",
}
"""What is said of a point of which a criterion is not met; {} is its figure."""


MEASURED = (Criterion.EXCESS, Criterion.SHARE, Criterion.CHANGE)


class Screen(NamedTuple):
    """What the first screen says of one panel, as text."""

    answer: str  # a sentence
    rows: tuple[tuple[str, str], ...]  # a name and a short text each
    title: str = ""  # the panel in words; "" if there is only one
    ruler: Ruler | None = None
    settle: tuple[Command, ...] = ()
    details: tuple[tuple[str, str], ...] = ()  # a name and sentences each, behind the first screen

    @property
    def words(self) -> int:
        """The number of words of answer and rows, but for commands."""
        return len(" ".join([self.answer, *(text for row in self.rows for text in row)]).split())


class _Panel(NamedTuple):
    """What is told of one panel."""

    name: str
    judged: Judged
    competing: Judged  # the sweep of the decision's own seeds, or the sweep itself
    decided: Decided
    conduct: Conduct  # of undefended

    @property
    def facts(self) -> Facts:
        return self.judged.facts

    @property
    def table(self) -> list[Row]:
        """The panel's verdicts at the headline's number of known labels."""
        of = self.judged.leading
        return of[of["panel"] == self.name].to_dict("records")

    @property
    def shown(self) -> Row | None:
        """The point of which figures are given beside undefended's."""
        d = self.decided
        return d.point or d.leading or (d.keeps if d.answer is Answer.NONE_PROTECTS else None)


def answers(judged: Judged) -> tuple[Screen, ...]:
    """Returns the screen of every panel in which an attack has a figure, or one if there is none."""
    attacked = {*judged.leading.loc[judged.leading["leak"].notna(), "panel"]}
    every = [name for name in TITLES if name in attacked]
    if not every:
        return (_nothing(judged),)
    return tuple(_screen(_panel(judged, name), several=len(every) > 1) for name in every)


def _panel(judged: Judged, name: str) -> _Panel:
    decided = judged.decisions[name]
    competing = judged.stage2.get(name, judged)
    bare = competing.leading
    labels = bare.loc[bare["undefended"] & (bare["panel"] == name), "label"]
    conduct = by_conduct(competing, name, labels.iloc[0] if len(labels) else "")
    return _Panel(name, judged, competing, decided, conduct)


def _nothing(judged: Judged) -> Screen:
    """Returns the screen of a sweep without any figure of an attack."""
    trials = len(judged.trials)
    if trials and judged.trials["diverged"].all():
        why = (
            f"All {trials} trials diverged, so there is nothing to judge: lower the learning rate."
        )
        return Screen("Open: all trials diverged.", (("Reads", why),))
    if judged.sweep.unfinished:  # of an audit without time, or of a sweep that was stopped
        command = Command("The same command goes on", judged.sweep.header["command"])
    else:
        command = Command("This attacks what was trained", on_sweep(judged, "attack"))
    text = "No attack has a figure, so nothing is known of what leaks."
    return Screen("Open: nothing was attacked.", (("Reads", text),), settle=(command,))


def _screen(p: _Panel, several: bool) -> Screen:
    rows = {"Reads": _reads(p), "Costs": _costs(p), "Sure": _sure(p), "Tried": _tried(p)}
    rows["Next"] = _next(p)
    details = {
        "What can be read": _scale(p.facts) + _in_every_run(p),
        "What the defense leaves": _meaning(p),
        "How sure that is": _sure_in_full(p),
        "Why not the others": "\n\n".join(_instead(p)),
    }
    return Screen(
        answer=sentence(p.decided, p.facts, p.judged),
        rows=tuple((name, text) for name, text in rows.items() if text),
        title=TITLES[p.name] if several else "",
        ruler=_ruler(p),
        settle=settle(p.judged, p.name, p.decided),
        details=tuple((name, text) for name, text in details.items() if text),
    )


# --- the answer ---


def sentence(of: Decided, facts: Facts, judged: Judged) -> str:
    """Returns the answer in one sentence."""
    if of.answer is Answer.SWITCH_ON:
        assert of.point is not None
        return _switch_on(of.point, facts)
    if of.answer is Answer.NO_GAIN:
        return "Do not federate: it gains nothing."
    if of.answer is Answer.NOTHING_TO_PROTECT:
        return "Nothing to protect: no attack reads more than without the federation."
    if of.answer is Answer.NONE_PROTECTS:
        return f"No defense that was tried protects and keeps the gain ({_numbers(judged)})."
    return f"Open: {_why_open(of, judged)}."


def _switch_on(v: Row, facts: Facts) -> str:
    knobs = v["label"].removeprefix(v["method"]).strip()
    text = f"Switch on {v['method']}" + f" at {knobs}" * bool(knobs)
    if v["cost"] == Cost.UNKNOWN:
        text += ", if its cost, which is not known, is acceptable"
    if v["verdict"] != Verdict.PROTECTS:
        text += (
            f": it does not protect, but at most the accepted {figure(facts.goal.max_leak)} leaks"
        )
    return f"{text}."


def _numbers(judged: Judged) -> str:
    of = judged.leading[judged.leading["defenses"] != ""]
    methods, places = of["method"].nunique(), of["configuration"].nunique()
    return f"{count(methods, 'defense')}, {count(places, 'point')}"


def _why_open(of: Decided, judged: Judged) -> str:
    reason, leading = of.reason, of.leading
    if reason is Reason.NO_UNDEFENDED:
        return "without undefended nothing shows what a defense takes away"
    if reason is Reason.FEW_SEEDS:
        seeds = int(of.bare["seeds"]) if of.bare else 0
        return f"{count(seeds, 'seed')} allow{'s' * (seeds == 1)} no limits"
    if reason is Reason.NO_BASELINE:
        return (
            "there is no baseline, so that it is not known how much of the leak the federation adds: record "
            "the passive parties' own columns (party0_columns) too"
        )
    if reason is Reason.NO_DEFENSE:
        return "no defense was tried"
    if reason is Reason.CONTRADICTED and of.leading and of.fresh:
        criterion = denied(of.fresh, judged.facts.goal)
        assert criterion is not None
        return f"fresh seeds deny {of.leading['label']}: {why(criterion, of.fresh, judged.facts)}"
    if reason is Reason.FAMILIES:
        lacking = len(of.untried)
        tried = len(of.untried_on["tried"]) if of.untried_on else 0
        names = f" (not {listed(sorted(of.untried))})" if lacking <= 2 else ""
        return f"{tried} of {tried + lacking} families of attacks that apply were tried{names}"
    if reason is Reason.UNFINISHED:
        return f"the time was over, and {remaining(judged)}"
    if reason is Reason.NOT_ASKED:
        return f"no seeds were set aside to decide among {count(of.candidates, 'point')}"
    if reason is Reason.NEXT:
        denied_ = count(of.candidates, "candidate")
        return f"{denied_} denied, and {count(len(of.undecided), 'point')} not judged on seeds of their own"
    if reason is Reason.NO_CANDIDATE:
        left = count(len(of.undecided), "point")
        return f"limits do not deny {left}, and none qualifies for seeds of its own"
    if leading is not None:
        return f"limits leave open whether {leading['label']} protects and keeps the gain"
    return "limits leave points open"


def why(criterion: Criterion, v: Row, facts: Facts) -> str:
    """Returns what is said of a point by a criterion that it does not meet, with the figure and its limits."""
    text = CRITERIA[criterion]
    if criterion is Criterion.COST:
        return f"it {_keeps(v, facts)}"
    if criterion in MEASURED:
        return text.format(signed(*of_row(v, criterion.value)))
    return text


# --- the rows ---


def _attackers(p: _Panel, v: Row) -> str:
    """Returns who runs the leading attack, such as "telco and shop together"; "" if none leads."""
    if v["leader"] in ("", LOCAL_ONLY):
        return ""
    rows = p.competing.rows
    of = rows[(rows["label"] == v["leader"]) & (rows["panel"] == p.name)]
    names = [p.facts.parties[int(party)] for party in of["attackers"].iloc[0].split("+")]
    return listed(names) + " together" * (len(names) > 1)


def _reads(p: _Panel) -> str:
    v = p.decided.bare or p.shown
    if v is None:
        return ""
    who = _attackers(p, v) or "nobody"
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
        text += f"; with {p.shown['label']} {with_limits(*of_row(p.shown, 'leak'))}"
    return f"{text} (a guess {figure(p.facts.chance)})."


def _costs(p: _Panel) -> str:
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
        text += f"; {v['label']} {_keeps(v, facts)}"
    d = p.decided
    if d.answer is Answer.NONE_PROTECTS and d.protects is not None:
        text += f"; {d.protects['label']}, which protects, {_keeps(d.protects, facts)}"
    if d.answer is Answer.SWITCH_ON and d.rival is not None:
        text += f"; {d.rival['label']} leaks {figure(d.rival['leak'])} and {_keeps(d.rival, facts)}"
    return f"{text}."


def _keeps(v: Row, facts: Facts) -> str:
    """Returns what a point keeps of the gain, and whether that is as much as is asked."""
    goal, kept = facts.goal, v["share_kept"]
    if math.isnan(kept):
        text = f"changes {facts.utility} by {points(v['utility_change'])}"
    else:
        text = tables.gain_kept(kept) if kept < 0 else f"keeps {share(kept)}"
    asked = [share(goal.keep_gain)] * bool(goal.keep_gain and not math.isnan(kept))
    if goal.max_cost < 1:
        asked.append(f"at most {points(goal.max_cost).removeprefix('+')} lost")
    what = f" (asked {listed(asked)})" if asked else ""
    remarks = {Cost.KEPT: "", Cost.UNCLEAR: ", limits too wide to tell"}
    remarks |= {Cost.TOO_MUCH: ", too little", Cost.UNKNOWN: ""}
    return f"{text}{what}{remarks[Cost(v['cost'])]}"


def _seeds(p: _Panel) -> int:
    """Returns the seeds of the point that is shown, which may be fewer than undefended's."""
    v = p.shown or p.decided.bare
    return int(v["seeds"]) if v else 0


def _sure(p: _Panel) -> str:
    d, seeds = p.decided, _seeds(p)
    if seeds < FEWEST_SEEDS:
        return f"{count(seeds, 'seed')}: no limits; {FEWEST_SEEDS} give some."
    if d.fresh is not None and d.fresh is d.point:  # fresh seeds closed what others left open
        before = count(int(d.bare["seeds"]) if d.bare else 0, "seed")
        text = f"left open by {before}; {count(seeds, 'fresh seed')} alone, one look at 95 %"
    elif d.stage2 and not d.candidates:
        text = (
            f"{count(seeds, 'seed')} were set aside for undefended alone: no point was left to try"
        )
    elif d.stage2:
        competing = max(d.candidates, CANDIDATES)
        text = (
            f"{count(seeds, 'seed')} were set aside to decide; limits are corrected for "
            f"{count(competing, 'candidate')} and {len(LOOKS)} looks"
        )
        if d.answer is Answer.SWITCH_ON and competing == CANDIDATES:
            most = share(2 * ERROR)
            text += f" (at most {most} false, the look at the seeds that explored included)"
    else:
        text = f"{count(seeds, 'seed')}; limits are corrected for {count(d.candidates, 'point')}"
    if d.fresh is not None and d.fresh is not d.point and d.point is not None:
        again = failed(d.fresh, p.facts.goal)
        same = d.fresh["verdict"] == d.point["verdict"] and d.fresh["cost"] == d.point["cost"]
        fresh = f"{count(int(d.fresh['seeds']), 'fresh seed')}"
        if same or again is None:
            text += f"; {fresh} agree"
        else:
            text += f"; {fresh} leave open: {why(again, d.fresh, p.facts)}"
    return f"{text}."


def _tried(p: _Panel) -> str:
    v = p.shown or p.decided.bare
    if v is None:
        return ""
    bare, families = p.decided.bare, len(v["tried"])
    every = max(families, len((bare or v)["tried"] | p.decided.untried))
    whole = f"{families} of {every} families that apply" if families < every else ""
    text = whole or f"all {count(families, 'family')} that apply"
    on = "undefended" if v["undefended"] else v["label"]
    return f"{count(int(v['variants']), 'attack')} of {text} on {on}; {_numbers(p.judged)} in all."


def _next(p: _Panel) -> str:
    if of := settle(p.judged, p.name, p.decided):
        return of[0].why + ":"
    if p.judged.experiment.data.name == "wire" and p.decided.answer is Answer.OPEN:
        return "Record more runs of the federation, or more defenses."
    if p.decided.reason is Reason.CONTRADICTED:
        return "Try other strengths."
    return ""


# --- the ruler ---


def _ruler(p: _Panel) -> Ruler | None:
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
    kept = math.nan
    if v is not None:
        marks.append(Mark(f"with {v['label']}", "defended", *of_row(v, "leak")))
        kept = v["share_kept"]
    return Ruler(p.facts.chance, tuple(marks), kept)


# --- behind the first screen ---


def _scale(facts: Facts) -> str:
    """Returns the sentence that explains the scale of a leak."""
    if facts.classes > 2:
        return (
            f"A leak is the share of rows whose class, one of {facts.classes}, is named right, every class "
            f"weighed alike; a guess names {figure(facts.chance)}."
        )
    positive, other = facts.both
    return (
        f"A leak is an AUC: how often, of one row of the class {positive} and one of the class {other}, the "
        "attacker knows which is which; a guess is right in .50."
    )


def _in_every_run(p: _Panel) -> str:
    """Returns sentences on the leading attack, and on the rows that are read in every run."""
    of = p.competing.leading
    of = of[of["undefended"] & (of["panel"] == p.name)].to_dict("records")
    if not of or of[0]["leader"] in ("", LOCAL_ONLY):
        return ""
    (v, *_) = of
    text = (
        f" In each run (one seed of training) the strongest of {count(v['variants'], 'attack')} of "
        f"{count(v['families'], 'family')} counts; on undefended {v['leader']} leads on {v['leader_seeds']} of "
        f"{v['seeds']} seeds."
    )
    if "right" not in p.competing.rows:
        return text
    found = [records.rows_of(p.competing, v, who)["right"] for who in (v["leader"], LOCAL_ONLY)]
    read, alone = map(records.share_in_every_run, found)
    if math.isnan(read):
        return text
    guess = f"; a guess {share(p.facts.chance)}"
    without = guess if math.isnan(alone) else f" ({share(alone)} without the federation{guess})"
    return f"{text} {share(read)} of the rows are read in every run that scores them{without}."


def _meaning(p: _Panel) -> str:
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


def _sure_in_full(p: _Panel) -> str:
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
                f"Of single verdicts at uncorrected limits at most {share(rate.ordinary)} were false in ten "
                f"simulated worlds with {rate.seeds} seeds, and {share(rate.failing)} in one whose strongest "
                "attack fails on one seed in eight."
            )
    return " ".join(parts)


def _instead(p: _Panel) -> Iterator[str]:
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
        if reason := _why_not(v, p):
            by_reason.setdefault(reason, []).append(_with_figures(v, p.facts))
    for reason, names in by_reason.items():
        yield f"{listed(names, MOST)}: {reason}."


def _with_figures(v: Row, facts: Facts) -> str:
    """Returns a point with its leak and what it keeps."""
    criterion, kept = denied(v, facts.goal) or failed(v, facts.goal), v["share_kept"]
    parts = [f"leaks {figure(v['leak'])}"]
    if not math.isnan(kept):
        parts.append(tables.gain_kept(kept) if kept < 0 else f"keeps {share(kept)}")
    if criterion and criterion in MEASURED:
        parts.append(f"{criterion.value} {signed(*of_row(v, criterion.value))}")
    return f"{v['label']} ({', '.join(parts)})"


def _why_not(v: Row, p: _Panel) -> str:
    """Returns the criterion that a point fails, in words; "" if it fails none."""
    goal, contradicted = p.facts.goal, denied(v, p.facts.goal)
    if contradicted is not None:
        return _DENIED[contradicted]
    criterion = failed(v, goal)
    if criterion is None:
        return "it holds on the seeds that explored, and was not chosen to be decided on"
    if v["author_says"] and criterion is Criterion.KNOWN:
        return (
            "only its author says that an attack that was run knows it: none reads more than others"
        )
    return _OPEN[criterion]


_DENIED = {
    Criterion.EXCESS: f"more than {figure(EXCESS)} leaks beyond what can be read without the federation (e)",
    Criterion.SHARE: "more than a quarter of what undefended adds is left (c)",
    Criterion.CHANGE: "more leaks than undefended (d)",
    Criterion.COST: "it costs too much on test rows",
    Criterion.UNDEFENDED: "its utility and leaks are undefended's",
}
_OPEN = {
    Criterion.EXCESS: f"limits leave open whether less than {figure(EXCESS)} leaks beyond what can be read "
    "without the federation (e)",
    Criterion.SHARE: "limits leave open whether less than a quarter of what undefended adds is left (c)",
    Criterion.CHANGE: "limits leave open whether less leaks than undefended (d)",
    Criterion.COST: "limits leave open whether it keeps enough",
    Criterion.INCOMPLETE: "not all attacks on it have figures",
    Criterion.KNOWN: "no attack that knows it was run, so it may only hide the labels from those that do not",
    Criterion.SEEDS: "too few seeds have figures",
}
