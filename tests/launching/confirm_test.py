"""What is recommended, judged again on fresh seeds."""

import pytest

from tests.sweeps import tiny, train
from vfljax import store
from vfljax.errors import UserError
from vfljax.launching import running
from vfljax.report import fresh
from vfljax.report.judged import judge_sweep

CONFIG = tiny(
    seeds=3,
    federations=("no_split",),
    attacks={"direct": {"rule": "most_negative"}},
    **{"training.epochs": 1},
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A sweep on three seeds, whose page has not been written."""
    workdir = tmp_path_factory.mktemp("confirm") / "w"
    train(workdir, CONFIG)
    return workdir


@pytest.fixture
def recommending(monkeypatch):
    """Makes the configurations with these labels the recommended ones."""

    def recommend(*labels):
        def judge(workdir):
            found = judge_sweep(workdir)
            chosen = found.verdicts["label"].isin(labels)
            assert chosen.sum() == len(labels)
            return found._replace(verdicts=found.verdicts.assign(recommended=chosen))

        monkeypatch.setattr(fresh, "judge_sweep", judge)

    return recommend


def test_fresh_seeds_follow_those_of_the_sweep_and_have_its_points_alone(trained, recommending):
    recommending()
    assert fresh.fields(trained) is None
    recommending("kdk epsilon=.45 k=3")
    fields = fresh.fields(trained)
    assert (fields["first_seed"], fields["seeds"]) == (3, fresh.SEEDS)
    assert fields["grid"] == {"undefended": {}, "kdk": {"kdk": {"epsilon": (0.45,), "k": (3,)}}}
    recommending("noise scale=.01")
    assert fresh.fields(trained)["grid"]["noise"] == {"noise": {"scale": [0.01]}}


def test_what_is_recommended_is_trained_beside_undefended_and_reported(trained, recommending):
    said = []
    recommending()
    running.confirm(trained, "test", said.append)
    assert said == [fresh.NOTHING]
    recommending("noise scale=.01")
    running.confirm(trained, "test", said.append)
    rows = store.load(trained / "confirmed").results.to_pylist()
    assert {(row["method"], row["seed"]) for row in rows} == {
        (method, seed) for method in ("undefended", "noise") for seed in (3, 4, 5)
    }
    confirmed = judge_sweep(trained).confirmed
    assert {*confirmed["label"]} == {"undefended", "noise scale=.01"}
    before = [*said]
    running.confirm(trained, "test", said.append)  # nothing is left to do
    assert not any("attack" in line for line in said[len(before) :])
    recommending("kdk epsilon=.45 k=3")
    with pytest.raises(UserError, match="confirmed has the fresh seeds of another recommendation"):
        running.confirm(trained, "test", said.append)
