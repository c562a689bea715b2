"""ALIBI: a step against the twin, the law of its noise, its guarantee, and who sees or reads which labels."""

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
from vfljax.attacks.direct import most_negative
from vfljax.defenses.alibi import ROW, alibi, denoised, observed
from vfljax.defenses.core import TrainingData, chain
from vfljax.defenses.grad_perturb import best_guess_of_entries

EPSILON = 1.5
KEY = jax.random.key(3)


@pytest.mark.parametrize(
    ("classes", "changes"),
    [(5, {"aggregation": "mean"}), (2, {}), (5, {"split": False})],
    ids=["averaged", "two classes", "no split"],
)
def test_a_step_agrees_with_the_twin_trained_on_the_posterior_of_o(classes, changes):
    spec = harness.make_spec(classes, ("alibi",), **changes)
    hparams = harness.make_hparams(spec, {"alibi": {"epsilon": EPSILON}}, weight_decay=0.01)
    batch = harness.make_batch(spec, 0)
    initial = harness.make_state(spec, hparams)
    final, (exchange,), (metrics,) = harness.run_steps(spec, hparams, [batch])

    (bottoms, top), features = nets_of(initial.weights), [np.float64(x) for x in batch.features]
    logits = twin.logits_of(bottoms, top, features, spec.aggregation if spec.top else "sum")
    o = np.float64(initial.defense["alibi"])[np.asarray(batch.index)]
    t = reference.posterior(scipy.special.softmax(logits, axis=1), o, EPSILON)
    bottoms, top, _, expected = twin.step(
        *(bottoms, top, twin.start([*bottoms, top or []]), features, t),
        **{"lr": 0.1, "mu": 0.9, "wd": 0.01, "aggregation": spec.aggregation},
    )
    np.testing.assert_allclose(metrics.loss, expected.loss, rtol=1e-5)
    for p in range(spec.passive):
        np.testing.assert_allclose(exchange.gradients[p], expected.gradients[p], atol=1e-6)
    for variables, net in zip(final.weights.bottoms, bottoms):
        assert_same_nets(variables, net, 1e-5)


def test_targets_go_from_the_prediction_to_the_label():
    o = observed(KEY, jnp.arange(6) % 3, 3, jnp.inf)
    logits = 3 * jax.random.normal(KEY, (6, 3))
    np.testing.assert_array_equal(o, np.eye(3)[np.arange(6) % 3])
    np.testing.assert_array_equal(denoised(logits, o, jnp.inf), o)
    np.testing.assert_allclose(denoised(logits, o, 500.0), o, atol=1e-6)
    np.testing.assert_allclose(denoised(logits, o, 1e-6), jax.nn.softmax(logits), atol=1e-5)
    huge = denoised(1e4 * logits, 1e7 * (o - 0.5), 2.0)
    assert np.all(np.isfinite(huge))


def test_noise_follows_the_law_of_epsilon_and_not_of_half_as_much_again():
    labels = jnp.zeros(20_000, jnp.int32)
    u = np.asarray(observed(KEY, labels, 3, EPSILON)) - np.eye(3)[0]
    laws = (scipy.stats.laplace(scale=2 / e) for e in (EPSILON, 1.5 * EPSILON))
    harness.assert_law(u.ravel(), *laws)
    assert np.max(np.abs(np.corrcoef(u.T) - np.eye(3))) < 0.05


@pytest.mark.parametrize("classes", [2, 5])
def test_the_density_of_o_shifts_by_at_most_e_to_the_epsilon(classes):
    o = np.random.default_rng(0).laplace(scale=3, size=(500, classes))
    logs = [[reference.log_density(row, c, EPSILON) for c in range(classes)] for row in o]
    gaps = np.ptp(logs, axis=1)
    assert EPSILON / 1.01 < gaps.max() <= EPSILON * (1 + 1e-9)


def targets_over_steps(**options):
    """The targets [2, 8, 3] of the same rows, at equal logits, at two steps, and what later slots see."""
    labels = jnp.arange(8) % 3
    defense = chain(alibi=alibi(EPSILON, **options))
    state = defense.init(KEY, TrainingData(labels, None, 3))
    out, seen = [], []

    def inner(active, f, embeddings, targets, context, states):
        out.append(np.asarray(targets))
        return jnp.zeros(()), (jnp.zeros((8, 3)), active, states)

    for step in range(2):
        context = harness.make_context(8, step)._replace(labels=labels)
        targets, context, _ = defense.targets(jax.nn.one_hot(labels, 3), context, state)
        defense.loss(inner)({}, None, (), targets, context, state)
        seen.append(np.asarray(context.labels))
    return np.array(out[1::2]), np.array(seen), labels, defense


