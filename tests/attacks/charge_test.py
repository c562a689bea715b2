"""The charge attack: against the NumPy twin, and on what PELoss itself sends."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import charge as reference
from vfljax.attacks import charge
from vfljax.contract import planted
from vfljax.defenses.pe_loss import energy

LABELS = np.arange(60) % 2
quick_forces = harness.quick_jit(charge.forces)


def exchange(seed, alpha=0.3, rows=60, noise=0.02, labels=LABELS):
    """Embeddings [rows, 3] and PELoss's gradients in batches of 20, beside a little noise."""
    rng = np.random.default_rng(seed)
    z = np.float32(rng.normal(size=(rows, 3)))
    pull = jax.grad(lambda z, y: alpha * energy(z, y))
    parts = [pull(z[i : i + 20], jnp.asarray(labels[i : i + 20])) for i in range(0, rows, 20)]
    return z, np.float32(np.concatenate(parts) + noise * rng.normal(size=z.shape))


def test_the_force_under_the_true_labels_is_the_defense_s_gradient():
    z, g = exchange(0, alpha=1.0, rows=20, noise=0.0)
    for label in (0, 1):
        mean, spread = quick_forces(z, np.float32(LABELS[:20] == label), np.float32(1e-3))
        of_class = LABELS[:20] == label
        np.testing.assert_allclose(mean[of_class], g[of_class], rtol=1e-4, atol=1e-5)
        np.testing.assert_array_equal(spread, 0)


def test_the_log_odds_are_the_twin_s():
    z, g = exchange(1, rows=40)
    start = np.float32(np.random.default_rng(2).normal(size=40))
    fixed = np.where(np.arange(40) < 6, 16.0 * LABELS[:40] - 8, 0.0)
    rows = np.arange(40).reshape(2, 20)
    party = charge.PartyBatches(
        rows, np.ones((2, 20), bool), z.reshape(2, 20, 3), g.reshape(2, 20, 3)
    )
    run = harness.quick_jit(lambda *arrays: charge.log_odds([party], *arrays, rounds=2))
    batches = [(at, z[at].astype(float), g[at].astype(float)) for at in rows]
    expected = reference.log_odds(batches, start.astype(float), fixed, 0.01, 2)
    found = run(start, np.float32(fixed), np.float32(0.01))
    np.testing.assert_allclose(found, expected, atol=2e-2)


@pytest.mark.parametrize("alpha", [1e-4, 0.3, 100.0])
def test_labels_are_read_at_any_strength(alpha):
    arrays = planted.charges(np.random.default_rng(3), LABELS, 2, alpha)
    case = cases.make_case(LABELS, 2, known=10, **arrays)
    scores = np.asarray(cases.attack(cases.build(charge.ROW, 2), case, known=10).train)
    assert np.mean(scores.argmax(1) == LABELS) > 0.95


def test_labels_are_read_without_any_where_batches_are_shuffled():
    rng, labels, parts = np.random.default_rng(5), np.arange(240) % 2, []
    for _ in range(5):
        order = rng.permutation(240)
        z, g = exchange(int(order[0]), rows=240, labels=labels[order])
        parts.append((order.reshape(-1, 20), z.reshape(-1, 20, 3), g.reshape(-1, 20, 3)))
    rows, z, g = map(np.concatenate, zip(*parts, strict=True))
    party = charge.PartyBatches(rows, np.ones(rows.shape, bool), z, g)
    start = np.float32(rng.normal(size=240))
    run = harness.quick_jit(lambda *arrays: charge.log_odds([party], *arrays, rounds=8))
    found = np.asarray(run(start, np.zeros_like(start), np.float32(1e-3)))
    right = np.mean((found > 0) == labels)
    assert max(right, 1 - right) > 0.95


def test_gradients_that_hold_no_force_leave_the_guess():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(2, 60, 3))
    case = cases.make_case(LABELS, 2, known=10, gradients=0 * z, embeddings=z)
    scores = np.asarray(cases.attack(cases.build(charge.ROW, 2), case, known=10).train)
    assert np.all(np.isfinite(scores))
    assert np.ptp(scores[:, 1]) > 0
