"""The tables of a report: what they say agrees with the verdict frame, in every form."""

import pandas as pd
import pyarrow as pa
import pytest

from tests.report.made import BARE, FACTS, NAN, PROTECTS, made
from vfljax.config import Goal
from vfljax.datasets.core import SourceColumn
from vfljax.report import not_run, page, tables, verdict_tables
from vfljax.report.first_screen import answers
from vfljax.report.verdicts import Verdict


def row(table, configuration):
    (found,) = table[table["configuration"] == configuration].to_dict("records")
    return found


def test_the_first_table_has_a_row_for_each_method_the_recommended_one_first():
    judged = made(
        BARE,
        {"probe/mean": 0.95},
        {"probe/mean": 0.6, "test_utility": 0.82, "validation_utility": 0.7},
        PROTECTS,
        {"probe/mean": 0.9},
        {"probe/mean": 0.58, "test_utility": 0.82},  # leaks least, and costs too much
        defenses=("max_norm", "noise", "noise", "noise", "ppdl"),
        knobs={"noise.scale": [NAN, NAN, 1.0, 0.1, 0.01, NAN]},
    )
    table = verdict_tables.methods(judged)
    assert [*table["configuration"]] == ["undefended", "noise scale=.1", "ppdl", "max_norm"]
    best = row(table, "noise scale=.1")
    assert best["verdict"] == Verdict.PROTECTS
    assert best["leaks"].startswith(".60 (.")
    assert (best["without the federation"], best["gain kept"], best["cost"]) == (
        ".60",
        "80 %",
        "kept",
    )
    assert best["remark"].startswith("recommended")
    assert row(table, "undefended")["verdict"] == "-"


def test_no_limit_of_a_change_leads_out_of_the_scale():
    leaks = {"probe/mean": [0.7, 1.0, 1.0, 1.0, 1.0], "test_utility": [0.7, 1.0, 1.0, 1.0, 1.0]}
    judged = made({"probe/mean": 1.0, "test_utility": 1.0}, leaks)
    one = row(verdict_tables.verdict_table(judged), "noise")
    assert one["change of the leak"].endswith("to 0)")
    assert one["change"].endswith("to 0.0)")
    assert one["accuracy"].endswith("to 1.000)")
    assert one["leaks"].endswith("to 1.00)")
    assert one["excess"].startswith("+.34 (+.21 to +.4")


def test_the_caption_of_the_verdicts_names_scale_chance_and_goal():
    judged = made(BARE, PROTECTS, facts=FACTS._replace(goal=Goal(max_cost=0.03)))
    text = verdict_tables.caption(judged)
    assert "leak AUC" in text
    assert "(.50 is a guess)" in text
    assert "50 % of the federation's gain is kept and at most 3.0 points are lost" in text
    permuted = made(BARE, config={"data": {"permute_labels": 0.5}})
    assert "the labels of 50 % of the rows were permuted" in verdict_tables.caption(permuted)


def test_an_excess_over_the_attack_s_own_learner_lies_between_its_limits():
    (first, *_) = made(BARE).verdicts.to_dict("records")
    # the learner with the draws of the leading attack reads less than the best of all, which local_only is
    v = first | {"local_only": 0.74, "leak": 1.0, "e": 0.272, "e_lower": 0.257, "e_upper": 0.287}
    assert verdict_tables._excess(v) == "+.27 (+.26 to +.29)"


TWO = {"probe/mean": 0.95, "norm": 0.8}, {"probe/mean": 0.9, "norm": 0.7}


def test_attacks_that_are_in_no_paper_are_told_from_published_ones():
    judged = made(*TWO)
    adaptive = judged.rows["label"] == "probe/mean"
    one = row(verdict_tables.published(made(*TWO, rows={"adaptive": adaptive})), "noise")
    assert one["published attacks read"] == ".70"
    assert one["of these the strongest"] == "norm"
    assert (one["all attacks read"], one["more by"]) == (".90", "+.20")
    # a published attack that is dear was not run, and may read as much
    spared = judged.rows[(judged.rows["configuration"] == 1) & ~adaptive].index[:1]
    role = judged.rows["role"].mask(judged.rows.index.isin(spared), "rejected")
    assert verdict_tables.published(made(*TWO, rows={"adaptive": adaptive, "role": role})).empty
    assert verdict_tables.published(judged).empty


def test_leaks_are_means_over_seeds_of_what_is_stored():
    judged = made(BARE, PROTECTS, rows={"f1": 0.5, "precision": [[0.1, 0.2]] * 15})
    table = tables.leaks(judged)
    assert [*table["configuration"]] == ["undefended", "noise"]
    assert table.loc[0, "leak"] == pytest.approx(0.95)
    assert (table.loc[0, "seeds"], table.loc[0, "f1"]) == (5, 0.5)
    assert "precision" not in table  # of several classes it is a list
    assert tables.csv_text(table).startswith("configuration,panel,attack,federation,known,role")


