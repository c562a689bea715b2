"""What is read with certainty, as a table and a figure."""

import dataclasses
import math
import pathlib

import numpy as np
import pytest

from tests.sweeps import REFERENCE, assessed, assessment
from vfljax import store
from vfljax.errors import UserError
from vfljax.report import certain_rows, words
from vfljax.report.assessment import assess_sweep
from vfljax.report.stored_rows import load
from vfljax.store.attacks import SHARES

# by row: right on both of two seeds, right on one of two, right on both, and scored on one alone
MARKS = ["111-" * 100, "10--" * 100, "--11" * 100]


def read(a, rates, baseline=None):
    """The assessment, whose strongest attack reads so much at a false positive rate of 1 %, a seed each; at
    0.1 % it is refused."""
    rows = [
        {
            **{"tpr_at_1e-3": math.nan, "tpr_at_1e-2": rate, "tpr_at_1e-1": 1.0},
            **{"roc": [math.nan] * 8 + [rate] * 8 + [1.0] * 9, "recall": [rate, 1.0]},
            "right": marks,
        }
        for rate, marks in zip(rates, MARKS, strict=True)
    ]
    attack = a.strongest.attack._replace(rows=tuple(rows))
    candidates = a.strongest.candidates
    if baseline:
        local_only = candidates.baseline._replace(rows=baseline.strongest.attack.rows)
        candidates = dataclasses.replace(candidates, baseline=local_only)
    strongest = dataclasses.replace(a.strongest, attack=attack, candidates=candidates)
    return dataclasses.replace(a, strongest=strongest)


@pytest.fixture
def found():
    """Undefended, noise, which protects and is recommended, and kdk, which is chosen but still leaks."""
    baseline = read(assessment("plain", 0.9, 0.5), [0.1, 0.1, 0.1])
    plain = read(assessment("plain", 0.9, 0.9), [0.5, 0.6, 0.7], baseline)
    noise = read(assessment("noise", 0.9, 0.5, {"noise.scale": 9.0}), [0.2, 0.2, 0.2])
    kdk = read(assessment("kdk", 0.9, 0.8, {"kdk.k": 2.0}), [0.4, 0.4, 0.4])
    return assessed(plain, noise, kdk)


def too_rare(a):
    """The assessment, whose strongest attack and baseline are scored on fewer than ten rows of class 0."""
    none = {"roc": [math.nan] * len(SHARES)}
    strongest, baseline = a.strongest, a.strongest.candidates.baseline
    empty = [
        attack._replace(rows=tuple({**row, **none} for row in attack.rows))
        for attack in (strongest.attack, baseline)
    ]
    candidates = dataclasses.replace(strongest.candidates, baseline=empty[1])
    strongest = dataclasses.replace(strongest, attack=empty[0], candidates=candidates)
    return dataclasses.replace(a, strongest=strongest)


def test_a_class_that_is_too_rare_for_an_roc_is_named_in_place_of_a_figure():
    plain = read(assessment("plain", 0.9, 0.9), [0.5, 0.6, 0.7])
    apart = dataclasses.replace(plain, federation="no_split")
    with pytest.raises(UserError, match="ten scored rows of class 0"):
        certain_rows.figure(assessed(too_rare(plain)))
    empty, drawn = certain_rows.figure(assessed(too_rare(plain), apart)).axes
    assert [text.get_text() for text in empty.texts] == [certain_rows.RARE]
    assert len(drawn.lines) == 2  # the attack and chance
    assert (len(drawn.texts), drawn.get_yscale()) == (0, "log")


def test_the_table_has_every_chosen_operating_point_between_undefended_and_the_baseline(found):
    header, rows = certain_rows.section(found).table
    recalls = ["recall of 0", "recall of 1"]
    assert header[3:] == [*certain_rows.TWO.values(), *recalls, "all seeds"]
    cells = [dict(zip(header, row, strict=True)) for row in rows]
    assert [row["configuration"] for row in cells] == [
        "plain",
        *("noise scale=9", "kdk k=2", "plain"),
    ]
    assert [row["attack"] for row in cells] == [*["passive"] * 3, "local-only baseline"]
    assert {row["TPR at 0.1 % FPR"] for row in cells} == {"—"}
    assert {row["all seeds"] for row in cells} == {".67"}
    assert [row["at 1 %"].split()[0] for row in cells] == [".60", ".20", ".40", ".10"]
    assert cells[0]["at 1 %"] == cells[0]["recall of 0"] == ".60 (.43 to .75)"
    # seeds that agree leave what the number of rows lets a rate spread
    assert cells[1]["at 1 %"] == ".20 (.19 to .22)"


def test_the_figure_has_undefended_the_recommendation_and_the_baseline_on_logarithmic_axes(found):
    drawn = certain_rows.figure(found)
    (ax,) = drawn.axes
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["plain", "noise scale=9", "local-only baseline", "chance"]
    assert ax.get_xscale() == ax.get_yscale() == "log"
    np.testing.assert_allclose(lines["plain"].get_ydata()[8:16], 0.6)
    chance = lines["chance"]
    np.testing.assert_array_equal(chance.get_xdata(), SHARES[8:])
    np.testing.assert_array_equal(chance.get_xdata(), chance.get_ydata())


def test_stored_figures_are_read_of_the_attack_and_of_the_learner_that_each_seed_picked(tiny_sweep):
    found, stored = assess_sweep(tiny_sweep), load(tiny_sweep)
    header, rows = certain_rows.section(found).table
    assert header[3] == "read with 99 % precision"
    for row in rows:
        federation = next(
            f for f in found.federations if row[1].startswith("with ") == (f == "split")
        )
        a = next(a for a in found.attacked if (a.label, a.federation) == (row[0], federation))
        recall = np.array([of_seed["recall"] for of_seed in a.strongest.attack.rows])
        baseline = a.strongest.candidates.baseline
        if row[2] == baseline.brief:
            recall = np.array([of_seed["recall"] for of_seed in baseline.rows])
            leaks = {r.figures["leak"] for r in stored.local_only}
            assert {of_seed["leak"] for of_seed in baseline.rows} <= leaks
        assert len(recall) == 2
        assert row[4:-1] == [words.brief(value) for value in recall.mean(axis=0)]


def test_marks_are_of_the_same_rows_on_all_seeds_where_they_were_scored(tiny_sweep):
    sweep = store.load(tiny_sweep)
    marked = np.random.default_rng(1797).choice(1797, 1024, replace=False)
    readers = [row for row in sweep.attacks.to_pylist() if row["attack"] == "direct"]
    perfect = [row for row in readers if row["leak"] == row["success"] == 1]
    assert {row["seed"] for row in perfect} == {0, 1}
    for row in perfect:
        trained = np.isin(marked, sweep.splits()["train"][row["seed"]])
        assert row["right"] == "".join(np.where(trained, "1", "-"))
    poor = next(row for row in readers if row["success"] < 0.9)
    share = poor["right"].count("1") / (1024 - poor["right"].count("-"))
    assert share == pytest.approx(poor["success"], abs=0.1)
    assert certain_rows._every_seed(np.array(["1" * 99, "1" * 99])) == "—"
    assert certain_rows._every_seed(np.array(["1" * 100, "1" * 100])) == "1.00"


def test_a_sweep_without_these_figures_has_no_rows_of_them():
    found = assess_sweep(pathlib.Path("tests/fixtures/stored_sweep"))
    assert found.attacked
    assert certain_rows.section(found).table[1] == []
    assert certain_rows.readers(assessed(assessment("plain", 0.9, 0.9), reference=REFERENCE)) == []
