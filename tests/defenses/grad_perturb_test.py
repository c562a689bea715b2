"""GradPerturb: its gradients, the law of its noise, its guarantee, and who sees which labels."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.federation.protocol_test import assert_same_nets, nets_of
from tests.reference import grad_perturb as reference
from tests.reference import protocol as twin
from vfljax.defenses.core import TrainingData, chain
from vfljax.defenses.grad_perturb import ROW, best_guess, grad_perturb, row_draws, weights
from vfljax.types import DefenseSpec

EPSILON = 1.5
KEY = jax.random.key(5)


def u_of(state, index, classes):
    """The weights u [B, C] that a run draws once for these rows."""
    draws = row_draws(state.defense["grad_perturb"].key, jnp.asarray(index), classes)
    return np.float64(weights(draws, EPSILON))


def if_the_label_were(c, bottoms, top, state, batch, classes, aggregation):
    """The twin's cut gradients, one a party, with every label replaced by ``c``."""
    goal = np.eye(classes)[np.full(len(batch.labels), c)]
    features = [np.float64(x) for x in batch.features]
    numbers = {"lr": 0.1, "mu": 0.9, "wd": 0.01, "aggregation": aggregation}
    return twin.step(bottoms, top, state, features, goal, **numbers)[3].gradients


@pytest.mark.parametrize("reach", ["all", "cut"])
@pytest.mark.parametrize(
    ("classes", "changes"),
    [(5, {"aggregation": "mean"}), (2, {}), (5, {"split": False})],
    ids=["averaged", "two classes", "no split"],
)
def test_a_step_agrees_with_the_twin_of_one_gradient_a_class(classes, changes, reach):
    options = (("reach", "cut"),) if reach == "cut" else ()
    spec = harness.make_spec(classes, (DefenseSpec("grad_perturb", options),), **changes)
    hparams = harness.make_hparams(spec, {"grad_perturb": {"epsilon": EPSILON}}, weight_decay=0.01)
    batch = harness.make_batch(spec, 0)
    initial = harness.make_state(spec, hparams)
    final, (exchange,), _ = harness.run_steps(spec, hparams, [batch])

    (bottoms, top), labels = nets_of(initial.weights), np.asarray(batch.labels)
    state = twin.start([*bottoms, top or []])
    each = [
        if_the_label_were(c, bottoms, top, state, batch, classes, spec.aggregation)
        for c in range(classes)
    ]
    u = u_of(initial, batch.index, classes)
    # the twin's u of two classes is along g^(1-y) - g^(y)
    u_twin = u[np.arange(len(labels)), 1 - labels] if classes == 2 else u
    sent = [
        reference.perturbed(np.array([g[p] for g in each]), labels, u_twin)
        for p in range(len(bottoms))
    ]
    for p in range(spec.passive):
        np.testing.assert_allclose(exchange.gradients[p], sent[p], atol=1e-5)
    goal = np.eye(classes)[labels] + (u if reach == "all" else 0)

    def defend(p, g):
        return sent[p] if reach == "cut" and p < spec.passive else g

    bottoms, top, _, _ = twin.step(
        *(bottoms, top, state, [np.float64(x) for x in batch.features], goal),
        **{"lr": 0.1, "mu": 0.9, "wd": 0.01, "aggregation": spec.aggregation, "defend": defend},
    )
    for variables, net in zip(final.weights.bottoms, bottoms):
        assert_same_nets(variables, net, 1e-5)
    if top:
        assert_same_nets(final.weights.active, top, 1e-5)


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_follow_the_twins_law_and_not_half_as_much_again(classes):
    u = np.asarray(weights(row_draws(KEY, jnp.arange(20_000), classes), EPSILON))
    columns = u[:, 0] if classes == 2 else u.ravel()
    harness.assert_law(columns, *(reference.law(classes, e) for e in (EPSILON, EPSILON * 1.5)))
    if classes == 2:
        np.testing.assert_array_equal(u[:, 1], -u[:, 0])
    else:
        assert np.max(np.abs(np.corrcoef(u.T) - np.eye(3))) < 0.05


def test_a_rows_draws_depend_on_its_index_alone():
    index = jnp.array([7, 3, 7])
    draws = np.asarray(row_draws(KEY, index, 4))
    np.testing.assert_array_equal(draws[0], draws[2])
    np.testing.assert_array_equal(draws[1], row_draws(KEY, jnp.arange(5), 4)[3])
    assert np.all(draws[0] != draws[1])


