"""The label party alone: its figures beside undefended, and the best of its learners."""

import numpy as np
import pandas as pd
import pytest
from flax import traverse_util
from sklearn.ensemble import HistGradientBoostingClassifier

from tests import sweeps
from tests.sweeps import tiny
from vfljax.report.frames import _best_alone
from vfljax.sweep import alone
from vfljax.sweep.alone import ALONE_LEARNERS, ROUNDS, Alone, _standardized
from vfljax.sweep.grid import parse
from vfljax.sweep.plan import make_plan
from vfljax.sweep.shard_trainer import Trainer


def test_absent_parties_send_a_constant_that_does_not_move_whatever_malicious_ones_upload(
    tmp_path, monkeypatch
):
    """A top model, above all one with batch statistics, would mistake a bias that moves for a signal."""
    evaluate, evaluated = Trainer.evaluate, []

    def watched(self, trials, state):
        evaluated.append((self.table.features[0], state.weights.bottoms))
        return evaluate(self, trials, state)

    monkeypatch.setattr(Trainer, "evaluate", watched)
    deviating = {"malicious.upload": "swap", "malicious.strength": 0.5, "training.epochs": 2}
    top = {"model.top": "mlp", "model.top_hidden": (8,), "model.hidden": ()}
    fields = {"federations": ("split", "malicious"), "grid": {"undefended": {}}, "attacks": {}}
    stored = sweeps.train(tmp_path / "w", tiny(**fields, **deviating, **top), attack=False)
    columns, bottoms = evaluated[1]
    assert not np.any(columns)
    biases = [traverse_util.flatten_dict(bottom, sep="/") for bottom in bottoms]
    absent, present = ([v for k, v in of.items() if k.endswith("bias")] for of in biases)
    assert absent
    assert not any(np.any(bias) for bias in absent)  # as they start: with zeros
    assert all(np.any(bias) for bias in present)
    for row in stored.results.to_pylist():
        assert (row["alone_test_accuracy"] is not None) == (row["federation"] == "split")
        assert row["alone_test_accuracy"] != row["test_accuracy"]


def test_the_best_on_validation_rows_is_taken_seed_by_seed():
    trials = pd.DataFrame(
        {
            "alone_validation": [0.83, 0.9, np.nan],
            "alone_test": [0.834, 0.89, np.nan],
            "alone_boosting_validation_accuracy": [0.85, 0.88, np.nan],
            "alone_boosting_test_accuracy": [0.846, 0.99, np.nan],
        }
    )
    found = _best_alone(trials, ALONE_LEARNERS["classification"], "accuracy")
    assert found["alone_test"].tolist()[:2] == [0.846, 0.89]  # not .99, which only test rows know
    assert found["alone_test"].isna().tolist() == [False, False, True]


def test_learners_read_the_label_partys_columns_alone(monkeypatch):
    monkeypatch.setattr(alone, "ROUNDS", ROUNDS)  # which the tests of sweeps lower
    plan = make_plan(parse(tiny()))
    found = Alone(plan).figures(1)
    names = {
        f"alone_{n}_{part}_accuracy"
        for n in ALONE_LEARNERS["classification"]
        for part in ("validation", "test")
    }
    assert names <= {*found}
    own, split, labels = plan.party_columns[-1].features, plan.splits[1], plan.dataset.labels
    x = np.asarray(own, float).reshape(len(own), -1)
    model = HistGradientBoostingClassifier(max_iter=ROUNDS, random_state=0)
    model.fit(x[split.train], labels[split.train])
    expected = model.score(x[split.test], labels[split.test])
    assert found["alone_boosting_test_accuracy"] == pytest.approx(expected)


def test_codes_are_one_hot_and_numbers_have_the_training_rows_moments():
    raw = {"train": np.array([[1.0, 0], [3, 2], [5, 1]]), "test": np.array([[3.0, 2]])}
    out = _standardized(raw, (0, 3))
    np.testing.assert_allclose(out["train"].mean(0)[:1], 0, atol=1e-12)
    np.testing.assert_array_equal(out["test"], [[0, 0, 0, 1]])
