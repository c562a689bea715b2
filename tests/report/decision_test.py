"""The decision: five answers, what denies a point, who competes, and how the error is held."""

import math

import pytest

from tests.report.made import BARE, NAN, made
from vfljax import attacks
from vfljax.config import Goal
from vfljax.report import decision
from vfljax.report.costs import Cost
from vfljax.report.decision import Answer, Criterion, Evidence, Reason, decide
from vfljax.report.families import Applying
from vfljax.report.verdicts import Verdict

GOAL = Goal()


def point(number, leak, utility=0.88, e=0.0, **values):
    """A row of the verdict frame whose limits are .01 away from its means."""
    of = {
        "reached": leak,
        "leak": leak,
        "e": e,
        "d": leak - 0.95,
        "c": e - 0.09,
        "undefended_e": 0.35,
        "gain": 0.1,
    }
    out = {"configuration": number, "label": f"p{number}", "method": f"p{number}"}
    out |= {"defenses": "noise" if number else "", "undefended": not number, "utility": utility}
    for name, mean in of.items():
        out |= {name: mean, f"{name}_lower": mean - 0.01, f"{name}_upper": mean + 0.01}
    out |= {"verdict": Verdict.PROTECTS.value, "cost": Cost.KEPT.value, "qualifies": True}
    out |= {"known_by": True, "incomplete": False, "at_least": False, "seeds": 5, "paired_seeds": 5}
    return out | {"tried": frozenset({"probe"})} | values


BARE_ROW = point(0, 0.95, 0.9, e=0.35, verdict=Verdict.LEAKS_AS_BEFORE.value)


def decided(*points, **values):
    rows = [BARE_ROW, *points]
    return decide(Evidence(points=rows, final=rows, goal=GOAL, **values))


def test_the_error_of_a_decision_is_divided_among_looks_and_statements():
    assert decision.level(1) == pytest.approx(0.95)
    assert decision.level(3, 3) == pytest.approx(1 - 0.05 / 9)
    assert decision.level(0) == pytest.approx(0.95)


def test_leak_decides_first_and_no_shown_point_dominates_what_is_switched_on():
    low, useful = point(1, 0.60, 0.87), point(2, 0.63, 0.90)
    found = decided(useful, low)
    assert (found.answer, found.point["label"]) == (Answer.SWITCH_ON, "p1")
    assert found.rival is None  # .63 is further away than the standard error
    equal = decided(point(1, 0.60, 0.87), point(2, 0.60, 0.90))
    assert equal.point["label"] == "p2"
    better = point(
        3, 0.59, 0.9, e=0.02, e_upper=0.06
    )  # better by its means, and its limits do not hold
    assert decided(low, better).rival["label"] == "p3"


def test_a_choice_that_hangs_on_less_than_its_standard_error_shows_both():
    # d's limit of 95 % of five seeds is .01 away, so that the standard error is .0047
    found = decided(point(1, 0.600, 0.87), point(2, 0.604, 0.90))
    assert (found.point["label"], found.rival["label"]) == ("p1", "p2")
    assert decided(point(1, 0.600, 0.87), point(2, 0.606, 0.90)).rival is None


def test_families_that_apply_and_were_not_tried_leave_a_point_open():
    holds = point(1, 0.6)
    assert decided(holds).answer is Answer.SWITCH_ON
    lacking = frozenset({"joint"})
    found = decided(holds, untried={1: lacking})
    assert (found.answer, found.reason, found.untried) == (Answer.OPEN, Reason.FAMILIES, lacking)
    # another point on which all were tried may be switched on
    found = decided(holds, point(2, 0.62), untried={1: lacking})
    assert found.point["label"] == "p2"
    leaks = point(1, 0.9, e=0.3)
    assert decided(leaks).answer is Answer.NONE_PROTECTS
    assert decided(leaks, untried={0: lacking}).reason is Reason.FAMILIES


