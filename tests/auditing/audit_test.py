"""An audit, whole, on a small table with one attack and one defense."""

import pathlib
import runpy
import shutil
import types
from collections.abc import Iterator, Sequence
from typing import Any

import pandas as pd
import pytest

from tests.auditing.survey_test import values, written
from tests.refusals import refused
from vfljax import store
from vfljax.api import audit as auditing
from vfljax.api.audit import audit
from vfljax.api.flags import taken
from vfljax.api.partitioned_table import partitioned_table
from vfljax.attack_runs import run
from vfljax.auditing import run as audit_run
from vfljax.auditing import suite, survey
from vfljax.config import Goal
from vfljax.scheduling import running
from vfljax.scheduling.work import Outcome
from vfljax.store.loading import TIMES
from vfljax.store.units import ATTACK
from vfljax.sweep.grid import parse

# the label party has no columns, so that it is not trained alone
PARTIES = "bank:; telco: pay*, job"


@pytest.fixture(scope="module", autouse=True)
def small() -> Iterator[None]:
    """Audits have one attack, one defense, linear models, few epochs, and stages of one seed; no column is
    scored, and no report is written."""
    model = suite.model(2) | {"hidden": (), "top": "head", "top_hidden": ()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "model", lambda classes: model)
        patch.setitem(suite.SUITES, "classification", {"mean": {"scores": "distance"}})
        patch.setattr(suite, "applicable", lambda values, plan: (["noise"], {}))
        patch.setattr(suite, "EPOCHS", (2, 2))
        patch.setattr(survey, "_revealing", lambda dataset, owners: [])
        patch.setattr(survey, "_reach", lambda dataset, owners: ({}, ()))
        patch.setattr(suite, "FEWEST_SEEDS", 1)
        patch.setattr(running, "report", lambda folder, verbose=False: "")
        yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> pathlib.Path:
    """The folder of a table and of its audit."""
    folder = tmp_path_factory.mktemp("audit")
    written(folder / "t.csv", values())
    again(folder)
    return folder


@pytest.fixture
def copied(finished, tmp_path) -> pathlib.Path:
    return shutil.copytree(finished, tmp_path / "copy")


def again(folder: pathlib.Path, **changes: Any) -> Any:
    given = {"data": folder / "t.csv", "label": "y", "parties": PARTIES, "workdir": folder / "out"}
    given |= {"seeds": 2, "budget": 0, "say": lambda line: None, **changes}
    table = partitioned_table(**taken(partitioned_table, given))
    return audit(table, **given)


def units(folder: pathlib.Path) -> dict[pathlib.Path, int]:
    """When each file of a finished unit was written."""
    kinds = ("shards", "attacks", "local_only")
    files = (path for kind in kinds for path in (folder / "out" / kind).rglob("*.parquet"))
    return {path: path.stat().st_mtime_ns for path in files if ".tmp" not in str(path)}


def tables(folder: pathlib.Path) -> list[pd.DataFrame]:
    sweep = store.load(folder / "out")
    dropped = [*TIMES, "shard", "member"]
    return [
        table.to_pandas().drop(columns=dropped, errors="ignore")
        for table in (sweep.results, sweep.attacks)
    ]


def test_it_is_one_sweep_of_three_strengths_whose_config_is_a_file(finished):
    sweep = store.load(finished / "out")
    sweep.require_finished()
    results = sweep.results.to_pandas()
    # the first, the middle and the last of the row
    assert {*results["noise.scale"].dropna()} == {1e-4, 1e-2, 0.1}
    seeds = results.groupby("configuration")["seed"].agg(set)
    assert len(seeds) == 1 + 3
    assert all(of == {0, 1} for of in seeds)
    assert {*sweep.attacks.to_pandas()["label"]} >= {"mean/distance"}
    config = runpy.run_path(str(finished / "out" / "config.py"))["get_config"]()
    assert parse(config).stored == sweep.config
    shards = store.read_header(finished / "out")["shards"]
    # a stage compiles no program that an earlier one has
    programs = {(shard["group"], shard["capacity"]) for shard in shards}
    assert len(programs) == len({group for group, _ in programs}) == 2
    assert len(shards) > len(programs)


