"""Deciding on a sweep: who gets seeds of their own, under which attacks, and when it ends."""

import pytest

from tests.report.made import BARE, FACTS, NAN, PROTECTS, made
from vfljax.auditing import deciding
from vfljax.errors import UserError
from vfljax.report import decision
from vfljax.report.decision import LOOKS, Answer, Reason
from vfljax.report.looks import Progress
from vfljax.scheduling import running
from vfljax.scheduling.work import Outcome
from vfljax.store import Unit
from vfljax.store.units import ATTACK, LOCAL_ONLY, SHARD
from vfljax.sweep.grid import parse

WIDE = {"probe/mean": [0.6, 0.7, 0.6, 0.68, 0.62], "test_utility": 0.88}
CONFIG = {
    "data": {"name": "breast_cancer"},
    "parties": {"passive": 2, "names": ("telco", "shop", "bank")},
    "grid": {"undefended": {}, "noise": {"noise": {"scale": (0.1, 1.0)}}},
    "attacks": {"probe": {"known": 40, "epoch": "mean"}},
    "seeds": 5,
    "known_draws": 5,
}


@pytest.fixture
def explored(tmp_path):
    """A sweep of two points of noise, of which one is denied and the other is open."""
    leaks = {"probe/mean": 0.9, "test_utility": 0.89}
    knobs = {"noise.scale": [NAN, 0.1, 1.0]}
    return made(BARE, leaks, WIDE, knobs=knobs, config=CONFIG, workdir=str(tmp_path))


def test_candidates_get_seeds_that_follow_and_every_attack_that_applies(explored):
    experiment = deciding.experiment_of_panel(explored, "split")
    assert experiment.stored["grid"] == {
        "undefended": {},
        "noise scale=1": {"noise": {"scale": 1.0}},
    }
    assert (experiment.first_seed, experiment.seeds) == (5, LOOKS[-1])
    assert experiment.federations == ("split",)
    assert not experiment.decide
    assert experiment.known_draws == deciding.DRAWS
    assert {0, 1, -1} <= {*experiment.training.record}
    tried = experiment.attacks
    assert tried["probe"] == {"known": 40, "epoch": ["mean"]}  # the sweep's own stays as it is
    assert {"joint", "ranks", "reader", "passive"} <= {*tried}
    assert not {"direct", "active", "cohabitation"} & {*tried}  # of other federations


def test_where_the_tables_limits_deny_all_the_decision_judges_what_its_own_do_not(tmp_path):
    near = {"probe/mean": [0.6535, 0.6825, 0.6735, 0.6625, 0.6535], "test_utility": 0.88}
    leaks = {"probe/mean": 0.9, "test_utility": 0.89}
    knobs = {"noise.scale": [NAN, 0.1, 1.0]}
    found = made(BARE, leaks, near, knobs=knobs, config=CONFIG, workdir=str(tmp_path), facts=FACTS)
    points = decision.of_panel(found.verdicts, 40, "split")
    assert all(decision.denied(v, FACTS.goal) for v in points if v["defenses"])
    assert [v["label"] for v in found.decisions["split"].undecided] == ["noise scale=1"]
    experiment = deciding.experiment_of_panel(found, "split")
    assert [*experiment.stored["grid"]] == ["undefended", "noise scale=1"]


def test_a_sweep_that_came_to_explore_its_own_decision_is_refused(explored, monkeypatch):
    stored = {"config": {"grid": {}, "first_seed": 5}}
    monkeypatch.setattr(deciding.store, "header_of", lambda folder: stored)
    assert deciding.experiment_of_panel(explored, "split").first_seed == 5
    stored["config"]["first_seed"] = 4
    with pytest.raises(UserError, match="that the sweep explores too"):
        deciding.experiment_of_panel(explored, "split")


def test_an_answer_that_is_closed_needs_no_seeds(tmp_path):
    closed = made(BARE, BARE, BARE, config=CONFIG, workdir=str(tmp_path))
    assert closed.decisions["split"].answer is Answer.NONE_PROTECTS
    assert deciding.panels(closed) == []
    few = made(BARE, PROTECTS, seeds=2)
    assert deciding.panels(few) == []


def test_a_look_begins_the_units_of_its_seeds_alone(tmp_path, monkeypatch):
    header = {"earlier": [{"seeds": 4}, {"seeds": 8}], "config": {"seeds": 12}}
    monkeypatch.setattr(deciding.store, "read_header", lambda folder: header)
    units = [Unit(str(n), kind, None, "", stage=n) for n in range(3) for kind in (SHARD, ATTACK)]
    for look, count in zip(LOOKS, (2, 4, 6), strict=True):
        may = deciding._until(tmp_path, 5, look, float("inf"))
        assert sum(map(may, units)) == count
        learners = [Unit("l", LOCAL_ONLY, {"seeds": [seed]}, "") for seed in range(5, 17)]
        assert sum(map(may, learners)) == look
    assert not any(map(deciding._until(tmp_path, 5, 12, 0.0), units))


@pytest.mark.parametrize(
    ("answers", "looks"),
    [([Answer.SWITCH_ON], 1), ([Answer.OPEN, Answer.NONE_PROTECTS], 2), ([Answer.OPEN] * 3, 3)],
)
def test_it_ends_at_the_first_look_that_closes_the_answer(explored, monkeypatch, answers, looks):
    calls = []

    def judge(workdir):
        if not calls:
            return explored
        answer = answers[len(calls) - 1]
        of = explored.decisions["split"]._replace(answer=answer, reason=Reason.LIMITS)
        return explored._replace(decisions={"split": of})

    def finish(experiment, folder, command, say, may, stages):
        calls.append((folder.relative_to(explored.sweep.workdir), [s.seeds for s in stages]))
        return Outcome({})

    monkeypatch.setattr(deciding, "judge_sweep", judge)
    monkeypatch.setattr(running, "finish", finish)
    outcomes = deciding.decide(explored.sweep.workdir, "test", lambda line: None)
    assert len(outcomes) == len(calls) == looks
    assert {str(folder) for folder, _ in calls} == {"decided/split"}
    assert calls[0][1] == [*LOOKS[:-1]]


def test_seeds_of_its_own_that_failed_are_tried_again(explored, monkeypatch):
    failed = frozenset({"shards/a"})
    of = explored.decisions["split"]._replace(reason=Reason.FAILED)
    found = explored._replace(decisions={"split": of})
    monkeypatch.setattr(deciding.store, "header_of", lambda folder: {"config": {}})
    monkeypatch.setattr(deciding, "looks_left", lambda folder: False)
    for failures, settled in ((failed, False), (frozenset(), True)):
        state = Progress(frozenset(), failures, frozenset())
        monkeypatch.setattr(deciding, "progress", lambda folder, state=state: state)
        assert deciding._nothing_left(found, "split") == settled


def test_a_paper_and_a_recording_are_not_decided_on():
    with pytest.raises(UserError, match="recorded runs alone"):
        deciding.check(parse({"data": {"name": "wire", "dir": "x"}}))