@pytest.mark.parametrize(
    ("values", "criterion"),
    [
        ({"verdict": Verdict.IS_UNDEFENDED.value}, Criterion.UNDEFENDED),
        ({"e_lower": 0.06, "e_upper": 0.08}, Criterion.EXCESS),
        ({"c_lower": 0.01, "c_upper": 0.03}, Criterion.SHARE),
        ({"d_lower": 0.01, "d_upper": 0.03}, Criterion.CHANGE),
        ({"cost": Cost.TOO_MUCH.value}, Criterion.COST),
        ({"e_upper": 0.06}, None),
        ({"cost": Cost.UNCLEAR.value}, None),
        ({"known_by": False}, None),
        ({"incomplete": True}, None),
    ],
)
def test_no_defense_protects_only_where_limits_deny_each(values, criterion):
    v = point(1, 0.6, **values)
    assert decision.denied(v, GOAL) is criterion
    found = decided(v)
    if criterion is None:
        assert (found.answer, found.reason) == (Answer.OPEN, Reason.NOT_ASKED)
        assert decided(v, stage2=True).reason is Reason.LIMITS
        assert decided(v, unfinished=True).reason is Reason.UNFINISHED
        assert found.leading["label"] == "p1"
    else:
        assert found.answer is Answer.NONE_PROTECTS
    assert decided(v, point(2, 0.9, e=0.3)).closed == (criterion is not None)


def test_looks_that_are_left_are_taken_before_anything_else_is_advised():
    v = point(
        1, 0.6, e_upper=0.06, verdict=Verdict.CANNOT_SAY.value, verdict_seeds=9.0, cost_seeds=NAN
    )
    assert decided(v, looks_left=True).reason is Reason.CUT_OFF  # within the first look
    lacking = {0: frozenset({"joint"})}
    assert decided(v, looks_left=True, untried=lacking).reason is Reason.CUT_OFF
    assert decided(v, looks_left=True, unfinished=True).reason is Reason.UNFINISHED
    after_one = decided(v, looks_left=True, stage2=True)
    assert (after_one.reason, after_one.leading["label"]) == (Reason.CUT_OFF, "p1")
    # also where four seeds foresee that none settles anything: they foresee it badly
    seldom = decided(v | {"verdict_seeds": 50.0}, looks_left=True, stage2=True)
    assert seldom.reason is Reason.CUT_OFF
    assert decided(v, stage2=True).reason is Reason.LIMITS  # all are taken
    # all of these units failed, so that more time would take none
    assert decided(v, failed=True).reason is Reason.FAILED
    assert decided(v, failed=True, looks_left=True).reason is Reason.CUT_OFF


def test_the_nearest_point_on_each_side_stands_beside_no_defense():
    keeps = point(1, 0.8, 0.9, e=0.2)
    leaks_more = point(2, 0.9, 0.91, e=0.3)
    protects = point(3, 0.6, 0.7, cost=Cost.TOO_MUCH.value, qualifies=False)
    loses_more = point(4, 0.6, 0.6, cost=Cost.TOO_MUCH.value, qualifies=False)
    found = decided(keeps, leaks_more, protects, loses_more)
    assert found.answer is Answer.NONE_PROTECTS
    assert (found.keeps["label"], found.protects["label"]) == ("p1", "p3")
    keeps |= {"at_least": True, "incomplete": True}  # dear attacks may read more than of p2
    assert decided(keeps, leaks_more, protects).keeps["label"] == "p2"


def test_where_all_candidates_are_denied_the_next_ones_follow():
    denied, left = point(1, 0.9, e=0.3), point(2, 0.6, 0.9)
    rows = [BARE_ROW, denied, left]
    of = Evidence(points=rows, final=[BARE_ROW, denied], goal=GOAL, stage2=True)
    found = decide(of)
    assert (found.answer, found.reason) == (Answer.OPEN, Reason.NEXT)
    assert [v["label"] for v in found.undecided] == ["p2"]
    # figures of the seeds that explored do not stand beside those that decide
    assert (found.leading, found.keeps["label"]) == (None, "p1")


def test_points_that_are_not_promising_come_last_so_that_all_can_be_denied():
    denied, left = point(1, 0.9, e=0.3), point(2, 0.6, e_upper=0.06, qualifies=False)
    found = decided(left)
    assert (found.answer, found.reason) == (Answer.OPEN, Reason.NOT_ASKED)
    assert decision.candidates([left], GOAL) == []
    rows = [BARE_ROW, denied, left]
    of = Evidence(points=rows, final=[BARE_ROW, denied], goal=GOAL, stage2=True)
    found = decide(of)
    assert found.reason is Reason.NEXT
    assert [v["label"] for v in decision.next_candidates(found, GOAL)] == ["p2"]
    promising = point(3, 0.7, e_upper=0.06)
    both = decide(of._replace(points=[*rows, promising]))
    assert [v["label"] for v in decision.next_candidates(both, GOAL)] == ["p3"]
    unknown = point(2, 0.6, e_upper=0.06, d=NAN)  # no seed in common with undefended
    found = decide(of._replace(points=[BARE_ROW, denied, unknown]))
    assert found.reason is Reason.NEXT
    assert [v["label"] for v in decision.next_candidates(found, GOAL)] == ["p2"]