def test_the_same_call_trains_nothing_again_but_fresh_seeds_canaries_and_controls(
    finished, monkeypatch
):
    finish, beside = running.finish, []

    def of_the_audit(experiment: Any, workdir: pathlib.Path, *rest: Any, **more: Any) -> Outcome:
        if workdir == finished / "out":
            return finish(experiment, workdir, *rest, **more)
        beside.append((workdir.name, experiment.canaries))
        return Outcome({})

    monkeypatch.setattr(running, "finish", of_the_audit)
    monkeypatch.setattr(running, "confirm", lambda *_: beside.append("confirmed") or Outcome({}))
    monkeypatch.setattr(running, "control", lambda *_: beside.append("controls") or [Outcome({})])
    planted = {**store.load(finished / "out").config, "canaries": 7}
    monkeypatch.setattr(suite, "canaries", lambda values, rows: planted)
    before, lines = units(finished), []
    again(finished, confirm=True, canaries=True, controls=True, say=lines.append)
    assert units(finished) == before
    assert "  telco: 3 columns" in lines
    assert "undefended and 1 defense at 3 operating points, 2 seeds" in lines
    assert "  attackers: telco, who know 32 labels; federations: split, malicious" in lines
    assert beside == ["confirmed", ("canaries", 7), "controls"]


def test_an_audit_that_is_killed_or_out_of_time_goes_on_and_ends_the_same(
    finished, tmp_path, monkeypatch
):
    written(tmp_path / "t.csv", values())

    def killed(made: Sequence[store.Unit], *given: Any) -> None:
        if made[0].kind == ATTACK:
            raise KeyboardInterrupt
        make(made, *given)

    make = run.run_units
    with monkeypatch.context() as patch:
        patch.setattr(run, "run_units", killed)
        with pytest.raises(KeyboardInterrupt):
            again(tmp_path)
    begun = units(tmp_path)
    assert begun
    # the clock counts units: the attack on undefended, and the defense's first shard
    clock = types.SimpleNamespace(monotonic=lambda: len(units(tmp_path)))
    with monkeypatch.context() as patch:
        for module in (auditing, audit_run):
            patch.setattr(module, "time", clock)
        sweep = again(tmp_path, budget=2)
    before = units(tmp_path)
    assert len(before) == len(begun) + 2
    results = sweep.results.to_pandas()
    assert {*results.loc[results["method"] == "undefended", "seed"]} == {0, 1}
    assert {*results.loc[results["method"] == "noise", "seed"]} == {0}
    assert {*results["noise.scale"].dropna()} == {1e-2}  # the middle strength comes first
    assert sweep.attacks.num_rows
    assert sweep.unfinished
    assert not again(tmp_path).unfinished
    for earlier in (begun, before):
        assert {path: units(tmp_path)[path] for path in earlier} == earlier
    for table, whole in zip(tables(tmp_path), tables(finished), strict=True):
        pd.testing.assert_frame_equal(table, whole[table.columns], rtol=1e-5)


def test_more_seeds_and_a_goal_continue_what_is_there_also_where_the_table_has_moved(copied):
    (copied / "t.csv").rename(copied / "u.csv")
    before = units(copied)
    sweep = again(copied, data=copied / "u.csv", seeds=3, goal=Goal(max_leak=0.7), budget=1e-9)
    assert units(copied) == before
    assert sweep.unfinished
    assert (sweep.config["seeds"], sweep.config["goal"]["max_leak"]) == (3, 0.7)
    plan = running.stored_plan(copied / "out", unfinished=True)
    assert plan.experiment.data.dir == str(copied / "u.csv")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"known": 20}, "known is 20, and"),
        ({"parties": "bank: age; telco: pay*, job"}, "parties: "),
        ({"data": "another"}, "values of the data set have changed"),
        ({"seeds": 1}, "trials that this config leaves out"),
    ],
)
def test_another_audit_is_refused_and_nothing_changes(finished, tmp_path, changes, says):
    if changes.get("data"):
        changes = {"data": written(tmp_path / "other.csv", values(1))}
    header = (finished / "out" / "sweep.json").read_bytes()
    with refused(says):
        again(finished, **changes)
    assert (finished / "out" / "sweep.json").read_bytes() == header


def test_another_number_of_known_labels_is_refused_before_the_table_is_read(finished, monkeypatch):
    monkeypatch.setattr(audit_run, "survey", lambda *_: pytest.fail("the table was surveyed"))
    with refused("known is 20, and"):
        again(finished, known=20)


def test_what_is_refused_leaves_the_folder_free(finished, tmp_path):
    with refused("known=500 "):
        again(finished, workdir=tmp_path / "out", known=500)
    assert not (tmp_path / "out").exists()


def test_a_frame_is_audited_and_another_one_is_refused(finished, tmp_path):
    frame = pd.read_csv(finished / "t.csv").rename(columns={"y": 3})
    parties = {"bank": ["age", "job"], "telco": ["pay*"]}
    given = {"label": 3, "parties": parties, "workdir": tmp_path, "budget": 1e-9}
    for table in (frame, frame):
        # it is read, planned and stored
        with refused("the budget ended before anything was trained"):
            again(finished, **given, data=table)
    assert store.read_header(tmp_path)["config"]["data"]["options"]["label"] == "3"
    with refused("another frame"):
        again(finished, **given, data=frame[:50])
