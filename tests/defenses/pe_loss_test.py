"""PELoss: its twin, its gradient by differences, its guards, and its place in the loss."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import pe_loss as reference
from tests.reference.common import differences
from vfljax.defenses.pe_loss import energy, pe_loss

ROWS = 12
value_and_gradient = harness.quick_jit(jax.value_and_grad(energy), static_argnums=3)
every_distance = pytest.mark.parametrize("distance", ["euclidean", "angular"])


def problem(seed=0, classes=3, columns=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, columns)).astype(np.float32), rng.integers(classes, size=ROWS)


@every_distance
def test_value_and_gradient_are_the_twins(distance):
    z, labels = problem()
    for softening in (1e-3, 0.5):
        value, gradient = value_and_gradient(z, labels, softening, distance)
        expected = reference.energy(z, labels, softening, distance)
        np.testing.assert_allclose(value, expected, rtol=1e-5)
        numeric = differences(
            lambda z, s=softening: reference.energy(z, labels, s, distance), z.astype(float), 1e-5
        )
        np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-4 * np.abs(numeric).max())
    # a small softening leaves the published energy
    value, _ = value_and_gradient(z, labels, 1e-6, distance)
    np.testing.assert_allclose(value, reference.energy(z, labels, 0.0, distance), rtol=1e-5)


@every_distance
def test_equal_rows_have_the_energy_of_the_softening_and_no_gradient(distance):
    z = np.tile(np.float32([0.3, -2.0, 1.0, 0.5]), (ROWS, 1))
    value, gradient = value_and_gradient(z, np.zeros(ROWS, int), 1e-2, distance)
    np.testing.assert_allclose(value, (ROWS - 1) / 1e-2, rtol=1e-5)
    np.testing.assert_array_equal(gradient, 0)


@pytest.mark.parametrize("columns", [1, 2])
def test_angles_of_narrow_embeddings_have_no_gradient_that_is_not_finite(columns):
    z, labels = problem(3, 2, columns)
    value, gradient = value_and_gradient(z, labels, 1e-3, "angular")
    assert np.isfinite(value)
    assert (value == 0) == (columns == 1)  # one entry has no direction
    np.testing.assert_allclose(gradient, 0, atol=1e-2)


def test_rows_of_equal_entries_take_no_part_in_angles():
    z, labels = problem(4)
    z[3], z[7] = 3.7, 0.0
    value, gradient = value_and_gradient(z, labels, 1e-3, "angular")
    np.testing.assert_allclose(value, reference.energy(z, labels, 1e-3, "angular"), rtol=1e-5)
    np.testing.assert_array_equal(gradient[np.array([3, 7])], 0)
    assert np.all(np.isfinite(gradient))


def test_each_party_adds_alpha_times_its_energy_under_the_labels_that_later_slots_may_see():
    (one, labels), (other, _) = problem(5), problem(6)
    context = types.SimpleNamespace(labels=jnp.asarray(labels))

    @harness.quick_jit
    def added(*embeddings):
        loss = pe_loss(0.3, 0.1).loss(lambda *arguments: (jnp.float32(1), "aux"))
        return loss({}, None, embeddings, None, context, ())[0]

    expected = sum(reference.energy(z, labels, 0.1) for z in (one, other))
    np.testing.assert_allclose(added(one, other), 1 + 0.3 * expected, rtol=1e-4)
