"""What may be decided on a panel, as a record. Texts are made of it in ``first_screen``.

Choosing among verdicts costs truth: the best of many points, on the seeds on which it was found, flatters
itself. So a decision has limits of its own. Two kinds of statements close an answer, and they go wrong in
different ways. Of each, one *part* of a decision (below) makes a false one with a probability of .05 at most.

**To choose** is to say that a point holds, that there is nothing to protect, or that nothing is gained. All
criteria must be shown at once, so that criteria need no correction. But each of the k statements that may be
made can be made by chance although it is not true, at any of j looks at growing numbers of seeds, so that

    level = 1 - .05 / (j k)    of each limit (Bonferroni).

Points that are denied at a look (below) do not count in its k. What is denied is not chosen. Given that it is
not denied, a statement that is not true is made with a probability of at most .05 / (j k) over that of not
being denied, because the further a mean is beyond the edge, the more often it is denied for each time that it
is chosen (its p-value is uniformly conservative). So the sum over the k that are left is .05 / j, however many
they are and whoever was denied before: this is the Bonferroni procedure after conditioning of Ellis, Pecanka
and Goeman (2020, arXiv:1801.00141). They divide by the probability of not being denied at the edge, which is 1
- .05 / j at least here, and left out. They prove it for independent p-values, and for some that depend on each
other; points share undefended and the baseline, so that of these the simulation in results/judging is evidence
and not a proof. Nor do candidates that join where all were denied need a share of their own. A point counts
twice if the user accepts a leak, because it may then hold in two ways. Undefended counts in k unless the lower
limit of its e is above .05, and *do not federate* unless that of the gain is above .01.

**To deny** all points, *no defense protects*, is false only if some point is good, and then only if that point
is denied. However many others there are, only the limits that may deny this one add up, of which there are
``DENYING``:

    level = 1 - .05 / (j ``DENYING``).

If several points are good, all of them would have to be denied, which is less likely still.

If seeds were set aside for a decision (``stage2``), its candidates compete on these, and j is the number of
``LOOKS``. Otherwise all points of the sweep compete, also those that are not trained or attacked yet: a budget
that ends sooner corrects for no fewer. How often a sweep is extended by further seeds is not known when it is
first looked at, so that its n-th look spends .05 / 2^n: j is 2^n, and all looks spend less than .05. Its looks
are at the numbers of seeds after which its stages end, such as 3 and 5 of an audit. The seeds of a later stage
that is not complete do not count, nor do those of a first one before all seeds of a point were attacked,
however often the command is continued. Points that are added at a number of seeds that was looked at before may
spend that look's share again.

A decision has three parts, and each spends .05 of its own: the seeds that explored, which may close the answer
at once, and on which points are denied that do not compete for seeds set aside; those that were set aside; and
fresh seeds of one point, of one look. The first two thus switch on what is not good with a probability of .10
at most, and all three with .15. Where some point is good, they say *no defense* as rarely. A sweep in another
folder is another decision.

Let *holds* be said of a point that at this level protects from what
was tried, or whose leak is at most what the user accepts, and whose cost is kept or cannot be known. It is
*denied* if one of the limits contradicts that, or if it is undefended.

| answer                                | when, the first that holds                                           |
|---------------------------------------|----------------------------------------------------------------------|
| open                                  | no attack has a figure, or nothing undefended was attacked           |
| do not federate                       | the upper limit of the gain is below .01, its lower 0 or below       |
| open                                  | fewer than three seeds                                               |
| nothing to protect                    | the upper limit of undefended's e is below .05; all families that    |
|                                       | apply were tried on it, and no figure is missing                     |
| switch on X at Y                      | X at Y holds; an attack that knows it and all families that apply    |
|                                       | were tried on it, no figure is missing, and no fresh seeds deny it   |
| no defense protects and keeps the gain| there are points, and all of the sweep are denied, but for those that|
|                                       | diverged on all seeds; one that was not reached or has no figure is  |
|                                       | not denied; all families that apply were tried on undefended         |
| open                                  | all else; ``Reason`` says why                                        |

A point that limits left open, and that alone is judged again on fresh seeds, holds if it holds on these, at one
look and with limits of .95. Of several points that hold, the one of lowest mean leak is switched on, then of
highest utility. One that fresh seeds deny leaves its place to the next, and stays open. A family counts as
tried on a point if one of its attacks was run there, also if it shows nothing but that it failed.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pandas as pd
from scipy import special

from vfljax.config import Goal
from vfljax.report.costs import SHOWN_GAIN, Cost
from vfljax.report.limits import FEWEST_SEEDS, LEVEL
from vfljax.report.verdicts import EXCESS, Verdict

LOOKS = (4, 8, 12)
"""Numbers of a decision's own seeds after which its limits are looked at."""
CANDIDATES = 3
"""Points of a panel that get seeds of their own, at most."""
ERROR = 0.05
"""The largest probability that one part of a decision chooses what is not so, and that it denies all points
although one is good, if limits hold."""
DENYING = 5
"""Limits that may deny a point: of e, c and d, and of the two costs that a goal may name."""