def targets_over_steps(**options):
    """The targets [2, 8, 3] of the same rows at two steps, and the chain's state and labels."""
    defense = chain(grad_perturb=grad_perturb(EPSILON, **options))
    labels = jnp.arange(8) % 3
    state = defense.init(KEY, TrainingData(labels, None, 3))
    out, seen = [], []
    for step in range(2):
        context = harness.make_context(8, step)._replace(labels=labels)
        targets, context, _ = defense.targets(jax.nn.one_hot(labels, 3), context, state)
        out.append(np.asarray(targets))
        seen.append(np.asarray(context.labels))
    return np.array(out), np.array(seen), labels, defense


def test_by_default_noise_is_drawn_once_a_row_and_as_released_at_every_step():
    once, _, _, _ = targets_over_steps()
    np.testing.assert_array_equal(once[0], once[1])
    anew, _, labels, _ = targets_over_steps(draw="step")
    assert np.all(anew[0] != anew[1])
    clean, _, _, _ = targets_over_steps(draw="step", reach="cut")
    np.testing.assert_array_equal(clean[0], np.eye(3)[labels])


def test_under_the_guarantee_later_slots_and_the_teacher_see_the_largest_target_only():
    targets, seen, labels, defense = targets_over_steps()
    np.testing.assert_array_equal(seen, targets.argmax(axis=-1))
    taught, row_weights = defense.teach(KEY, labels, 3)
    np.testing.assert_array_equal(taught, seen[0])
    np.testing.assert_array_equal(row_weights, 1)
    assert np.any(seen[0] != labels)
    state = defense.init(KEY, TrainingData(labels, None, 3))["grad_perturb"]
    np.testing.assert_array_equal(state.labels, taught)
    for options in ({"draw": "step"}, {"reach": "cut"}):
        _, seen, labels, defense = targets_over_steps(**options)
        np.testing.assert_array_equal(seen, [labels, labels])
        np.testing.assert_array_equal(defense.teach(KEY, labels, 3)[0], labels)


@pytest.mark.parametrize("classes", [2, 5])
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_the_density_of_targets_shifts_by_at_most_e_to_the_epsilon(classes, epsilon):
    """Of one row of t, whatever it is and whichever two labels are compared; and the bound is met."""
    t = np.random.default_rng(0).laplace(scale=3, size=(2000, classes))
    if classes == 2:
        law: Any = reference.law(2, epsilon)
        logs = [law.logpdf(t[:, 1] - y) for y in range(2)]
    else:
        one_hot, law = np.eye(classes), reference.law(3, epsilon)
        logs = [law.logpdf(t - one_hot[y]).sum(axis=1) for y in range(5)]
    gaps = np.ptp(logs, axis=0)
    assert gaps.max() <= epsilon * (1 + 1e-9)
    assert gaps.max() > epsilon / 1.01


@pytest.mark.parametrize(
    "prior", [(0.5, 0.5), (0.9, 0.1), (0.2,) * 5, (0.6, 0.3, 0.1), (0.1,) * 10]
)
def test_the_best_guess_agrees_with_the_twins_simulation(prior):
    for epsilon in (0.3, 1.0, 3.0, 8.0):
        expected = reference.guess_is_right(np.array(prior), epsilon, 40_000, 0)
        assert abs(best_guess(epsilon, np.array(prior)) - expected) < 0.01, epsilon


def test_the_best_guess_goes_from_the_largest_class_to_certainty():
    for prior in ((0.7, 0.3), (0.7, 0.2, 0.1), (0.5, 0.5, 0.0), (0.1,) * 10):
        prior = np.array(prior)
        assert abs(best_guess(1e-6, prior) - prior.max()) < 1e-3
        values = [best_guess(epsilon, prior) for epsilon in (1e-6, 0.5, 2, 8, 30, 99, np.inf)]
        assert values == sorted(values)
        assert values[-1] == 1.0
        assert values[-2] > 1 - 1e-4


def test_a_bound_is_printed_for_the_form_that_keeps_it_only():
    even = np.full(2, 0.5)
    odds, guess = ROW.remarks.bound({"epsilon": 1.0}, {}, even)
    assert (odds, guess) == ("2.72", "0.697")  # 1 - e^(-1/2) / 2
    assert ROW.remarks.bound({"epsilon": np.inf}, {}, even) == ("no bound", "1.000")
    assert ROW.remarks.bound_sentence({})
    assert ROW.remarks.knob_label("epsilon", {}) == "epsilon"
    for options in ({"draw": "step"}, {"reach": "cut"}):
        assert ROW.remarks.bound({"epsilon": 1.0}, options, even) is None
        assert ROW.remarks.bound_sentence(options) == ""
        assert ROW.remarks.knob_label("epsilon", options) == "strength"
