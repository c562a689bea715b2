"""Distance correlation: its twin, its invariances, its guarded gradient, and its place in the loss."""

import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import harness
from tests.reference import dcor as reference
from vfljax.defenses.dcor import FLOOR, dcor, distance_correlation, penalty

ROWS = 12
FORMS = ["log_squared", "squared", "log_root", "root"]
correlation = harness.quick_jit(distance_correlation, static_argnames="root")
value_and_gradient = harness.quick_jit(jax.value_and_grad(distance_correlation))
penalty_and_gradient = harness.quick_jit(jax.value_and_grad(penalty), static_argnums=(2, 3))
every_form = pytest.mark.parametrize("form", FORMS)


def sample(rng, columns, rows=ROWS):
    return rng.normal(size=(rows, columns)).astype(np.float32)


def labels_of(rng, classes, rows=ROWS):
    return reference.one_hot(rng.integers(classes, size=rows), classes).astype(np.float32)


@given(
    columns=st.sampled_from([1, 4]),
    classes=st.sampled_from([2, 5]),
    seed=st.integers(0, 2**16),
    offset=st.sampled_from([0.0, 3.0, 1e3]),
    scale=st.sampled_from([1e-6, 1.0, 1e6]),
)
@settings(deadline=None, max_examples=30, database=None, derandomize=True)
def test_agrees_with_the_numpy_twin_at_any_scale_and_offset(columns, classes, seed, offset, scale):
    rng = np.random.default_rng(seed)
    x, y = (sample(rng, columns) + np.float32(offset)) * np.float32(scale), labels_of(rng, classes)
    expected = reference.squared_distance_correlation(x, y)
    np.testing.assert_allclose(correlation(x, y), expected, rtol=1e-3, atol=2e-4)
    assert 0 <= correlation(x, y) <= 1 + 1e-5


def test_a_sample_correlates_perfectly_with_itself_scaled_shifted_and_rotated():
    rng = np.random.default_rng(0)
    x = sample(rng, 3)
    rotation = np.linalg.qr(rng.normal(size=(3, 3)))[0].astype(np.float32)
    np.testing.assert_allclose(correlation(x, 7 * x @ rotation + 5), 1, atol=1e-4)


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.full((ROWS, 4), 3.7, np.float32), np.eye(ROWS, dtype=np.float32)),
        (np.eye(ROWS, dtype=np.float32), np.tile(np.float32([1, 0]), (ROWS, 1))),
        (np.ones((1, 4), np.float32), np.float32([[0, 1]])),
    ],
    ids=["constant embedding", "one class", "one row"],
)
def test_is_zero_with_a_finite_gradient_where_a_sample_is_constant(x, y):
    value, gradient = value_and_gradient(x, y)
    assert value == 0
    np.testing.assert_array_equal(gradient, np.zeros_like(x))


def test_the_gradient_is_that_of_the_twin_by_finite_differences():
    rng = np.random.default_rng(4)
    x, y = sample(rng, 2), labels_of(rng, 3)
    numeric = reference.differences(
        lambda x: reference.squared_distance_correlation(x, y), x.astype(float), 1e-5
    )
    np.testing.assert_allclose(value_and_gradient(x, y)[1], numeric, atol=1e-4)


def test_equal_rows_leave_the_gradient_finite():
    rng = np.random.default_rng(5)
    x = sample(rng, 4)
    x[1] = x[0]
    gradient = value_and_gradient(x, labels_of(rng, 3))[1]
    assert np.all(np.isfinite(gradient))
    assert np.any(gradient != 0)


