"""What a terminal gets: the verdicts first, and a table that fits."""

import dataclasses
import pathlib
import shutil

import pytest

from tests.sweeps import assessed, assessment
from vfljax.report import page, tables, terminal
from vfljax.report.assessment import assess_sweep
from vfljax.report.estimates import Estimate, Limits
from vfljax.types import MALICIOUS, NO_SPLIT

FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"


def widest(text):
    return max(map(len, text.splitlines()))


def test_the_terminal_gets_means_without_limits():
    figure = Estimate(0.755, Limits(0.562, 0.854))
    column = tables._column(
        "strongest", "strongest", [figure, None], ["active/finetune_bottom", ""]
    )
    assert column.cells == ["0.755 (0.562 to 0.854) active/finetune_bottom", "-"]
    assert list(map(terminal._brief, column.means)) == ["0.755 active/tuned", "-"]
    assert terminal._brief("0.650 direct/most_negative") == "0.650 most_neg"
    assert tables._column("excess", "excess", [figure], sign="+").means == ["+0.755"]


def test_headline_and_verdicts_come_first_and_fit(tiny_sweep):
    found = assess_sweep(tiny_sweep)
    text = terminal.first_lines(found)
    assert text.startswith("With model splitting: the federation gains over the label party alone")
    assert text.index("No verdict: fewer than 3 seeds.") < text.index("federation  verdict")
    assert widest(text) <= 120
    assert widest(terminal.text_table(found)) <= 120


def test_a_stored_sweep_that_is_not_finished_fits_and_says_so(tmp_path):
    workdir = shutil.copytree(FIXTURE, tmp_path / "w")
    text = page.present(workdir)
    assert "acc split" in text
    assert str(workdir / "report.html") in text
    assert widest(text.partition("\n\n- ")[0].partition("report: ")[0]) <= 120
    assert "<p>Not finished: " in (workdir / "report.html").read_text()


def wide(name, attacks):
    """A configuration of many columns, each as wide as they come."""
    accuracy = assessment("plain", 0.9, 0.8).configuration.accuracy["split"]
    kinds = dict.fromkeys(("split", MALICIOUS, NO_SPLIT), accuracy)
    knobs = {"kdk.epsilon": 0.123456, "kdk.k": 3.0}
    label = "passive/finetune_bottom/parties=0+1"
    one = assessment(
        *(name, 0.9, 0.8, knobs),
        **{"attack": label, "attacks": attacks, "accuracy": kinds, "auc": kinds, "diverged": 1},
    )
    return one, dataclasses.replace(one, federation="no_split")


@pytest.mark.parametrize("attacks", [0, 8, 9])
def test_every_line_of_the_table_fits_whatever_it_holds(attacks):
    ran = {f"attack_number_{k}_by_somebody": 0.5 for k in range(attacks)}
    found = assessed(*wide(3 * "a long name of a method ", ran), *wide("kdk", ran))
    text = terminal.text_table(found)
    assert widest(text) <= 120
    lines = text.splitlines()
    assert lines[0].startswith("configuration")
    assert all(f"  {name}" in lines[0] for name in ("acc split", "strongest (split)"))
    assert "0.800 passive/t" in lines[3]
    assert lines[2].startswith("a long name")
    assert "…" in lines[2]


def test_a_table_that_fits_is_left_as_it_is():
    header, rows = ["setting", "x"], [["kdk", "0.5"], ["noise scale=1", "0.25"]]
    assert terminal.fitted(header, rows, ("x",)) == terminal.aligned(header, rows)


def test_optional_columns_go_first_and_in_the_order_that_is_given():
    header, rows = ["setting", "b", "c"], [[30 * "s", 10 * "b", 10 * "c"]]
    assert terminal.fitted(header, rows, ("c", "b"), 45).splitlines()[0].split() == ["setting", "b"]
    assert terminal.fitted(header, rows, ("b",), 45).splitlines()[0].split() == ["setting", "c"]
    cut = terminal.fitted(header, rows, (), 45).splitlines()[2]
    assert (len(cut), cut.count("…")) == (45, 1)
