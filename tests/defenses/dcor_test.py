"""Distance correlation: its twin, its invariances, its guarded gradient, and its place in the loss."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from tests.reference import dcor as reference
from vfljax.defenses.dcor import FLOOR, dcor, penalty

ROWS = 12
FORMS = ["log_squared", "squared", "log_root", "root"]
penalty_and_gradient = harness.quick_jit(jax.value_and_grad(penalty), static_argnums=(2, 3))
every_form = pytest.mark.parametrize("form", FORMS)


def sample(rng, columns, rows=ROWS):
    return rng.normal(size=(rows, columns)).astype(np.float32)


@given(
    columns=st.sampled_from([1, 4]),
    classes=st.sampled_from([2, 5]),
    seed=st.integers(0, 2**16),
    offset=st.sampled_from([0.0, 3.0, 1e3]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
@settings(deadline=None, max_examples=30, database=None, derandomize=True)
def test_agrees_with_the_numpy_twin_at_any_scale_and_offset(columns, classes, seed, offset, scale):
    z, labels = problem(seed, classes, columns)
    z = (z + np.float32(offset)) * np.float32(scale)
    y = reference.one_hot(labels, classes)
    expected = reference.squared_distance_correlation(z, y)
    value, _ = penalty_and_gradient(z, labels, classes, "squared")
    np.testing.assert_allclose(value, expected, rtol=1e-3, atol=2e-4)
    assert 0 <= value <= 1 + 1e-5


def test_wide_embeddings_far_from_the_origin_keep_equal_rows_at_distance_zero():
    """Gram matrices round: what is left of a distance 0 must not reach the root."""
    rng = np.random.default_rng(8)
    x = sample(rng, 1) * np.ones((1, 600), np.float32) + 0.1 * sample(rng, 600)
    x[6:] = x[:6]
    labels = np.tile(rng.integers(3, size=6), 2)
    expected = reference.penalty(x, labels, 3, "log_squared")
    value, gradient = penalty_and_gradient(x, labels, 3, "log_squared")
    np.testing.assert_allclose(value, expected, rtol=1e-4)
    gradient = np.asarray(gradient)
    np.testing.assert_allclose(gradient[6:], gradient[:6], atol=1e-4 * np.abs(gradient).max())


def problem(seed, classes=3, columns=3):
    rng = np.random.default_rng(seed)
    return sample(rng, columns), rng.integers(classes, size=ROWS)


@every_form
@pytest.mark.parametrize("seed", [0, 1])
def test_the_penalty_and_its_gradient_are_the_twins(form, seed):
    z, labels = problem(seed)
    if seed:
        z[3], z[7], z[8] = z[0], z[0], z[1]
    value, gradient = penalty_and_gradient(z, labels, 3, form)
    np.testing.assert_allclose(value, reference.penalty(z, labels, 3, form), rtol=1e-5)
    # where rows are equal their distance is even in every step, so it counts as 0
    twin = functools.partial(reference.penalty, labels=labels, classes=3, form=form)
    numeric = reference.differences(twin, z.astype(float), 1e-5)
    assert np.abs(numeric).max() > 1e-2
    np.testing.assert_allclose(gradient, numeric, atol=1e-5 * max(1, np.abs(numeric).max()))


@every_form
@pytest.mark.parametrize("scale", [1e-30, 1e-19, 1e19, 1e30])
def test_the_unit_of_the_embeddings_changes_no_penalty_and_divides_its_gradient(form, scale):
    z, labels = problem(2)
    z[5] = z[4]
    value, gradient = penalty_and_gradient(z, labels, 3, form)
    scaled, small = penalty_and_gradient(z * np.float32(scale), labels, 3, form)
    np.testing.assert_allclose(scaled, value, rtol=1e-5)
    np.testing.assert_allclose(np.asarray(small, float) * scale, gradient, rtol=1e-4, atol=1e-6)


@every_form
@pytest.mark.parametrize(
    ("z", "labels"),
    [
        (np.full((ROWS, 4), 3.7, np.float32), np.arange(ROWS) % 3),
        (np.tile(np.float32(np.pi) ** np.arange(-9, 9), (33, 1)), np.arange(33) % 3),
        (np.eye(ROWS, dtype=np.float32), np.ones(ROWS, int)),
        (np.ones((1, 4), np.float32), np.ones(1, int)),
    ],
    ids=["constant embedding", "constant, many numbers", "one class", "one row"],
)
def test_without_any_dependence_the_penalty_is_at_its_floor_and_its_gradient_zero(z, labels, form):
    value, gradient = penalty_and_gradient(z, labels, 3, form)
    floor = {"log_squared": np.log(FLOOR), "log_root": np.log(FLOOR) / 2}.get(form, 0.0)
    np.testing.assert_allclose(value, floor, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(gradient, np.zeros_like(z))


def test_embeddings_that_are_the_labels_have_penalty_zero_or_one_and_no_way_up():
    labels = np.arange(ROWS) % 3
    for form in FORMS:
        value, gradient = penalty_and_gradient(np.eye(3, dtype=np.float32)[labels], labels, 3, form)
        np.testing.assert_allclose(value, float(form in ("squared", "root")), atol=1e-5)
        np.testing.assert_allclose(gradient, 0, atol=1e-5)


def test_the_loss_gains_alpha_log_dcor_of_every_passive_party_and_of_no_other():
    spec = harness.make_spec(5, ("dcor",))
    batch = harness.make_batch(spec, 0)
    exchange, added = harness.loss_beside(spec, {"dcor": {"alpha": 0.3}}, batch)
    y = reference.one_hot(np.asarray(batch.labels), 5)
    terms = [
        np.log(reference.squared_distance_correlation(np.asarray(z), y))
        for z in exchange.embeddings
    ]
    assert len(terms) == spec.passive == 2
    np.testing.assert_allclose(added, 0.3 * sum(terms), rtol=1e-3)


def test_y_are_the_labels_later_slots_may_see_whatever_the_targets_are():
    rng = np.random.default_rng(7)
    z, labels = sample(rng, 4), rng.integers(3, size=ROWS)
    context = types.SimpleNamespace(labels=jnp.asarray(labels))
    soft = jnp.asarray(rng.dirichlet(np.ones(3), ROWS), jnp.float32)

    def nothing(active, f, embeddings, targets, context, state):
        return jnp.float32(0), ("logits", "variables", state)

    value, aux = dcor(0.5).loss(nothing)({}, None, (jnp.asarray(z),), soft, context, "state")
    expected = reference.squared_distance_correlation(z, reference.one_hot(labels, 3))
    np.testing.assert_allclose(value, 0.5 * np.log(expected), rtol=1e-4)
    assert aux == ("logits", "variables", "state")
