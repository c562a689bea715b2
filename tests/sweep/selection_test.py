"""GAFM's Delta: chosen on a tenth of the rows, by leak over oriented training AUC."""

import json

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.sweeps import tiny
from vfljax import store
from vfljax.errors import UserError
from vfljax.sweep import selection
from vfljax.sweep.experiment import parse, with_knob

CONFIG = tiny(
    data={"name": "breast_cancer", "train": 300, "validation": 100, "test": 100},
    grid={"plain": {}, "gafm": {"gafm": {"delta": 0.2, "gamma": (1.0, 2.0)}}},
    attacks={},
    **{"model.aggregation": "mean", "model.top": "generator"},
)


def test_the_leaks_are_the_norms_and_the_nearer_true_centers():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 200)
    g = rng.normal(size=(200, 3)) + 0.5 * labels[:, None]
    norm, mean, median = selection._gradient_leaks(g, labels)
    for leak, center in ((mean, np.mean), (median, np.median)):
        to = [((g - center(g[labels == c], axis=0)) ** 2).sum(1) for c in (0, 1)]
        assert leak == pytest.approx(roc_auc_score(labels, to[1] <= to[0]))
    a = roc_auc_score(labels, (g**2).sum(1))
    assert norm == pytest.approx(max(a, 1 - a))
    assert selection._gradient_leaks(g, 1 - labels) == pytest.approx((norm, mean, median))


def test_the_subset_is_a_tenth_of_the_training_rows_with_five_seeds_and_one_value_an_axis():
    small = selection._selection_experiment(parse(CONFIG), (0.1, 0.5)).stored
    assert small["data"]["train"] == 30
    assert small["data"]["test"] == 100
    assert small["seeds"] == 5
    assert small["grid"] == {"gafm": {"gafm": {"delta": [0.1, 0.5], "gamma": 1.0}}}
    half = parse(tiny(grid=CONFIG["grid"], data={"train": 0.5}))
    shares = selection._selection_experiment(half, (0.1,))
    assert shares.data.train == pytest.approx(0.05)


def test_the_chosen_delta_is_the_best_of_what_was_trained_and_is_used_in_every_arm(tmp_path):
    said = []
    chosen = selection.select(parse(CONFIG), tmp_path, "test", said.append, candidates=(0.1, 0.5))
    assert set(chosen.leak) == set(chosen.train_auc) == {0.1, 0.5}
    ratios = {0.1: [], 0.5: []}
    stored = store.load(tmp_path / "select_delta")
    splits = stored.splits()
    for row in stored.results.to_pylist():
        g = np.asarray(stored.trial(row["trial"]).exchange()["party0_gradients"][-1])
        labels = splits["labels"][splits["train"][row["seed"]]]
        auc = max(row["train_auc"], 1 - row["train_auc"])
        delta = round(row["gafm.delta"], 3)
        ratios[delta].append(np.mean(selection._gradient_leaks(g, labels)) / auc)
    assert len(ratios[0.1]) == 5
    assert chosen.delta == min(ratios, key=lambda delta: np.mean(ratios[delta]))
    assert sum("<- chosen" in line for line in said) == 1
    written = json.loads((tmp_path / "select_delta" / "selection.json").read_text())
    assert written["delta"] == chosen.delta
    full = with_knob(parse(CONFIG), "gafm", "delta", chosen.delta)
    assert full.stored["grid"]["gafm"]["gafm"] == {"delta": chosen.delta, "gamma": [1.0, 2.0]}
    assert full.data == parse(CONFIG).data


@pytest.mark.parametrize("name", ["label_dp", "grad_perturb"])
def test_delta_is_not_selected_on_labels_that_an_epsilon_hides(tmp_path, name):
    chain = {name: {"epsilon": 1.0}, "gafm": {"delta": 0.2}}
    with pytest.raises(UserError, match=f"{name}.*true labels.*leave out --select_delta"):
        selection.select(parse(tiny(grid={"both": chain})), tmp_path, "test", print)


def test_without_a_gafm_arm_there_is_nothing_to_select(tmp_path):
    with pytest.raises(UserError, match="no method of config.grid has gafm"):
        selection.select(parse(tiny()), tmp_path, "test", print)
