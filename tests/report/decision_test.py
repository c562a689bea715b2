"""The decision: five answers, what denies a point, who competes, and how the error is held."""

import math

import numpy as np
import pytest
from scipy import stats

from tests.report.made import BARE, FACTS, NAN, PROTECTS, made
from vfljax import attacks, store
from vfljax.config import Goal
from vfljax.report import decision
from vfljax.report import judged as judging
from vfljax.report.costs import Cost
from vfljax.report.decision import Answer, Criterion, Evidence, Reason, decide
from vfljax.report.families import Applying
from vfljax.report.verdicts import Verdict
from vfljax.store import Unit, write_text
from vfljax.store.claims import TRIES
from vfljax.store.units import ATTACK

GOAL = Goal()
NEAR = [0.686, 0.654, 0.69, 0.65, 0.67]


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


def test_the_error_of_a_decision_is_divided_among_looks_and_candidates():
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
    futile = decided(v | {"verdict_seeds": 50.0}, looks_left=True, stage2=True)
    assert futile.reason is Reason.LIMITS
    assert decided(v, stage2=True).reason is Reason.LIMITS  # all are taken
    for stage2 in (False, True):  # more time would take none
        found = decided(v, looks_left=True, stuck=True, stage2=stage2)
        assert found.reason is Reason.STUCK


def test_looks_are_stuck_where_a_unit_was_given_up_or_no_code_runs_it(monkeypatch, tmp_path):
    header = {"attacks": {"a": {"attack": "probe", "rule": attacks.TABLE["probe"].rule}}}
    assert not judging.stuck(tmp_path)
    units = [Unit("attacks/a/000", ATTACK, "a", "probe")]
    monkeypatch.setattr(judging.store, "header_of", lambda folder: header)
    monkeypatch.setattr(judging.store, "units_of", lambda header: units)
    for tries in range(TRIES + 1):
        assert judging.stuck(tmp_path) == (tries == TRIES)
        write_text(tmp_path / f"failures/attacks__a__000.{tries:032x}.json", '{"why": "full"}')
    store.clear_failures(tmp_path)  # the command is given again, and cut off
    assert not judging.stuck(tmp_path)
    header["attacks"]["a"]["attack"] = "of_a_plugin"
    assert judging.stuck(tmp_path)


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
    unknown = point(2, 0.6, e_upper=0.06, d=NAN)
    assert decide(of._replace(points=[BARE_ROW, denied, unknown])).reason is Reason.NO_CANDIDATE


def test_a_sweep_that_has_reached_no_defense_is_unfinished():
    of = Evidence(points=[BARE_ROW], final=[BARE_ROW], goal=GOAL)
    assert decide(of).reason is Reason.NO_DEFENSE
    assert decide(of._replace(unfinished=True)).reason is Reason.UNFINISHED


def test_points_that_were_not_reached_may_protect():
    denied = point(1, 0.8, e=0.2)
    assert decided(denied, unfinished=True).answer is Answer.NONE_PROTECTS  # seeds lack alone
    found = decided(denied, unfinished=True, unreached=True)
    assert (found.answer, found.reason) == (Answer.OPEN, Reason.UNFINISHED)


def test_a_point_is_reached_once_it_is_attacked_or_has_diverged():
    leaks = {"probe/mean": 0.9, "test_utility": 0.88}
    grid = {"undefended": {}, "noise": {"noise": {"scale": [0.1, 1.0]}}}
    every = made(BARE, leaks, leaks, config={"grid": grid})
    assert not judging._unreached(every, "split")
    assert judging._unreached(made(BARE, leaks, config={"grid": grid}), "split")
    second = every.verdicts["configuration"] == 2
    waits = every._replace(verdicts=every.verdicts.assign(leak=every.verdicts["leak"].mask(second)))
    assert judging._unreached(waits, "split")
    diverged = every.trials["configuration"] == 2
    assert not judging._unreached(
        waits._replace(trials=every.trials.assign(diverged=diverged)), "split"
    )


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
    denied = decided(holds, fresh=[point(1, 0.8, e=0.2)])
    assert (denied.answer, denied.reason) == (Answer.OPEN, Reason.CONTRADICTED)


