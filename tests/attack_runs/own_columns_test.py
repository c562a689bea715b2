"""What a linear model is given of codes and texts; what it finds without a federation."""

import jax
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from tests.sweeps import plan_of, tiny
from vfljax.attack_runs.inputs import untrained_cut
from vfljax.attack_runs.local_only import own_columns
from vfljax.attack_runs.view import common_data
from vfljax.attacks.learners import learn
from vfljax.datasets.numbers import numbers_of, width_of
from vfljax.models import parties
from vfljax.sweep.initial import initial_weights
from vfljax.sweep.known import split_arrays
from vfljax.types import Input, Scores

ATTACKERS = (0, 2)  # of three passive parties


@pytest.fixture(scope="module")
def plan():
    data = {"name": "breast_cancer", "train": 200, "validation": 100, "test": 100}
    data["scaling"] = "standard"
    return plan_of(tiny(grid={"undefended": {}}, data=data, **{"parties.passive": 3}))


def columns(plan, seed, rows):
    """The attackers' columns as their bottoms read them, restated."""
    out = []
    for p in ATTACKERS:
        x = np.asarray(plan.party_columns[p].features, np.float64)
        train = x[plan.splits[seed].train]
        z = (x - train.mean(0)) / np.where(train.std(0) > 0, train.std(0), 1)
        out.append(z[rows].reshape(len(rows), -1))
    return np.concatenate(out, axis=1)


@pytest.mark.usefixtures("real_learners")
def test_the_baseline_without_a_federation_is_each_seed_s_own_fitted_to_the_known_rows(plan):
    arrays = split_arrays(plan.dataset.labels, plan.splits)
    labels = plan.dataset.labels
    common = jax.device_get(common_data(plan.table, arrays, ATTACKERS))
    for seed, count in ((0, 5), (1, 40)):
        own = own_columns(plan, common, ATTACKERS, count, seed)
        split = plan.splits[seed]
        scores = Scores(*np.split(learn("logistic", own), [len(split.train)]))
        x, y = columns(plan, seed, split.train), labels[split.train]
        known = arrays["known_order"][seed][:count]
        model = LogisticRegression(max_iter=1000).fit(x[known], y[known])
        guesses = [part.argmax(1) for part in scores]
        assert np.mean(guesses[0] == y) == pytest.approx(model.score(x, y), abs=0.02)
        test = model.score(columns(plan, seed, split.test), labels[split.test])
        assert np.mean(guesses[1] == labels[split.test]) == pytest.approx(test, abs=0.02)
        # rows whose label the attacker was not given
        others = np.setdiff1d(np.arange(len(y)), known)
        leak = roc_auc_score(y[others], np.diff(scores.train)[others, 0])
        expected = roc_auc_score(y[others], model.predict_proba(x[others])[:, 1])
        assert leak == pytest.approx(expected, abs=0.01)


def test_the_untrained_cut_is_that_of_each_seed_s_initial_bottoms_of_the_attackers(plan):
    spec, table = plan.groups[0].spec, plan.table
    weights = initial_weights(spec, plan.experiment, plan.seeds, table)
    embeddings = untrained_cut(weights, table, spec, ATTACKERS)
    on_host = jax.device_get(weights)
    for seed, split in enumerate(plan.splits):
        cut = []
        for p in ATTACKERS:
            variables = jax.tree.map(lambda a, seed=seed: a[seed], on_host.bottoms[p])
            x = np.asarray(plan.party_columns[p].features, np.float32)[split.train]
            x = (x - np.asarray(table.mean[p][seed])) / np.asarray(table.scale[p][seed])
            bottom = parties.from_module(spec.bottoms[p])
            cut.append(bottom.apply(variables, x, False, None)[0])
        expected = np.concatenate(cut, axis=-1)
        np.testing.assert_allclose(embeddings[seed], expected, atol=1e-5)


def test_numbers_stay_codes_become_one_hot_and_a_text_is_a_bag_of_its_tokens():
    x = np.array([[0.5, 2, 0], [-1.0, 0, 1]], np.float32)
    coded = numbers_of(x, Input("table", (3,), (0, 3, 2))).toarray()
    assert coded.shape[1] == width_of(Input("table", (3,), (0, 3, 2)))
    # codes first, then numbers
    np.testing.assert_array_equal(coded, [[0, 0, 1, 1, 0, 0.5], [1, 0, 0, 0, 1, -1.0]])
    np.testing.assert_array_equal(numbers_of(x, Input("table", (3,))).toarray(), x)
    texts, reads = np.array([[2, 5, 5, 0], [2, 3, 0, 0]], np.float32), Input("text", (4,), (7,), 0)
    bags = numbers_of(texts, reads).toarray()
    np.testing.assert_array_equal(bags, [[1, 0, 1, 0, 0, 1, 0], [1, 0, 1, 1, 0, 0, 0]])
    assert width_of(reads) == 7
