"""What stands above the tables: the rule that was followed, with its figures."""

from tests.sweeps import REFERENCE, assessed, assessment
from vfljax import store
from vfljax.report import captions, judging
from vfljax.report.assessment import assess
from vfljax.report.stored_rows import read

PLAIN = assessed(assessment("plain", 0.9, 0.8), reference=REFERENCE._replace(classes=10))


def test_with_three_seeds_the_bias_is_the_simulated_one(monkeypatch):
    asked = []

    def stored(seeds, candidates):
        asked.append((seeds, candidates))
        return captions.Bias(seeds, candidates, {0.01: 0.004, 0.1: 0.044})

    monkeypatch.setattr(captions, "stored_bias", stored)
    text = captions.strongest_attack(PLAIN)
    assert asked == [(3, 2)]  # one attack, and the local-only baseline
    assert "by at most 0.004, 0.044 where figures spread over seeds by 0.01, 0.1" in text
    assert (
        "The figure is the highest mean over seeds of any candidate, which is named. By folds"
        in text
    )
    for verdict in judging.VERDICTS:
        assert str(verdict) in text


def test_with_fewer_seeds_there_are_no_folds_and_no_limits(tiny_sweep):
    found = assess(read(store.load(tiny_sweep)))
    text = captions.strongest_attack(found)
    assert "This sweep has fewer than 3 seeds" in text
    assert "By folds" not in text
    assert "biased" not in text


def test_permuted_labels_are_said_and_nothing_where_none_are():
    assert captions.strongest_attack(PLAIN, 1.0).startswith(
        "Control: the labels of 100% of the rows were permuted before the split. Columns tell nothing"
    )
    assert "Control" not in captions.strongest_attack(PLAIN)


def test_the_rule_for_the_utility_is_printed_with_its_numbers():
    text = captions.operating_points(PLAIN)
    assert "its accuracy on validation rows is at most 0.020 below undefended's" in text
    assert "upper limit of the loss at 90% (50% of what the federation gains" in text
