"""Rows of attacks whose rule has another number now: kept and marked, never mixed, and made anew beside."""

import dataclasses

import pytest

from tests.sweeps import attack, attack_units, by_label, comparable, drop_units
from vfljax import attacks, store
from vfljax.attack_runs import run
from vfljax.report import not_run
from vfljax.report.frames import read_frames
from vfljax.report.sweep_answers import judge_sweep
from vfljax.store.check import SOUND

LABEL = "direct/most_negative"
OLD = f"{LABEL}/rule=1"


@pytest.fixture
def changed(monkeypatch):
    """``changed(rule)``: the direct attack has that rule from now on."""

    def change(rule):
        row = dataclasses.replace(attacks.TABLE["direct"], rule=rule)
        monkeypatch.setitem(attacks.TABLE, "direct", row)

    return change


def rows_of(workdir, rule):
    every = comparable(store.load(workdir).attacks)
    rows = [row for row in every if row["label"].startswith(LABEL) and row["rule"] == rule]
    other = ("label", "outdated", "rule", "variant")
    return [{k: v for k, v in row.items() if k not in other} for row in rows]


def reported(workdir):
    """The labels of the direct attack's rows in a report."""
    rows = read_frames(store.load(workdir)).rows
    return {*rows.loc[rows["panel"] == "no_split", "label"]}


def files_of(workdir):
    return {path: path.read_bytes() for path in workdir.glob("attacks/*/*/*")}


def test_a_new_rule_attacks_anew_and_the_earlier_one_finds_its_rows_again(workdir, changed):
    before, files = rows_of(workdir, 1), files_of(workdir)
    assert len(before) == 12
    changed(2)
    assert OLD in reported(workdir)
    said = not_run.remarks(judge_sweep(workdir))
    assert any(f"{LABEL} (rule 1; this version has rule 2)" in line for line in said)
    attack(workdir, ["direct"])
    assert rows_of(workdir, 2) == rows_of(workdir, 1) == before
    assert files.items() <= files_of(workdir).items()
    assert store.load(workdir).unfinished == ()
    assert all(part.state == SOUND for part in store.inspect(workdir))
    summary = store.attack_summary(workdir)
    marked = [(a["rule"], a["outdated"]) for a in summary.values() if a["label"] == LABEL]
    assert marked == [(1, True), (2, False)]
    assert LABEL in reported(workdir)  # earlier rows take no part
    assert OLD not in reported(workdir)
    files = files_of(workdir)
    attack(workdir, ["direct"])  # there is nothing left to do
    changed(1)
    attack(workdir, ["direct"])
    assert files_of(workdir) == files
    assert by_label(workdir)[LABEL]["rule"] == 1
    assert LABEL in reported(workdir)


def test_what_an_earlier_rule_left_unmade_stays_unmade(workdir, changed):
    header = store.read_header(workdir)
    (unit,) = [u for u in store.units_of(header) if u.name in attack_units(workdir, LABEL)]
    drop_units(workdir, LABEL)
    assert run.can_run(unit, header)
    changed(2)
    assert not run.can_run(unit, header)  # a process without the code leaves it to others
    attack(workdir, ["direct"])
    assert not (workdir / unit.name).exists()
    assert store.load(workdir).unfinished == ()
    assert len(rows_of(workdir, 2)) == 12