def test_by_default_noise_is_drawn_once_a_row_and_where_asked_at_every_step():
    once, seen, labels, defense = targets_over_steps()
    np.testing.assert_array_equal(once[0], once[1])
    # later slots and the teacher see the class of largest o alone
    o = np.asarray(defense.init(KEY, TrainingData(labels, None, 3))["alibi"])
    np.testing.assert_array_equal(seen, [o.argmax(axis=-1)] * 2)
    np.testing.assert_array_equal(once[0, np.arange(8), seen[0]], once[0].max(axis=-1))
    taught, row_weights = defense.teach(KEY, labels, 3)
    np.testing.assert_array_equal(taught, seen[0])
    np.testing.assert_array_equal(row_weights, 1)
    assert np.any(seen[0] != labels)
    anew, seen, labels, defense = targets_over_steps(draw="step")
    assert np.all(np.any(anew[0] != anew[1], axis=-1))
    np.testing.assert_array_equal(seen, [labels, labels])
    np.testing.assert_array_equal(defense.teach(KEY, labels, 3)[0], labels)


@pytest.mark.parametrize(
    "prior", [(0.5, 0.5), (0.9, 0.1), (0.7, 0.3), (0.6, 0.3, 0.1), (0.1,) * 10]
)
def test_the_best_guess_agrees_with_the_twins_simulation(prior):
    for epsilon in (0.3, 1.0, 3.0, 8.0):
        expected = reference.guess_is_right(np.array(prior), epsilon, 40_000, 0)
        assert abs(best_guess_of_entries(epsilon, np.array(prior)) - expected) < 0.01, epsilon
    values = [best_guess_of_entries(e, np.array(prior)) for e in (1e-6, 1, 8, 30, 99, np.inf)]
    assert values == sorted(values)
    assert abs(values[0] - max(prior)) < 1e-3
    assert values[-1] == 1.0


def test_a_bound_is_printed_for_the_form_that_keeps_it_only():
    even, step = np.full(2, 0.5), {"draw": "step"}
    odds, guess = ROW.remarks.bound({"epsilon": 1.0}, {}, even)
    expected = reference.guess_is_right(even, 1.0, 1_000_000, 1)
    assert odds == "2.72"
    assert abs(float(guess) - expected) < 2e-3
    assert ROW.remarks.bound({"epsilon": np.inf}, {}, even) == ("no bound", "1.000")
    assert ROW.remarks.bound_sentence({}).startswith("ALIBI's noise")
    assert ROW.remarks.knob_label("epsilon", {"draw": "once"}) == "epsilon"
    assert ROW.remarks.epsilon({"epsilon": 1.0}, {}) == 1.0
    assert ROW.remarks.epsilon({"epsilon": 1.0}, step) is None
    assert ROW.remarks.bound({"epsilon": 1.0}, step, even) is None
    assert ROW.remarks.bound_sentence(step) == ""
    assert ROW.remarks.knob_label("epsilon", step) == "strength"


@pytest.mark.parametrize("epsilon", ROW.strengths.values)
def test_averaged_gradients_read_the_best_guess_and_all_where_each_step_draws(epsilon):
    """Planted predictions near uniform, as they are at the start, over forty epochs."""
    labels, epochs = jnp.arange(4000) % 2, 40
    logits = 0.3 * jax.random.normal(KEY, (epochs, 4000, 2))

    def read(draws):
        g = [jax.nn.softmax(z) - denoised(z, o, epsilon) for z, o in zip(logits, draws)]
        # classes whose o are both beyond 0 or 1 tie, and the gradient is 0
        return float(harness.accuracy(jnp.nan_to_num(most_negative(sum(g))), labels))

    draws = [observed(jax.random.key(e), labels, 2, epsilon) for e in range(epochs)]
    allowed = best_guess_of_entries(epsilon, np.full(2, 0.5))
    assert abs(read(draws[:1] * epochs) - allowed) < 0.03
    assert read(draws) > min(0.99, allowed + 0.1)
