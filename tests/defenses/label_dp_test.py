"""Label DP: its channel, its privacy, and the laws of its draws."""

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
    best_guess,
    channel,
    label_dp,
    optimal_k,
    randomized_response,
    rr_with_prior,
)

ROWS, CLASSES = 20_000, 5
ACCEPT, REJECT = 1e-3, 1e-6  # p values; keys are fixed, so these tests do not flicker
EPSILONS = (0.0, 1.0, 2.0)
PRIOR = np.float32([0.15, 0.4, 0.02, 0.33, 0.1])
KEY = jax.random.key(0)

respond = harness.quick_jit(randomized_response, static_argnums=2)
respond_with_prior = harness.quick_jit(rr_with_prior)
best_k = harness.quick_jit(optimal_k)
channels = harness.quick_jit(jax.vmap(channel, in_axes=(0, None)))
guesses = harness.quick_jit(jax.vmap(best_guess))


def random_priors(seed):
    """[40, 5], flat to nearly one-hot."""
    rng = np.random.default_rng(seed)
    sharpness = rng.choice([0.1, 1.0, 20.0], size=40)
    return np.float32([rng.dirichlet(np.full(CLASSES, a)) for a in sharpness])


def draw(true, epsilon, key=KEY):
    return np.asarray(respond(key, np.full(ROWS, true), CLASSES, epsilon))


def draw_with_prior(true, prior, epsilon, key=KEY):
    rows = np.tile(np.asarray(prior), (ROWS, 1))
    return np.asarray(respond_with_prior(key, np.full(ROWS, true), rows, epsilon))


def p_value(drawn, law):
    """Chi-square of draws against a law; a draw of probability 0 refutes it."""
    counts, possible = np.bincount(drawn, minlength=len(law)), law > 0
    if counts[~possible].any():
        return 0.0
    return stats.chisquare(counts[possible], law[possible] / law.sum() * counts.sum()).pvalue


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_k_is_the_best_of_all_by_brute_force(epsilon):
    priors = random_priors(0)
    for prior, k in zip(priors, np.asarray(best_k(priors, epsilon))):
        values = np.array(reference.objectives(prior, epsilon))
        assert values[k - 1] >= values.max() - 1e-6
        if np.sort(values)[-2] < values.max() - 1e-5:
            assert k == reference.optimal_k(prior, epsilon)


def test_equally_good_ks_give_the_largest_so_that_a_uniform_prior_is_randomized_response():
    rows = np.float32([[0.5, 0.5, 0, 0, 0], [0.2] * CLASSES] * 20)
    np.testing.assert_array_equal(best_k(rows, 0.0)[:2], [2, CLASSES])
    np.testing.assert_array_equal(best_k(rows, 1e-6)[1:2], [CLASSES])
    np.testing.assert_array_equal(best_k(rows, np.inf)[:2], [CLASSES, CLASSES])


def test_no_finite_epsilon_keeps_every_label_for_certain(monkeypatch):
    """The smallest uniform number drawn, 0, flips; rounding the chance of e^-30 down would keep it."""
    monkeypatch.setattr(jax.random, "uniform", lambda key, shape: jnp.zeros(shape))
    labels = jnp.zeros(3, jnp.int32)
    for epsilon, drawn in ((30.0, 1), (np.inf, 0)):
        np.testing.assert_array_equal(randomized_response(KEY, labels, 2, epsilon), drawn)


def worst_odds(table):
    """The largest P(noisy | y) / P(noisy | y'), infinite where only y' rules a label out."""
    low, high = table.min(axis=0), table.max(axis=0)
    with np.errstate(divide="ignore"):
        return max(b / a for a, b in zip(low, high) if b > 0)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_the_channel_agrees_with_the_twin_and_shifts_no_odds_by_more_than_e_to_the_epsilon(epsilon):
    priors = random_priors(1)
    tables = np.asarray(channels(priors, epsilon))
    ks = np.asarray(best_k(priors, epsilon))  # near ties may round either way
    ours = guesses(priors, tables)
    for prior, table, k, guess in zip(priors, tables, ks, ours):
        np.testing.assert_allclose(table, reference.channel(prior, epsilon, k), atol=1e-6)
        np.testing.assert_allclose(guess, reference.best_guess(prior, table), atol=1e-6)
    worst = max(worst_odds(table.astype(float)) for table in tables)
    assert math.exp(epsilon / 1.5) * (1 - 1e-5) <= worst <= math.exp(epsilon) * (1 + 1e-5)


