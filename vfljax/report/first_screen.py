"""The first screen of a report: for each panel an answer in a sentence, a ruler, and a few short rows.

What they rest on follows in sentences behind it. All of it is made of the decision and of the verdict frame, as
the tables are, so that they agree.
"""

from __future__ import annotations

from typing import NamedTuple

from vfljax.report import beside
from vfljax.report.costs import Cost
from vfljax.report.criteria import why
from vfljax.report.decision import EARLY, Answer, Decided, Reason, Row, denied
from vfljax.report.details import details
from vfljax.report.frames import Facts
from vfljax.report.judged_sweep import STAGE2, Judged
from vfljax.report.looks import progress, seeds_looked_at
from vfljax.report.next_command import Suggestion, continued, on_sweep, remaining, settle
from vfljax.report.panel import TITLES, Panel, counts_tried, panel_of
from vfljax.report.ruler import Ruler
from vfljax.report.short_rows import costs_text, next_text, reads_text, ruler, sure_text, tried_text
from vfljax.report.verdicts import Verdict
from vfljax.report.words import count, figure, listed


class Screen(NamedTuple):
    """What the first screen says of one panel, as text."""

    answer: str  # a sentence
    rows: tuple[tuple[str, str], ...]  # a name and a short text each
    title: str = ""  # the panel in words; "" if there is only one
    ruler: Ruler | None = None
    settle: tuple[Suggestion, ...] = ()
    details: tuple[tuple[str, str], ...] = ()  # a name and sentences each, behind the first screen

    @property
    def words(self) -> int:
        """The number of words of answer and rows, but for commands."""
        return len(" ".join([self.answer, *(text for row in self.rows for text in row)]).split())


def answers(judged: Judged) -> tuple[Screen, ...]:
    """Returns the screen of every panel in which an attack has a figure, or one if there is none."""
    attacked = {*judged.leading.loc[judged.leading["leak"].notna(), "panel"]}
    every = [name for name in TITLES if name in attacked]
    if not every:
        return (_nothing(judged),)
    return tuple(_screen(panel_of(judged, name), several=len(every) > 1) for name in every)


def _nothing(judged: Judged) -> Screen:
    """Returns the screen of a sweep without any figure of an attack."""
    trials = len(judged.trials)
    if trials and judged.trials["diverged"].all():
        why = (
            f"All {trials} trials diverged, so there is nothing to judge: lower the learning rate."
        )
        return Screen("Open: all trials diverged.", (("Reads", why),))
    if judged.sweep.unfinished:  # of an audit without time, or of a sweep that was stopped
        command = continued(judged)
    else:
        command = Suggestion("This attacks what was trained", on_sweep(judged, "attack"))
    text = "No attack has a figure, so nothing is known of what leaks."
    return Screen("Open: nothing was attacked.", (("Reads", text),), settle=(command,))


def _screen(p: Panel, several: bool) -> Screen:
    rows = {
        "Reads": reads_text(p),
        "Costs": costs_text(p),
        "Sure": sure_text(p),
        "Tried": tried_text(p),
        "Next": next_text(p),
        **dict(beside.others(p.judged)),
    }
    return Screen(
        answer=sentence(p.decided, p.judged, p.name),
        rows=tuple((name, text) for name, text in rows.items() if text),
        title=TITLES[p.name] if several else "",
        ruler=ruler(p),
        settle=settle(p.judged, p.name, p.decided),
        details=tuple((name, text) for name, text in details(p).items() if text),
    )


def sentence(of: Decided, judged: Judged, panel: str) -> str:
    """Returns the answer in one sentence."""
    if of.answer is Answer.SWITCH_ON:
        assert of.point is not None
        return _switch_on(of.point, judged.facts)
    if of.answer is Answer.NO_GAIN:
        return "Do not federate: it gains nothing."
    if of.answer is Answer.NOTHING_TO_PROTECT:
        return "Nothing to protect: no attack reads more than without the federation."
    if of.answer is Answer.NONE_PROTECTS:
        return f"No defense that was tried protects and keeps the gain ({counts_tried(judged)})."
    return f"Open: {_why_open(of, judged, panel)}."


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


def _why_open(of: Decided, judged: Judged, panel: str) -> str:
    reason, leading = of.reason, of.leading
    if reason is Reason.UNFINISHED or (reason in EARLY and judged.sweep.unfinished):
        left = progress(judged.sweep.workdir)
        only = left.failed and not left.waiting
        return f"{'parts failed' if only else 'the sweep is not finished'}, and {remaining(judged)}"
    if reason is Reason.NO_UNDEFENDED:
        return "without undefended nothing shows what a defense takes away"
    if reason is Reason.FEW_SEEDS:
        seeds = int(of.bare["seeds"]) if of.bare else 0
        own = " of those that were set aside to decide" * of.stage2
        return f"{count(seeds, 'seed')}{own} allow{'s' * (seeds == 1)} no limits"
    if reason is Reason.NO_BASELINE:
        return (
            "there is no baseline, so that it is not known how much of the leak the federation adds: record "
            "the passive parties' own columns (party0_columns) too"
        )
    if reason in (Reason.NO_FIGURES, Reason.DIVERGED, Reason.NO_DEFENSE, Reason.NO_DEFENSE_LEFT):
        return str(reason)
    if reason is Reason.CONTRADICTED and of.leading and of.fresh:
        criterion = denied(of.fresh, judged.facts.goal)
        assert criterion is not None
        return f"fresh seeds deny {of.leading['label']}: {why(criterion, of.fresh, judged.facts)}"
    if reason is Reason.FAMILIES:
        lacking = len(of.untried)
        tried = len(of.untried_on["tried"]) if of.untried_on else 0
        names = f" (not {listed(sorted(of.untried))})" if lacking <= 2 else ""
        return f"{tried} of {tried + lacking} families of attacks that apply were tried{names}"
    if reason is Reason.NOT_ASKED:
        return f"no seeds were set aside to decide among {count(of.candidates, 'point')}"
    if reason is Reason.CUT_OFF:
        seeds = seeds_looked_at(judged.sweep.workdir / STAGE2 / panel)
        return f"only {seeds} of the seeds that were set aside to decide were looked at so far"
    if reason is Reason.FAILED:
        return "parts of the sweep failed or have no figures, and nothing that is left could close the answer"
    if reason is Reason.NEXT:
        denied_ = f"{count(of.candidates, 'candidate')} denied, and " * bool(of.candidates)
        return f"{denied_}{count(len(of.undecided), 'point')} not judged on seeds of their own"
    if leading is not None:
        return f"limits leave open whether {leading['label']} protects and keeps the gain"
    return "limits leave points open"
