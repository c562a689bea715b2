"""Distance correlation: its twin, its invariances, its guarded gradient, and its place in the loss."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.reference import dcor as reference
from tests.reference.common import differences
from vfljax.defenses.dcor import FLOOR, dcor, penalty

ROWS, COLUMNS = 12, 3
FORMS = ["log_squared", "squared", "log_root", "root"]
penalty_and_gradient = harness.quick_jit(jax.value_and_grad(penalty), static_argnums=(2, 3))


def problem(seed):
    """Embeddings, of which some rows are equal, and labels of three classes."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(ROWS, COLUMNS)).astype(np.float32)
    z[3], z[7], z[8] = z[0], z[0], z[1]
    return z, rng.integers(3, size=ROWS)


@pytest.mark.parametrize(("form", "classes"), [*((form, 3) for form in FORMS), ("log_squared", 1)])
def test_the_penalty_and_its_gradient_are_the_twins(form, classes):
    """Of classes, and of numbers, some of which are equal."""
    z, labels = problem(1)
    labels = labels if classes > 1 else (labels**2 - z[:, 0].round(1)).astype(np.float32)
    value, gradient = penalty_and_gradient(z, labels, classes, form)
    np.testing.assert_allclose(value, reference.penalty(z, labels, classes, form), rtol=1e-5)
    # where rows are equal their distance is even in every step, so it counts as 0
    twin = functools.partial(reference.penalty, labels=labels, classes=classes, form=form)
    numeric = differences(twin, z.astype(float), 1e-5)
    assert np.abs(numeric).max() > 1e-2
    np.testing.assert_allclose(gradient, numeric, atol=1e-5 * max(1, np.abs(numeric).max()))


@pytest.mark.parametrize("scale", [1e-30, 1e-19, 1e19, 1e30])
def test_the_unit_of_the_embeddings_changes_no_penalty_and_divides_its_gradient(scale):
    z, labels = problem(2)
    value, gradient = penalty_and_gradient(z, labels, 3, "log_squared")
    scaled, small = penalty_and_gradient(z * np.float32(scale), labels, 3, "log_squared")
    np.testing.assert_allclose(scaled, value, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(small, float) * scale, gradient, rtol=1e-4, atol=1e-6)


def test_wide_embeddings_far_from_the_origin_keep_equal_rows_at_distance_zero():
    """Gram matrices round: what is left of a distance 0 must not reach the root."""
    rng = np.random.default_rng(8)
    x = rng.normal(size=(ROWS, 1)) + 0.1 * rng.normal(size=(ROWS, 600))
    x[6:] = x[:6]
    x, labels = np.float32(x), np.tile(rng.integers(3, size=6), 2)
    expected = reference.penalty(x, labels, 3, "log_squared")
    value, gradient = penalty_and_gradient(x, labels, 3, "log_squared")
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    gradient = np.asarray(gradient)
    np.testing.assert_allclose(gradient[6:], gradient[:6], atol=1e-4 * np.abs(gradient).max())


@pytest.mark.parametrize("form", FORMS)
def test_without_any_dependence_the_penalty_is_at_its_floor_and_its_gradient_zero(form):
    labels, z = np.arange(ROWS) % 3, problem(4)[0]
    many = np.tile(np.float32(np.pi) ** np.arange(-1, 2), (ROWS, 1))  # whose mean rounds
    floor = {"log_squared": np.log(FLOOR), "log_root": np.log(FLOOR) / 2}.get(form, 0.0)
    for embeddings, classes in (
        (np.full_like(z, 3.7), labels),
        (many, labels),
        (z, np.ones(ROWS, int)),
    ):
        value, gradient = penalty_and_gradient(embeddings, classes, 3, form)
        np.testing.assert_allclose(value, floor, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(gradient, np.zeros_like(z))
    # and embeddings that are the labels have no way up
    value, gradient = penalty_and_gradient(np.eye(3, dtype=np.float32)[labels], labels, 3, form)
    np.testing.assert_allclose(value, float(form in ("squared", "root")), atol=1e-5)
    np.testing.assert_allclose(gradient, 0, atol=1e-5)


def test_each_party_adds_alpha_times_its_penalty_to_the_labels_that_later_slots_may_see():
    """Whatever the targets are."""
    (one, labels), (other, _) = problem(6), problem(7)
    context = types.SimpleNamespace(labels=jnp.asarray(labels))
    soft = jnp.full((ROWS, 3), 1 / 3)

    def nothing(active, f, embeddings, targets, context, state):
        return jnp.float32(0), ("logits", "variables", state)

    @harness.quick_jit
    def added(*embeddings):
        value, aux = dcor(0.5, form="squared").loss(nothing)(
            {}, None, embeddings, soft, context, "state"
        )
        assert aux == ("logits", "variables", "state")
        return value

    expected = sum(reference.penalty(z, labels, 3, "squared") for z in (one, other))
    np.testing.assert_allclose(added(one, other), 0.5 * expected, rtol=1e-4)
