"""The report's tables: verdicts, and what training and attacks took."""

import dataclasses
import math
import pathlib

from tests.sweeps import assessed, assessment, candidates_of
from vfljax import store
from vfljax.report import candidates as strongest_module
from vfljax.report import tables, words
from vfljax.report.judging import Verdict
from vfljax.report.stored_rows import load

STORED = pathlib.Path("tests/fixtures/stored_sweep")
NOISE = {"noise.scale": 1.0}


def test_the_table_of_verdicts_has_limits_and_how_attacks_were_chosen():
    plain = assessment("plain", 0.9, 0.9)
    header, rows = tables.verdict_rows(assessed(plain, assessment("noise", 0.9, 0.5, NOISE)))
    first, second = (dict(zip(header, row, strict=True)) for row in rows)
    assert second["verdict"] == f"{Verdict.PROTECTS}; {words.FAINT}"
    assert second["by folds"] == "0.500, 3 of 3 folds"
    assert second["cost"] == "kept"
    assert second["leaks (at least to at most)"].startswith("0.500 (0.4")
    assert second["change to undefended"].startswith("-0.400 (-0.4")
    assert first["verdict"] == "-"
    header, (row,) = tables.verdict_rows(assessed(assessment("plain", 0.9, 0.5)))
    assert dict(zip(header, row, strict=True))["verdict"] == str(Verdict.NOTHING_TO_PROTECT)


def test_an_attack_without_enough_figures_is_named_where_nothing_can_be_said():
    lost = assessment("noise", 0.9, 0.5, NOISE)
    leaks = [[0.5] * 3, [0.5, 0.5, math.nan]]
    candidates = candidates_of(["passive", "norm"], leaks, [0.5] * 3, 1000)
    lost = dataclasses.replace(lost, strongest=strongest_module.strongest_of(candidates))
    _, judged = assessed(assessment("plain", 0.9, 0.9), lost).assessments
    assert words.verdict_text(judged) == "cannot say: norm on fewer than 3 seeds"


def test_training_leads_then_attacks_by_seconds_and_their_sum():
    sweep = store.load(STORED)
    header, rows = tables.seconds_rows(load(STORED))
    seconds = [float(row[header.index("seconds")]) for row in rows]
    summary = store.attack_summary(STORED)
    ran = [a for a in summary.values() if a["status"] == "ok" and a["trials"]]
    attacked = {a["label"]: a["seconds"] for a in ran}
    names = [row[0] for row in rows]
    assert names[0] == "training"
    assert abs(seconds[0] - sum(sweep.results["seconds"].to_pylist())) < 0.06
    assert names[1:-1] == sorted(attacked, key=lambda a: -attacked[a])
    assert abs(seconds[-1] - sum(attacked.values())) < 0.06
    took = attacked["direct/first_negative"]  # of 10 trials
    direct = next(row for row in rows if row[0] == "direct/first_negative")
    assert direct[1:4] == [f"{took:.1f}", "10", f"{100 * took:.1f}"]
    assert float(direct[4]) == round(took / sum(sweep.results["seconds"].to_pylist()), 2)