def test_a_candidate_that_diverged_on_its_own_seeds_does_not_hold_up_the_next():
    denied, left, gone = point(1, 0.9, e=0.3), point(2, 0.6, e_upper=0.06), point(3, NAN)
    rows = [BARE_ROW, denied, left, gone]
    of = Evidence(points=rows, final=[BARE_ROW, denied, gone], goal=GOAL, stage2=True)
    assert decide(of).reason is Reason.NEXT


def test_a_sweep_that_has_reached_no_defense_is_unfinished():
    of = Evidence(points=[BARE_ROW], final=[BARE_ROW], goal=GOAL)
    assert decide(of).reason is Reason.NO_DEFENSE
    assert decide(of._replace(unfinished=True)).reason is Reason.UNFINISHED


def test_points_that_were_not_reached_may_protect():
    denied = point(1, 0.8, e=0.2)
    assert decided(denied, unfinished=True).answer is Answer.NONE_PROTECTS  # seeds lack alone
    found = decided(denied, unfinished=True, unreached=True)
    assert (found.answer, found.reason) == (Answer.OPEN, Reason.UNFINISHED)
    # those that failed for good may protect too, and no time reaches them
    found = decided(denied, unreached=True)
    assert (found.answer, found.reason) == (Answer.OPEN, Reason.FAILED)
    assert decide(Evidence([BARE_ROW], [BARE_ROW], GOAL, unreached=True)).reason is Reason.FAILED
    # those that lost a look at seeds of their own may have figures at the next
    found = decided(denied, unreached=True, stage2=True, looks_left=True)
    assert found.reason is Reason.CUT_OFF
    # and the others are decided on all the same
    assert decided(denied, point(2, 0.6), unreached=True).point["label"] == "p2"
    wide = point(2, 0.6, e_upper=0.06)
    assert decided(denied, wide, unreached=True).reason is Reason.NOT_ASKED


def test_families_that_were_not_reached_are_unfinished():
    lacking = {0: frozenset({"joint"})}
    assert decided(point(1, 0.6, e_upper=0.06), untried=lacking).reason is Reason.FAMILIES
    found = decided(point(1, 0.6, e_upper=0.06), untried=lacking, unfinished=True)
    assert found.reason is Reason.UNFINISHED


def test_families_are_counted_on_the_point_on_which_they_lack():
    tried = point(1, 0.6, tried=frozenset({"probe", "ranks"}))
    found = decided(tried, untried={1: frozenset({"joint"})})
    assert found.untried_on["label"] == "p1"
    found = decided(tried, untried={0: frozenset({"norm"}), 1: frozenset({"joint"})})
    assert (found.untried_on["label"], found.untried) == ("p0", {"norm"})


def test_fresh_seeds_that_deny_open_the_answer_and_wide_ones_do_not():
    holds = point(1, 0.6)
    wide = decided(holds, fresh=[point(1, 0.6, e_upper=0.08)])
    assert (wide.answer, wide.fresh["e_upper"]) == (Answer.SWITCH_ON, 0.08)
    again = point(1, 0.8, e=0.2)
    denied = decided(holds, fresh=[again], fresh_denying=[again])
    assert (denied.answer, denied.reason) == (Answer.OPEN, Reason.CONTRADICTED)
    # .051 of .95 limits is above .05, and .04 of those that deny is not: no more is said than is shown
    near = point(1, 0.7, e=0.1, e_lower=0.051, c_lower=-0.01)
    wide = near | {"e_lower": 0.04}
    found = decided(holds, fresh=[near], fresh_denying=[wide])
    assert (found.answer, found.fresh["e_lower"]) == (Answer.SWITCH_ON, 0.04)


