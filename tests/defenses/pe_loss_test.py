"""PELoss: its twin, its gradient by differences, its guards, and its place in the loss."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import pe_loss as reference
from tests.reference.dcor import differences
from vfljax.defenses.pe_loss import energy, squared_distances

ROWS = 12
DISTANCES = ["euclidean", "angular"]
value_and_gradient = harness.quick_jit(jax.value_and_grad(energy), static_argnums=3)
every_distance = pytest.mark.parametrize("distance", DISTANCES)


def problem(seed=0, classes=3, columns=4):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(ROWS, columns)).astype(np.float32), rng.integers(classes, size=ROWS)


@every_distance
@pytest.mark.parametrize("softening", [1e-3, 0.5])
def test_value_and_gradient_are_the_twins(distance, softening):
    z, labels = problem()
    value, gradient = value_and_gradient(z, labels, softening, distance)
    np.testing.assert_allclose(value, reference.energy(z, labels, softening, distance), rtol=1e-5)
    numeric = differences(
        lambda z: reference.energy(z, labels, softening, distance), z.astype(float), 1e-5
    )
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-4 * np.abs(numeric).max())


@every_distance
def test_a_small_softening_leaves_the_published_energy(distance):
    z, labels = problem(1)
    value, _ = value_and_gradient(z, labels, 1e-6, distance)
    np.testing.assert_allclose(value, reference.energy(z, labels, 0.0, distance), rtol=1e-5)


def test_the_gradient_of_distances_is_that_of_the_definition():
    x = problem()[0]
    weights = np.random.default_rng(1).normal(size=(ROWS, ROWS)).astype(np.float32)

    def plain(x):
        return jnp.sum(weights * jnp.sum((x[:, None] - x[None]) ** 2, axis=-1))

    written = jax.grad(lambda x: jnp.sum(weights * squared_distances(x)))(x)
    np.testing.assert_allclose(written, jax.grad(plain)(x), rtol=1e-4, atol=1e-4)


@every_distance
def test_equal_rows_have_the_energy_of_the_softening_and_no_gradient(distance):
    z = np.tile(np.float32([0.3, -2.0, 1.0]), (ROWS, 1))
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


def test_the_loss_gains_the_energy_of_every_passive_party_and_of_no_other():
    spec = harness.make_spec(5, ("pe_loss",))
    batch = harness.make_batch(spec, 0)
    knobs = {"pe_loss": {"alpha": 0.3, "softening": 1e-3}}
    exchange, added = harness.loss_beside(spec, knobs, batch)
    labels = np.asarray(batch.labels)
    terms = [reference.energy(np.asarray(z), labels, 1e-3) for z in exchange.embeddings]
    assert len(terms) == spec.passive == 2
    np.testing.assert_allclose(added, 0.3 * sum(terms), rtol=1e-3)
