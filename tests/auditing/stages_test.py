"""An audit, whole, on a small table with a few attacks and defenses."""

import dataclasses
import json
import pathlib
import runpy
import shutil
import time

import numpy as np
import pytest

from tests.auditing.survey_test import asked, values, written
from tests.refusals import refused
from vfljax import store
from vfljax.auditing import deadline, stages, suite
from vfljax.auditing.planning import Times, confirming, without_pilot
from vfljax.auditing.stages import audit
from vfljax.auditing.survey import survey
from vfljax.errors import UserError
from vfljax.report import fresh, page
from vfljax.report.judged import judge_sweep
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import check_attacks, make_plan

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
    assert {row["method"] for row in rows} == {"undefended", "noise", "max_norm"}
    assert {row["seed"] for row in rows} == {0, 1, 2}
    assert len({row["noise.scale"] for row in rows if row["method"] == "noise"}) >= 2
    attacked = {row["label"] for row in sweep.attacks.to_pylist()}
    assert {"norm", "mean/distance"} <= attacked
    assert page.present(finished / "out")
    assert "telco" in (finished / "out" / "report.html").read_text()


def test_what_has_protected_is_tried_first(finished):
    table = survey(asked(str(finished / "t.csv")))
    base = suite.config(asked(str(finished / "t.csv")), table, SUITE)
    allowed, _ = suite.applicable(
        base, make_plan(parse(base)), ("kdk", "label_dp", "noise", "max_norm")
    )
    assert allowed == ["label_dp", "noise", "kdk", "max_norm"]


def test_its_config_is_the_sweep(finished):
    config = runpy.run_path(str(finished / "out" / "config.py"))["get_config"]()
    assert parse(config).stored == store.load(finished / "out").config
    assert config["parties"]["names"] == ("telco", "bank")
    assert config["goal"].to_dict() == {"max_leak": 1.0, "max_cost": 1.0, "keep_gain": 0.5}
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
    with refused("is damaged"):
        stages.Journal(tmp_path / "out", asked(str(finished / "t.csv")))


def test_a_folder_that_is_none_or_holds_a_sweep_is_refused(tmp_path):
    (tmp_path / "sweep.json").write_text("{}")
    with pytest.raises(UserError, match="holds a sweep and no audit"):
        stages.Journal(tmp_path, asked("t.csv"))
    with pytest.raises(UserError, match="is a file: name a folder"):
        stages.Journal(tmp_path / "sweep.json", asked("t.csv"))


def test_what_a_killed_stage_spent_is_counted(finished, tmp_path):
    request = asked(str(finished / "t.csv"))
    journal = stages.Journal(tmp_path / "out", request)
    begun = {"stage": "pilot", "at": time.time() - 100}
    journal.keep(config={"a": (1, 2)}, left_out=["noise"], begun=begun)
    later = stages.Journal(tmp_path / "out", request)
    assert later.stored["config"] == {"a": [1, 2]}
    assert later.stored["left_out"] == ["noise"]
    assert later.times == {}
    assert 99 < later.spent < 110
    later.keep()
    assert stages.Journal(tmp_path / "out", request).spent == later.spent  # counted once


def test_a_stage_killed_on_its_way_is_gone_on_with(finished):
    """As if the process had died after the pilot: the decision is made again, from the same times."""
    path = finished / "out" / "audit.json"
    said = json.loads(path.read_text())
    decided = said.pop("config")
    times = {k: v for k, v in said["times"].items() if k != "audit"}
    path.write_text(json.dumps({**said, "times": times}))
    again(finished)
    assert json.loads(path.read_text())["config"] == decided


def test_a_larger_budget_decides_again_and_keeps_what_was_there(finished, tmp_path, monkeypatch):
    """Nothing is trained: the stages are only named."""
    shutil.copytree(finished, tmp_path / "f")
    staged = []
    monkeypatch.setattr(stages.Journal, "stage", lambda run, name, *rest: staged.append(name))
    monkeypatch.setattr(
        stages, "_decision", lambda run, base, *rest: run.keep(left_out=[]) or {**base, "notes": ()}
    )
    monkeypatch.setattr(stages.store, "export", lambda folder: None)
    request = asked(str(tmp_path / "f" / "t.csv"), budget=3600.0)
    request = dataclasses.replace(request, data=str(finished / "t.csv"))
    audit(request, tmp_path / "f" / "out", "c", lambda line: None, SUITE, ("noise", "max_norm"))
    assert staged == ["undefended", "audit"]
    kept = tmp_path / "f" / "out" / "earlier-1"
    assert {"pilot", "sweep.json", "shards", "config.py"} <= {p.name for p in kept.iterdir()}
    assert (tmp_path / "f" / "out" / "undefended").is_dir()
    assert (
        json.loads((tmp_path / "f" / "out" / "audit.json").read_text())["request"]["budget"] == 3600
    )


