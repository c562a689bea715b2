"""What a linear model is given of codes and texts; what it finds without a federation."""

import types

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score, roc_auc_score

from tests.sweeps import tiny
from vfljax import lab, parties
from vfljax.baselines import logistic_rows, numbers_of, untrained_cut
from vfljax.datasets.core import Input
from vfljax.suite import Form

CHANGES = {"grid": {"undefended": {}}, "parties.passive": 2}
CANCER = {"name": "breast_cancer", "train": 200, "validation": 100, "test": 100}


def test_numbers_stay_and_codes_become_one_hot():
    x = np.array([[0.5, 2, 0], [-1.0, 0, 1]], np.float32)
    found = numbers_of(x, Input("table", (3,), (0, 3, 2))).toarray()
    # codes first, then numbers
    np.testing.assert_array_equal(found, [[0, 0, 1, 1, 0, 0.5], [1, 0, 0, 0, 1, -1.0]])
    np.testing.assert_array_equal(numbers_of(x, Input("table", (3,))).toarray(), x)


def columns(made, attackers, seed, rows):
    """The attackers' columns as their bottoms read them, restated."""
    out = []
    for p in attackers:
        x = np.asarray(made.blocks[p].features, np.float64)
        own = x[made.splits[seed].train]
        z = (x - own.mean(0)) / np.where(own.std(0) > 0, own.std(0), 1)
        out.append(z[rows].reshape(len(rows), -1))
    return np.concatenate(out, axis=1)


@pytest.mark.parametrize("data", [CANCER, {"train": 320, "validation": 160, "test": 160}])
def test_the_baseline_without_a_federation_is_each_seed_s_own_fitted_to_the_known_rows(data):
    """Two seeds, attackers and numbers of known rows; with 5 of digits' rows, 5 classes unseen."""
    made = lab.prepare(tiny(**CHANGES, data={"name": "digits", **data, "scaling": "standard"}))
    arrays = lab.split_arrays(made.dataset.labels, made.splits)
    form = Form("mean", "mean", {}, [{"known": 5}, {"known": 40}])
    sights = [
        types.SimpleNamespace(structure="split", number=0, attackers=a) for a in ((1,), (0, 1))
    ]
    rows = logistic_rows(form, sights, made, arrays)
    assert [(r["attack"], r["point"], r["seed"]) for r in rows] == [
        (label, point, seed)
        for label in ("mean/parties=1", "mean/parties=0+1")
        for point in (0, 1)
        for seed in (0, 1)
    ]
    labels, classes = made.dataset.labels, made.dataset.num_classes
    for row in rows:
        seed, attackers = row["seed"], (1,) if row["attack"].endswith("=1") else (0, 1)
        split, count = made.splits[seed], (5, 40)[row["point"]]
        x, y = columns(made, attackers, seed, split.train), labels[split.train]
        known = arrays["known_order"][seed][:count]
        model = LogisticRegression(max_iter=1000).fit(x[known], y[known])
        assert row["success"] == pytest.approx(model.score(x, y), abs=0.02)
        test = columns(made, attackers, seed, split.test)
        assert row["test_success"] == pytest.approx(model.score(test, labels[split.test]), abs=0.02)
        others = np.setdiff1d(
            np.arange(len(y)), known
        )  # rows whose label the attacker was not given
        if classes == 2:
            auc = roc_auc_score(y[others], model.predict_proba(x[others])[:, 1])
            expected = max(auc, 1 - auc)
        else:
            expected = balanced_accuracy_score(y[others], model.predict(x[others]))
        assert row["leak"] == pytest.approx(expected, abs=0.01)


def test_the_untrained_cut_is_that_of_each_seed_s_initial_bottoms_of_the_attackers():
    made = lab.prepare(tiny(**CHANGES))
    spec = made.groups[0].spec
    weights = jax.device_get(lab.initial_weights(spec, made))
    for attackers in ((1,), (0, 1)):
        found = untrained_cut(made, spec, attackers)
        for seed, split in enumerate(made.splits):
            cut = []
            for p in attackers:
                own = jax.tree.map(lambda a, seed=seed: a[seed], weights.bottoms[p])
                x = np.asarray(made.blocks[p].features, np.float32)[split.train]
                x = (x - np.asarray(made.table.mean[p][seed])) / np.asarray(
                    made.table.scale[p][seed]
                )
                cut.append(parties.from_module(spec.bottoms[p]).apply(own, x, False, None)[0])
            np.testing.assert_allclose(found[seed], np.concatenate(cut, axis=-1), atol=1e-5)


def test_a_text_is_a_bag_of_its_tokens():
    x = np.array([[2, 5, 5, 0], [2, 3, 0, 0]], np.float32)
    found = numbers_of(x, Input("text", (4,), (7,), 0)).toarray()
    np.testing.assert_array_equal(found, [[1, 0, 1, 0, 0, 1, 0], [1, 0, 1, 1, 0, 0, 0]])
