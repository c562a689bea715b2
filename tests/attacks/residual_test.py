"""The residual attack: leave-one-out neighbors against the NumPy twin, batch by batch."""

import numpy as np
import pytest

from tests import harness
from tests.attacks import cases
from tests.reference import residual as reference
from tests.reference import spectral
from vfljax.attacks.residual import residual, residuals

jitted = harness.quick_jit(residuals, static_argnums=3)
ROWS, FEW, MANY = 20, 3, 40  # neighbors: also more than there are rows
ALL_SENT = np.ones(ROWS, bool)


def batch():
    rng = np.random.default_rng(0)
    return tuple(np.float32(rng.normal(size=(ROWS, 3))) for _ in range(2))


@pytest.mark.parametrize("k", [FEW, MANY])
def test_residuals_agree_with_the_twin_also_with_more_neighbors_than_rows(k):
    z, g = batch()
    np.testing.assert_allclose(jitted(z, g, ALL_SENT, k), reference.residuals(z, g, k), atol=1e-4)


@pytest.mark.parametrize("scale", [1e-25, 1e15])
def test_neither_units_nor_the_origin_of_the_embedding_matter(scale):
    z, g = batch()
    far = np.float32(scale) * (z + np.float32(1e3))
    ours = jitted(far, np.float32(scale) * g, ALL_SENT, FEW)
    np.testing.assert_allclose(ours, jitted(z, g, ALL_SENT, FEW), rtol=1e-4, atol=1e-5)


def test_rows_not_sent_are_nobodys_neighbors_and_a_row_alone_says_nothing():
    z, g = batch()
    sent = np.arange(ROWS) % 3 > 0
    hidden = np.where(sent[:, None], g, 0)  # as batches are gathered
    ours = np.asarray(jitted(np.where(sent[:, None], z, 0), hidden, sent, FEW))
    np.testing.assert_array_equal(ours[~sent], 0)
    np.testing.assert_allclose(ours[sent], reference.residuals(z[sent], g[sent], FEW), atol=1e-4)
    alone = np.arange(ROWS) == 4
    np.testing.assert_array_equal(jitted(z, g * alone[:, None], alone, FEW), 0)
    np.testing.assert_array_equal(jitted(z, 0 * g, ALL_SENT, FEW), 0)


def test_scores_agree_with_the_twin_batch_by_batch_also_where_rows_were_never_sent():
    """Gradients h(z) + c (1/2 - y), h smooth and as often negative as positive: lengths cancel."""
    rng, rows = np.random.default_rng(3), 70
    labels = rng.integers(0, 2, rows)
    z = np.float32(rng.uniform(-1, 1, size=(rows, 1)) * np.ones((1, 3)))
    g = np.float32(np.sin(z) + 0.8 * (0.5 - labels)[:, None])
    sent = (np.arange(rows) < 65)[None]
    case = cases.make_case(labels, 2, embeddings=z[None], gradients=g[None], sent=sent)
    ours = np.asarray(cases.attack(cases.build(residual, 2, neighbors=4), case).train)
    np.testing.assert_array_equal(np.isnan(ours).all(axis=1), ~sent[0])
    starts = range(0, 65, cases.BATCH)
    batches = [slice(first, min(first + cases.BATCH, 65)) for first in starts]
    parts = [reference.residuals(z[batch], g[batch], 4) for batch in batches]
    s, positive = spectral.positives(np.concatenate(parts))
    np.testing.assert_array_equal(ours[:65, 1] > 0, positive)
    assert np.corrcoef(ours[:65, 1], s)[0, 1] > 1 - 1e-6