def test_a_settled_attack_is_said_where_its_figure_would_be():
    leaks = {"direct": [1.0] * 5, "probe/mean": [NAN] * 5, "norm": [0.9, NAN, NAN, 0.7, NAN]}
    by = made(leaks).rows["leak"].isna().map({True: "direct", False: ""})
    judged = made(leaks, rows={"settled_by": by})
    (section,) = (x for x in tables.sections(judged) if x.title == "What each attack reads")
    (one,) = section.frame.to_dict("records")
    assert (one["direct"], one["norm"], one["probe/mean"]) == ("1.00", ".80", "settled by direct")
    (line,) = not_run.not_attacked(judged)
    assert line.startswith("8 of 15 runs of attacks were settled")
    assert "(8 by direct)" in line
    table = tables.leaks(judged).set_index("attack")
    assert [*table["seeds"]] == [5, 0, 2]
    assert [*table["settled_by"]] == ["", "direct", "direct"]


def test_columns_of_a_user_s_table_are_listed_with_their_owners():
    judged, title = made(BARE), "Columns of the table"
    assert title not in [section.title for section in tables.sections(judged)]
    sources = [
        SourceColumn("job", "category", 3, 12, 40, "a note")._asdict() | {"owner": 0},
        SourceColumn("age", "number")._asdict() | {"owner": 2},
        SourceColumn("y", "label", categories=2)._asdict() | {"owner": None},
        SourceColumn("id", "left out")._asdict() | {"owner": None},
    ]
    header = {**judged.sweep.header, "data": {**judged.sweep.header["data"], "sources": sources}}
    judged = judged._replace(sweep=judged.sweep._replace(header=header))
    (table,) = [section.frame for section in tables.sections(judged) if section.title == title]
    assert table["owner"].tolist() == ["telco", "bank", "label", "no party"]
    first = ["job", "telco", "category", "3", "12 (40 rare ones pooled)", "a note"]
    assert table.iloc[0].tolist() == first


def test_every_form_escapes_what_users_name():
    table = pd.DataFrame({"configuration": ["<b>|a & b_c", "x" * 80]})
    assert "&lt;b&gt;|a &amp; b_c" in page._html(table)
    assert "x" * 80 in page._html(table)
    assert tables.markdown(table).splitlines()[2] == "| <b>/a & b_c |"


def test_a_defense_that_no_attack_reached_is_not_said_to_cost_too_much():
    judged = made(BARE, {"probe/mean": NAN}, PROTECTS, defenses=("noise", "max_norm"))
    table = verdict_tables.methods(judged).set_index("configuration")
    assert table.loc["noise", "remark"].startswith("not attacked")
    assert "no operating point" not in table.loc["noise", "remark"]


def test_rows_of_different_seeds_say_how_many_they_have():
    few = [0.6, 0.604, 0.596, NAN, NAN]
    judged = made(BARE, PROTECTS | {"probe/mean": few})
    table = verdict_tables.methods(judged).set_index("configuration")
    assert [*table["seeds"]] == ["5", "3"]
    assert "seeds" not in verdict_tables.methods(made(BARE, PROTECTS))
    (screen,) = answers(judged)
    assert dict(screen.rows)["Sure"].startswith("3 seeds")


def test_what_loses_more_than_the_gain_is_said_in_words_and_long_remarks_are_cut():
    judged = made(BARE, {"probe/mean": 0.6, "test_utility": -0.24, "validation_utility": -0.24})
    table = verdict_tables.methods(judged).set_index("configuration")
    assert table.loc["noise", "gain kept"] == "loses more than the gain"
    long = pd.DataFrame({"remark": ["word " * 30, "short"]})
    first, second = verdict_tables.shortened(long)["remark"]
    assert len(first) <= verdict_tables.REMARK
    assert second == "short"
    shown = page._html(long)
    assert f'<td title="{"word " * 30}">{first}</td>' in shown


def test_seconds_are_added_up_over_the_variants_of_an_attack():
    def entry(attack, seconds, **changes):
        kinds = {"tracing": 0.1 * seconds, "compiling": 0.2 * seconds, "running": 0.3 * seconds}
        counts = {"rows": 4, "compiles": 1, "trials": 4, "status": "ok"}
        return {"attack": attack, "seconds": seconds, **kinds, **counts, **changes}

    attacks = {
        "a": entry("norm", 1.0),
        "b": entry("probe", 2.0),
        "c": entry("probe", 6.0, compiles=0),
        "d": entry("logistic", 0.0, trials=0),  # the baseline, which has no trials
        "e": {"attack": "active", "status": "skipped"},
    }
    table = tables.seconds(pa.table({"seconds": [1.0, 3.0, None]}), attacks)
    rows = {row[0]: row[1:] for row in table.to_numpy().tolist()}
    assert [*rows] == ["training", "probe", "norm", "all attacks"]
    assert rows["probe"] == ["8.0", "0.8", "1.6", "2.4", "3.2", "8", "1000.0", "2.00", "1"]
    assert rows["all attacks"][:5] == ["9.0", "0.9", "1.8", "2.7", "3.6"]
    assert rows["training"][0] == "4.0"
