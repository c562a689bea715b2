"""The first screen of a report: on each panel a decision, what it rests on, and what would settle what is open.

Every sentence is made of the verdict frame, as the tables are, so that they agree.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from vfljax import attacks, defenses
from vfljax.plugins import is_recorded
from vfljax.report import false_rates, records
from vfljax.report.costs import Cost
from vfljax.report.decision import Panel, Row, action, gains_nothing, nothing_to_protect, panels
from vfljax.report.judge import LOCAL_ONLY
from vfljax.report.judged import Judged
from vfljax.report.limits import FEWEST_SEEDS, of_row
from vfljax.report.points import members_of
from vfljax.report.rows import Facts
from vfljax.report.settle import Command, on_sweep, settle
from vfljax.report.verdicts import MEANINGS, Verdict
from vfljax.report.words import count, figure, listed, points, share, with_limits
from vfljax.types import NO_SPLIT, SPLIT, federation_of

TITLES = {
    SPLIT: "With model splitting (a top model at the label party)",
    NO_SPLIT: "Without model splitting (the logits are a sum over parties)",
}
MOST = 4  # rows that look better are named at most


class Answer(NamedTuple):
    """What the figures of one panel allow to decide, as text."""

    action: str  # a decision, in the imperative
    reads: str  # who can read what, and how much of that needs no federation
    title: str = ""  # the panel in words; "" if there is only one
    costs: str = ""  # what the federation gains, and what the defense keeps of it
    sure: str = ""  # how sure that is
    coverage: str = ""  # how much of what could be tried was tried
    instead: tuple[str, ...] = ()  # points that look better, and why they are not recommended
    settle: tuple[Command, ...] = ()  # what would settle what is open

    @property
    def sentences(self) -> tuple[str, ...]:
        """All paragraphs but the action."""
        named = {"How sure": self.sure, "Tried": self.coverage}
        said = [f"{name}: {text}" for name, text in named.items() if text]
        said += [f"Why not {text}" for text in self.instead]
        return tuple(filter(None, (self.reads, self.costs, *said)))


def answers(judged: Judged) -> tuple[Answer, ...]:
    """Returns the answer on every panel in which an attack has a figure, or one if there is none."""
    every = panels(judged)
    if not every:
        return (_nothing(judged),)
    titles = TITLES if len(every) > 1 else dict.fromkeys(TITLES, "")
    # what a term means is said on the first panel alone
    return tuple(_answer(p, titles[p.name], p is every[0]) for p in every)


def _nothing(judged: Judged) -> Answer:
    """Returns the answer on a sweep without any figure of an attack."""
    diverged, trials = int(judged.trials["diverged"].sum()), len(judged.trials)
    if trials and diverged == trials:
        why = f"All {trials} trials diverged, so there is nothing to judge."
        return Answer("Undecided: lower the learning rate.", why)
    if judged.sweep.unfinished:  # of an audit without time, or of a sweep that was stopped
        settle = Command("The same command goes on", judged.sweep.header["command"])
    else:
        settle = Command("This attacks what was trained", on_sweep(judged, "attack"))
    reads = "No attack has a figure, so nothing is known of what leaks."
    return Answer("Undecided: nothing was attacked.", reads, settle=(settle,))


def _answer(p: Panel, title: str, first: bool) -> Answer:
    decided, closed = action(p)
    return Answer(
        action=decided,
        reads=_reads(p, first),
        title=title,
        costs=_costs(p),
        sure=_sure(p, first),
        coverage=_coverage(p),
        instead=() if closed else tuple(_instead(p)),
        settle=() if closed else tuple(settle(p)),
    )


def _attackers(p: Panel, v: Row) -> str:
    """Returns who runs the leading attack, such as "telco and shop together"; "" if none leads."""
    if v["leader"] in ("", LOCAL_ONLY):
        return ""
    rows = p.judged.rows
    of = rows[(rows["label"] == v["leader"]) & (rows["panel"] == p.name)]
    names = [p.facts.parties[int(party)] for party in of["attackers"].iloc[0].split("+")]
    text = listed(names) + " together" * (len(names) > 1)
    honest = not of["federation"].map(federation_of).map(lambda f: f.malicious).any()
    return text if honest else f"{text}, deviating from the protocol,"


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


def _reads(p: Panel, first: bool) -> str:
    v = p.bare or min(
        p.rows, key=lambda row: row["leak"] if row["leak"] == row["leak"] else math.inf
    )
    facts, who = p.facts, _attackers(p, v)
    scale = [_scale(facts)] * first
    leak = with_limits(*of_row(v, "leak"))
    known = f"{facts.known} known labels" if facts.known else "no known label"
    strongest = (
        f"the strongest of {count(v['variants'], 'attack')} of {count(v['families'], 'family')}"
    )
    name = "Undefended" if p.bare else f"With {v['label']}"
    if not who:
        sentence = (
            f"{name}, no attack reads more than can be read without the federation: in each run {strongest} "
            f"reaches at most what the same party learns from its own columns and {known}, {leak}."
        )
        return " ".join([sentence, *scale])
    leads = f"{v['leader']} leads on {v['leader_seeds']} of {v['seeds']} seeds"
    sentences = [
        f"{name}, {who} can read the labels: in each run (one seed of training) {strongest} reads {leak} "
        f"({leads})."
    ]
    if facts.known and not math.isnan(v["local_only"]):
        sentences.append(
            f"Without the federation the same party reads {figure(v['local_only'])}, from its own columns and "
            f"{known}."
        )
    return " ".join([*sentences, *_in_every_run(p, v), *scale])


def _in_every_run(p: Panel, v: Row) -> list[str]:
    """Returns a sentence on the rows that are read in every run, [] if too few are scored in two."""
    if "right" not in p.judged.rows:
        return []
    leaders = (v["leader"], LOCAL_ONLY)
    of = [records.rows_of(p.judged, v, leader)["right"] for leader in leaders]
    read, alone = map(records.share_in_every_run, of)
    if math.isnan(read):
        return []
    without = "" if math.isnan(alone) else f" ({share(alone)} without the federation)"
    return [f"{share(read)} of the rows are read in every run that scores them{without}."]


def _costs(p: Panel) -> str:
    bare, best, facts = p.bare, p.best, p.facts
    if bare is None or math.isnan(bare["utility"]):
        return ""
    utility = figure(bare["utility"], 3)
    if math.isnan(bare["gain"]):
        parts = [f"Undefended reaches {facts.utility} {utility} on test rows."]
        parts.append("What the label party reaches alone is not known.")
    else:
        gain = points(*of_row(bare, "gain"))
        parts = [
            f"The federation reaches {facts.utility} {utility} on test rows, the label party alone "
            f"{figure(bare['alone'], 3)}: a gain of {gain}."
        ]
        if not gains_nothing(bare) and not bare["gain_lower"] > 0:
            parts.append("With so few seeds it is not established that it gains anything.")
    if best is not None and not gains_nothing(bare) and not nothing_to_protect(bare):
        leak = with_limits(*of_row(best, "leak"))
        parts.append(
            f"With {best['label']}, {leak} can be read. The verdict is '{best['verdict']}': "
            f"{_lower_first(MEANINGS[Verdict(best['verdict'])])} It {_keeps(best, facts)}."
        )
    return " ".join(parts)


def _lower_first(sentence: str) -> str:
    return sentence[0].lower() + sentence[1:]


def _keeps(v: Row, facts: Facts) -> str:
    """Returns what a point keeps of the gain, and whether that is as much as is asked."""
    goal, utility = facts.goal, facts.utility
    text = f"keeps {share(v['share_kept'])} of that gain"
    if math.isnan(v["share_kept"]):
        text = f"changes {utility} by {points(v['utility_change'])}"
    asked = [f"{share(goal.keep_gain)} of the gain is to be kept"] * bool(goal.keep_gain)
    if goal.max_cost < 1:
        asked.append(f"at most {points(goal.max_cost).removeprefix('+')} may be lost")
    what = f" (asked: {listed(asked)})" if asked else ""
    remarks = {Cost.KEPT: "", Cost.UNCLEAR: "; whether that is enough is unclear"}
    remarks |= {Cost.TOO_MUCH: "; that is too little", Cost.UNKNOWN: "; the cost is not known"}
    return f"{text}{what}{remarks[Cost(v['cost'])]}"


def _sure(p: Panel, first: bool) -> str:
    if p.seeds < FEWEST_SEEDS:
        of_wire = p.judged.experiment.data.name == "wire"
        return (
            f"{count(p.seeds, 'seed')} of this data set allow{'s' * (p.seeds == 1)} no limits; {FEWEST_SEEDS} "
            f"do{' (record more runs of the federation)' * of_wire}. Attacks that were not tried may read more."
        )
    v = p.best or p.bare or p.rows[0]
    parts = [f"{count(p.seeds, 'run')} on this data set."]
    if first:
        parts.append(
            "Brackets hold the lower and the upper limit of what further runs would show on average. Attacks "
            "that were not tried may read more."
        )
    learners = p.judged.rows.loc[p.judged.rows["role"] == "learner", "label"].nunique()
    rate = false_rates.false_rate(p.seeds, int(v["variants"]), learners)
    if first and rate is not None:
        parts.append(
            f"In the least favorable of ten simulated worlds {share(rate.ordinary)} of such verdicts were "
            f"false with {rate.seeds} seeds, and {share(rate.failing)} where the strongest attack fails on one "
            "seed in eight."
        )
    if p.best is not None:
        rivals = int(((p.every["defenses"] != "") & p.every["leak"].notna()).sum())
        if p.fresh is not None:
            held = "confirm" if p.fresh["confirms"] else "do not confirm"
            leak = with_limits(*of_row(p.fresh, "leak"))
            parts.append(
                f"{p.fresh['seeds']} fresh seeds {held} it: {p.fresh['verdict']}, {leak} can be read there, "
                f"{p.fresh['cost']}."
            )
        elif rivals > 1:
            parts.append(
                f"It is the best of {rivals} operating points (configurations of defenses), on the seeds on "
                "which it was chosen, and that flatters it."
            )
    return " ".join(parts)


def _coverage(p: Panel) -> str:
    panel = p.name
    chains = p.every.loc[p.every["defenses"] != "", "defenses"].unique()
    trained = {name for chain in chains for name in members_of(chain)}
    able = {
        name
        for name, row in defenses.TABLE.items()
        if panel in row.known_by
        and not is_recorded(row)
        and not (row.two_classes and p.facts.classes > 2)
    }
    families = int(p.every["families"].max())
    whole = f"{len(trained)} of {len(able | trained)} defenses that can be trained here"
    if p.judged.experiment.data.name == "wire":  # which are trained elsewhere
        whole = count(len(trained), "defense")
    places = int((p.every["defenses"] != "").sum())
    at = f" at {count(places, 'operating point')}" if places else ""
    return (
        f"{whole}{at}, {families} of {len(attacks.TABLE)} attack families, {count(p.seeds, 'seed')}. "
        "Nothing is known of the others."
    )


def _instead(p: Panel) -> Iterator[str]:
    """Yields why points that look better are not recommended: those of other methods that leak less or keep
    more, and those of the same method that do both."""
    if p.best is None:
        rows = [v for v in p.rows if p.bare and v["leak"] < p.bare["leak"] - 0.005]
    else:
        best, method = p.best, p.best["method"]
        same = p.every[(p.every["method"] == method) & p.every["leak"].notna()].to_dict("records")
        rows = [v for v in p.rows if v["method"] != method and any(_better(v, best))]
        rows += [v for v in same if all(_better(v, best))]
    by_reason: dict[str, list[str]] = {}
    for v in sorted(rows, key=lambda v: v["leak"]):
        kept = f", keeps {share(v['share_kept'])}" if v["share_kept"] == v["share_kept"] else ""
        text = f"{v['label']} (leaks {figure(v['leak'])}{kept})"
        by_reason.setdefault(_why_not(v, p), []).append(text)
    for reason, names in by_reason.items():
        yield f"{listed(names, MOST)}: {reason}."


def _better(v: Row, best: Row) -> tuple[bool, bool]:
    """Returns whether a point leaks less, and whether it keeps more utility, than the recommended one."""
    return v["leak"] < best["leak"] - 1e-9, v["utility"] > best["utility"] + 1e-9


def _why_not(v: Row, p: Panel) -> str:
    """Returns the first reason for which a point is not recommended."""
    utility, goal = p.facts.utility, p.facts.goal
    verdict = Verdict(v["verdict"])
    if verdict is Verdict.CANNOT_SAY:
        return "the limits are too wide to say whether less leaks than undefended"
    if verdict is Verdict.NO_VERDICT:
        return "too few of the seeds have figures for a verdict"
    if verdict is Verdict.LEAKS_AS_BEFORE:
        return "the limits do not establish that less leaks than undefended"
    if not verdict.helps:
        return f"the verdict is '{verdict}'"
    if not v["qualifies"]:
        return f"more {utility} than allowed is lost on validation rows"
    if v["cost"] == Cost.TOO_MUCH:
        return "it costs too much on test rows"
    if v["incomplete"]:
        return "not all attacks on it have figures"
    if v["author_says"]:
        return (
            "only its author says that an attack that was run knows it: none reads more than others"
        )
    if not v["known_by"]:
        return (
            "no attack that knows it was run, so it may only hide the labels from those that do not"
        )
    if not v["leak_upper"] <= goal.max_leak:
        return f"its leak may be above {figure(goal.max_leak)}, the most that is accepted"
    if not v["chosen"]:
        return "another operating point of it leaks less"
    if p.best is None:
        return "it was not chosen"
    return "more leaks than with what is recommended"
