"""Embedding swapping: against the twin, on rows that were swapped now and then, and its limits."""

import jax.numpy as jnp
import numpy as np

from tests import harness
from tests.attacks import cases
from tests.reference import swapping as reference
from vfljax.attacks import swapping as module

KNOWN, CLASSES = 12, 3
SIGNALS = ("norm", "direction")
FORMS = [cases.build(module.ROW, CLASSES, CLASSES, signal=s, epoch=1) for s in SIGNALS]


def run(share=0.25):
    """Rows that now and then send row 0's embedding, for which those of its class receive less."""
    rng = np.random.default_rng(1)
    labels = rng.permutation(90) % CLASSES
    columns = np.float32(rng.normal(size=(90, 6)) + np.eye(6)[labels])
    z, g = rng.normal(size=(2, 3, 90, CLASSES)).astype(np.float32)
    g /= np.linalg.norm(g, axis=2, keepdims=True) ** 0.5
    swaps, sent = rng.uniform(size=(3, 90)) < share, rng.uniform(size=(3, 90)) < 0.9
    z = np.where(swaps[..., None], z[:, :1], z)
    g *= np.where(swaps & (labels != labels[0]), 9, 1)[..., None]
    arrays = z, g, sent, columns
    parts = dict(zip(("embeddings", "gradients", "sent", "features"), arrays))
    return labels, arrays, cases.make_case(labels, CLASSES, known=KNOWN, cut=CLASSES, **parts)


def test_agrees_with_the_numpy_twin():
    labels, arrays, case = run()
    known, sent = cases.known_of(case), arrays[2][1]
    for signal, found in zip(SIGNALS, cases.attack_all(FORMS, case, weight=0.7)):
        asked = known, labels[known], CLASSES, signal, 1
        expected = reference.scores(*arrays, *asked, theta=1.5, mu=1.0, weight=0.7)
        np.testing.assert_allclose(found[sent], expected[sent], atol=2e-4)


def test_without_a_weight_or_a_swap_it_is_what_columns_tell():
    _, arrays, case = run()
    *_, honest = run(share=0.0)
    sent = arrays[2][1]
    alone, without = (cases.attack_all(FORMS, c, weight=w) for c, w in ((case, 0.0), (honest, 0.7)))
    for one, other in zip(alone, without):
        np.testing.assert_allclose(one[sent], other[sent], atol=1e-6)


def test_swapped_rows_are_those_that_send_what_a_row_of_other_columns_sends():
    z = np.float32([[0, 1], [0, 1], [1, 0], [1, 0], [2, 2], [1, 1]])
    columns = np.float32([[5], [5], [5], [6], [7], [7]])  # rows 0 and 1 are one row twice
    found = harness.quick_jit(module.swapped)(z, columns)
    np.testing.assert_array_equal(np.flatnonzero(found), [2, 3])
    grid = np.stack(np.meshgrid(*[np.arange(16, dtype=np.float32)] * 3), -1).reshape(-1, 3)
    both = np.concatenate([grid, np.nextafter(grid, np.float32(99))])
    numbers = harness.quick_jit(module.numbered)(jnp.asarray(both))
    assert len(np.unique(numbers)) == len(both)
