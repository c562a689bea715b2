"""Rows of attacks whose rule has another number now: shown as such, never mixed, attacked anew on request."""

import dataclasses

import pytest

from tests.sweeps import by_label, comparable, drop_blocks, plan_of, report_of, tiny
from vfljax import attacks, store
from vfljax.attacking.run import attack_sweep
from vfljax.report import not_run, page
from vfljax.report import rows as report_rows
from vfljax.report.judged import judge_sweep
from vfljax.store.check import SOUND

FORM = "direct/most_negative"
OLD = f"{FORM}/rule=1"
VARIANT = "direct_most_negative.rule1"


@pytest.fixture(scope="module")
def plan():
    return plan_of(tiny(attacks={"direct": {"rule": "most_negative"}}))


@pytest.fixture
def changed(monkeypatch):
    """``changed(rule)``: the direct attack has that rule from now on."""

    def change(rule):
        row = dataclasses.replace(attacks.TABLE["direct"], rule=rule)
        monkeypatch.setitem(attacks.TABLE, "direct", row)

    return change


def attacked(workdir, plan, **options):
    """What attacking says of rules."""
    said = []
    attack_sweep(plan, workdir, ["direct"], said.append, **options)
    return [line for line in said if "rule" in line]


def rows_of(workdir, label):
    rows = [row for row in comparable(store.load(workdir).attacks) if row["label"] == label]
    apart = ("label", "rule", "variant", "outdated")
    return [{k: v for k, v in row.items() if k not in apart} for row in rows]


def rules_of(workdir, label):
    rows = store.load(workdir).attacks.to_pylist()
    return {row["rule"] for row in rows if row["label"] == label}


def test_a_form_that_is_whole_under_another_rule_is_left_as_it_is(workdir, plan, changed):
    before = rows_of(workdir, FORM)
    assert len(before) == 12
    changed(2)
    (line,) = attacked(workdir, plan)
    assert line.startswith(
        f"{FORM} is stored by its rule 1, this version has rule 2: left as it is"
    )
    assert "--renew_rules" in line
    assert rows_of(workdir, FORM) == before
    assert store.load(workdir).unfinished == ()


def test_on_request_it_is_attacked_anew_and_both_rules_rows_are_kept_apart(workdir, plan, changed):
    before = rows_of(workdir, FORM)
    changed(2)
    (line,) = attacked(workdir, plan, renew_rules=True)
    assert line.endswith("attacked anew; the earlier rows are kept.")
    assert rows_of(workdir, FORM) == rows_of(workdir, OLD) == before
    assert (rules_of(workdir, FORM), rules_of(workdir, OLD)) == ({2}, {1})
    assert store.load(workdir).unfinished == ()
    assert all(part.state == SOUND for part in store.inspect(workdir))
    # earlier rows take no part in the report
    rows = report_rows.read(store.load(workdir)).rows
    counts = rows[rows["attack"] == "direct"].groupby(["configuration", "label"]).size()
    assert FORM in counts.index.get_level_values("label")
    assert OLD not in counts.index.get_level_values("label")
    # and there is nothing left to do
    folders = set(workdir.glob("attacks/*/*.parquet"))
    assert attacked(workdir, plan) == []
    assert set(workdir.glob("attacks/*/*.parquet")) == folders


def test_what_no_rule_can_complete_is_attacked_anew_without_being_asked(workdir, plan, changed):
    before = rows_of(workdir, FORM)
    rows = store.read_variant(workdir, VARIANT).to_pylist()
    drop_blocks(workdir, FORM)
    store.write_chunk(workdir, VARIANT, "no_split-0", [1, 2, 3], rows[:3])
    changed(2)
    (line,) = attacked(workdir, plan)
    assert "attacked anew" in line
    assert rows_of(workdir, FORM) == before
    assert len(rows_of(workdir, OLD)) == 3
    assert store.load(workdir).unfinished == ()


def test_going_back_to_a_rule_finds_its_rows_again(workdir, plan, changed):
    before = rows_of(workdir, FORM)
    changed(2)
    attacked(workdir, plan, renew_rules=True)
    changed(1)
    blocks = set(workdir.glob("attacks/*/*.parquet"))
    (line,) = attacked(workdir, plan, renew_rules=True)
    assert "this version has rule 1" in line
    assert set(workdir.glob("attacks/*/*.parquet")) == blocks
    assert rows_of(workdir, FORM) == rows_of(workdir, f"{FORM}/rule=2") == before
    assert rules_of(workdir, FORM) == {1}


def test_a_form_without_rows_takes_the_present_rule(workdir, plan, changed):
    drop_blocks(workdir, FORM)
    changed(2)
    assert attacked(workdir, plan) == []
    assert rules_of(workdir, FORM) == {2}
    assert by_label(workdir)[FORM]["rule"] == 2


def test_the_report_names_the_rows_of_another_rule(workdir, changed):
    sweep = store.load(workdir)
    assert not any("rule" in line for line in not_run.remarks(judge_sweep(workdir)))
    changed(2)
    rows = report_rows.read(sweep).rows
    labels = {*rows.loc[rows["panel"] == "no_split", "label"]}
    assert OLD in labels
    assert FORM not in labels
    text = report_of(workdir)
    assert OLD in text
    assert f"{FORM} (rule 1; this version has rule 2)" in text


def test_the_command_attacks_anew_on_request_only(workdir, changed, launch, monkeypatch):
    monkeypatch.setattr(page, "present", lambda *_: "")
    changed(2)
    command = ("attack", f"--workdir={workdir}", "--attacks=direct")
    assert "left as it is; `vfljax attack --renew_rules" in launch(*command).stdout
    assert rules_of(workdir, FORM) == {1}
    assert "attacked anew" in launch(*command, "--renew_rules").stdout
    assert (rules_of(workdir, FORM), rules_of(workdir, OLD)) == ({2}, {1})
