"""The answers of a stored sweep: at which limits its points are chosen and denied, on which seeds."""

import shutil

import pytest
from scipy import stats

from tests.report.made import BARE, NAN, PROTECTS, made
from vfljax.report import decision, looks
from vfljax.report.decision import Answer, Reason
from vfljax.report.families import Applying
from vfljax.report.frames import Frames
from vfljax.report.judged_sweep import CONFIRMED, STAGE2, judge_frames
from vfljax.report.sweep_answers import judge_sweep, with_decisions
from vfljax.store import Unit
from vfljax.store.units import ATTACK

NEAR = [0.686, 0.654, 0.69, 0.65, 0.67]


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
    of = with_decisions(part).decisions["split"]
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
    assert looks.seeds_of_looks(header) == [3, 5]
    assert looks.seeds_of_looks({"earlier": [], "config": {"seeds": 2}}) == [2]
    monkeypatch.setattr(looks, "planned_points", lambda experiment, panel: 1)
    sweep = judged.sweep._replace(header=header, unfinished=("some shards are not trained",))
    staged = judged._replace(sweep=sweep)
    units = [Unit(str(n), ATTACK, None, "", stage=n) for n in range(3)]
    monkeypatch.setattr(looks.store, "units_of", lambda header: units)
    monkeypatch.setattr(Applying, "families", lambda *_: frozenset())
    found = []
    for done in range(4):
        monkeypatch.setattr(looks.store, "finished", lambda _, unit, done=done: int(unit) < done)
        of = with_decisions(staged).decisions["split"]
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
    monkeypatch.setattr(looks.store, "units_of", lambda header: [unit])
    monkeypatch.setattr(looks, "planned_points", lambda experiment, panel: 1)
    monkeypatch.setattr(Applying, "families", lambda *_: frozenset())
    whole = made(BARE, PROTECTS)
    header = whole.sweep.header | {"config": {"seeds": 5, "grid": {"undefended", "noise"}}}
    sweep = whole.sweep._replace(header=header, unfinished=("2 of 10 shards are not trained",))
    whole = whole._replace(sweep=sweep)
    assert with_decisions(whole).decisions["split"].answer is Answer.SWITCH_ON  # all attacked
    for killed, undefended in (([1], 5), ([0, 1], 2)):
        rows, trials = (
            of[~(of["configuration"].isin(killed) & (of["seed"] > 2))]
            for of in (whole.rows, whole.trials)
        )
        part = whole._replace(rows=rows, trials=trials)
        of = with_decisions(part).decisions["split"]
        assert (of.answer, of.bare["seeds"]) == (Answer.OPEN, undefended)
        assert of.bare["undefended_e"] > 0.3
        with monkeypatch.context() as patch:  # three of five seeds would do
            patch.setattr(looks, "at_looks", lambda sweep, frames, begins: frames)
            assert with_decisions(part).decisions["split"].answer is Answer.SWITCH_ON


LEAKS = {"probe/mean": 0.9, "test_utility": 0.88}


def test_a_point_of_a_finished_sweep_without_any_figure_may_protect(monkeypatch):
    failed = {"probe/mean": NAN, "test_utility": 0.88}
    of = made(BARE, LEAKS, failed).decisions["split"]
    assert (of.answer, of.reason) == (Answer.OPEN, Reason.FAILED)
    diverged = failed | {"test_utility": NAN, "validation_utility": NAN}
    assert made(BARE, LEAKS, diverged).decisions["split"].answer is Answer.NONE_PROTECTS
    # neither do seeds of its own that are lost deny it
    explored = made(BARE, LEAKS, PROTECTS, knobs={"noise.scale": [NAN, 0.1, 1.0]})
    monkeypatch.setattr(Applying, "families", lambda *_: frozenset())
    for own, reason in ((failed, Reason.FAILED), (diverged, None)):
        stage2 = made(BARE, LEAKS, own, knobs={"noise.scale": [NAN, 0.1, 1.0]})
        of = with_decisions(explored._replace(stage2={"split": stage2})).decisions["split"]
        assert (of.closed, of.reason) == (reason is None, reason)


def first_look(monkeypatch, judged, done):
    """A sweep whose stages end after 3 and 5 seeds, of which some are over; it is not finished."""
    grid = {"undefended": {}, "noise": {}, "max_norm": {}}
    stages = [{"grid": grid, "seeds": seeds} for seeds in (3, 5)]
    header = judged.sweep.header | {"earlier": stages[:1], "config": stages[1]}
    state = looks.Progress(frozenset({"x"}), frozenset(), frozenset({0, 1} - done))
    monkeypatch.setattr(looks, "progress", lambda *_: state)
    monkeypatch.setattr(looks, "planned_points", lambda experiment, panel: 2)
    monkeypatch.setattr(Applying, "families", lambda *_: frozenset())
    return judged._replace(
        sweep=judged.sweep._replace(header=header, unfinished=("a shard is not trained",))
    )


def test_a_point_that_lost_all_seeds_of_a_look_is_not_denied_at_it(monkeypatch):
    grid = {"undefended": {}, "noise": {}, "max_norm": {}}
    whole = made(BARE, LEAKS, PROTECTS, defenses=("noise", "max_norm"), config={"grid": grid})
    assert whole.decisions["split"].answer is Answer.SWITCH_ON
    rows, trials = (
        of[~((of["configuration"] == 2) & (of["seed"] < 3))] for of in (whole.rows, whole.trials)
    )
    lost = judge_frames(whole.sweep, whole.experiment, Frames(rows, trials, *whole.frames[2:]))
    of = with_decisions(first_look(monkeypatch, lost, {0})).decisions["split"]
    assert (of.bare["seeds"], of.answer, of.reason) == (3, Answer.OPEN, Reason.UNFINISHED)


