"""The residual attack: leave-one-out neighbors against the NumPy twin, and what it reads that lengths hide."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from tests import harness
from tests.attacks import cases
from tests.reference import residual as reference
from tests.reference import spectral
from vfljax.attacks.norm import norm
from vfljax.attacks.residual import residual, residuals

few = settings(deadline=None, max_examples=15, database=None, derandomize=True)
jitted = harness.quick_jit(residuals, static_argnums=3)
ALL_SENT = np.ones(20, bool)


def batch(seed, rows=20, width=3):
    rng = np.random.default_rng(seed)
    return tuple(np.float32(rng.normal(size=(rows, width))) for _ in range(2))


@given(
    seed=st.integers(0, 2**16), shape=st.sampled_from([(1, 1), (1, 16), (3, 3), (3, 16), (3, 40)])
)
@few
def test_residuals_agree_with_the_twin_also_with_more_neighbors_than_rows(seed, shape):
    width, k = shape
    z, g = batch(seed, width=width)
    ours = jitted(z, g, ALL_SENT, k)
    np.testing.assert_allclose(ours, reference.residuals(z, g, k), atol=1e-4)


@pytest.mark.parametrize("offset", [0.0, 1e3])
@pytest.mark.parametrize("scale", [1e-25, 1e-3, 1e15])
def test_neither_the_units_nor_the_origin_of_the_embedding_matter(scale, offset):
    z, g = batch(0)
    far = np.float32(scale) * (z + np.float32(offset))
    np.testing.assert_allclose(jitted(far, g, ALL_SENT, 3), jitted(z, g, ALL_SENT, 3), atol=1e-5)


@pytest.mark.parametrize("scale", [1e-25, 1e-3, 1e25])
def test_a_positive_factor_of_a_batch_of_gradients_does_not_matter(scale):
    z, g = batch(1)
    ours = jitted(z, np.float32(scale) * g, ALL_SENT, 3)
    np.testing.assert_allclose(ours, jitted(z, g, ALL_SENT, 3), rtol=1e-4, atol=1e-5)


def test_rows_not_sent_are_nobodys_neighbors_and_a_row_alone_says_nothing():
    z, g = batch(2)
    sent = np.arange(20) % 3 > 0
    hidden = np.where(sent[:, None], g, 0)  # as batches are gathered
    ours = np.asarray(jitted(np.where(sent[:, None], z, 0), hidden, sent, 16))
    np.testing.assert_array_equal(ours[~sent], 0)
    np.testing.assert_allclose(ours[sent], reference.residuals(z[sent], g[sent], 16), atol=1e-4)
    alone = np.arange(20) == 4
    np.testing.assert_array_equal(jitted(z, g * alone[:, None], alone, 16), 0)
    np.testing.assert_array_equal(jitted(z, 0 * g, ALL_SENT, 16), 0)


# The attack as a whole.


def run(factory, case, **options):
    one = cases.build(factory, 2, **options)
    return np.asarray(cases.attack(one, case, **one.knobs).train)


def hidden(width, factors=1.0, sent=None, rows=200):
    """Gradients h(z) + c (1/2 - y), h smooth and as often negative as positive: lengths cancel."""
    rng = np.random.default_rng(width)
    labels = rng.integers(0, 2, rows)
    z = rng.uniform(-1, 1, size=(rows, 1)) * np.ones((1, width))
    g = np.sin(z) + 0.8 * (0.5 - labels)[:, None]
    g = np.repeat(factors, rows // np.size(factors))[:, None] * g
    case = cases.make_case(labels, 2, embeddings=z[None], gradients=g[None], sent=sent)
    return labels, z, g, case


@pytest.mark.parametrize("width", [1, 3])
def test_labels_hidden_by_a_function_of_the_embedding_are_found_and_lengths_do_not_tell(width):
    labels, _, _, case = hidden(width)
    ours = roc_auc_score(labels, run(residual, case, neighbors=4)[:, 1])
    lengths = roc_auc_score(labels, run(norm, case)[:, 1])
    # of a cut of one number the sign has a meaning; of more, neither class is rarer in this run
    assert ours > 0.9 if width == 1 else max(ours, 1 - ours) > 0.9
    assert max(lengths, 1 - lengths) < 0.65


@pytest.mark.parametrize("width", [1, 3])
def test_scores_agree_with_the_twin_batch_by_batch_also_where_rows_were_never_sent(width):
    sent = (np.arange(200) < 190)[None]
    _, z, g, case = hidden(width, sent=sent)
    ours = run(residual, case, neighbors=4)
    np.testing.assert_array_equal(np.isnan(ours).all(axis=1), ~sent[0])
    z, g = np.float32(z), np.float32(g)
    parts = []
    for first in range(0, 190, cases.BATCH):
        rows = slice(first, min(first + cases.BATCH, 190))
        parts.append(reference.residuals(z[rows], g[rows], 4))
    r = np.concatenate(parts)
    if width == 1:
        np.testing.assert_allclose(ours[:190, 1], -r[:, 0], atol=1e-4)
    else:
        s, positive = spectral.positives(r)
        np.testing.assert_array_equal(ours[:190, 1] > 0, positive)
        assert np.corrcoef(ours[:190, 1], s)[0, 1] > 1 - 1e-6