def test_a_prior_without_doubt_answers_whatever_the_label_is_and_infinite_epsilon_keeps_it():
    for true in (0, 2):
        drawn = draw_with_prior(true, np.float32([0, 0, 1, 0, 0]), 2.0)
        np.testing.assert_array_equal(drawn, 2)
        np.testing.assert_array_equal(draw_with_prior(true, PRIOR, np.inf), true)
        np.testing.assert_array_equal(draw(true, np.inf), true)
    np.testing.assert_array_equal(channels(np.tile(PRIOR, (40, 1)), np.inf)[0], np.eye(CLASSES))


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_draws_keep_at_the_rate_of_epsilon_and_are_else_uniform_over_the_others(epsilon):
    for true in (0, 1, 4):
        drawn = draw(true, epsilon, key=jax.random.key(true))
        others = np.arange(CLASSES) != true
        assert p_value(drawn[drawn != true], others / 4) > ACCEPT
        kept = int((drawn == true).sum())
        for other in (epsilon, epsilon / 1.5, epsilon * 1.5 + 0.2):
            p = stats.binomtest(kept, ROWS, reference.keep(CLASSES, other)).pvalue
            assert p > ACCEPT if other == epsilon else p < REJECT


def test_draws_with_a_prior_follow_the_channel_of_epsilon_and_of_no_other():
    epsilon = 1.0
    law, others = reference.channel(PRIOR, epsilon), [epsilon / 1.5, epsilon * 1.5]
    assert 1 < reference.optimal_k(PRIOR, epsilon) < CLASSES  # labels inside and outside the top k
    wrong = [reference.channel(PRIOR, e, reference.optimal_k(PRIOR, epsilon)) for e in others]
    for true in range(CLASSES):
        drawn = draw_with_prior(true, PRIOR, epsilon, jax.random.key(true))
        assert p_value(drawn, law[true]) > ACCEPT
        if not np.allclose(law[true], wrong[0][true]):
            assert max(p_value(drawn, w[true]) for w in wrong) < REJECT


def test_the_two_stage_teacher_learns_from_half_of_the_rows_and_their_only_draw():
    defense = label_dp(1.0, mechanism="rr_with_prior")
    rng = np.random.default_rng(0)
    scores = rng.dirichlet(np.ones(CLASSES), 400).astype(np.float32)
    labels = rng.integers(CLASSES, size=400)
    teach = harness.quick_jit(lambda labels: defense.teach(KEY, labels, CLASSES))
    init = harness.quick_jit(lambda *data: defense.init(KEY, TrainingData(*data, CLASSES)))
    taught, weights = map(np.asarray, teach(labels))
    first = weights > 0
    assert first.sum() == 200
    state = np.asarray(init(labels, scores))
    np.testing.assert_array_equal(state[first], taught[first])
    assert np.any(state[~first] != labels[~first])
    # the other half's labels are spent on their own draw: the teacher must not depend on them
    again, _ = teach(np.where(first, labels, (labels + 1) % CLASSES))
    np.testing.assert_array_equal(again, taught)


@pytest.mark.parametrize(("knob", "value"), [("sigma", 0.0), ("ell", 2.0), ("fold", 0.5)])
def test_a_knob_of_block_rr_is_refused_under_other_mechanisms(knob, value):
    """Points of a grid would differ in it and train alike."""
    for mechanism in ("randomized_response", "rr_with_prior"):
        with pytest.raises(ValueError, match=rf"^{knob}={value} is not read by {mechanism}: leave"):
            label_dp(1.0, mechanism=mechanism, **{knob: value})
    label_dp(1.0, mechanism="block_rr", **{knob: value})
    data = TrainingData(jnp.zeros(2, jnp.int32), None, 2)
    jax.eval_shape(lambda traced: label_dp(1.0, **{knob: traced}).init(KEY, data), value)


def test_a_teacher_of_raw_labels_is_refused_unless_the_guarantee_is_given_up():
    with pytest.raises(ValueError, match=r"prior='teacher'.*guarantee"):
        label_dp(1.0, mechanism="rr_with_prior", prior="teacher")
    with pytest.raises(ValueError, match="guarantee"):
        label_dp(1.0, guarantee="none")
    data = TrainingData(jnp.zeros(2, jnp.int32), None, 2)
    with pytest.raises(ValueError, match="label_features=True"):
        jax.eval_shape(lambda: label_dp(1.0, mechanism="rr_with_prior").init(KEY, data))
