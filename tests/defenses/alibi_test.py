"""ALIBI: a step against the twin, the law of its noise, and its best guess."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.special
import scipy.stats

from tests import harness
from tests.federation.protocol_test import assert_same_nets, nets_of
from tests.reference import alibi as reference
from tests.reference import protocol as twin
from vfljax.defenses.alibi import denoised, observed
from vfljax.defenses.grad_perturb import best_guess_of_entries

EPSILON = 1.5
KEY = jax.random.key(3)


def test_a_step_agrees_with_the_twin_trained_on_the_posterior_of_o():
    spec = harness.make_spec(5, ("alibi",), aggregation="mean")
    hparams = harness.make_hparams(spec, {"alibi": {"epsilon": EPSILON}}, weight_decay=0.01)
    batch = harness.make_batch(spec, 0)
    initial = harness.make_state(spec, hparams)
    final, (exchange,), (metrics,) = harness.run_steps(spec, hparams, [batch])

    (bottoms, top), features = nets_of(initial.weights), [np.float64(x) for x in batch.features]
    logits = twin.logits_of(bottoms, top, features, spec.aggregation)
    o = np.float64(initial.defense["alibi"])[np.asarray(batch.index)]
    t = reference.posterior(scipy.special.softmax(logits, axis=1), o, EPSILON)
    bottoms, top, _, expected = twin.step(
        bottoms,
        top,
        twin.start([*bottoms, top]),
        features,
        t,
        **{"lr": 0.1, "mu": 0.9, "wd": 0.01, "aggregation": spec.aggregation},
    )
    np.testing.assert_allclose(metrics.loss, expected.loss, rtol=1e-5)
    for p in range(spec.passive):
        np.testing.assert_allclose(exchange.gradients[p], expected.gradients[p], atol=1e-6)
    for variables, net in zip(final.weights.bottoms, bottoms):
        assert_same_nets(variables, net, 1e-5)


def test_huge_logits_and_noise_give_finite_targets_and_no_noise_none():
    treat = harness.quick_jit(denoised)
    logits = 3 * np.random.default_rng(0).normal(size=(6, 3)).astype(np.float32)
    o = np.eye(3, dtype=np.float32)[np.arange(6) % 3]
    assert np.all(np.isfinite(treat(1e4 * logits, 1e7 * (o - 0.5), 2.0)))
    np.testing.assert_allclose(treat(logits, o, 500.0), o, atol=1e-6)


def test_noise_follows_the_law_of_epsilon_and_not_of_half_as_much_again():
    labels = jnp.zeros(20_000, jnp.int32)
    u = np.asarray(observed(KEY, labels, 3, EPSILON)) - np.eye(3)[0]
    laws = (scipy.stats.laplace(scale=2 / e) for e in (EPSILON, 1.5 * EPSILON))
    harness.assert_law(u.ravel(), *laws)
    assert np.max(np.abs(np.corrcoef(u.T) - np.eye(3))) < 0.05


@pytest.mark.parametrize("prior", [(0.9, 0.1), (0.6, 0.3, 0.1)])
def test_the_best_guess_agrees_with_the_twins_simulation(prior):
    """Of GradPerturb, too, from three classes on."""
    for epsilon in (0.3, 3.0):
        expected = reference.guess_is_right(np.array(prior), epsilon, 40_000, 0)
        assert abs(best_guess_of_entries(epsilon, np.array(prior)) - expected) < 0.01, epsilon
    values = [best_guess_of_entries(e, np.array(prior)) for e in (1e-6, 1, 8, 30, 99, np.inf)]
    assert values == sorted(values)
    assert abs(values[0] - max(prior)) < 1e-3
    assert values[-1] == 1.0
