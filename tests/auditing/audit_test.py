"""An audit, whole, on a small table with a few attacks and defenses."""

import pathlib
import runpy
import shutil
import types
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

from tests.auditing.survey_test import PARTIES, values, written
from tests.refusals import refused
from vfljax import store
from vfljax.api import audit as auditing
from vfljax.api.audit import audit
from vfljax.attacking import run
from vfljax.auditing import run as audit_run
from vfljax.auditing import suite
from vfljax.launching import running
from vfljax.launching.work import Outcome
from vfljax.store.loading import TIMES
from vfljax.store.units import ATTACK
from vfljax.sweep.grid import parse

SUITE = {"norm": {}, "mean": {"scores": "distance"}}
DEFENSES = ["noise", "max_norm"]


@pytest.fixture(scope="module", autouse=True)
def few() -> Iterator[None]:
    """Audits have few attacks and defenses."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(suite, "ATTACKS", SUITE)
        patch.setattr(suite, "applicable", lambda values, plan: (DEFENSES, {}))
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
    given = {"label": "y", "parties": PARTIES, "workdir": folder / "out", "seeds": 4, "budget": 0}
    given |= {"say": lambda line: None, "table": folder / "t.csv"}
    return audit(**{**given, **changes})


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


def test_it_is_one_sweep_of_three_strengths_with_a_report(finished):
    sweep = store.load(finished / "out")
    sweep.require_finished()
    results = sweep.results.to_pandas()
    scales = {1e-4, 1e-2, 0.1}  # the first, the middle and the last of the row
    assert {*results["noise.scale"].dropna()} == scales
    seeds = results.groupby("configuration")["seed"].agg(set)
    assert len(seeds) == 1 + len(scales) + 1
    assert all(of == {0, 1, 2, 3} for of in seeds)
    assert {*sweep.attacks.to_pandas()["label"]} >= {"norm", "mean/distance"}
    assert "telco" in (finished / "out" / "report.html").read_text()


def test_its_config_file_is_the_config_of_its_sweep(finished):
    config = runpy.run_path(str(finished / "out" / "config.py"))["get_config"]()
    assert parse(config).stored == store.load(finished / "out").config


def test_a_stage_compiles_no_program_that_an_earlier_one_has(finished):
    shards = store.read_header(finished / "out")["shards"]
    programs = {(shard["group"], shard["capacity"]) for shard in shards}
    assert len(programs) == len({group for group, _ in programs}) == 3
    assert len(shards) > len(programs)


def test_the_same_call_trains_nothing_again_but_fresh_seeds_and_canaries(finished, monkeypatch):
    finish, beside = running.finish, []

    def of_the_audit(experiment: Any, workdir: pathlib.Path, *rest: Any, **more: Any) -> Outcome:
        if workdir == finished / "out":
            return finish(experiment, workdir, *rest, **more)
        beside.append((workdir.name, experiment.canaries))
        return Outcome({})

    monkeypatch.setattr(running, "finish", of_the_audit)
    monkeypatch.setattr(running, "confirm", lambda workdir, *rest: Outcome({}))
    planted = {**store.load(finished / "out").config, "canaries": 7}
    monkeypatch.setattr(suite, "canaries", lambda values, rows: planted)
    before = units(finished)
    again(finished, confirm=True, canaries=True)
    assert units(finished) == before
    assert beside == [("canaries", 7)]


def test_an_audit_that_is_killed_or_out_of_time_goes_on_and_ends_the_same(
    finished, tmp_path, monkeypatch
):
    written(tmp_path / "t.csv", values())
    make = run.run_unit

    def killed(unit: store.Unit, stored: Any) -> None:
        if unit.kind == ATTACK:
            raise KeyboardInterrupt
        make(unit, stored)

    monkeypatch.setattr(run, "run_unit", killed)
    with pytest.raises(KeyboardInterrupt):
        again(tmp_path)
    monkeypatch.undo()
    begun = units(tmp_path)
    assert begun
    # the clock counts units: two attacks on undefended, and the first defense's shard
    clock = types.SimpleNamespace(monotonic=lambda: len(units(tmp_path)))
    with monkeypatch.context() as patch:
        for module in (auditing, audit_run):
            patch.setattr(module, "time", clock)
        sweep = again(tmp_path, budget=3)
    before = units(tmp_path)
    assert len(before) == len(begun) + 3
    results = sweep.results.to_pandas()
    assert {*results["method"]} == {"undefended", "noise"}
    assert {*results.loc[results["method"] == "undefended", "seed"]} == {0, 1, 2, 3}
    assert {*results.loc[results["method"] == "noise", "seed"]} == {0, 1, 2}
    assert sweep.attacks.num_rows
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Not reached, so that nothing is known of them: max_norm." in page
    assert "noise at 1 of 3" in page
    assert not again(tmp_path).unfinished
    for earlier in (begun, before):
        assert {path: units(tmp_path)[path] for path in earlier} == earlier
    for table, whole in zip(tables(tmp_path), tables(finished), strict=True):
        pd.testing.assert_frame_equal(table, whole[table.columns], rtol=1e-5)


def test_more_seeds_attacks_and_strengths_continue_what_is_there(copied, monkeypatch):
    given = {"noise": (1e-4, 1e-3, 1e-2, 0.1), "max_norm": ()}
    monkeypatch.setattr(suite, "ATTACKS", {**SUITE, "median": {"scores": "distance"}})
    monkeypatch.setattr(suite, "strengths", given.__getitem__)
    before = units(copied)
    sweep = again(copied, seeds=5, max_leak=0.7)
    assert {path: units(copied)[path] for path in before} == before
    assert not sweep.unfinished
    frame = sweep.frame()
    frame = frame[(frame["federation"] == "split") & (frame["label"] == "median/distance")]
    assert {*frame["noise.scale"].dropna()} == {*given["noise"]}
    assert (frame.groupby("configuration")["seed"].nunique() == 5).all()
    assert frame["configuration"].nunique() == 6
    assert sweep.config["goal"]["max_leak"] == 0.7


def test_a_table_that_has_moved_goes_on_and_is_found_where_it_is(copied):
    (copied / "t.csv").rename(copied / "u.csv")
    before = units(copied)
    again(copied, table=copied / "u.csv")
    assert units(copied) == before
    assert running.stored_plan(copied / "out").experiment.data.dir == str(copied / "u.csv")


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"known": 20}, "known is 20, and"),
        ({"parties": "bank: age; telco: pay*"}, "parties: "),
        ({"parties": "bank: age, job, pay; telco: pay2"}, "parties: "),
        ({"label_party": "telco"}, "parties: "),
        ({"label": "job", "parties": "bank: age; telco: pay*, y"}, "label: y -> job"),
        ({"table": "another"}, "values of the data set have changed"),
        ({"seeds": 3}, "trials that this config leaves out"),
    ],
)
def test_another_audit_is_refused_and_nothing_changes(finished, tmp_path, changes, says):
    if changes.get("table"):
        changes = {"table": written(tmp_path / "other.csv", values(1))}
    header = (finished / "out" / "sweep.json").read_bytes()
    with refused(says):
        again(finished, **changes)
    assert (finished / "out" / "sweep.json").read_bytes() == header


def test_what_is_refused_leaves_the_folder_free(finished, tmp_path):
    for changes in ({"known": 1}, {"known": 500}, {"seeds": 20_000}):
        (name,) = changes
        with refused(f"{name}={changes[name]} "):
            again(finished, workdir=tmp_path / "out", **changes)
    assert not (tmp_path / "out").exists()


def test_a_budget_that_ends_before_anything_is_trained_is_one_line(finished, tmp_path, monkeypatch):
    ticks = iter(range(10_000))
    monkeypatch.setattr(auditing, "time", types.SimpleNamespace(monotonic=lambda: next(ticks)))
    with refused("the budget ended before anything was trained"):
        again(finished, workdir=tmp_path / "out", budget=1)


def test_a_frame_is_audited_and_another_one_is_refused(finished, tmp_path):
    frame = pd.read_csv(finished / "t.csv").rename(columns={"y": 3})
    parties = {"bank": ["age", "job"], "telco": ["pay*"]}
    given = {"label": 3, "parties": parties, "workdir": tmp_path, "budget": 1e-9}
    for table in (frame, frame):
        with refused("ended before"):  # it is read, planned and stored
            again(finished, **given, table=table)
    assert store.read_header(tmp_path)["config"]["data"]["options"]["label"] == "3"
    with refused("another frame"):
        again(finished, **given, table=frame[:50])