Row = Mapping[str, Any]
"""A row of the verdict frame."""


class Answer(enum.StrEnum):
    """What to do about a panel."""

    SWITCH_ON = "switch_on"
    NONE_PROTECTS = "none_protects"
    OPEN = "open"
    NOTHING_TO_PROTECT = "nothing_to_protect"
    NO_GAIN = "no_gain"


class Reason(enum.StrEnum):
    """Why an answer is open."""

    NO_FIGURES = "no attack has a figure"
    DIVERGED = "all trials diverged"
    NO_UNDEFENDED = "nothing undefended was attacked"
    FEW_SEEDS = "fewer than three seeds"
    CONTRADICTED = "fresh seeds deny what was to be switched on"
    NO_BASELINE = "nothing was learned without the federation"
    NO_DEFENSE = "no defense was tried"
    NO_DEFENSE_LEFT = "all trials of all defenses diverged"
    FAMILIES = "not all families of attacks that apply were tried"
    UNFINISHED = "points or attacks were not reached"
    NOT_ASKED = "no seeds were set aside for a decision"
    CUT_OFF = "looks at seeds that were set aside are left"
    FAILED = "points have no figures, and no time that is left gives them any"
    NEXT = "all points that competed are denied, and others are left"
    LIMITS = "limits leave points open"


EARLY = (Reason.NO_FIGURES, Reason.NO_UNDEFENDED, Reason.FEW_SEEDS)
"""Reasons that what is left of an unfinished sweep may remove."""


class Criterion(enum.StrEnum):
    """What a point must meet to be switched on; the first that is not met, by its limits, is named."""

    EXCESS = "e"  # less than .05 beyond what can be read without the federation
    SHARE = "c"  # less than a quarter of what undefended adds
    CHANGE = "d"  # less than undefended
    COST = "cost"
    UNDEFENDED = "undefended"  # it is no other than undefended
    KNOWN = "known_by"  # an attack that knows it was tried
    INCOMPLETE = "incomplete"
    SEEDS = "seeds"


class Evidence(NamedTuple):
    """What is decided on, of one panel, at the headline's number of known labels."""

    # of the sweep, undefended among them, at the limits that deny: on the seeds of ``final`` if they compete
    points: Sequence[Row]
    final: Sequence[Row]  # those that compete, and undefended, at the limits that switch on
    goal: Goal
    # families that apply and lack, by configuration of ``final``
    untried: Mapping[int, frozenset[str]] = {}
    stage2: bool = False  # whether ``final`` is of seeds that were set aside for the decision
    unfinished: bool = False
    unreached: bool = False  # whether points are not trained, or have no figure and did not diverge
    looks_left: bool = False  # whether looks at seeds that were set aside are planned and not taken
    failed: bool = False  # whether units of seeds that were set aside failed
    fresh: Sequence[Row] = ()  # on fresh seeds, by ``--confirm``, at the table's limits
    fresh_denying: Sequence[Row] = ()  # likewise, at limits that deny
    diverged: bool = False  # whether all trials did
    level: float = LEVEL  # of the limits of ``final``
    corrected: int = 1  # the statements for which that level is corrected, see ``possible``