def test_wide_embeddings_far_from_the_origin_keep_equal_rows_at_distance_zero():
    """Gram matrices round: what is left of a distance 0 must not reach the root."""
    rng = np.random.default_rng(8)
    x = sample(rng, 1) * np.ones((1, 600), np.float32) + 0.1 * sample(rng, 600)
    x[6:] = x[:6]
    y = labels_of(rng, 3)
    y[6:] = y[:6]
    expected = reference.squared_distance_correlation(x, y)
    np.testing.assert_allclose(correlation(x, y), expected, rtol=1e-4)
    gradient = np.asarray(penalty_and_gradient(x, y.argmax(axis=1), 3, "log_squared")[1])
    np.testing.assert_allclose(gradient[6:], gradient[:6], atol=1e-5 * np.abs(gradient).max())


def problem(seed, classes=3, columns=3):
    rng = np.random.default_rng(seed)
    return sample(rng, columns), rng.integers(classes, size=ROWS)


def numeric_gradient(z, labels, classes, form):
    """Of the twin; where rows are equal their distance is even in every step, so it counts as 0."""
    return reference.differences(
        lambda z: reference.penalty(z, labels, classes, form), z.astype(float), 1e-5
    )


@every_form
@pytest.mark.parametrize("seed", [0, 1])
def test_the_penalty_and_its_gradient_are_the_twins(form, seed):
    z, labels = problem(seed)
    if seed:
        z[3], z[7], z[8] = z[0], z[0], z[1]
    value, gradient = penalty_and_gradient(z, labels, 3, form)
    np.testing.assert_allclose(value, reference.penalty(z, labels, 3, form), rtol=1e-5)
    numeric = numeric_gradient(z, labels, 3, form)
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


def losses(alpha, batch, spec, plain):
    hparams = harness.make_hparams(spec, {"dcor": {"alpha": alpha}})
    state = harness.make_state(spec, hparams)
    _, exchange, metrics = harness.jitted_step(spec)(state, batch, hparams)
    bare = harness.make_hparams(plain)
    _, _, undefended = harness.jitted_step(plain)(harness.make_state(plain, bare), batch, bare)
    return exchange, float(metrics.loss), float(undefended.loss)


def test_the_loss_gains_alpha_log_dcor_of_every_passive_party_and_of_no_other():
    spec, plain = harness.make_spec(5, ("dcor",)), harness.make_spec(5)
    batch = harness.make_batch(spec, 0)
    exchange, defended, undefended = losses(0.3, batch, spec, plain)
    y = reference.one_hot(np.asarray(batch.labels), 5)
    terms = [
        np.log(reference.squared_distance_correlation(np.asarray(z), y))
        for z in exchange.embeddings
    ]
    assert len(terms) == spec.passive == 2
    np.testing.assert_allclose(defended - undefended, 0.3 * sum(terms), rtol=1e-3)


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


def test_the_log_is_floored_on_constant_embeddings():
    spec, plain = harness.make_spec(5, ("dcor",)), harness.make_spec(5)
    batch = harness.make_batch(spec, 0)
    batch = batch._replace(features=tuple(jnp.ones_like(x) for x in batch.features))
    _, defended, undefended = losses(0.3, batch, spec, plain)
    np.testing.assert_allclose(defended - undefended, 2 * 0.3 * np.log(FLOOR), rtol=1e-4)


def test_descending_it_lowers_the_dependence_of_the_embeddings_on_the_labels():
    spec = harness.make_spec(2, ("dcor",), passive=1)
    rng = np.random.default_rng(6)
    batch = harness.make_batch(spec, 1)
    columns = rng.normal(size=batch.features[0].shape) + 3 * np.asarray(batch.labels)[:, None]
    batch = batch._replace(features=(jnp.asarray(columns, jnp.float32), batch.features[1]))
    y = reference.one_hot(np.asarray(batch.labels), 2)
    reached = {}
    for alpha in (0.0, 1.0):
        hparams = harness.make_hparams(spec, {"dcor": {"alpha": alpha}}, momentum=0.0)
        _, exchanges, _ = harness.run_steps(spec, hparams, [batch] * 20)
        z = np.asarray(exchanges[-1].embeddings[0])
        reached[alpha] = reference.squared_distance_correlation(z, y)
    assert reached[1.0] < 0.5 * reached[0.0]
