"""``vfljax.tune``: searched in batches, gone on with after a kill, and confirmed."""

import math

import pytest

import vfljax
from tests.damage import Killed
from tests.refusals import refused
from tests.sweeps import plan_of, tiny
from vfljax.library import tuning

optuna = pytest.importorskip("optuna", reason="the extra 'tune' is not installed")
RANGES = {"noise": {"scale": (1e-3, 1.0, "log")}, "compression": {"keep_rate": (0.1, 1.0)}}
TABLE = {"name": "breast_cancer", "train": 64, "validation": 64, "test": 64}
CONFIG = tiny(data=TABLE, attacks={"norm": {}}, federations=("split",), **{"training.epochs": 1})
QUIET = {"say": lambda line: None}


def search(folder, patch, **changes):
    """A search whose figures follow from the knobs, without training: what it found, and what it asked of the
    sweep of each folder."""
    configs = {}

    def judged(config, folder, say):
        configs[folder.name] = config
        figures = {}
        for method, chain in config["grid"].items():
            scale = chain.get("noise", {}).get("scale", 1.0)
            leak = math.nan if scale > 0.4 else 0.9 - scale
            utility = 0.9 - scale**2
            figures[method] = {"validation_utility": utility, "test_utility": 0.8, "leak": leak}
        return None, figures

    patch.setattr(tuning, "judge", judged)
    asked = {"points": 2, "batches": 2, "confirm": 3, **changes}
    return tuning.tune(RANGES, CONFIG, folder, **asked), configs


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        return search(tmp_path_factory.mktemp("whole"), patch)


def test_every_batch_has_as_many_points_of_every_defense(whole):
    tuned, configs = whole
    assert [*configs] == ["batch-0", "batch-1", "confirmed-2"]
    for name in ("batch-0", "batch-1"):
        defenses = [next(iter(chain)) for chain in configs[name]["grid"].values()]
        assert defenses == ["noise", "noise", "compression", "compression"]
        assert configs[name]["seeds"] == CONFIG["seeds"]
    frame = tuned.frame()
    assert len(frame) == 8
    assert frame["noise.scale"].dropna().between(1e-3, 1).all()
    # the first batch is at the middles of equal parts, of decades where the range is on a log scale
    first = frame[frame["batch"] == 0]
    assert sorted(first["noise.scale"].dropna()) == pytest.approx([10**-2.25, 10**-0.75])
    assert sorted(first["compression.keep_rate"].dropna()) == pytest.approx([0.325, 0.775])


def test_the_frontier_is_confirmed_on_fresh_seeds_beside_undefended(whole):
    tuned, configs = whole
    for point in tuned.frontier:
        assert not any(
            p["leak"] < point["leak"] and p["validation_utility"] > point["validation_utility"]
            for p in tuned.points
        )
    fresh = configs["confirmed-2"]
    assert (fresh["first_seed"], fresh["seeds"]) == (2, 3)
    confirmed = [p["method"] for p in tuned.points if "fresh_leak" in p]
    assert set(fresh["grid"]) == {"undefended", *confirmed}
    assert set(confirmed) <= {point["method"] for point in tuned.frontier}
    assert 0 < len(confirmed) <= 3