def test_the_next_point_that_holds_takes_the_place_of_one_that_fresh_seeds_deny():
    first, second = point(1, 0.60), point(2, 0.62)
    again = {"fresh": [point(1, 0.8, e=0.2)], "fresh_denying": [point(1, 0.8, e=0.2)]}
    found = decided(first, second, **again)
    assert (found.answer, found.point["label"], found.fresh) == (Answer.SWITCH_ON, "p2", None)
    wide = second | {"e_upper": 0.06}
    found = decided(
        first, wide, stage2=True, **again
    )  # what limits leave open is judged in its turn
    assert (found.reason, found.leading["label"]) == (Reason.LIMITS, "p2")
    rows = [BARE_ROW, first, wide]
    of = Evidence(points=rows, final=rows[:2], goal=GOAL, stage2=True, **again)
    found = decide(of)
    assert found.reason is Reason.NEXT
    assert [v["label"] for v in decision.next_candidates(found, GOAL)] == ["p2"]


def test_what_fresh_seeds_contradict_is_never_denied_for_lack_of_a_family():
    leaks = point(1, 0.8, e=0.2)
    again = {"fresh": [leaks], "fresh_denying": [leaks], "stage2": True}
    for untried in ({}, {1: frozenset({"joint"})}):
        found = decided(point(1, 0.6), untried=untried, **again)
        assert (found.answer, found.reason) == (Answer.OPEN, Reason.CONTRADICTED)
        assert (found.leading["label"], found.fresh["e"]) == ("p1", 0.2)


def test_undefended_that_lost_seeds_of_its_own_gets_more_at_the_next_look():
    bare = BARE_ROW | {"seeds": 2}
    rows = [bare, point(1, 0.6)]
    of = Evidence(rows, rows, GOAL, stage2=True, looks_left=True)
    assert decide(of).reason is Reason.CUT_OFF
    assert decide(of._replace(stage2=False)).reason is Reason.FEW_SEEDS
    assert decide(of._replace(looks_left=False)).reason is Reason.FEW_SEEDS
    # those of units that failed are tried again
    assert decide(of._replace(looks_left=False, failed=True)).reason is Reason.FAILED


def test_a_point_that_was_left_open_holds_by_fresh_seeds_of_its_own():
    wide = point(1, 0.6, e_upper=0.06)
    found = decided(wide, fresh=[point(1, 0.61)], stage2=True)
    assert (found.answer, found.point["leak"]) == (Answer.SWITCH_ON, 0.61)
    assert decided(wide, fresh=[wide], stage2=True).reason is Reason.LIMITS
    lacking = {1: frozenset({"joint"})}
    assert not decided(wide, fresh=[point(1, 0.61)], stage2=True, untried=lacking).closed


def test_fresh_seeds_deny_the_last_point_that_was_left_open():
    """At limits of all criteria, as elsewhere; one that others were left beside closes nothing."""
    wide, leaks = point(1, 0.6, e_upper=0.06), point(1, 0.8, e=0.2)
    found = decided(wide, fresh=[leaks], fresh_denying=[leaks], stage2=True)
    assert (found.answer, found.fresh["leak"]) == (Answer.NONE_PROTECTS, 0.8)
    # beside what leaks anyway, fresh seeds of it and of undefended have closed nothing
    again = [leaks, BARE_ROW]
    assert decided(leaks, fresh=again, fresh_denying=again, stage2=True).fresh is None
    less = leaks | {"e_lower": 0.04, "c_lower": -0.01}  # at the limits that deny
    found = decided(wide, fresh=[leaks], fresh_denying=[less], stage2=True)
    assert (found.answer, found.reason) == (Answer.OPEN, Reason.LIMITS)
    other = point(2, 0.62, e_upper=0.06)
    found = decided(wide, other, fresh=[leaks], fresh_denying=[leaks], stage2=True)
    assert (found.reason, found.leading["label"], found.fresh) == (Reason.LIMITS, "p2", None)
    lacking = {0: frozenset({"joint"})}
    found = decided(wide, fresh=[leaks], fresh_denying=[leaks], stage2=True, untried=lacking)
    assert found.reason is Reason.FAMILIES


