"""What is recommended, judged again on fresh seeds."""

import shutil

import pytest

from vfljax.errors import UserError
from vfljax.launching import running
from vfljax.launching.work import Outcome
from vfljax.report import fresh
from vfljax.report.judged import judge_sweep


@pytest.fixture
def recommending(monkeypatch):
    """Makes the configurations with these labels the recommended ones."""

    def recommend(*labels):
        def judge(workdir):
            found = judge_sweep(workdir)
            chosen = found.verdicts["label"].isin(labels)
            assert chosen.any() == bool(labels)
            return found._replace(verdicts=found.verdicts.assign(recommended=chosen))

        monkeypatch.setattr(fresh, "judge_sweep", judge)

    return recommend


def test_fresh_seeds_follow_those_of_the_sweep_and_have_its_points_alone(tiny_sweep, recommending):
    recommending()
    assert fresh.fields(tiny_sweep) is None
    recommending("kdk epsilon=.45 k=3")
    fields = fresh.fields(tiny_sweep)
    assert (fields["first_seed"], fields["seeds"]) == (2, fresh.SEEDS)
    assert fields["grid"] == {"undefended": {}, "kdk": {"kdk": {"epsilon": (0.45,), "k": (3,)}}}


def test_what_is_recommended_is_trained_beside_undefended_and_judged(
    tiny_sweep, workdir, recommending, monkeypatch
):
    said, asked = [], []

    def finish(experiment, folder, *rest):
        asked.append(experiment)
        shutil.copytree(tiny_sweep, folder)
        return Outcome({})

    monkeypatch.setattr(running, "finish", finish)
    recommending()
    running.confirm(workdir, "test", said.append)
    assert said == [fresh.NOTHING]
    assert not len(judge_sweep(workdir).confirmed)
    recommending("noise scale=.01")
    running.confirm(workdir, "test", said.append)
    (experiment,) = asked
    assert ([*experiment.grid], experiment.first_seed) == (["undefended", "noise"], 2)
    confirmed = judge_sweep(workdir).confirmed
    assert {"undefended", "noise scale=.01"} <= {*confirmed["label"]}
    # the folder has other seeds and another grid than are recommended
    with pytest.raises(UserError, match="confirmed has the fresh seeds of another recommendation"):
        running.confirm(workdir, "test", said.append)
