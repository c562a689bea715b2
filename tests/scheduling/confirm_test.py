"""What is switched on, judged again on fresh seeds."""

import shutil

import pytest

import vfljax
from vfljax.errors import UserError
from vfljax.report import fresh
from vfljax.report.decision import LOOKS, Answer
from vfljax.report.sweep_answers import judge_sweep
from vfljax.scheduling import running
from vfljax.scheduling.work import Outcome


@pytest.fixture(scope="module")
def judged(tiny_sweep):
    return judge_sweep(tiny_sweep)


@pytest.fixture
def switching_on(monkeypatch, judged):
    """Makes the configuration with this label the one that is switched on, without a top model."""

    def switch_on(label=None):
        def judge(workdir):  # a copy of the sweep
            found = judged
            rows = found.leading[found.leading["label"] == label].to_dict("records")
            point = rows[-1] if rows else None
            decisions = {
                panel: of._replace(
                    answer=Answer.SWITCH_ON if point else of.answer, point=point, leading=None
                )
                for panel, of in found.decisions.items()
            }
            return found._replace(decisions=decisions)

        for module in (fresh, running):
            monkeypatch.setattr(module, "judge_sweep", judge)

    return switch_on


def test_fresh_seeds_follow_all_that_a_decision_may_use_and_have_one_point_alone(
    tiny_sweep, switching_on
):
    switching_on()
    assert fresh.fields(tiny_sweep) is None
    switching_on("kdk epsilon=.45 k=3")
    fields = fresh.fields(tiny_sweep)
    assert (fields["first_seed"], fields["seeds"]) == (2 + LOOKS[-1], fresh.SEEDS)
    assert fields["grid"] == {
        "undefended": {},
        "kdk epsilon=.45 k=3": {"kdk": {"epsilon": 0.45, "k": 3}},
    }


def test_what_is_switched_on_is_trained_beside_undefended_and_judged(
    tiny_sweep, workdir, switching_on, monkeypatch
):
    said, asked = [], []

    def finish(experiment, folder, *rest):
        asked.append(experiment)
        shutil.copytree(tiny_sweep, folder)
        return Outcome({})

    monkeypatch.setattr(running, "finish", finish)
    switching_on()
    running.confirm(workdir, "test", said.append)
    assert said == [fresh.NOTHING]
    assert judge_sweep(workdir).confirmed is None
    switching_on("noise scale=.01")
    running.confirm(workdir, "test", said.append)
    (experiment,) = asked
    assert [*experiment.grid] == ["undefended", "noise scale=.01"]
    confirmed = judge_sweep(workdir).confirmed
    assert {"undefended", "noise scale=.01"} <= {*confirmed.verdicts["label"]}
    assert experiment.seeds == fresh.SEEDS
    # the folder has other first seeds and another grid than what is switched on
    with pytest.raises(UserError, match="has the fresh seeds of another configuration"):
        running.confirm(workdir, "test", said.append)


def test_a_sweep_goes_on_before_anything_is_judged_again(workdir, switching_on, monkeypatch):
    switching_on("noise scale=.01")
    called = []
    for name in ("finish", "confirm"):
        monkeypatch.setattr(running, name, lambda *_, name=name: called.append(name) or Outcome({}))
    monkeypatch.setattr(running, "report", lambda *_: "")
    vfljax.run_sweep(None, workdir, confirm=True, decide=False, say=lambda line: None)
    assert called == ["finish", "confirm"]
