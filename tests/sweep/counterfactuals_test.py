"""Counterfactual labels: how they are drawn, and that the lower bound of epsilon keeps its level."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier

from tests.sweeps import plan_of, tiny
from vfljax.datasets.core import Dataset, PartyColumns
from vfljax.datasets.splits import Split
from vfljax.errors import UserError
from vfljax.report.epsilon_lower_bounds import Guesses, told_by_columns
from vfljax.sweep import counterfactuals
from vfljax.sweep.canaries import PREFIX, guess_figures
from vfljax.sweep.counterfactuals import OPPONENTS, pairs_of
from vfljax.sweep.known import split_arrays
from vfljax.types import Input

AUDITS, ROWS, EPSILON = 400, 500, 1.0
MOST = 29  # of 400 audits above epsilon: 5 %, and two standard deviations


def counted(scores, labels, pairs):
    """Pairs and right guesses of each audit [audits], for scores [audits, n, 2]."""
    nobody = jnp.zeros(labels.shape[1])
    count = jax.jit(jax.vmap(lambda *of: guess_figures(*of, nobody)))
    figures = count(*map(jnp.asarray, (scores, labels, pairs)))
    return {name: np.asarray(x) for name, x in figures.items() if "select" not in name}


def audited(chances, proxy, epsilon=EPSILON):
    """Limits of audits of randomized response, which is read by an attacker that knows the true ``chances``
    [n] of class 1; labels stand beside those that a proxy draws. Also limits that take the proxy for perfect.
    """
    rng, shape = np.random.default_rng(3), (AUDITS, ROWS)
    labels, drawn = (rng.random(shape) < p for p in (chances, proxy))
    sent = labels ^ (rng.random(shape) > 1 / (1 + math.exp(-epsilon)))
    pairs = np.sort(np.stack([labels, drawn], -1), -1).astype(np.int32)
    pairs[labels == drawn] = -1
    by_columns = np.log(chances / (1 - chances)) - np.log(proxy / (1 - proxy))
    odds = by_columns + np.where(sent, epsilon, -epsilon)
    limits = []
    attack, columns = (
        counted(np.stack([0 * x, x], -1), labels.astype(np.int32), pairs)
        for x in (odds, np.broadcast_to(by_columns, shape))
    )
    for k in range(AUDITS):
        most = told_by_columns({"the truth": {name: x[k] for name, x in columns.items()}})[100]
        guesses = int(attack[f"{PREFIX}guessed_100"][k]), int(attack[f"{PREFIX}right_100"][k])
        each = (Guesses("", "", *guesses, m) for m in (most, 0.5))
        limits.append([of.epsilon() for of in each])
    return np.array(limits)


def test_the_limit_is_above_epsilon_in_five_percent_of_audits_at_most():
    chances = np.random.default_rng(0).uniform(0.2, 0.8, ROWS)
    corrected, perfect = audited(chances, chances).T
    assert np.sum(perfect > EPSILON) <= MOST  # the proxy is perfect
    assert np.mean(perfect) > 0.6 * EPSILON
    assert np.sum(corrected > EPSILON) <= MOST
    assert np.mean(corrected) > 0.3 * EPSILON


def test_a_wrong_proxy_is_corrected_by_what_columns_tell():
    chances = np.where(np.random.default_rng(0).random(ROWS) < 0.5, 0.1, 0.9)
    corrected, uncorrected = audited(chances, np.full(ROWS, 0.5)).T
    assert np.sum(uncorrected > EPSILON) > 390  # columns alone tell nine of ten pairs
    assert np.sum(corrected > EPSILON) <= MOST


def of_law(rows, seed=0):
    """Rows whose label depends on two parties' columns by a logistic law."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 4)).astype(np.float32)
    y = (x @ [1.0, -1.0, 0.5, 0.0] + rng.logistic(size=rows) > 0).astype(np.int32)
    columns = [PartyColumns(part, Input("table", (2,))) for part in (x[:, :2], x[:, 2:])]
    split = Split(np.arange(rows // 2), np.arange(rows // 2, rows), np.zeros(0, int))
    return Dataset("set", x, y, 2), columns, split, 1 / (1 + np.exp(-x @ [1.0, -1.0, 0.5, 0.0]))


def test_a_pair_has_the_true_label_and_one_that_a_proxy_of_other_rows_draws(monkeypatch):
    data, columns, split, chances = of_law(4000)
    places = np.random.default_rng(1).permutation(2000)[:1000]
    pairs, scores = pairs_of(0, data, columns, split, places)
    labels, is_pair = data.labels[places], pairs[:, 0] >= 0
    assert (pairs[is_pair] == [0, 1]).all()
    assert (pairs[~is_pair] == -1).all()
    expected = 2 * chances[places] * (1 - chances[places])
    assert is_pair.mean() == pytest.approx(expected.mean(), abs=0.05)
    assert {*scores} == {*OPPONENTS}
    for of in scores.values():  # of a good proxy they tell little
        guess = of[is_pair].argmax(1)
        assert np.mean(guess == labels[is_pair]) == pytest.approx(0.5, abs=0.09)
    monkeypatch.setattr(counterfactuals, "OPPONENTS", {})  # no pair depends on them
    other = data._replace(
        labels=np.where(np.isin(np.arange(4000), places), 1 - data.labels, data.labels)
    )
    drawn = np.where(is_pair, 1 - labels, labels)
    again, _ = pairs_of(0, other, columns, split, places)
    np.testing.assert_array_equal(np.where(again[:, 0] >= 0, labels, 1 - labels), drawn)
    groups = np.arange(4000)
    groups[split.train[places[:50]]] = split.train[places[50:100]]  # copies of one another
    same = data._replace(groups=groups, labels=np.zeros(4000, np.int32) + (groups % 2))
    copied, _ = pairs_of(0, same, columns, split, places)
    assert (copied[:100] == -1).all()
    with pytest.raises(UserError, match="canaries=1000 leaves 3000 rows to a proxy, which lack a"):
        pairs_of(
            0, data._replace(labels=np.isin(np.arange(4000), places) * 1), columns, split, places
        )


def test_a_plan_keeps_all_labels_and_tells_what_columns_tell(monkeypatch):
    monkeypatch.setitem(OPPONENTS, "boosting", lambda: HistGradientBoostingClassifier(max_iter=2))
    plan = plan_of(tiny(seeds=1, canaries=120, canary_labels="observed"))
    without = plan_of(tiny(seeds=1))
    labels = plan.dataset.labels[plan.splits[0].train]
    np.testing.assert_array_equal(labels, without.dataset.labels[without.splits[0].train])
    arrays = split_arrays(plan.dataset.labels, plan.splits, 1, plan.candidates)
    pairs = arrays["candidates"][0]
    is_pair = pairs[:, 0] >= 0
    assert 0 < is_pair.sum() < 120
    assert ((labels[is_pair][:, None] == pairs[is_pair]).sum(1) == 1).all()
    assert {*plan.told} == {*OPPONENTS}
    assert all(of[f"{PREFIX}guessed_100"] == is_pair.sum() for of in plan.told.values())
