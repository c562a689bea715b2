"""What a terminal gets: the verdicts first, and a table that fits."""

import pathlib
import shutil

import pytest

from tests.sweeps import point
from vfljax import store
from vfljax.report import cards, headline, page, summary, terminal
from vfljax.sweep.experiment import experiment_of
from vfljax.types import MALICIOUS, NO_SPLIT

FIXTURE = pathlib.Path(__file__).parents[1] / "fixtures" / "stored_sweep"


def opened(points, sweep):
    return headline.opening(points, cards.about(sweep, experiment_of(sweep)))


def widest(text):
    return max(map(len, text.splitlines()))


@pytest.mark.parametrize(
    ("cell", "brief"),
    [
        ("0.975 ± 0.007", "0.975"),
        ("0.755 (0.562 to 0.854) active/finetune_bottom", "0.755 active/tuned"),
        ("0.650 direct/most_negative", "0.650 most_neg"),
        ("+0.071 (-0.072 to +0.172)", "+0.071"),
        ("0.700 staying away", "0.700 staying away"),
        ("-", "-"),
    ],
)
def test_the_terminal_gets_means_without_limits(cell, brief):
    assert terminal.mean_only(cell) == brief


def test_headline_and_verdicts_come_first_and_fit(tiny_sweep):
    sweep = store.load(tiny_sweep)
    points = summary.points(sweep)
    text = terminal.first_lines(opened(points, sweep))
    assert text.startswith("With model splitting: undefended, ")
    assert text.index("No verdict: fewer than 3 seeds.") < text.index("federation  verdict")
    assert widest(text) <= 120
    assert widest(terminal.text_table(points)) <= 120


def test_a_stored_sweep_that_is_not_finished_fits_and_says_so(tmp_path):
    workdir = shutil.copytree(FIXTURE, tmp_path / "w")
    text = page.present(workdir)
    table, _, sentences = text.partition("\n\n- ")
    assert widest(table) <= 120
    assert sentences.count("\n- ") >= 3
    assert "<p>Not finished: " in (workdir / "report.html").read_text()


def wide(name, **attacks):
    """A point of many columns, each as wide as they come."""
    one = point(name, 0.9, 0.8, {"kdk.epsilon": 0.123456, "kdk.k": 3.0}, **attacks)
    kinds = ("split", MALICIOUS, NO_SPLIT)
    worst = one.worst["split"]._replace(name="passive/finetune_bottom/parties=0+1 lambda_u=50")
    return one._replace(
        accuracy=dict.fromkeys(kinds, one.accuracy["split"]),
        auc=dict.fromkeys(kinds, one.accuracy["split"]),
        worst={"split": worst, "no_split": worst},
        diverged=1,
    )


@pytest.mark.parametrize("attacks", [0, 8, 9])
def test_every_line_of_the_table_fits_whatever_it_holds(attacks):
    ran = {f"attack_number_{k}_by_somebody": 0.5 for k in range(attacks)}
    text = terminal.text_table([wide(3 * "a long name of an arm ", **ran), wide("kdk", **ran)])
    assert widest(text) <= 120
    lines = text.splitlines()
    assert lines[0].startswith("setting")
    assert all(
        f"  {name}" in lines[0] for name in ("acc split", "worst (split)", "worst (no split)")
    )
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
