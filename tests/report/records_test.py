"""Which rows are read, and in how many runs."""

import numpy as np
import pytest

from tests.report.made import BARE, made
from vfljax.report import records
from vfljax.report.first_screen import answers
from vfljax.store.attack_rows import marked_rows

# of five runs: rows 0 and 1 are read in each, 2 in one of four, 3 is scored once, 4 never
MARKS = ("110--", "1-0--", "111--", "11-1-", "110--")


@pytest.fixture
def judged():
    """Undefended, of whose 500 marked rows an attack reads two in five in every run, learners none."""
    judged = made(BARE)
    rows = judged.rows.copy()
    none = ["0" * 500] * len(rows)
    of_attack = [MARKS[seed] * 100 for seed in rows["seed"]]
    rows["right"] = np.where(rows["role"] == "attack", of_attack, none)
    rows["recall"] = 1.0
    return judged._replace(rows=rows)


def test_a_row_is_counted_in_the_runs_that_score_it(judged):
    frame = records.records(judged, np.arange(500))
    assert [*frame.columns] == [*records.COLUMNS]
    assert {*frame["configuration"]} == {0}
    assert {*frame["attack"]} == {"probe/mean"}
    assert frame["row"].is_monotonic_increasing
    of_row = frame.set_index("row")[["runs", "read"]]
    by_mark = of_row.reindex(marked_rows(np.arange(500))).to_numpy()  # in the order of the marks
    np.testing.assert_array_equal(by_mark[:5], [[5, 5], [4, 4], [4, 1], [1, 1], [np.nan] * 2])


def test_the_answer_says_what_share_is_read_in_every_run_and_without_the_federation(judged):
    (screen,) = answers(judged)
    text = dict(screen.details)["What can be read"]
    assert "67 % of the rows" in text
    assert "(0 % without the federation; a guess 50 %)" in text
    few = judged.rows.assign(right=[marks[:99] for marks in judged.rows["right"]])
    (screen,) = answers(judged._replace(rows=few))
    assert "every run that scores" not in dict(screen.details)["What can be read"]


def test_no_marks_are_no_records(judged):
    assert not len(
        records.records(judged._replace(rows=judged.rows.drop(columns="right")), np.arange(500))
    )


def test_a_row_must_be_read_in_each_of_two_runs_or_more():
    assert np.isnan(records.share_in_every_run(["1" * 99, "1" * 99]))
    assert np.isnan(records.share_in_every_run([]))
    found = records.share_in_every_run(["1" * 100 + "-", "0" * 50 + "1" * 50 + "0"])
    assert found == 0.5