@pytest.mark.slow
def test_attacks_without_time_are_left_out_until_a_larger_budget_has_them(
    finished, tmp_path, monkeypatch
):
    monkeypatch.setattr(deadline, "ALWAYS", ("norm",))
    out, lines = tmp_path / "out", []

    def attacked(share: float, budget: float) -> set[str]:
        monkeypatch.setattr(deadline, "SHARE", share)
        request = asked(str(finished / "t.csv"), budget=budget)
        audit(request, out, "c", lines.append, SUITE, ("max_norm",))
        assert set(store.load(out).config["attacks"]) == attacks_of(out)
        return attacks_of(out)

    def attacks_of(folder: pathlib.Path) -> set[str]:
        return {row["attack"] for row in store.load(folder).attacks.to_pylist()} - {"local-only"}

    assert attacked(0.0, 600.0) == attacks_of(out / "undefended") == {"norm"}
    note = "Attacks left out for want of time: mean. A larger --budget has them."
    assert note in store.load(out).config["notes"]
    assert attacked(0.4, 600.0) == {"norm"}  # what was decided is not decided again
    assert attacked(0.4, 900.0) == attacks_of(out / "undefended") == {"norm", "mean"}
    assert attacked(0.0, 1200.0) == {"norm", "mean"}  # rows that are stored are used
    assert (out / "earlier-1" / "undefended").is_dir()


def test_where_a_pilot_leaves_no_time_for_enough_defenses_there_is_none(finished, monkeypatch):
    request = dataclasses.replace(asked(str(finished / "t.csv")), seeds=5, fewest_seeds=3)
    journal = stages.Journal(finished / "short", request)
    slow = Times(20.0, 60.0, 40.0, 1, 10, 1.0)
    journal.stored["times"] = {"undefended": slow._asdict()}
    monkeypatch.setattr(journal, "stage", None)  # nothing is trained
    every = ["label_dp", "noise", "proj_pert", "marvell"]
    needed = next(s for s in range(999) if len(without_pilot(every, s, slow, 3)) == 3)
    journal.request = dataclasses.replace(request, budget=journal.spent + needed)
    config = stages._decision(journal, {"grid": {}, "seeds": 5}, every, [])
    assert list(config["grid"]) == ["undefended", *every[:3]]
    assert config["grid"]["label_dp"] == {"label_dp": {"epsilon": (4.0, 1.0)}}
    assert config["seeds"] == 3
    assert journal.stored["left_out"] == ["marvell"]
    assert sum("for want of time for a pilot" in note for note in config["notes"]) == 1


@pytest.mark.slow
def test_what_is_recommended_is_judged_again_on_three_fresh_seeds_and_resumes(
    finished, tmp_path, monkeypatch
):
    out = shutil.copytree(finished / "out", tmp_path / "out")
    path, request = out / "audit.json", asked(str(finished / "t.csv"), confirm=True)
    said: list[str] = []
    monkeypatch.setattr(fresh, "judge_sweep", recommending(None))
    audit(request, out, "c", said.append, SUITE, ("noise", "max_norm"))
    assert fresh.NOTHING in said
    assert not (out / "confirmed").exists()
    found = judge_sweep(out).leading
    number = found.loc[found["method"] == "noise", "configuration"].iloc[0]
    monkeypatch.setattr(fresh, "judge_sweep", recommending(number))
    before = path.read_text()
    audit(request, out, "c", said.append, SUITE, ("noise", "max_norm"))
    trained = {p: p.stat().st_mtime_ns for p in out.rglob("shards/**/*.parquet")}
    rows = store.load(out / "confirmed").results.to_pylist()
    assert {(row["method"], row["seed"]) for row in rows} == {
        (method, seed) for method in ("undefended", "noise") for seed in (3, 4, 5)
    }
    assert json.loads(path.read_text())["times"]["confirmed"]["trials"] == len(rows)
    path.write_text(before)  # as if it had died before it wrote the journal
    audit(request, out, "c", said.append, SUITE, ("noise", "max_norm"))
    assert {p: p.stat().st_mtime_ns for p in out.rglob("shards/**/*.parquet")} == trained
    confirmed = judge_sweep(out).confirmed
    assert {*confirmed["configuration"]} == {0, number}
    assert {*confirmed["seeds"]} == {3}
    (out / "confirmed" / "sweep.json").rename(out / "confirmed" / "other.json")
    assert not len(judge_sweep(out).confirmed)


