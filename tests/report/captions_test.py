"""What stands above the tables: the rule that was followed, with its figures."""

from tests.sweeps import point
from vfljax import store
from vfljax.report import captions, judging, simulation, summary

BASE = {"chance": 0.1, "scale": "balanced top-1", "alone": 0.2}


def test_with_three_seeds_the_shortfall_is_the_simulated_one(monkeypatch):
    asked = []

    def shortfalls(seeds, attacks):
        asked.append((seeds, attacks))
        return {0.01: 0.004, 0.1: 0.044}

    monkeypatch.setattr(simulation, "shortfalls", shortfalls)
    text = captions.worst_case([point("plain", 0.9, 0.8)], BASE, 20)
    assert asked == [(3, 2)]  # one attack, and staying away
    assert "by up to 0.004, 0.044 where figures spread over seeds by 0.01, 0.1" in text
    assert captions.OTHER_SEEDS in text
    for verdict in judging.VERDICTS:
        assert verdict in text


def test_with_fewer_seeds_halves_are_said_and_nothing_of_folds(tiny_sweep):
    points = summary.points(store.load(tiny_sweep))
    text = captions.worst_case(points, BASE, 20)
    assert captions.HALVES in text
    assert captions.OTHER_SEEDS not in text
    assert captions.shortfall(points) == ""


def test_permuted_labels_are_said_and_nothing_where_none_are():
    points = [point("plain", 0.9, 0.8)]
    assert captions.worst_case(points, BASE, 20, 1.0).startswith(
        "Control: the labels of 100% of the rows were permuted before the split. Columns tell nothing"
    )
    assert "Control" not in captions.worst_case(points, BASE, 20)


def test_the_rule_for_the_accuracy_is_printed_with_its_numbers():
    assert "at most 0.02 below undefended's" in captions.strengths()
    assert "at most 0.04 by the upper limit of that loss at 90%" in captions.strengths()
    said = captions.strengths(0.005)
    assert "at most 0.005 below undefended's" in said
    assert "at most 0.01 by the upper limit" in said