def test_statements_that_are_denied_correct_no_limits():
    bare = BARE_ROW | {"undefended_e_lower": 0.2, "gain_lower": 0.05}
    denied, left = point(1, 0.9, e=0.3), point(2, 0.6)
    assert decision.possible([bare, denied, left], GOAL, 2) == 1
    assert decision.possible([bare, denied, left], GOAL, 7) == 6  # five have no figures yet
    assert decision.possible([bare, denied], GOAL, 1) == 1
    little = bare | {"undefended_e_lower": 0.04, "gain_lower": 0.005}
    assert decision.possible([little, denied, left], GOAL, 2) == 3
    # a point holds in two ways if a leak is accepted, of which limits exclude neither here
    assert decision.possible([bare, left], Goal(max_leak=0.9), 1) == 2
    assert decision.possible([bare, denied, left], Goal(max_leak=0.8), 2) == 2
    unknown = bare | {"undefended_e_lower": NAN, "gain_lower": NAN}
    assert decision.possible([unknown, left], GOAL, 1) == 1


def test_candidates_qualify_by_their_means_and_none_dominates_another():
    rows = [
        point(1, 0.60, 0.85),
        point(2, 0.60, 0.88),  # dominates the first
        point(3, 0.58, 0.80, qualifies=False),
        point(4, 0.62, 0.89),
        point(5, 0.64, 0.90),
        point(6, 0.66, 0.91),
        point(7, 0.59, 0.86, e_lower=0.06),  # denied
        point(8, 0.97, 0.95, d=0.02),  # leaks more than undefended
    ]
    assert [v["label"] for v in decision.candidates(rows, GOAL)] == ["p2", "p4", "p5"]


def test_which_families_apply(monkeypatch):
    experiment = made(BARE).experiment
    header = {"data": {"balance": [300, 700], "train": 1000}}

    def families(federations, chain="", data=None, entries=None):
        of = Applying(
            experiment, {"data": header["data"] | (data or {})}, federations, entries or {}
        )
        panel = "no_split" if federations == ["no_split"] else "split"
        return of.families(panel, chain)

    split, both = families(["split"]), families(["split", "malicious-0"])
    assert "passive" in split
    assert both - split == {"active"}
    assert "direct" in families(["no_split"])
    assert "norm" in split
    assert "norm" not in families(["split"], data={"balance": [10] * 3})
    assert not {"swapping", "cohabitation", "batch_inversion", "charge"} & both
    known = families(["split"], chain="label_dp") - split
    assert all(attacks.TABLE[name].whole_batches for name in known)
    skipped = {"x": {"attack": "passive", "status": "skipped"}}
    assert "passive" not in families(["split"], entries=skipped)
    assert "passive" not in families(["split"], data={"missing": ["bottoms"]})
    assert families(["split"], data={"missing": ["columns"]}) < split


def test_a_sweep_without_figures_of_defenses_is_open():
    rows = [BARE_ROW, point(1, math.nan)]
    assert decide(Evidence(rows, rows, GOAL)).reason is Reason.NO_DEFENSE_LEFT
    few = [BARE_ROW | {"seeds": 2}]
    assert decide(Evidence(few, few, GOAL)).reason is Reason.FEW_SEEDS
    assert decide(Evidence([], [], GOAL)).reason is Reason.NO_FIGURES
    assert decide(Evidence([], [point(1, 0.6)], GOAL)).reason is Reason.NO_UNDEFENDED
    assert decide(Evidence([BARE_ROW], [BARE_ROW], GOAL)).reason is Reason.NO_DEFENSE


def test_nothing_is_gained_only_where_the_upper_limit_says_so():
    little = BARE_ROW | {"gain": 0.002, "gain_lower": -0.004, "gain_upper": 0.008}
    assert decide(Evidence([little], [little], GOAL)).answer is Answer.NO_GAIN
    wide = little | {"gain_lower": -0.05, "gain_upper": 0.054}
    assert decide(Evidence([wide], [wide], GOAL)).answer is Answer.OPEN


def test_the_leak_that_is_accepted_is_none_by_default():
    v = point(1, 0.7, e=0.1, verdict=Verdict.LEAKS_MUCH_LESS.value)
    assert decided(v).answer is Answer.NONE_PROTECTS
    rows = [BARE_ROW, v]
    assert decide(Evidence(rows, rows, Goal(max_leak=0.72))).answer is Answer.SWITCH_ON
    assert decide(Evidence(rows, rows, Goal(max_leak=0.705))).answer is Answer.OPEN
    assert decide(Evidence(rows, rows, Goal(max_leak=0.6))).answer is Answer.NONE_PROTECTS
    assert Goal().max_leak == 1