def recommending(number):
    """``judge_sweep`` as if this configuration were recommended, or none."""

    def judge(workdir):
        found = judge_sweep(workdir)
        chosen = found.verdicts["configuration"] == (-1 if number is None else number)
        return found._replace(verdicts=found.verdicts.assign(recommended=chosen))

    return judge


@pytest.mark.slow
def test_claimed_epsilons_are_audited_with_canaries_in_a_sweep_of_their_own(finished, tmp_path):
    out = shutil.copytree(finished / "out", tmp_path / "out")
    request = asked(str(finished / "t.csv"), canaries=True)
    audit(request, out, "c", lambda line: None, SUITE, ("noise", "max_norm"))
    assert not (out / "canaries").exists()  # none of them claims one
    grid = {"noise": {}, "label_dp": suite.method("label_dp", (1.0, 4.0))}
    stages._plant(stages.Journal(out, request), {**store.load(out).config, "grid": grid})
    planted = store.load(out / "canaries")
    trained = {(row["label_dp.epsilon"], row["seed"]) for row in planted.results.to_pylist()}
    assert trained == {(1.0, 0), (4.0, 0)}
    assert planted.config["canaries"] == planted.header["data"]["train"] // 5
    assert "canaries_right_100" in planted.attacks.column_names


def test_time_is_kept_for_confirming(finished):
    request = asked(str(finished / "t.csv"))
    plain, kept = stages.Journal(finished / "out", request), Times(60.0, 90.0, 65.0, 1, 6, 3.0)
    plain.stored["times"] = {"undefended": kept._asdict()}
    left, plain.request = plain.left, dataclasses.replace(request, confirm=True)
    shared, alone = (confirming({"undefended": kept}, seeds) for seeds in (3, 8))
    assert plain.left == left - shared
    assert 2 * 60 + 25 <= shared < alone - 60  # where attacks compile again


def test_a_refused_call_leaves_the_folder_free(finished, tmp_path):
    request = asked(str(finished / "t.csv"), known=1)
    with pytest.raises(UserError, match="known=1 labels are fewer than the 2 classes"):
        audit(request, tmp_path / "out", "c", lambda line: None, SUITE)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_what_the_classes_or_the_federation_rule_out_is_left_out(tmp_path):
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(size=200).tolist(), "pay": rng.normal(size=200).tolist()}
    table["y"] = [f"c{k % 4}" for k in range(200)]
    request = asked(written(tmp_path / "t.csv", table), "bank: age; telco: pay", federation="both")
    config = suite.config(request, stages.survey(request))
    experiment = parse(config)
    check_attacks(make_plan(experiment))
    assert "norm" not in config["attacks"]
    assert config["attacks"]["spectral"]["whole"] == (False,)
    assert config["goal"] == {"max_leak": 1.0, "max_cost": 1.0, "keep_gain": 0.5}
    asked_for = suite.config(dataclasses.replace(request, max_leak=0.4), stages.survey(request))
    assert asked_for["goal"]["max_leak"] == 0.4
    assert config["attacks"]["posterior"]["signal"] == ("entries",)
    path, signals = written(tmp_path / "two.csv", values()), []
    for federation in ("both", "split"):
        request = asked(path, federation=federation)
        attacks = suite.config(request, stages.survey(request))["attacks"]
        signals.append(attacks["posterior"]["signal"])
        assert ("direct" in attacks) == (federation == "both")
    assert signals == [("entries", "direction"), ("direction",)]


def test_rows_that_cannot_be_divided_are_refused_before_anything_is_written(tmp_path):
    table = {name: column[:2] for name, column in values().items()}
    table["y"] = ["no", "yes"]
    path = written(tmp_path / "t.csv", table)
    with refused():
        audit(asked(path), tmp_path / "out", "c", lambda line: None, SUITE, ("noise",))
    assert not (tmp_path / "out" / "sweep.json").exists()


def test_labels_of_very_many_classes_are_one_line(tmp_path):
    rng = np.random.default_rng(0)
    table = {"age": rng.normal(size=5000).tolist(), "pay": rng.normal(size=5000).tolist()}
    table["y"] = [f"c{k}" for k in range(5000)]
    path = written(tmp_path / "t.csv", table)
    with refused():
        audit(asked(path, "bank: age; telco: pay"), tmp_path / "out", "c", lambda line: None, SUITE)
