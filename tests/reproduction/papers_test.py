"""The papers' printed numbers: each is there once, with the table that it is of."""

from collections import Counter

import pytest

from analysis.reproduction import papers
from tests.sweeps import tiny
from vfljax.errors import UserError
from vfljax.sweep.grid import parse


def test_every_number_is_there_once_and_its_text_is_its_value():
    numbers = papers.numbers()
    assert len({number.id for number in numbers}) == len(numbers) == 869
    by_paper = Counter(number.table.split("/")[0] for number in numbers)
    assert by_paper == {"kdk": 196, "fu": 24, "gafm": 294, "sun": 35, "li": 320}
    assert set(by_paper) == set(papers.PAPERS)
    for number in numbers:
        value = float(number.printed.rstrip("%")) / (100 if number.printed[-1] == "%" else 1)
        assert value == pytest.approx(number.value, abs=1e-12), number.id
        if number.metric not in ("gan_gradient_avg", "ce_gradient_avg", "leak_auc_over_train_auc"):
            assert 0 <= number.value <= 1, number.id


def test_tables_have_the_names_that_configs_use():
    tables = papers.tables()
    assert tables["gafm/2"] == ("Spambase", "IMDB", "Criteo", "ISIC")
    assert tables["kdk/figure6"] == ()
    spambase = papers.numbers_of("gafm/2", "Spambase")
    assert len(spambase) == 16
    assert papers.numbers_of("gafm/2", "spambase") == ()
    vanilla = [n for n in spambase if n.defense == "none" and n.attack]
    assert [(n.value, n.spread) for n in vanilla] == [(0.85, 0.07), (1.0, 0.0), (0.91, 0.0)]


def test_half_a_unit_is_of_the_last_printed_decimal():
    for printed, half in (("80.6%", 0.0005), ("81%", 0.005), ("-0.049", 0.0005), ("1.0", 0.05)):
        number = papers.numbers()[0]._replace(printed=printed)
        assert number.half_unit == pytest.approx(half)


@pytest.mark.parametrize(
    ("reproduces", "words"),
    [
        ({"table": "gafm/9"}, ("config.reproduces.table", "gafm/9", "gafm/2")),
        ({"table": "gafm/2", "dataset": "Imdb"}, ("config.reproduces.dataset", "'Imdb'", "IMDB")),
    ],
)
def test_a_table_that_no_paper_has_is_refused(reproduces, words):
    with pytest.raises(UserError) as refused:
        papers.check(parse(tiny(reproduces=reproduces)).reproduces)
    assert [word for word in words if word not in str(refused.value)] == []