def test_a_point_that_was_left_open_holds_by_fresh_seeds_of_its_own():
    wide = point(1, 0.6, e_upper=0.06)
    found = decided(wide, fresh=[point(1, 0.61)], stage2=True)
    assert (found.answer, found.point["leak"]) == (Answer.SWITCH_ON, 0.61)
    assert decided(wide, fresh=[wide], stage2=True).reason is Reason.LIMITS
    lacking = {1: frozenset({"joint"})}
    assert not decided(wide, fresh=[point(1, 0.61)], stage2=True, untried=lacking).closed


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


def test_a_look_is_not_taken_where_it_is_not_likely_to_settle_anything():
    wide = {"verdict": Verdict.CANNOT_SAY.value, "e_upper": 0.06, "cost_seeds": NAN}
    for seeds, likely in ((8.0, True), (12.0, True), (20.0, False), (NAN, False)):
        found = decided(point(1, 0.6, verdict_seeds=seeds, **wide), stage2=True)
        assert decision.may_settle(found.undecided[0], found) == likely
    unclear = {"cost": Cost.UNCLEAR.value, "verdict_seeds": NAN, "cost_seeds": 9.0}
    found = decided(point(1, 0.6, **unclear), stage2=True)
    assert decision.may_settle(found.undecided[0], found)
    unknowing = decided(
        point(1, 0.6, known_by=False, verdict_seeds=NAN, cost_seeds=NAN), stage2=True
    )
    assert not decision.may_settle(unknowing.undecided[0], unknowing)  # no seed can settle that
    other = point(2, 0.6, **unclear)  # of the sweep, which did not compete
    assert not decision.may_settle(other, found)


def test_the_limits_of_a_decision_are_wider_than_those_of_the_table():
    one = made(BARE, PROTECTS)
    many = made(BARE, *[PROTECTS] * 12, knobs={"noise.scale": [NAN, *range(1, 13)]})
    widths = []
    for judged in (one, many):
        v = judged.decisions["split"].undecided or (judged.decisions["split"].point,)
        widths.append(v[0]["e_upper"] - v[0]["e"])
    assert widths[1] > 2 * widths[0]
    table = many.leading.set_index("configuration")
    # one point, at a first look, which spends half of .05
    wider = stats.t.isf(0.025, 4) / stats.t.isf(0.05, 4)
    assert widths[0] == pytest.approx((table.loc[1, "e_upper"] - table.loc[1, "e"]) * wider)


def test_points_that_are_not_reached_yet_correct_limits_as_the_others_do():
    grid = {"undefended": {}, "noise": {"noise": {"scale": [*range(1, 21)]}}}
    part = made(BARE, PROTECTS, config={"grid": grid})  # where a short budget ended
    of = judging.decided(part).decisions["split"]
    assert (of.candidates, of.corrected) == (1, 20)
    table = part.leading.set_index("configuration").loc[1]
    (v,) = [of.point] if of.point else of.undecided
    ratio = stats.t.isf(0.025 / 20, 4) / stats.t.isf(0.05, 4)
    assert v["d_upper"] - v["d"] == pytest.approx((table["d_upper"] - table["d"]) * ratio)


def test_seeds_that_explored_close_an_answer_at_as_many_looks_as_there_are_stages(
    monkeypatch, tmp_path
):
    """However often its command is continued: what a stage that is not complete has does not count."""
    # on three seeds its leak is .60, and on the others as much as undefended's
    point = {"probe/mean": [0.6, 0.6, 0.6, 0.95, 0.95], "test_utility": 0.88}
    judged = made(BARE, point, workdir=str(tmp_path))
    whole = judged.decisions["split"]
    assert whole.answer is Answer.OPEN
    stages = [
        {"grid": {"undefended": {}}, "seeds": 5},
        {"grid": {"noise": {}}, "seeds": 3},
        {"grid": {"undefended": {}, "noise": {}}, "seeds": 5},
    ]
    header = judged.sweep.header | {"earlier": stages[:-1], "config": stages[-1]}
    assert judging.seeds_explored(header) == [3, 5]
    assert judging.seeds_explored({"earlier": [], "config": {"seeds": 2}}) == [2]
    monkeypatch.setattr(judging, "planned_points", lambda experiment: 1)
    sweep = judged.sweep._replace(header=header, unfinished=("some shards are not trained",))
    staged = judged._replace(sweep=sweep)
    units = [Unit(str(n), ATTACK, None, "", stage=n) for n in range(3)]
    monkeypatch.setattr(judging.store, "units_of", lambda header: units)
    monkeypatch.setattr(Applying, "families", lambda *_: frozenset())
    found = []
    for done in range(4):
        monkeypatch.setattr(judging.store, "finished", lambda _, unit, done=done: int(unit) < done)
        of = judging.decided(staged).decisions["split"]
        v = of.point or of.leading
        found.append((of.answer, v["seeds"], round(v["d_upper"] - v["d"], 4)))
    once = made(BARE, {**point, "probe/mean": [0.6] * 3}, seeds=3).decisions["split"].point
    wide = once["d_upper"] - once["d"]  # a first look spends .05 / 2 however many follow
    assert found[:3] == [(Answer.SWITCH_ON, 3, pytest.approx(wide, abs=1e-4))] * 3
    assert found[3][:2] == (Answer.OPEN, 5)
    table = judged.leading.set_index("configuration").loc[1]  # the second look spends .05 / 4
    wide = (table["d_upper"] - table["d"]) * stats.t.isf(0.0125, 4) / stats.t.isf(0.05, 4)
    assert found[3][2] == pytest.approx(wide, abs=1e-4)


