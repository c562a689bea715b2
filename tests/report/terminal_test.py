"""What a terminal gets: the verdicts first, and a table that fits."""

import pathlib
import shutil

from vfljax.report import page, terminal
from vfljax.report.assessment import assess_sweep

FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"


def widest(text):
    return max(map(len, text.splitlines()))


def test_headline_and_verdicts_come_first_and_fit(tiny_sweep):
    found = assess_sweep(tiny_sweep)
    text = terminal.first_lines(found)
    assert text.startswith("With model splitting. ")
    assert text.index("No verdict: fewer than 3 seeds.") < text.index("federation  verdict")
    assert widest(text) <= 120


def test_a_stored_sweep_that_is_not_finished_fits_and_says_so(tmp_path):
    workdir = shutil.copytree(FIXTURE, tmp_path / "w")
    text = page.present(workdir)
    assert str(workdir / "report.html") in text
    assert widest(text.partition("all tables and figures: ")[0]) <= 120
    assert len(text.splitlines()) <= 40
    assert "<p>Not finished: " in (workdir / "report.html").read_text()


def test_a_table_that_fits_is_left_as_it_is():
    header, rows = ["setting", "x"], [["kdk", "0.5"], ["noise scale=1", "0.25"]]
    assert terminal.fitted(header, rows, ("x",)) == terminal.aligned(header, rows)


def test_optional_columns_go_first_and_in_the_order_that_is_given():
    header, rows = ["setting", "b", "c"], [[30 * "s", 10 * "b", 10 * "c"]]
    assert terminal.fitted(header, rows, ("c", "b"), 45).splitlines()[0].split() == ["setting", "b"]
    assert terminal.fitted(header, rows, ("b",), 45).splitlines()[0].split() == ["setting", "c"]
    cut = terminal.fitted(header, rows, (), 45).splitlines()[2]
    assert (len(cut), cut.count("…")) == (45, 1)
