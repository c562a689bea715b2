"""The papers' printed numbers: each is there once, with the table that it is of."""

from collections import Counter

import pytest

import vfljax
from tests.sweeps import tiny
from vfljax import papers
from vfljax.errors import UserError
from vfljax.launching import running
from vfljax.sweep.grid import parse


def test_every_number_is_there_once_and_each_paper_has_as_many_as_it_prints():
    numbers = papers.numbers()
    assert len({number.id for number in numbers}) == len(numbers) == 549
    by_paper = Counter(number.table.split("/")[0] for number in numbers)
    assert by_paper == {"kdk": 196, "fu": 24, "gafm": 294, "sun": 35}
    assert set(by_paper) == set(papers.PAPERS)


def test_tables_have_the_names_that_configs_use():
    tables = papers.tables()
    assert tables["gafm/2"] == ("Spambase", "IMDB", "Criteo", "ISIC")
    assert tables["fu/attacks"][-1] == "BHI"
    assert tables["kdk/figure6"] == ()
    assert len(papers.numbers_of("gafm/2", "Spambase")) == 16
    assert papers.numbers_of("gafm/2", "spambase") == ()


@pytest.mark.parametrize(
    ("printed", "half"),
    [("80.6%", 0.0005), ("81%", 0.005), ("0.91", 0.005), ("-0.049", 0.0005), ("1.0", 0.05)],
)
def test_half_a_unit_is_of_the_last_printed_decimal(printed, half):
    number = papers.numbers()[0]._replace(printed=printed)
    assert number.half_unit == pytest.approx(half)


def test_a_number_s_text_is_its_value():
    for number in papers.numbers():
        text = number.printed.rstrip("%")
        value = float(text) / (100 if number.printed.endswith("%") else 1)
        assert value == pytest.approx(number.value, abs=1e-12), number.id


def test_shares_are_shares():
    for number in papers.numbers():
        if number.metric not in ("gan_gradient_avg", "ce_gradient_avg", "leak_auc_over_train_auc"):
            assert 0 <= number.value <= 1, number.id
        for beside in (number.spread, number.worst, number.best):
            assert beside is None or 0 <= beside <= 1


def test_a_printed_spread_of_zero_is_a_spread():
    vanilla = [
        n for n in papers.numbers_of("gafm/2", "Spambase") if n.defense == "none" and n.attack
    ]
    assert [(n.value, n.spread) for n in vanilla] == [(0.85, 0.07), (1.0, 0.0), (0.91, 0.0)]


@pytest.mark.parametrize(
    ("reproduces", "words"),
    [
        ({"table": "gafm/9"}, ("config.reproduces.table", "gafm/9", "gafm/2")),
        ({"table": "gafm/2", "dataset": "Imdb"}, ("config.reproduces.dataset", "'Imdb'", "IMDB")),
    ],
)
def test_a_table_that_no_paper_has_is_refused_before_anything_is_written(
    tmp_path, reproduces, words
):
    experiment = parse(tiny(reproduces=reproduces))
    for start in (vfljax.run_sweep, running.counted):
        with pytest.raises(UserError) as refused:
            start(experiment, tmp_path / "w")
        assert [word for word in words if word not in str(refused.value)] == []
    assert not (tmp_path / "w").exists()