class Decided(NamedTuple):
    """The decision on one panel."""

    answer: Answer
    reason: Reason | None = None  # of an open answer
    bare: Row | None = None  # undefended, at the limits of the decision
    point: Row | None = None  # what is switched on, likewise
    rival: Row | None = None  # another point that could be chosen as well, see ``_rival``
    # of the points that keep the gain on average, the one of lowest mean leak
    keeps: Row | None = None
    protects: Row | None = None  # of those that protect on average, the one that loses least
    leading: Row | None = None  # of an open answer, the point that is nearest to hold
    # on fresh seeds: ``point`` (at the limits that deny, if those of the table do not show that it holds),
    # what was contradicted, or the last point that was denied
    fresh: Row | None = None
    undecided: tuple[Row, ...] = ()  # points that are neither denied nor hold
    untried: frozenset[str] = (
        frozenset()
    )  # families that lack on ``bare``, or on ``leading`` if it holds
    untried_on: Row | None = None  # the one of these on which they lack
    stage2: bool = False
    candidates: int = 0  # points that competed
    competing: frozenset[int] = frozenset()  # their configurations
    corrected: int = 1  # the statements for which limits are corrected, see ``possible``

    @property
    def closed(self) -> bool:
        """Whether no more seeds or attacks could change the answer."""
        return self.answer is not Answer.OPEN


def level(statements: int, looks: int = 1) -> float:
    """Returns the level of each limit by which one of some statements may be made, after several looks.

    Args:
      statements: ``possible`` ones to choose, or ``DENYING`` to deny a point.
      looks: at growing numbers of seeds.
    """
    return 1 - ERROR / (looks * max(statements, 1))


def possible(rows: Sequence[Row], goal: Goal, planned: int) -> int:
    """Returns how many statements may still be made that choose: those that no limit denies. A point may be
    said to protect, and to leak at most what is accepted, if anything is.

    Args:
      rows: undefended and the points that compete, at the limits that deny.
      goal: of the sweep.
      planned: the number of points that compete, those without a row too.
    """
    left = planned - sum(bool(v["defenses"]) and denied(v, goal) is not None for v in rows)
    out = left * (2 if goal.max_leak < 1 else 1)
    for v in rows:
        if v["undefended"]:
            out += v["undefended_e_lower"] <= EXCESS  # NaN cannot be said
            out += v["gain_lower"] <= SHOWN_GAIN
    return max(out, 1)


def gains_nothing(bare: Row) -> bool:
    """Returns whether limits show that undefended gains less than ``SHOWN_GAIN``, and not that it gains."""
    return bare["gain_upper"] < SHOWN_GAIN and bare["gain_lower"] <= 0


def accepted(v: Row, goal: Goal) -> bool:
    """Returns whether a point's leak is at most what the user accepts; by default nothing is accepted."""
    return goal.max_leak < 1 and v["leak_upper"] <= goal.max_leak + 1e-12


def failed(v: Row, goal: Goal) -> Criterion | None:
    """Returns the first criterion that a point's limits do not show to be met; None if it holds."""
    if v["verdict"] == Verdict.IS_UNDEFENDED:
        return Criterion.UNDEFENDED
    if v["verdict"] == Verdict.NO_VERDICT:
        return Criterion.SEEDS
    if not accepted(v, goal):
        for criterion, most in _MOST:
            if not v[f"{criterion}_upper"] < most:
                return criterion
    if v["cost"] not in (Cost.KEPT, Cost.UNKNOWN):
        return Criterion.COST
    if v["incomplete"]:
        return Criterion.INCOMPLETE
    return None if v["known_by"] else Criterion.KNOWN


_MOST = ((Criterion.EXCESS, EXCESS), (Criterion.SHARE, 0.0), (Criterion.CHANGE, 0.0))


def denied(v: Row, goal: Goal) -> Criterion | None:
    """Returns the criterion that a point's limits contradict; None if they contradict none."""
    if v["verdict"] == Verdict.IS_UNDEFENDED:
        return Criterion.UNDEFENDED
    if not (goal.max_leak < 1 and v["leak_lower"] <= goal.max_leak):
        for criterion, most in _MOST:
            if v[f"{criterion}_lower"] > most:
                return criterion
    return Criterion.COST if v["cost"] == Cost.TOO_MUCH else None


def candidates(points: Sequence[Row], goal: Goal) -> list[Row]:
    """Returns the points that are to get seeds of their own: of those that qualify by their means, no limit
    contradicts, and no other dominates, the ``CANDIDATES`` of which attacks read least.

    Where no attack reads more than can be read without the federation, leaks are equal. The strongest attack
    then tells which point is further from leaking, because attacks that were not tried yet may read more.

    Args:
      points: of a panel; at the table's limits these are fewer than at those of a decision.
      goal: of the sweep.
    """
    able = [v for v in points if v["defenses"] and v["qualifies"] and not denied(v, goal)]
    able = [v for v in able if v["d"] < 0 or accepted(v, goal)]  # without a figure d is NaN
    able = [v for v in able if not any(dominates(other, v, "reached") for other in able)]
    return sorted(able, key=lambda v: (v["reached"], -v["utility"]))[:CANDIDATES]


