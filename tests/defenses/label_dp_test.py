"""Label DP: its channel, its privacy, the laws of its draws, and who sees which labels."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from tests import harness
from tests.reference import label_dp as reference
from vfljax.defenses.core import TrainingData
from vfljax.defenses.label_dp import (
    ROW,
    best_guess,
    channel,
    label_dp,
    optimal_k,
    randomized_response,
    rr_with_prior,
)
from vfljax.types import Context

ROWS = 20_000
ACCEPT, REJECT = 1e-3, 1e-6  # p values; keys are fixed, so these tests do not flicker
EPSILONS = [0.3, 1.0, 2.0, 4.0]
PRIOR = np.float32([0.15, 0.4, 0.02, 0.33, 0.1])
KEY = jax.random.key(0)

respond = harness.quick_jit(randomized_response, static_argnums=2)
respond_with_prior = harness.quick_jit(rr_with_prior)
best_k, table_of = harness.quick_jit(optimal_k), harness.quick_jit(channel)


def random_priors(seed, count=40, classes=6):
    """Flat to nearly one-hot."""
    rng = np.random.default_rng(seed)
    sharpness = rng.choice([0.1, 1.0, 20.0], size=count)
    return np.float32([rng.dirichlet(np.full(classes, a)) for a in sharpness])


def draw(true, epsilon, classes=5, key=KEY):
    return np.asarray(respond(key, jnp.full(ROWS, true), classes, epsilon))


def draw_with_prior(true, prior, epsilon, key=KEY):
    rows = jnp.tile(jnp.asarray(prior), (ROWS, 1))
    return np.asarray(respond_with_prior(key, jnp.full(ROWS, true), rows, epsilon))


def p_value(drawn, law):
    """Chi-square of draws against a law; a draw of probability 0 refutes it."""
    counts, possible = np.bincount(drawn, minlength=len(law)), law > 0
    if counts[~possible].any():
        return 0.0
    return stats.chisquare(counts[possible], law[possible] / law.sum() * counts.sum()).pvalue


@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS, 8.0])
def test_k_is_the_best_of_all_by_brute_force(epsilon):
    priors = random_priors(0)
    for prior, k in zip(priors, np.asarray(best_k(priors, epsilon))):
        values = np.array(reference.objectives(prior, epsilon))
        assert values[k - 1] >= values.max() - 1e-6
        if np.sort(values)[-2] < values.max() - 1e-5:
            assert k == reference.optimal_k(prior, epsilon)


def test_equally_good_ks_give_the_largest():
    np.testing.assert_array_equal(best_k(np.float32([[0.5, 0.5, 0, 0]]), 0.0), [2])
    np.testing.assert_array_equal(best_k(np.float32([[0.5, 0.5, 0, 0]]), np.inf), [4])


@pytest.mark.parametrize("classes", [2, 10, 100])
def test_a_uniform_prior_is_randomized_response_at_any_epsilon(classes):
    for epsilon in (0.0, 1e-8, 1e-6, 1e-3, 1.0, np.inf):
        assert int(best_k(jnp.full((1, classes), 1 / classes), epsilon)[0]) == classes


def test_no_finite_epsilon_keeps_every_label_for_certain(monkeypatch):
    """The smallest uniform number drawn, 0, flips; rounding the chance of e^-30 down would keep it."""
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jnp.zeros(shape))
    labels = jnp.zeros(3, jnp.int32)
    for epsilon, drawn in ((30.0, 1), (np.inf, 0)):
        np.testing.assert_array_equal(randomized_response(KEY, labels, 2, epsilon), drawn)


@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
def test_the_channel_agrees_with_the_numpy_twin_and_so_does_the_best_guess(epsilon):
    for prior in random_priors(1, 25):
        table = np.asarray(table_of(prior, epsilon))
        k = int(best_k(prior[None], epsilon)[0])  # near ties may round either way
        np.testing.assert_allclose(table, reference.channel(prior, epsilon, k), atol=1e-6)
        np.testing.assert_allclose(table.sum(axis=1), 1, atol=1e-6)
        expected = reference.best_guess(prior, table)
        np.testing.assert_allclose(best_guess(prior, table), expected, atol=1e-6)


def worst_odds(table):
    """The largest P(noisy | y) / P(noisy | y'), infinite where only y' rules a label out."""
    low, high = table.min(axis=0), table.max(axis=0)
    with np.errstate(divide="ignore"):
        return max(b / a for a, b in zip(low, high) if b > 0)


@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
def test_no_noisy_label_shifts_the_odds_by_more_than_e_to_the_epsilon(epsilon):
    worst = [worst_odds(np.asarray(table_of(p, epsilon), float)) for p in random_priors(2)]
    assert max(worst) <= math.exp(epsilon) * (1 + 1e-5)
    if epsilon:
        assert max(worst) > math.exp(epsilon / 1.5)  # the bound is met: a smaller one fails


def test_a_prior_without_doubt_answers_whatever_the_label_is():
    for true in range(4):
        drawn = draw_with_prior(true, np.float32([0, 0, 1, 0]), 2.0)
        np.testing.assert_array_equal(drawn, 2)


def test_infinite_epsilon_keeps_every_label():
    for prior in random_priors(3, 5, classes=5):
        prior = (prior + np.float32(0.01)) / (prior + np.float32(0.01)).sum()  # none ruled out
        labels = jnp.arange(5)
        np.testing.assert_array_equal(table_of(prior, np.inf), np.eye(5))
        kept = respond_with_prior(KEY, labels, jnp.tile(jnp.asarray(prior), (5, 1)), np.inf)
        np.testing.assert_array_equal(kept, labels)
    np.testing.assert_array_equal(draw(3, np.inf), 3)


def test_epsilon_zero_tells_nothing_about_the_label():
    assert p_value(draw(1, 0.0), np.ones(5)) > ACCEPT
    for prior in random_priors(4, 10):
        table = np.asarray(table_of(prior, 0.0))
        np.testing.assert_allclose(table, table[:1].repeat(6, axis=0), atol=1e-6)
        np.testing.assert_allclose(best_guess(prior, table), prior.max(), atol=1e-6)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("classes", [2, 5])
def test_the_keep_rate_is_that_of_epsilon_and_of_no_other(classes, epsilon):
    kept = int((draw(1, epsilon, classes) == 1).sum())
    rate = {e: reference.keep(classes, e) for e in (epsilon, epsilon / 1.5, epsilon * 1.5)}
    p = {e: stats.binomtest(kept, ROWS, rate[e]).pvalue for e in rate}
    assert p[epsilon] > ACCEPT
    assert p[epsilon / 1.5] < REJECT
    assert p[epsilon * 1.5] < REJECT


def test_a_label_not_kept_is_uniform_over_the_others():
    for true in range(5):
        drawn = draw(true, 1.0, key=jax.random.key(true))
        others = np.arange(5) != true
        assert p_value(drawn[drawn != true], others / 4) > ACCEPT
        assert p_value(drawn, np.full(5, 0.2)) < REJECT


@pytest.mark.parametrize("epsilon", [1.0, 2.0])
def test_draws_with_a_prior_follow_the_channel_of_epsilon_and_of_no_other(epsilon):
    law, others = reference.channel(PRIOR, epsilon), [epsilon / 1.5, epsilon * 1.5]
    assert 1 < reference.optimal_k(PRIOR, epsilon) < 5  # labels inside and outside the top k
    wrong = [reference.channel(PRIOR, e, reference.optimal_k(PRIOR, epsilon)) for e in others]
    for true in range(5):
        drawn = draw_with_prior(true, PRIOR, epsilon, jax.random.key(true))
        assert p_value(drawn, law[true]) > ACCEPT
        if not np.allclose(law[true], wrong[0][true]):
            assert max(p_value(drawn, w[true]) for w in wrong) < REJECT


def training_data():
    rng = np.random.default_rng(0)
    teacher = jnp.asarray(rng.dirichlet(np.ones(5), 400), jnp.float32)
    return TrainingData(jnp.asarray(rng.integers(5, size=400), jnp.int32), teacher, 5)


def context_of(index, labels, step):
    numbers = (jnp.int32(step),) * 3
    keys = (jax.random.key(step), KEY)
    return Context(index, labels, None, *numbers, *keys, train=True)


def test_every_later_slot_sees_one_draw_of_a_row_at_every_step():
    defense, data = label_dp(1.0), training_data()
    state = defense.init(KEY, data)
    assert 0.2 < np.mean(state == data.labels) < 0.6  # e / (e + 4) is .40
    for step in range(2):
        index = jax.random.permutation(jax.random.key(step), 400)[:64]
        true = data.labels[index]
        targets, after, state = defense.targets(
            jax.nn.one_hot(true, 5), context_of(index, true, step), state
        )
        np.testing.assert_array_equal(after.labels, defense.init(KEY, data)[index])
        np.testing.assert_array_equal(targets, np.eye(5)[after.labels])
    np.testing.assert_array_equal(defense.teach(KEY, data.labels, 5)[0], state)
    assert np.mean(defense.init(jax.random.key(1), data) == state) < 0.5  # another run, other draws


def test_the_two_stage_teacher_learns_from_half_of_the_rows_and_their_only_draw():
    defense = label_dp(1.0, mechanism="rr_with_prior")
    data = training_data()
    taught, weights = map(np.asarray, defense.teach(KEY, data.labels, 5))
    first = weights > 0
    assert first.sum() == 200
    np.testing.assert_array_equal(np.asarray(defense.init(KEY, data))[first], taught[first])
    # the other half's labels are spent on their own draw: the teacher must not depend on them
    changed = jnp.where(first, data.labels, (data.labels + 1) % 5)
    again, _ = defense.teach(KEY, changed, 5)
    np.testing.assert_array_equal(again, taught)


def test_a_teacher_of_raw_labels_is_refused_unless_the_guarantee_is_given_up():
    with pytest.raises(ValueError, match=r"prior='teacher'.*guarantee"):
        label_dp(1.0, mechanism="rr_with_prior", prior="teacher")
    with pytest.raises(ValueError, match="guarantee"):
        label_dp(1.0, guarantee="none")
    with pytest.raises(ValueError, match="label_features=True"):
        label_dp(1.0, mechanism="rr_with_prior").init(KEY, training_data()._replace(scores=None))


def test_the_bounds_a_report_prints_are_those_of_the_channel():
    prior = np.array([0.37, 0.63])
    assert ROW.remarks.bound({"epsilon": 1.0}, {}, prior) == (
        "2.72",
        f"{math.e / (math.e + 1):.3f}",
    )
    assert ROW.remarks.bound({"epsilon": 0.0}, {}, prior) == ("1", "0.630")
    assert ROW.remarks.bound({"epsilon": math.inf}, {}, prior) == ("no bound", "1.000")
    assert ROW.remarks.bound({"epsilon": 1000.0}, {}, prior)[0] == "no bound"
    informed = {"mechanism": "rr_with_prior"}
    assert ROW.remarks.bound({"epsilon": 1.0}, informed, prior) == (
        "2.72",
        "differs from row to row",
    )


def test_where_no_guarantee_is_given_a_report_promises_none():
    options = {"mechanism": "rr_with_prior", "prior": "teacher", "guarantee": "none"}
    assert all(
        "no guarantee" in text
        for text in ROW.remarks.bound({"epsilon": 1.0}, options, np.ones(2) / 2)
    )
    assert ROW.remarks.bound_sentence(options) == ""
    assert ROW.remarks.bound_sentence({}).startswith("Label DP bounds how much")
    assert ROW.remarks.knob_label("epsilon", options) == "strength"
    assert ROW.remarks.knob_label("epsilon", {"mechanism": "rr_with_prior"}) == "epsilon"
