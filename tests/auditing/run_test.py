"""An audit, whole, on a small table with a few attacks and defenses."""

import json
import pathlib
import runpy

import numpy as np
import pytest

from tests.auditing.table_test import asked, values, written
from vfljax import store
from vfljax.auditing import run
from vfljax.auditing.run import audit
from vfljax.errors import UserError
from vfljax.report import page
from vfljax.sweep.experiment import parse

SUITE = {"norm": {}, "mean": {"scores": "distance"}}


@pytest.fixture(scope="module")
def finished(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("audit")
    path = written(folder / "t.csv", values())
    audit(asked(path), folder / "out", "a command", lambda line: None, SUITE, ("noise", "max_norm"))
    return folder


def again(folder, said=None, **changes):
    lines: list[str] = [] if said is None else said
    request = asked(str(folder / "t.csv"), **changes)
    return audit(request, folder / "out", "a command", lines.append, SUITE, ("noise", "max_norm"))


def test_it_leaves_a_finished_sweep_with_a_report(finished):
    sweep = store.load(finished / "out")
    sweep.require_finished()
    rows = sweep.results.to_pylist()
    assert {row["arm"] for row in rows} == {"undefended", "noise", "max_norm"}
    assert {row["seed"] for row in rows} == {0, 1, 2}
    assert len({row["noise.scale"] for row in rows if row["arm"] == "noise"}) >= 2
    attacked = {row["attack"] for row in sweep.attacks.to_pylist()}
    assert {"norm", "mean/distance"} <= attacked
    assert page.present(finished / "out")
    assert "telco" in (finished / "out" / "report.html").read_text()


def test_its_config_is_the_sweep(finished):
    config = runpy.run_path(str(finished / "out" / "config.py"))["get_config"]()
    assert parse(config).stored == store.load(finished / "out").config
    assert config["parties"]["names"] == ("telco", "bank")
    assert config["goal"].to_dict() == {"max_leak": pytest.approx(0.6), "max_cost": 0.02}
    assert any("Nobody owns id" in note for note in config["notes"])
    assert any("left out for want of time" in note for note in config["notes"])


def test_the_pilot_is_not_attacked_and_has_one_seed(finished):
    pilot = store.load(finished / "out" / "pilot")
    assert not pilot.attacks.num_rows
    assert {row["seed"] for row in pilot.results.to_pylist()} == {0}


def test_asked_again_it_does_nothing(finished):
    before = {p: p.stat().st_mtime_ns for p in (finished / "out" / "shards").rglob("*.parquet")}
    journal = (finished / "out" / "audit.json").read_text()
    again(finished)
    assert {p: p.stat().st_mtime_ns for p in before} == before
    assert (finished / "out" / "audit.json").read_text() == journal


def test_another_audit_is_refused_and_nothing_changes(finished):
    journal = (finished / "out" / "audit.json").read_text()
    with pytest.raises(UserError, match="holds another audit"):
        again(finished, known=20)
    assert (finished / "out" / "audit.json").read_text() == journal


@pytest.mark.parametrize("text", ["", "{", "[]", '{"request": 3}', '{"request": {}, "times": []}'])
def test_a_damaged_journal_is_one_line(finished, tmp_path, text):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "audit.json").write_text(text)
    with pytest.raises(UserError, match=r"is damaged|holds another") as error:
        run.Journal(tmp_path / "out", asked(str(finished / "t.csv")))
    assert "\n" not in str(error.value)


def test_a_sweep_is_not_overwritten(tmp_path):
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(UserError, match="holds a sweep and no audit"):
        run.Journal(tmp_path, asked("t.csv"))


def test_a_decision_outlives_a_kill(finished, tmp_path):
    request = asked(str(finished / "t.csv"))
    journal = run.Journal(tmp_path / "out", request)
    journal.decide("config", {"a": (1, 2)})
    later = run.Journal(tmp_path / "out", request)
    assert later.decided("config") == {"a": [1, 2]}
    assert later.times == {}
    assert later.spent == 0


def test_a_stage_killed_on_its_way_is_gone_on_with(finished, tmp_path):
    """As if the process had died after the pilot: the decision is made again, from the same times."""
    said = json.loads((finished / "out" / "audit.json").read_text())
    decided = said["decided"].pop("config")
    times = {k: v for k, v in said["times"].items() if k != "audit"}
    (finished / "out" / "audit.json").write_text(json.dumps({**said, "times": times}))
    again(finished)
    now = json.loads((finished / "out" / "audit.json").read_text())
    assert now["decided"]["config"] == decided


def test_rows_that_cannot_be_divided_are_refused_before_anything_is_written(tmp_path):
    table = {name: column[:2] for name, column in values().items()}
    table["y"] = ["no", "yes"]
    path = written(tmp_path / "t.csv", table)
    with pytest.raises(UserError) as error:
        audit(asked(path), tmp_path / "out", "c", lambda line: None, SUITE, ("noise",))
    assert "\n" not in str(error.value)
    assert not (tmp_path / "out" / "sweep.json").exists()


def test_labels_of_very_many_classes_are_one_line(tmp_path):
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(size=5000).tolist(), "pay": rng.normal(size=5000).tolist()}
    table["y"] = [f"c{k}" for k in range(5000)]
    path = written(tmp_path / "t.csv", table)
    with pytest.raises(UserError) as error:
        audit(asked(path, "bank: age; telco: pay"), tmp_path / "out", "c", lambda line: None, SUITE)
    assert "\n" not in str(error.value)
