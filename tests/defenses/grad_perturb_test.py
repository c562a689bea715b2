"""GradPerturb: its gradients, the law of its noise, and its best guess."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.federation.protocol_test import assert_same_nets, nets_of
from tests.reference import grad_perturb as reference
from tests.reference import protocol as twin
from vfljax.defenses.grad_perturb import best_guess, row_draws, weights
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


@pytest.mark.parametrize(
    ("classes", "changes", "reach"),
    [(2, {}, "all"), (5, {"aggregation": "mean"}, "cut"), (3, {"split": False}, "cut")],
    ids=["two classes", "averaged", "no split"],
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
        bottoms,
        top,
        state,
        [np.float64(x) for x in batch.features],
        goal,
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


def test_the_best_guess_of_two_classes_agrees_with_the_twins_simulation():
    """Of more classes it is ALIBI's."""
    for prior in ((0.5, 0.5), (0.9, 0.1)):
        prior = np.array(prior)
        for epsilon in (0.3, 1.0, 3.0):
            expected = reference.guess_is_right(prior, epsilon, 40_000, 0)
            assert abs(best_guess(epsilon, prior) - expected) < 0.01, epsilon
        assert abs(best_guess(1e-6, prior) - prior.max()) < 1e-3
        assert best_guess(np.inf, prior) == 1.0