@pytest.mark.parametrize(("name", "call"), [("tell", 2), ("ask", 5), ("ask", 6)])
def test_a_search_that_was_killed_goes_on_as_if_it_was_not(whole, tmp_path, name, call):
    """Between two tells, between the last tell and the next ask, and between two asks."""
    original, calls = getattr(optuna.Study, name), []

    def kill(*args, **kwargs):
        calls.append(name)
        if len(calls) == call:
            raise Killed
        return original(*args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(optuna.Study, name, kill)
        with pytest.raises(Killed):
            search(tmp_path, patch)
    with pytest.MonkeyPatch.context() as patch:
        tuned, configs = search(tmp_path, patch)
        assert configs == whole[1]
        assert tuned.frame().equals(whole[0].frame())
        more, configs = search(tmp_path, patch, batches=1, confirm=0)
        assert len(more.points) == 8  # what is stored is not cut
        assert [*configs] == ["batch-0", "batch-1"]


def test_a_point_that_was_half_asked_for_is_asked_for_anew(tmp_path):
    with pytest.MonkeyPatch.context() as patch:
        search(tmp_path, patch, batches=1)
        storage = f"sqlite:///{tmp_path / tuning.STUDY}"
        (name,) = optuna.get_all_study_names(storage)
        optuna.load_study(study_name=name, storage=storage).ask()  # without its knobs
        tuned, configs = search(tmp_path, patch)
    assert [*configs["batch-1"]["grid"]] == ["noise 5", "noise 6", "compression 7", "compression 8"]
    assert len(tuned.points) == 8


def test_batches_share_their_programs_and_shapes(whole):
    """Without training: groups and shards of the plans are the same."""
    plans = [plan_of(whole[1][f"batch-{n}"]) for n in range(2)]
    shapes = [([(g.spec, len(g.trials)) for g in plan.groups], plan.shards) for plan in plans]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("nosie", "did you mean 'noise'?"),
        ("max_norm", "no knob of max_norm has a range"),
        ({"noise": {"scale": 0.1}}, "no knob of noise has a range: give one of scale."),
        ({"noise": {"scale": (1, 0.1)}}, "noise.scale=(1, 0.1) is no range: give (low, high)"),
        ({"noise": {"scale": (0, 1, "log")}}, "is no range"),
        ({"noise": {"scale": (0, 1, "lgo")}}, "is no range"),
        ({"noise": (0, 1)}, "noise=(0, 1) names no knob: give {'noise': {KNOB: (LOW, HIGH)}}"),
        ({}, "no defense to search"),
        (5, "unknown defense 5"),
    ],
)
def test_what_cannot_be_searched_is_one_line(tmp_path, given, words):
    with refused(words):
        vfljax.tune(given, CONFIG, tmp_path / "w")
    assert not (tmp_path / "w").exists()


def test_a_wrong_count_or_a_damaged_study_is_one_line(tmp_path):
    with refused("points=0 is no whole number of at least 1"):
        vfljax.tune("noise", CONFIG, tmp_path, points=0)
    with refused("seed='a' is no whole number of at least 0"):
        vfljax.tune("noise", CONFIG, tmp_path, seed="a")
    (tmp_path / tuning.STUDY).write_text("no database" * 1000)
    with refused("Optuna, of tune.sqlite3, refuses"):
        vfljax.tune("noise", CONFIG, tmp_path)


def test_a_name_alone_stands_for_the_range_of_its_strengths():
    def searched(name, **given):
        return tuning._searched(optuna, name, given)

    real, whole = optuna.distributions.FloatDistribution, optuna.distributions.IntDistribution
    assert searched("noise")[1] == {"noise.scale": real(1e-4, 0.1, log=True)}
    assert searched("kdk")[1] == {"kdk.epsilon": real(0.1, 0.45)}
    assert searched("discrete_sgd")[1] == {"discrete_sgd.intervals": whole(2, 24)}
    assert searched("kdk", epsilon=(0.1, 0.3))[0] == {"epsilon": (0.1, 0.3), "k": 2}


@pytest.mark.slow
def test_the_second_batch_compiles_nothing_and_another_search_is_refused(tmp_path, every_program):
    asked = {"config": CONFIG, "workdir": tmp_path, "points": 2, "confirm": 0, **QUIET}
    tuning.tune("noise", batches=1, **asked)
    programs = len(every_program)
    tuned = tuning.tune("noise", batches=2, **asked)
    assert len(every_program) == programs > 0
    assert all(0 <= point["leak"] <= 1 for point in tuned.points)
    assert [sweep.header["command"] for sweep in tuned.sweeps] == ["vfljax.tune"] * 2
    with refused("holds another sweep", "Nothing was changed"):
        tuning.tune("noise", batches=1, **{**asked, "points": 3})
