"""Charge and correlation: against the NumPy twins, and on what PELoss and dCor themselves send."""

import functools

import jax
import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import charge as reference
from vfljax.attacks import charge, divisions
from vfljax.defenses.dcor import penalty
from vfljax.defenses.pe_loss import energy

LABELS = np.arange(60) % 2
CHARGE = divisions.Formula(charge.charges, charge.charge_weights, 1e-3)
CORRELATION = divisions.Formula(charge.directions, charge.direction_weights, 1e-6)
BOTH = {
    "charge": (CHARGE, reference.charges, energy),
    "correlation": (CORRELATION, reference.pulls, lambda z, y: penalty(z, y, 3)),
}


@functools.partial(harness.quick_jit, static_argnums=0)
def pull(term, alpha, z, labels):
    """What a defense whose loss is ``alpha`` times ``term`` sends for a batch."""
    return jax.grad(lambda z: alpha * term(z, labels))(z)


def exchange(seed, alpha=0.3, rows=60, noise=0.02, labels=LABELS, term=energy):
    """Embeddings [rows, 3] and a defense's gradients in batches of 20, beside a little noise."""
    rng = np.random.default_rng(seed)
    z = np.float32(rng.normal(size=(rows, 3)))
    parts = [pull(term, alpha, z[i : i + 20], labels[i : i + 20]) for i in range(0, rows, 20)]
    return z, np.float32(np.concatenate(parts) + noise * rng.normal(size=z.shape))


def beside(x, direction):
    return x - direction * np.sum(x * direction, -1, keepdims=True) / np.maximum(
        np.sum(direction**2, -1, keepdims=True), 1e-30
    )


@pytest.mark.parametrize("name", BOTH)
def test_the_force_under_the_true_labels_is_the_defense_s_gradient(name):
    formula, _, term = BOTH[name]
    z, g = exchange(0, alpha=1.0, rows=20, noise=0.0, term=term)
    p = np.eye(2, dtype=np.float32)[LABELS[:20]]
    push = harness.quick_jit(formula.push)(z, np.ones(20, bool), np.float32(1e-6))
    w, v = harness.quick_jit(formula.weights)(p)
    force = np.sum((np.asarray(push.between) @ np.asarray(w)) * p, axis=-1).T
    force, g = (beside(x, np.asarray(push.same)) for x in (force, g))
    alpha = np.sum(force * g) / np.sum(force**2)  # of dCor it depends on the batch
    assert name == "correlation" or abs(alpha - 1) < 1e-3
    np.testing.assert_allclose(alpha * force, g, rtol=1e-3, atol=1e-4 * np.abs(g).max())
    np.testing.assert_allclose(v, 0, atol=1e-6)


@pytest.mark.parametrize(("name", "classes"), [("charge", 2), ("correlation", 3)])
def test_the_division_is_the_twin_s_from_the_start_that_explains_most(name, classes):
    formula, force, term = BOTH[name]
    labels = np.arange(40) % classes
    z, g = exchange(1, rows=40, labels=labels, term=term)
    starts = np.float32(np.random.default_rng(2).normal(size=(3, 40, classes)))
    fixed = np.where(np.arange(40)[:, None] < 6, np.eye(classes)[labels] - 1 / classes, 0.0)
    rows = np.arange(40).reshape(2, 20)
    batches = [(at, z[at].astype(float), g[at].astype(float)) for at in rows]
    every = [reference.refined(force, batches, start, fixed, 0.01, 2) for start in starts]
    misfits = [misfit for _, misfit in every]
    assert min(misfits) > divisions.EXPLAINED  # so that all are tried
    best = int(np.argmin(misfits))
    party = divisions.PartyBatches(
        rows, np.ones(rows.shape, bool), z.reshape(2, 20, 3), g.reshape(2, 20, 3)
    )

    def run(starts, fixed, softening):
        return divisions.explained(
            formula, [party], lambda n: starts[n], fixed, softening, rounds=2, starts=3
        )

    order = [best, *np.delete(np.arange(3), best)]  # the last is not the best
    found = harness.quick_jit(run)(starts[order], np.float32(fixed), np.float32(0.01))
    np.testing.assert_allclose(found.logits, every[best][0], atol=3e-2)
    np.testing.assert_allclose(found.misfit, misfits[best], rtol=2e-2)


def test_labels_are_read_at_any_strength_and_gradients_without_a_force_leave_the_guess():
    attack = cases.build(charge.ROW, 2)
    for alpha in (1e-4, 100.0, 0.0):
        arrays = cases.LEAKS["charges"](np.random.default_rng(3), LABELS, 2, alpha)
        case = cases.make_case(LABELS, 2, known=10, **arrays)
        scores = np.asarray(cases.attack(attack, case, known=10).train)
        assert np.all(np.isfinite(scores))
        assert np.ptp(scores[:, 1]) > 0
        assert alpha == 0 or np.mean(scores.argmax(1) == LABELS) > 0.95
