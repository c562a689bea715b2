"""Verdicts of stored sweeps: who is a candidate, and what stands in the table."""

import math

import numpy as np
import pytest

from vfljax import store
from vfljax.report import judging, summary, verdicts
from vfljax.report.budgets import Budget


@pytest.fixture(scope="module")
def sweep(tiny_sweep):
    return store.load(tiny_sweep)


def test_every_defended_point_and_federation_has_one(sweep):
    points = summary.points(sweep)
    judged = verdicts.verdicts(sweep, points)
    defended = [point.label for point in points if point.defended]
    assert sorted(v.label for v in judged) == sorted(2 * defended)
    assert {v.judged.verdict for v in judged} == {judging.NO_VERDICT}  # it has two seeds
    header, rows = verdicts.verdict_rows(sweep, points)
    assert all(len(row) == len(header) for row in rows)


def test_nobody_who_knows_more_labels_or_an_oracle_is_a_candidate(sweep):
    few = verdicts._figures(sweep, Budget(0, {}))
    runs = {run.on.attack for figures in few.values() for run in figures}
    assert runs == {"direct/first_negative", "direct/most_negative", "norm"} & runs
    assert "passive" not in runs
    many = verdicts._figures(sweep, Budget(20, {}))
    assert "passive" in {run.on.attack for figures in many.values() for run in figures}


def test_without_labels_staying_away_reaches_chance_and_the_best_party_stays_away():
    rows = {
        "0": {0: {"leak_report": 0.6}, 1: {"leak_report": 0.7}},
        "1": {0: {"leak_report": 0.9}},
    }
    assert verdicts._away(Budget(0, rows), [0, 1], 0.5).tolist() == [0.5, 0.5]
    away = verdicts._away(Budget(20, rows), [0, 1], 0.5)
    assert away[0] == 0.9
    assert math.isnan(away[1])
    assert np.isnan(verdicts._away(Budget(20, {}), [0, 1], 0.5)).all()


def test_a_figure_is_of_half_of_the_recorded_rows_of_the_rarest_class(sweep):
    data = sweep.header["data"]
    share = min(data["balance"]) / sum(data["balance"])
    assert verdicts.judged_rows(sweep) == int(data["recorded"] * share / 2)