def test_a_sweep_without_any_seed_of_the_first_look_is_open(monkeypatch):
    whole = made(BARE, LEAKS)
    rows, trials = (of[of["seed"] >= 3] for of in (whole.rows, whole.trials))
    part = first_look(monkeypatch, whole._replace(rows=rows, trials=trials), {0})
    of = with_decisions(part).decisions["split"]
    assert (of.answer, of.reason) == (Answer.OPEN, Reason.NO_FIGURES)


def test_a_family_that_shows_only_that_it_failed_on_a_point_was_tried_there(monkeypatch):
    bare, point = BARE | {"norm": 0.7}, PROTECTS | {"norm": [0.5] * 5}
    judged = made(bare, point)
    assert judged.leading["tried"].to_list() == [{"probe", "norm"}, {"probe"}]
    monkeypatch.setattr(looks, "planned_points", lambda experiment, panel: 1)
    for applies, answer in (({"norm"}, Answer.SWITCH_ON), ({"norm", "joint"}, Answer.OPEN)):
        families = frozenset({"probe", *applies})
        monkeypatch.setattr(Applying, "families", lambda *_, of=families: of)
        assert with_decisions(judged).decisions["split"].answer is answer


@pytest.mark.parametrize(("more", "own"), [(0.005, False), (0.018, True)])
def test_few_points_that_compete_are_denied_at_limits_of_all_criteria(more, own):
    # the lower limit of e is above .05 at the level of one or three points, and below at that of five
    near = {"probe/mean": [x + more for x in NEAR], "test_utility": 0.88}
    judged = made(BARE, near)
    if own:
        judged = with_decisions(judged._replace(stage2={"split": judged}))
    of = judged.decisions["split"]
    level = decision.level(3, 3) if own else decision.level(1, 2)
    final = judge_frames(judged.sweep, judged.experiment, judged.frames, level).leading
    assert final.set_index("configuration").loc[1, "e_lower"] > 0.05
    assert (of.answer, [v["configuration"] for v in of.undecided]) == (Answer.OPEN, [1])


def test_points_without_seeds_of_their_own_are_denied_at_limits_of_all_criteria():
    # e is .07; its lower limit of 95 % is .053, and that of 99 % .04
    near, scales = {"probe/mean": NEAR, "test_utility": 0.88}, [NAN, 0.1, 1.0]
    leaks = {"probe/mean": 0.9}
    judged = made(BARE, near, leaks, knobs={"noise.scale": scales})
    table = judged.leading.set_index("configuration")
    assert table.loc[1, "e_lower"] > 0.05
    stage2 = made(BARE, leaks, knobs={"noise.scale": [NAN, 1.0]})
    of = with_decisions(judged._replace(stage2={"split": stage2})).decisions["split"]
    (left,) = of.undecided
    assert left["configuration"] == 1
    assert left["e_lower"] < 0.05


def near(mean, count):
    """A point at this mean e whose limits are .01 to .02 wide, and others that clearly leak."""
    wobble = [0.016, -0.016, 0.02, -0.02, 0.0]
    point = {"probe/mean": [0.6 + mean + x for x in wobble], "test_utility": 0.88}
    leaks = {"probe/mean": 0.9, "test_utility": 0.88}
    knobs = {"noise.scale": [NAN, *range(1, count + 1)]}
    return made(BARE, point, *[leaks] * (count - 1), knobs=knobs)


def test_points_that_are_denied_leave_their_share_to_the_others():
    """With 30 points it protects at the level of one of them, and not at that of thirty."""
    judged = near(0.025, 30)
    at = [judge_frames(*judged[:2], judged.frames, decision.level(n, 2)).leading for n in (1, 30)]
    upper = [of.set_index("configuration").loc[1, "e_upper"] for of in at]
    assert upper[0] < 0.05 < upper[1]
    of = judged.decisions["split"]
    assert (of.answer, of.corrected) == (Answer.SWITCH_ON, 1)
    assert of.point["e_upper"] == pytest.approx(upper[0])


def test_a_point_is_denied_at_the_same_limits_however_many_others_there_are():
    """Of thirty points it is denied at the level of its criteria, and not at that of thirty."""
    judged = near(0.1, 30)
    at = [judge_frames(*judged[:2], judged.frames, decision.level(n, 2)).leading for n in (5, 30)]
    lower = [of.set_index("configuration").loc[1, "e_lower"] for of in at]
    assert lower[1] < 0.05 < lower[0]
    assert judged.decisions["split"].answer is Answer.NONE_PROTECTS


def test_the_folders_of_further_seeds_are_read_once_they_are_looked_at(tiny_sweep, workdir):
    """A sweep in place of that of its own decision and of its own fresh seeds."""
    assert judge_sweep(workdir).stage2 == {}
    for name in (f"{STAGE2}/split", f"{STAGE2}/no_split", CONFIRMED):
        shutil.copytree(tiny_sweep, workdir / name)
    begun = workdir / STAGE2 / "no_split"
    shutil.rmtree(begun / "shards")  # nothing of its first look is there
    (begun / "shards").mkdir()
    found = judge_sweep(workdir)
    assert {*found.stage2} == {"split"}
    assert [of.stage2 for of in found.decisions.values()] == [p == "split" for p in found.decisions]
    own = found.stage2["split"].leading.set_index(["panel", "label"])["leak"]
    assert own.equals(found.leading.set_index(["panel", "label"])["leak"])
    assert found.confirmed is not None
    assert found.confirmed.verdicts["e"].equals(found.verdicts["e"])
