"""The learners of the local-only baseline, against restatements and in what they promise."""

import numpy as np
import pytest
from scipy import sparse, stats
from sklearn.ensemble import ExtraTreesClassifier

from tests import harness
from tests.attacks import cases
from tests.reference import ranks as reference
from vfljax.attacks import learners, ranks
from vfljax.attacks.learners import LEARNERS, LINEAR, OwnColumns, learners_of
from vfljax.attacks.spreading import spreading
from vfljax.types import Known

pytestmark = pytest.mark.usefixtures("real_learners")


@pytest.fixture(scope="module")
def own():
    """Two classes of 150 rows each around (-1, ...) and (1, ...), 20 labels known; a third class is not."""
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1], 150)
    numbers = (2 * labels - 1)[:, None] + 1.5 * random.standard_normal((300, 4))
    known = np.concatenate([np.arange(10), 150 + np.arange(10)])
    return OwnColumns(numbers.astype(np.float32), known, labels[known], 3, 0)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_ranks_rows_and_puts_a_class_without_a_label_last(own, name):
    scores = learners.learn(name, own)
    assert scores.shape == (300, 3)
    assert scores.dtype == np.float32
    assert np.all(np.isfinite(scores))
    assert np.mean(scores.argmax(1) == np.repeat([0, 1], 150)) > 0.8
    if name not in ("ridge on ranks", "kernel ridge on ranks"):
        assert np.all(scores[:, 2] <= scores[:, :2].min(1))
    turned = own._replace(known=own.known[::-1], labels=own.labels[::-1])
    again = learners.learn_draws(name, [turned, own])[1]  # the columns are prepared by another draw
    np.testing.assert_array_equal(again, scores)


def test_ranks_are_midranks_of_unit_spread(own):
    ranked = learners.ranked(own).numbers
    for column, expected in zip(ranked.T, own.numbers.T, strict=True):
        order = (stats.rankdata(expected) / 300 - 0.5) * 3.46
        np.testing.assert_allclose(column, order, atol=1e-6)
    assert ranked.std() == pytest.approx(1, abs=0.01)


def test_kernel_ridge_and_discriminants_are_their_formulas(own):
    given = (np.ones(300, bool), own.known, own.labels, 2)
    kernel = learners.kernel_ridge(own)[:, :2]
    np.testing.assert_allclose(kernel, reference.kernel(own.numbers, *given), atol=1e-3)
    linear = learners.discriminants(own)[:, :2]
    np.testing.assert_allclose(linear, reference.lda(own.numbers, *given), atol=1e-3)
    both = learners.kernel_and_discriminants(own)[:, :2]
    ranks = [stats.rankdata(scores, axis=0) for scores in (kernel, linear)]
    np.testing.assert_allclose(both, (ranks[0] + ranks[1]) / 2, atol=1e-3)


def test_the_attacks_on_ranks_and_spreading_have_the_learners_of_the_baseline(own):
    """One list: what an attack learns with, the local-only baseline learns with too."""
    of_ranks = {
        "kernel": learners.kernel_ridge,
        "lda": learners.discriminants,
        "both": learners.kernel_and_discriminants,
        "ridge": learners.ridge,
    }
    assert {*of_ranks} == {*ranks.LEARNERS}
    assert {*of_ranks.values()} < {learner.fit for learner in LEARNERS.values()}
    ranked, sent = learners.ranked(own), np.ones(300, bool)
    known = Known(np.int32(own.known), np.int32(own.labels), np.int32(20))

    def of_attack(x, sent, known):
        taught = ranks.taught(known, sent, 3, 20)
        return {name: learner(x, sent, taught) for name, learner in ranks.LEARNERS.items()}

    every = harness.quick_jit(of_attack)(ranked.numbers, sent, known)
    for name, fit in of_ranks.items():
        expected, found = every[name], fit(ranked)
        if (
            name == "both"
        ):  # the baseline's midranks are not centered, and near scores change places
            found, expected = (stats.rankdata(x[:, :2], axis=0) / 300 for x in (found, expected))
        np.testing.assert_allclose(found[:, :2], np.asarray(expected)[:, :2], atol=2e-2)
    both = {*LEARNERS, *learners.REGRESSORS}
    assert both == {*learners.READERS, "propagation", "propagation on ranks"}


def test_propagation_is_that_of_the_attack_on_the_same_columns(own):
    labels = np.zeros(300, int)
    labels[150:] = 1
    parts = {"features": own.numbers, "test_features": np.zeros((10, 4))}
    case = cases.make_case(labels, 2, known=20, **parts)
    attack = cases.build(spreading, 2, blocks="columns")
    known = cases.known_of(case)
    found = learners.learn("propagation", OwnColumns(own.numbers, known, labels[known], 2, 0))
    np.testing.assert_allclose(found, cases.attack(attack, case, known=20).train, atol=1e-6)


def test_extra_trees_have_the_class_shares_of_scikit_learn_s(own):
    forest = ExtraTreesClassifier(300, random_state=1).fit(own.numbers[own.known], own.labels)
    shares, expected = learners.extra_trees(own)[:, :2], forest.predict_proba(own.numbers)
    np.testing.assert_allclose(shares, expected, atol=5 * (0.25 / learners.TREES) ** 0.5)
    np.testing.assert_allclose(shares.sum(1), 1, atol=1e-6)


def test_extra_trees_of_one_known_class_score_it_highest(own):
    ones = own._replace(labels=np.ones_like(own.labels), classes=3)
    scores = learners.extra_trees(ones)
    assert scores.shape == (300, 3)
    assert (scores.argmax(1) == 1).all()


def test_wide_columns_are_read_by_linear_models_alone():
    assert learners_of(2, learners.WIDEST, learners.MANY_ROWS) == tuple(LEARNERS)
    assert learners_of(1, learners.WIDEST, learners.MANY_ROWS) == tuple(learners.REGRESSORS)
    linear = learners_of(2, learners.WIDEST + 1, 1)
    assert {*linear, *learners_of(1, learners.WIDEST + 1, 1)} == {*LINEAR}
    many = learners_of(2, learners.WIDEST, learners.MANY_ROWS + 1)
    assert {*LEARNERS} - {*many} == {*learners.DEAR}
    words = sparse.random(60, learners.WIDEST + 1, 0.01, "csr", np.float32, random_state=0)
    own = OwnColumns(words, np.arange(10), np.arange(10) % 2, 2, 0)
    for name in linear:
        assert np.all(np.isfinite(learners.learn(name, own)))