def test_a_sweep_that_was_killed_within_its_first_look_decides_nothing(monkeypatch):
    unit = Unit("0", ATTACK, None, "")
    monkeypatch.setattr(judging.store, "units_of", lambda header: [unit])
    monkeypatch.setattr(judging, "planned_points", lambda experiment: 1)
    monkeypatch.setattr(Applying, "families", lambda *_: frozenset())
    whole = made(BARE, PROTECTS)
    header = whole.sweep.header | {"config": {"seeds": 5, "grid": {"undefended", "noise"}}}
    sweep = whole.sweep._replace(header=header, unfinished=("2 of 10 shards are not trained",))
    whole = whole._replace(sweep=sweep)
    assert judging.decided(whole).decisions["split"].answer is Answer.SWITCH_ON  # all attacked
    for killed, undefended in (([1], 5), ([0, 1], 2)):
        rows, trials = (
            of[~(of["configuration"].isin(killed) & (of["seed"] > 2))]
            for of in (whole.rows, whole.trials)
        )
        part = whole._replace(rows=rows, trials=trials)
        of = judging.decided(part).decisions["split"]
        assert (of.answer, of.bare["seeds"]) == (Answer.OPEN, undefended)
        assert of.bare["undefended_e"] > 0.3
        with monkeypatch.context() as patch:  # three of five seeds would do
            patch.setattr(judging, "_explored", lambda found: found.frames)
            assert judging.decided(part).decisions["split"].answer is Answer.SWITCH_ON


@pytest.mark.parametrize(("more", "own"), [(0.005, False), (0.018, True)])
def test_few_points_that_compete_are_denied_at_limits_of_all_criteria(more, own):
    # the lower limit of e is above .05 at the level of one or three points, and below at that of five
    near = {"probe/mean": [x + more for x in NEAR], "test_utility": 0.88}
    judged = made(BARE, near)
    if own:
        judged = judging.decided(judged._replace(stage2={"split": judged}))
    of = judged.decisions["split"]
    level = decision.level(3, 3) if own else decision.level(1, 2)
    final = judging.judge_frames(judged.sweep, judged.experiment, judged.frames, level).leading
    assert final.set_index("configuration").loc[1, "e_lower"] > 0.05
    assert (of.answer, [v["configuration"] for v in of.undecided]) == (Answer.OPEN, [1])


def test_points_without_seeds_of_their_own_are_denied_at_limits_of_all_criteria():
    # e is .07; its lower limit of 95 % is .053, and that of 99 % .04
    near = {"probe/mean": NEAR, "test_utility": 0.88}
    leaks, scales = {"probe/mean": 0.9}, [NAN, 0.1, 1.0]
    judged = made(BARE, near, leaks, knobs={"noise.scale": scales})
    table = judged.leading.set_index("configuration")
    assert table.loc[1, "e_lower"] > 0.05
    stage2 = made(BARE, leaks, knobs={"noise.scale": [NAN, 1.0]})
    of = judging.decided(judged._replace(stage2={"split": stage2})).decisions["split"]
    (left,) = of.undecided
    assert left["configuration"] == 1
    assert left["e_lower"] < 0.05


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
    assert decide(Evidence(rows, rows, GOAL)).reason is Reason.NO_DEFENSE
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
    assert FACTS.goal.max_leak == 1
    assert np.isfinite(v["leak"])
