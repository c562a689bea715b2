"""An audit of boosted trees, whole, on a small table with two attacks and two defenses."""

import pathlib
import types
from typing import Any

import numpy as np
import pytest

from tests.auditing.survey_test import ROWS, values, written
from tests.refusals import refused
from vfljax import attacks, defenses
from vfljax.api.audit import audit_trees
from vfljax.api.flags import taken
from vfljax.api.partitioned_table import partitioned_table
from vfljax.attack_runs import jobs
from vfljax.auditing import suite, survey, trees, trees_grid, trees_recording
from vfljax.config import as_axis, combinations
from vfljax.report import families
from vfljax.report.decision import Answer, Reason
from vfljax.report.next_command import settle
from vfljax.scheduling import running

GRID = """
def get_config():
    return {"boosting": {"rounds": 3, "depth": 2}, "grid": %s}
"""
OF_TREES = dict(suite.TREES)  # which a fixture replaces
DEFENSES = {"label_dp": {"epsilon": 0.1}, "first_trees": {"alone": (1, 2)}}


@pytest.fixture(scope="module", autouse=True)
def small():
    """No column is scored, no report is written, and attacks have one variant each."""
    pytest.importorskip("xgboost", reason="the extra trees is not installed")
    of_trees = {"direct": {"rule": "most_negative", "epoch": 0}, "cohabitation": {"names": "known"}}
    of_trees["node_spreading"] = {"blocks": "exchange"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(suite.TREES, "classification", of_trees)
        of_numbers = {**of_trees, "direct": {"epoch": 0}}
        of_numbers["posterior"] = suite.TREES["regression"]["posterior"]
        patch.setitem(suite.TREES, "regression", of_numbers)
        patch.setattr(survey, "_revealing", lambda dataset, owners: [])
        patch.setattr(survey, "_reach", lambda dataset, owners: ({}, ()))
        patch.setattr(running, "report", lambda folder, verbose=False: "")
        yield
    for name in [name for name in defenses.TABLE if name.startswith("wire:")]:
        defenses.TABLE.pop(name)


def again(folder: pathlib.Path, grid: Any = DEFENSES, **changes: Any) -> Any:
    (folder / "grid.py").write_text(GRID % grid)
    given = {"label": "y", "parties": "bank: age, job; telco: pay*", "workdir": folder / "out"}
    given |= {"plain": True, "trees_config": folder / "grid.py", "seeds": 2, "budget": 0}
    given |= {"say": lambda line: None, "data": folder / "t.csv", **changes}
    table = partitioned_table(**taken(partitioned_table, given))
    return audit_trees(table, **given)


@pytest.fixture(scope="module")
def stopped(tmp_path_factory):
    """The folder of an audit that was stopped at its fifth federation, and what was written until then."""
    folder = tmp_path_factory.mktemp("trees")
    written(folder / "t.csv", values())
    train, count = trees_recording.trees.train, iter(range(4))

    def killed(*given: Any) -> Any:
        if next(count, None) is None:
            raise KeyboardInterrupt
        return train(*given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trees_recording.trees, "train", killed)
        with pytest.raises(KeyboardInterrupt):
            again(folder)
    return folder, times(folder)


def times(folder: pathlib.Path) -> dict[pathlib.Path, int]:
    """When each file of a finished recording, shard and attack was written."""
    kinds = ("wires", "shards", "attacks")
    files = (path for kind in kinds for path in (folder / "out" / kind).rglob("*.*"))
    return {
        path: path.stat().st_mtime_ns
        for path in files
        if path.is_file() and ".tmp" not in str(path)
    }


@pytest.fixture(scope="module")
def finished(stopped):
    return stopped[0], again(stopped[0])


def test_what_a_stopped_audit_has_recorded_is_not_grown_again(stopped, finished):
    folder, before = stopped
    assert len({path.parent for path in before}) == 4
    after = times(folder)
    assert before.items() <= after.items()
    assert len([*(folder / "out" / "wires").iterdir()]) == 2 * (1 + 1 + 3)
    again(folder)
    assert times(folder) == after


def test_defenses_are_methods_with_knobs_and_utilities_of_their_own(finished):
    _, sweep = finished
    results = sweep.results.to_pandas()
    assert results.groupby("method")["seed"].agg(list).to_dict() == {
        "undefended": [0, 1],
        "label_dp": [0, 1],
        "first_trees": [0, 1, 0, 1],
    }
    assert {*results["wire:first_trees.alone"].dropna()} == {1, 2}
    trials = sweep.judged.trials
    assert trials[["test_utility", "validation_utility"]].notna().all(axis=None)
    bare = trials["method"] == "undefended"
    assert trials.loc[bare, "alone_test"].notna().all()
    assert trials.loc[~bare, "test_utility"].nunique() > 1
    claimed = sweep.verdicts().set_index("method")["epsilon claimed"]
    assert claimed["label_dp"] == pytest.approx(0.1)
    assert claimed.drop("label_dp").isna().all()


def test_plain_gradients_show_all_labels_unless_these_are_randomized(finished):
    _, sweep = finished
    leaks = sweep.attack_rows("direct").groupby("method")["leak"].agg(["min", "max"])
    assert leaks.loc["undefended", "min"] == 1
    assert leaks.loc["first_trees", "min"] == 1  # of the first tree that is told
    assert leaks.loc["label_dp", "max"] < 0.8
    assert {*sweep.leaks()["attack"]} == {"direct", "cohabitation", "node_spreading"}


def test_numbers_are_audited_with_plain_gradients_and_with_encrypted_ones(tmp_path, monkeypatch):
    """Plain ones are the labels but for their mean; nodes alone read less, and noise costs R²."""
    given, rng = values(), np.random.default_rng(3)
    amount = np.array(given["pay"]) + 0.3 * rng.normal(size=ROWS)
    written(tmp_path / "t.csv", given | {"y": np.round(50 + 10 * amount, 2).tolist()})
    grid = {"label_dp": {"epsilon": 1.0}}
    numbers, every = {"task": "regression", "seeds": 1}, suite.TREES["regression"]
    of_gradients = {name: every[name] for name in ("direct", "posterior")}
    with monkeypatch.context() as patch:  # what reads nodes is run on them alone
        patch.setitem(suite.TREES, "regression", of_gradients)
        plain = again(tmp_path, grid, label_range=(20.0, 80.0), **numbers)
    leaks = plain.attack_rows("direct").groupby("method")["leak"].max()
    assert leaks["undefended"] == 1
    assert leaks["label_dp"] < 0.9
    weighed = plain.attack_rows("posterior").groupby("method")["leak"].max()
    assert weighed["label_dp"] > leaks["label_dp"] + 0.02
    of = families.Applying(plain.judged.experiment, plain.judged.sweep.header, ["no_split"], {})
    assert "posterior" in of.families("no_split", "")
    assert plain.verdicts().set_index("method")["known_by"].all()
    facts, trials = plain.judged.facts, plain.results.to_pandas().set_index("method")
    assert (facts.scale, facts.utility) == ("concordance", "R²")
    assert trials.loc["undefended", "test_r2"] > max(0.3, trials.loc["label_dp", "test_r2"])
    assert plain.verdicts().set_index("method").loc["label_dp", "epsilon claimed"] == 1.0
    (tmp_path / "encrypted").mkdir()
    (tmp_path / "t.csv").rename(tmp_path / "encrypted" / "t.csv")
    hidden = again(tmp_path / "encrypted", grid, plain=False, **numbers)
    # without bounds nothing is randomized
    assert {*hidden.results.to_pandas()["method"]} == {"undefended"}
    assert "need label_range" in " ".join(hidden.config["notes"])
    assert {*hidden.leaks()["attack"]} == {"cohabitation", "node_spreading"}
    for name in ("cohabitation", "node_spreading"):
        assert hidden.attack_rows(name)["leak"].max() > 0.6


def test_a_graph_of_nodes_reads_the_paths_of_all_trees(tmp_path):
    # the label is all that the only tree's splits read, so that a path names it
    given = values()
    truth = np.array(given["y"]) == "yes"
    written(tmp_path / "t.csv", given | {"pay1": truth + 0.0})
    sweep = again(tmp_path, {}, told="all", plain=False, seeds=1)
    assert sweep.attack_rows("node_spreading")["leak"].min() > 0.95


def test_attacks_that_need_gradients_are_skipped_where_these_are_encrypted():
    """An attack that ran on zeros would be constant, hence not tried, and the answer would stay open."""
    encrypted = types.SimpleNamespace(missing=("gradients",), trees=True)
    for classes, task in ((2, "classification"), (1, "regression")):
        for name, options in OF_TREES[task].items():
            static = {k: as_axis(v) for k, v in options.items() if k in attacks.TABLE[name].options}
            for chosen in combinations(static, name):
                attack = attacks.TABLE[name]((suite.BOTTOM,), classes, **chosen)
                needs = name in ("direct", "node_posterior", "posterior")
                assert bool(jobs._lacking(attack, encrypted)) == needs, (name, chosen)


def test_candidates_are_grown_on_seeds_that_follow(finished, monkeypatch):
    folder, sweep = finished
    found, asked = sweep.judged, []
    first = found.decisions["no_split"]
    monkeypatch.setattr(trees.deciding, "panels", lambda found: ["no_split"])
    of = found.leading[found.leading["method"] == "first_trees"].to_dict("records")
    monkeypatch.setattr(trees.decision, "next_candidates", lambda *_: of[:1])
    monkeypatch.setattr(
        trees.wires, "attack", lambda request, place, *rest: asked.append((request, place))
    )
    again(folder)
    (audit, place), (request, apart) = asked
    assert (place, apart) == (folder / "out", folder / "out" / "decided" / "no_split")
    assert {*request.methods} == {"undefended", "first_trees"}
    (point,) = request.methods["first_trees"]
    assert point.knobs == {"alone": 1}
    assert len(point.runs) == trees.SEEDS
    runs = [{pathlib.Path(run).name for run in of.bare.runs} for of in (audit, request)]
    assert not runs[0] & runs[1]  # none of the seeds that explored
    assert request.known == audit.known
    assert first.answer is Answer.OPEN
    assert settle(found, "no_split", first._replace(reason=Reason.NOT_ASKED)) == ()


def test_a_row_of_the_records_is_a_row_of_the_table(finished):
    _, sweep = finished
    records = sweep.records()
    of = records[records["label"] == "undefended"]
    assert of["row"].is_unique
    assert of["row"].max() < ROWS
    assert {*of["runs"]} == {1, 2}
    labels, rows = sweep.splits()["labels"], sweep.splits()["rows"]
    truth = np.array(values()["y"]) == "yes"
    np.testing.assert_array_equal(labels, truth[rows])


def test_more_defenses_are_added_and_other_trees_are_refused(finished):
    folder, _ = finished
    before = times(folder)
    with refused("holds an audit of 2 seeds of other trees"):
        again(folder, DEFENSES | {"deep": {"depth": 3}})  # which pads all wires
    kept = {path: time for path, time in times(folder).items() if path in before}
    assert kept == before
    sweep = again(folder, DEFENSES | {"purity": {"cover": 0.2}})
    assert before.items() <= times(folder).items()
    assert "purity" in {*sweep.results.to_pandas()["method"]}


def test_who_is_told_all_nodes_has_what_he_is_told_of_his_own_beside_it(tmp_path):
    written(tmp_path / "t.csv", values())
    grid = {"first_trees": {"alone": 1}}
    sweep = again(tmp_path, grid, told="all", plain=False, seeds=1)
    wires = {
        path.name.split("-")[0]: np.load(path / "party0_nodes.npy")
        for path in (tmp_path / "out" / "wires").iterdir()
        if (path / "party0_nodes.npy").exists()
    }
    told = {method: np.mean(nodes >= 0, axis=(1, 2)) for method, nodes in wires.items()}
    assert (told["undefended"] == 1).all()
    assert (told["first_trees"] == 1).all()
    assert (told["told_own"] < 1).any()
    methods = sweep.verdicts().set_index("method")
    assert methods.loc["told_own", "utility"] == methods.loc["undefended", "utility"]
    assert methods["known_by"].all()


@pytest.mark.parametrize(
    ("grid", "says"),
    [
        ({"first": {"alone": 3}}, "grid.first.alone=3 leaves no round"),
        ({"first": {"alone": 1.5}}, "grid.first.alone=1.5 is no whole number"),
        ({"first": {"rate": 0.1}}, "rate"),
        ({"first": {"depth": ()}}, "is empty"),
        ({"first": 3}, "is no group"),
        ([1, 2], "is no group"),
        ({"undefended": {"alone": 3}}, "is a name that every audit gives"),
        ({"told_own": {"alone": 3}}, "is a name that every audit gives"),
        ({"first": {"told": "all"}}, "told"),
        ({"first trees": {"alone": 1}}, "is no name"),
    ],
)
def test_a_grid_that_cannot_be_grown_gives_one_line(grid, says, tmp_path):
    (tmp_path / "grid.py").write_text(GRID % grid)
    with refused(says):
        trees_grid.grid_of(str(tmp_path / "grid.py"))


def test_the_grid_that_comes_with_the_package_has_three_strengths_at_most():
    grid = trees_grid.grid_of(trees_grid.CONFIG)
    assert grid.points["undefended"] == [{}]
    assert all(len(points) <= 3 for points in grid.points.values())


def test_what_parties_are_told_is_their_own_or_all(tmp_path):
    with refused("told 'some'"):
        again(tmp_path, told="some")


def test_the_families_that_apply_to_trees_are_those_of_their_suite():
    for task, of_numbers in (("classification", False), ("regression", True)):
        assert {*OF_TREES[task]} == families.OF_TREES[of_numbers]
