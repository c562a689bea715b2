"""Configurations: intervals over seeds, labels, and what figures are compared with."""

import math

import pytest
from scipy import stats

from vfljax import store
from vfljax.report.configurations import configurations, reference_of, undefended
from vfljax.report.estimates import interval
from vfljax.report.stored_rows import read


def test_the_interval_is_the_t_interval():
    values = [0.1, 0.4, 0.3]
    low, high = stats.t.interval(0.95, 2, loc=sum(values) / 3, scale=stats.sem(values))
    mean, half, _ = interval(values)
    assert math.isclose(mean - half, low)
    assert math.isclose(mean + half, high)


def test_one_seed_has_no_interval_and_none_has_no_mean():
    assert str(interval([0.5])) == "0.500"
    assert str(interval([None, float("nan")])) == "-"


def test_a_stored_method_is_defended_by_its_chain_not_by_its_name(defended):
    """Stored rows name the chain; here methods have each other's names."""
    names = {"undefended": "gafm", "plain": "undefended", "gafm": "plain"}
    methods = [names[method] for method in defended.results["method"].to_pylist()]
    place = defended.results.schema.get_field_index("method")
    renamed = defended._replace(results=defended.results.set_column(place, "method", [methods]))
    every = configurations(read(renamed))
    assert {c.method: c.defenses for c in every} == {
        "gafm": (),
        "undefended": ("label_dp",),
        "plain": ("gafm",),
    }
    assert undefended(every).method == "gafm"


@pytest.mark.parametrize(
    ("balance", "chance", "scale"), [([9, 1], 0.5, "leak AUC"), ([1] * 4, 0.25, "balanced top-1")]
)
def test_chance_and_majority_come_from_the_class_balance(tiny_sweep, balance, chance, scale):
    stored = store.load(tiny_sweep)
    stored.header["data"]["balance"] = balance
    reference = reference_of(read(stored))
    assert reference.chance == chance
    assert reference.majority == max(balance) / sum(balance)
    assert reference.scale == scale


def test_a_figure_is_of_the_recorded_rows_of_every_class_as_the_rarest_has(tiny_sweep):
    sweep = store.load(tiny_sweep)
    data = sweep.header["data"]
    share = min(data["balance"]) / sum(data["balance"])
    reference = reference_of(read(sweep))
    assert reference.rows == int(10 * data["recorded"] * share)
    assert reference.crossed


def test_a_label_names_what_varies_in_its_method_and_what_had_to_be_chosen(defended):
    labels = [c.label for c in configurations(read(defended))]
    assert labels == [
        *("undefended", "plain epsilon=1", "plain epsilon=3"),
        *("gafm delta=0.1", "gafm delta=0.5"),
    ]


def test_oriented_figures_turn_inverted_runs_and_leave_the_others(defended):
    for row in defended.results.to_pylist():
        turned = row["train_auc"] < 0.5
        assert row["inverted"] == turned
        auc = 1 - row["test_auc"] if turned else row["test_auc"]
        assert row["test_oriented_auc"] == pytest.approx(auc, abs=1e-6)
        if not turned:
            assert row["test_oriented_accuracy"] == row["test_accuracy"]