def next_candidates(of: Decided, goal: Goal, points: Sequence[Row] = ()) -> list[Row]:
    """Returns the points that get seeds of their own next; () only if all that are undecided have them. Those
    that the table's limits deny or that are not promising come last: the answer closes only once limits of the
    decision deny them too.

    Args:
      of: the decision so far.
      goal: of the sweep.
      points: of the panel, at the table's limits, if none competes yet.
    """
    able = [v for v in of.undecided if v["configuration"] not in of.competing or not of.stage2]
    nearest = sorted(able, key=lambda v: (not v["qualifies"], v["reached"]))
    return candidates(points, goal) or candidates(able, goal) or nearest[:CANDIDATES]


def dominates(one: Row, other: Row, by: str = "leak") -> bool:
    """Returns whether a point is no worse than another in utility and the column ``by``, and better in one."""
    worse = one[by] > other[by] + 1e-12 or one["utility"] < other["utility"] - 1e-12
    better = one[by] < other[by] - 1e-12 or one["utility"] > other["utility"] + 1e-12
    return better and not worse


def decide(of: Evidence) -> Decided:
    """Returns the decision on a panel; the module's docstring is the rule."""
    goal, final = of.goal, [v for v in of.final if v["defenses"]]
    bare = next((v for v in of.final if v["undefended"] and not math.isnan(v["leak"])), None)
    own = {v["configuration"] for v in final}
    points = [*final, *(v for v in of.points if v["defenses"] and v["configuration"] not in own)]
    points = [v for v in points if not math.isnan(v["leak"])]
    out = Decided(Answer.OPEN, bare=bare, stage2=of.stage2, candidates=len(final))
    out = out._replace(competing=frozenset(own), corrected=of.corrected)
    if of.diverged or (bare is None and not points):
        return out._replace(reason=Reason.DIVERGED if of.diverged else Reason.NO_FIGURES)
    if bare is None:
        return out._replace(reason=Reason.NO_UNDEFENDED)
    if gains_nothing(bare):
        return out._replace(answer=Answer.NO_GAIN)
    lacking = of.untried.get(bare["configuration"], frozenset())
    nearest = _nearest(final if of.stage2 and final else points, goal)
    out = out._replace(untried=lacking, untried_on=bare, **nearest)
    if bare["seeds"] < FEWEST_SEEDS:
        if of.stage2 and of.looks_left:  # it lost some of its seeds, and gets more at the next look
            return out._replace(reason=Reason.CUT_OFF)
        lost = of.stage2 and of.failed
        return out._replace(reason=Reason.FAILED if lost else Reason.FEW_SEEDS)
    if bare["undefended_e_upper"] < EXCESS and not bare["incomplete"] and not lacking:
        return out._replace(answer=Answer.NOTHING_TO_PROTECT)

    # Fresh seeds are the last part of a decision. Of a point that others left open they deny what they deny of
    # any point. Where others show that a point holds they contradict these, and which is so stays open.
    denied_again = {
        f["configuration"]: f for f in of.fresh_denying if f["defenses"] and denied(f, goal)
    }
    holding = [v for v in final if failed(v, goal) is None]
    contradicted = {v["configuration"] for v in holding} & denied_again.keys()
    holding = [v for v in holding if v["configuration"] not in contradicted]
    holding = sorted(holding, key=lambda v: (v["leak"], -v["utility"]))
    whole = [v for v in holding if not of.untried.get(v["configuration"])]
    if whole:
        rival, again = _rival(whole[0], whole, final, of), _again(of, whole[0])
        return out._replace(answer=Answer.SWITCH_ON, point=whole[0], rival=rival, fresh=again)
    if bare["verdict"] == Verdict.NO_BASELINE:
        return out._replace(reason=Reason.NO_BASELINE)
    if not points:
        if of.unfinished:
            return out._replace(reason=Reason.UNFINISHED)
        if of.unreached:
            return out._replace(reason=Reason.FAILED)
        tried = any(v["defenses"] for v in of.points)
        return out._replace(reason=Reason.NO_DEFENSE_LEFT if tried else Reason.NO_DEFENSE)

    rejected = {v["configuration"] for v in of.points if v["defenses"] and denied(v, goal)}
    by_fresh = {*denied_again} - rejected - contradicted
    undecided = tuple(v for v in points if v["configuration"] not in rejected | by_fresh)
    if not undecided and not lacking and not of.unreached:
        closing = [f for number, f in denied_again.items() if number in by_fresh]
        return out._replace(answer=Answer.NONE_PROTECTS, fresh=closing[-1] if closing else None)
    if not undecided and not lacking and not of.unfinished:
        more = of.stage2 and of.looks_left
        return out._replace(reason=Reason.CUT_OFF if more else Reason.FAILED)

    # figures of the seeds that explored do not stand beside those of the seeds that decide
    able = [v for v in undecided if v["configuration"] in own] if of.stage2 else undecided
    able = [v for v in able if v["configuration"] not in contradicted]
    leading = (candidates(able, goal) or [*able, None])[0]
    out = out._replace(undecided=undecided, leading=leading)
    again = _again(of, leading) if leading else None
    if again and leading and not lacking and not of.untried.get(leading["configuration"]):
        out = out._replace(fresh=again)
        if failed(again, goal) is None:
            return out._replace(answer=Answer.SWITCH_ON, point=again, undecided=())
    if holding and not lacking:
        lacking = of.untried[holding[0]["configuration"]]
        out = out._replace(untried=lacking, untried_on=holding[0])
    if of.unfinished and not of.stage2:  # attacks that lack may be those that were not reached
        return out._replace(reason=Reason.UNFINISHED)
    if not of.stage2 and (of.looks_left or of.failed):
        return out._replace(reason=Reason.CUT_OFF if of.looks_left else Reason.FAILED)
    if lacking:
        leading = holding[0] if holding else leading
        return out._replace(reason=Reason.FAMILIES, leading=leading)
    if of.unfinished:
        return out._replace(reason=Reason.UNFINISHED)
    if contradicted >= {v["configuration"] for v in undecided}:
        one = undecided[0]
        fresh = denied_again[one["configuration"]]
        return out._replace(reason=Reason.CONTRADICTED, leading=one, fresh=fresh)
    if not of.stage2:
        return out._replace(reason=Reason.NOT_ASKED)
    if not able:  # nothing more is learned of those that compete
        return out._replace(reason=Reason.NEXT)
    return out._replace(reason=Reason.CUT_OFF if of.looks_left else Reason.LIMITS)


