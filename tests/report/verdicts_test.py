"""Verdicts of stored sweeps: who is a candidate, and what stands in the table."""

import math

import pytest

from tests.sweeps import columns, point
from vfljax import store
from vfljax.report import judging, summary, verdicts, worst
from vfljax.report.knowledge_table import Budget

NOISE = {"noise.scale": 1.0}
SCALE = worst.Scale(0.5, (0, 1), 100)


@pytest.fixture(scope="module")
def sweep(tiny_sweep):
    return store.load(tiny_sweep)


def test_every_defended_point_and_federation_has_one(sweep):
    points = summary.points(sweep)
    judged = verdicts.verdicts(points)
    defended = [point.label for point in points if point.defended]
    assert sorted(v.label for v in judged) == sorted(2 * defended)
    assert {v.judged.verdict for v in judged} == {judging.NO_VERDICT}  # it has two seeds
    header, rows = verdicts.verdict_rows(points)
    assert len(rows) == 2 * len(points)
    assert all(len(row) == len(header) for row in rows)
    assert {row[header.index("chosen by")] for row in rows} == {"halves of the rows"}


def test_nobody_who_knows_more_labels_or_an_oracle_is_a_candidate(sweep):
    for one in summary.points(sweep):
        few, many = one.by_budget[0]["no_split"], one.by_budget[20]["no_split"]
        assert set(few.candidates.names) == {"direct/first_negative", "direct/most_negative"}
        assert "passive" in many.candidates.names


def test_without_labels_staying_away_reaches_chance_and_the_best_party_stays_away():
    def row(leak):
        figures = {"leak_report": leak, "leak_select": leak, "leak_null": 0.55}
        return {**columns("logistic"), **figures}

    rows = {"0": {0: row(0.6), 1: row(0.7)}, "1": {0: row(0.9)}}
    by_both = {who: [{"attackers": who}] for who in ("0", "1")}
    assert worst._staying_away(by_both, Budget(0, rows), SCALE).leaks.tolist() == [0.5, 0.5]
    away = worst._staying_away(by_both, Budget(20, rows), SCALE)
    assert away.leaks[0] == 0.9
    assert math.isnan(away.leaks[1])
    by_one = worst._staying_away({"0": by_both["0"]}, Budget(20, rows), SCALE)
    assert by_one.leaks.tolist() == [0.6, 0.7]
    unknown = worst._staying_away(by_both, Budget(20, {}), SCALE)
    assert all(math.isnan(leak) for leak in unknown.leaks)


def test_a_figure_is_of_half_of_the_recorded_rows_of_the_rarest_class(sweep):
    data = sweep.header["data"]
    share = min(data["balance"]) / sum(data["balance"])
    assert summary.judged_rows(sweep) == int(data["recorded"] * share / 2)


def test_the_table_says_the_verdict_the_limits_and_who_chose():
    points = [point("plain", 0.9, 0.9), point("noise", 0.9, 0.5, NOISE)]
    header, (plain, noise) = verdicts.verdict_rows(points)
    said = dict(zip(header, noise))
    assert said["verdict"] == judging.PROTECTS
    assert said["chosen by"] == "3 of 3 folds"
    assert said["leaks (at least to at most)"].startswith("0.500 (0.4")
    assert said["change to undefended"].startswith("-0.400 (-0.4")
    assert dict(zip(header, plain))["verdict"] == "-"
    header, (plain,) = verdicts.verdict_rows([point("plain", 0.9, 0.5)])
    assert dict(zip(header, plain))["verdict"] == judging.NOTHING_TO_PROTECT


def test_an_attack_without_enough_figures_is_named_where_nothing_can_be_said():
    lost = point("noise", 0.9, 0.5, NOISE)
    candidates = judging.candidates(
        ["passive", "norm"], [[0.5] * 3, [0.5, 0.5, math.nan]], [0.5] * 3, 1000
    )
    lost.worst["split"] = lost.worst["split"]._replace(candidates=candidates)
    (verdict,) = verdicts.verdicts([point("plain", 0.9, 0.9), lost])
    assert verdict.text == "cannot say: norm on fewer than 3 seeds"
