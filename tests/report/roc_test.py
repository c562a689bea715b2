"""What is read with certainty, as a table and a figure."""

import numpy as np
import pandas as pd
import pytest

from tests.report.made import BARE, FACTS, made
from vfljax.errors import UserError
from vfljax.report import roc
from vfljax.tasks.certainty import CURVE_SHARES

# by seed, of five rows: right on all seeds twice, right on four, scored on one seed, right on both of two
MARKS = [of_seed * 100 for of_seed in ("11111", "111-1", "111--", "111--", "110--")]
NONE = [np.nan] * len(CURVE_SHARES)


def read(judged, rates, few=False):
    """The sweep, in which an attack reads so much of ``defaulted`` at 1 % FPR on a configuration; at 0.1 % it
    is refused, and if ``few`` everywhere. Learners are those of the configuration -1."""
    rows = judged.rows.copy()
    rate = [rates[c] for c in rows["configuration"]]
    rows["tpr_at_1e-3"], rows["tpr_at_1e-2"], rows["tpr_at_1e-1"] = np.nan, rate, 1.0
    curves = [NONE if few else [np.nan] * 8 + [r] * 8 + [1.0] * 9 for r in rate]
    rows["roc"], rows["recall"] = curves, [[r, 1.0] for r in rate]
    rows["right"] = [MARKS[seed] for seed in rows["seed"]]
    return judged._replace(rows=rows)


@pytest.fixture
def judged():
    """Undefended, noise, which is recommended, and max_norm, which is its method's operating point."""
    judged = made(
        BARE,
        {"probe/mean": 0.61, "test_utility": 0.88},
        {"probe/mean": 0.9, "test_utility": 0.89},
        defenses=("noise", "max_norm"),
    )
    return read(judged, {0: 0.6, 1: 0.2, 2: 0.4, -1: 0.1})


def test_the_table_has_every_operating_point_between_undefended_and_the_learners(judged):
    section = roc.section(judged)
    table = section.frame
    assert [*table["configuration"]] == ["undefended", "noise", "max_norm", "undefended"]
    assert [*table["attack"]] == ["probe/mean"] * 3 + [roc.WITHOUT]
    assert {*table["TPR of defaulted at 0.1 % FPR"]} == {"-"}
    found = [cell.split()[0] for cell in table["TPR of defaulted at 1 % FPR"]]
    assert found == [".60", ".20", ".40", ".10"]
    # seeds that agree leave what the number of rows lets a rate spread
    assert table["TPR of defaulted at 1 % FPR"][1] == ".20 (.20 to .20)"
    assert [*table.columns][-3:] == ["recall of defaulted", "recall of repaid", "all seeds"]
    assert {*table["all seeds"]} == {".75"}
    assert "1 % of the rows of repaid are taken for it" in section.caption
    other = judged._replace(facts=FACTS._replace(positive=1))
    assert "TPR of repaid at 1 % FPR" in roc.section(other).frame


def test_the_figure_has_undefended_the_recommendation_and_the_learners_on_logarithmic_axes(judged):
    (ax,) = roc.figure(judged).axes
    lines = {line.get_label(): line for line in ax.lines}
    assert [*lines] == ["undefended", "noise", roc.WITHOUT, "chance"]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    np.testing.assert_allclose(lines["undefended"].get_ydata()[8:16], 0.6)
    np.testing.assert_array_equal(lines["chance"].get_xdata(), CURVE_SHARES[8:])
    assert ax.get_ylabel() == "share of defaulted that is read (TPR)"
    assert ax.get_xlabel() == "share of repaid taken for defaulted (FPR)"
    rows = judged.rows.copy()
    lacks = (rows["configuration"] == 1) & (rows["seed"] == 2)
    rows["roc"] = [NONE if missing else curve for missing, curve in zip(lacks, rows["roc"])]
    (ax,) = roc.figure(judged._replace(rows=rows)).axes
    assert "noise" not in {line.get_label() for line in ax.lines}  # one seed lacks its curve


def test_a_class_that_is_too_rare_is_named_in_place_of_a_figure(judged):
    few = read(judged, {0: 0.6, 1: 0.2, 2: 0.4, -1: 0.1}, few=True)
    with pytest.raises(UserError, match="ten scored rows of the class repaid on every seed"):
        roc.figure(few)


def test_rates_are_at_least_so_high_where_attacks_are_settled():
    judged = made({"probe/mean": 0.95, "norm": 0.9}, {"probe/mean": 0.7, "norm": 0.6})
    judged = read(judged, {0: 0.6, 1: 0.2, -1: 0.1})
    settled = judged.rows["label"].eq("norm") & judged.rows["configuration"].eq(0)
    rows = judged.rows.assign(settled_by=settled.map({True: "probe/mean", False: ""}))
    frame = roc.section(judged._replace(rows=rows)).frame
    rates = frame["TPR of defaulted at 1 % FPR"]
    assert [cell.startswith("at least") for cell in rates] == [True, False, False]
    assert {*frame["TPR of defaulted at 0.1 % FPR"]} == {"-"}
    assert not frame["recall of defaulted"].str.contains("least").any()


def test_a_run_in_which_no_attack_leads_shows_the_learner_that_reads_most():
    judged = made(BARE, {"probe/mean": 0.5, "test_utility": 0.88})
    judged = read(judged, {0: 0.6, 1: 0.2, -1: 0.1})
    weaker = judged.rows[judged.rows["role"] == "learner"].assign(leak=0.3, label="knn")
    weaker["recall"] = [[0.9, 0.9]] * len(weaker)
    rows = pd.concat([judged.rows, weaker], ignore_index=True)
    table = roc.section(judged._replace(rows=rows)).frame
    assert [*table["attack"]] == ["probe/mean", roc.WITHOUT, roc.WITHOUT]
    assert str(table["recall of defaulted"][1]).startswith(".10")


def test_more_classes_have_precision_and_their_names():
    facts = FACTS._replace(classes=3, chance=1 / 3, class_names=("a", "b", "c"))
    judged = made(BARE, facts=facts)
    assert len(roc.section(judged).frame) == 0  # a sweep without these figures has none
    rows = judged.rows.assign(read_99=0.5, right=[MARKS[s] for s in judged.rows["seed"]])
    rows["recall"] = [[0.1, 0.2, 0.3]] * len(rows)
    rows["precision"] = [[np.nan] * 8 + [0.9] * 17] * len(rows)
    judged = judged._replace(rows=rows)
    table = roc.section(judged).frame
    assert [*table.columns][3:7] == ["read with 99 % precision", *(f"recall of {x}" for x in "abc")]
    (ax,) = roc.figure(judged).axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "linear")