def _again(of: Evidence, v: Row) -> Row | None:
    """Returns what fresh seeds say of a point, at the table's limits if it holds by these, else at those that
    deny, so that what is shown agrees with what is decided; None without any."""
    plain, wide = (
        next((f for f in rows if f["configuration"] == v["configuration"]), None)
        for rows in (of.fresh, of.fresh_denying)
    )
    return plain if plain is None or failed(plain, of.goal) is None else wide or plain


def _rival(best: Row, whole: Sequence[Row], final: Sequence[Row], of: Evidence) -> Row | None:
    """Returns the point to show beside the one that is switched on; None if the choice is clear.

    That is a point that dominates it by its means but does not hold, or one that holds, keeps more utility, and
    leaks more by at most the standard error of that difference.
    """
    for other in final:
        if not denied(other, of.goal) and dominates(other, best):
            return other
    quantile = float(special.stdtrit(max(best["paired_seeds"] - 1, 1), of.level))
    error = (best["d_upper"] - best["d"]) / quantile
    close = [
        v for v in whole if v["utility"] > best["utility"] and v["leak"] <= best["leak"] + error
    ]
    return max(close, key=lambda v: v["utility"], default=None)


def _nearest(points: Sequence[Row], goal: Goal) -> dict[str, Row | None]:
    """Returns the fields ``keeps`` and ``protects``."""
    attacked = [v for v in points if v["verdict"] != Verdict.IS_UNDEFENDED]
    keep = [v for v in attacked if v["cost"] != Cost.TOO_MUCH and v["qualifies"]]
    shield = [v for v in attacked if v["e"] < EXCESS and v["c"] < 0 and v["d"] < 0]
    return {
        # a lower bound does not show that a point leaks less than others
        "keeps": min(keep, key=lambda v: (v["at_least"], v["leak"], -v["utility"]), default=None),
        "protects": max(shield, key=lambda v: (v["utility"], -v["leak"]), default=None),
    }


def of_panel(verdicts: pd.DataFrame, known: int, panel: str) -> list[Row]:
    """Returns the rows of a panel at the headline's number of known labels."""
    of = verdicts[(verdicts["known"] == known) & (verdicts["panel"] == panel)]
    return of.to_dict("records")
