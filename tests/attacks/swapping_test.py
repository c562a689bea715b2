"""Embedding swapping: against the twin, on rows that were swapped now and then, and its limits."""

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.attacks import cases
from tests.reference import swapping as reference
from vfljax.attacks import swapping as module

KNOWN = 12


def run(classes=2, share=0.25):
    """Rows that now and then send row 0's embedding, for which those of its class receive less."""
    rng = np.random.default_rng(1)
    labels = rng.permutation(90) % classes
    columns = np.float32(rng.normal(size=(90, 6)) + np.eye(6)[labels])
    z, g = rng.normal(size=(2, 3, 90, classes)).astype(np.float32)
    g /= np.linalg.norm(g, axis=2, keepdims=True) ** 0.5
    swaps, sent = rng.uniform(size=(3, 90)) < share, rng.uniform(size=(3, 90)) < 0.9
    z = np.where(swaps[..., None], z[:, :1], z)
    g *= np.where(swaps & (labels != labels[0]), 9, 1)[..., None]
    arrays = z, g, sent, columns
    parts = dict(zip(("embeddings", "gradients", "sent", "features"), arrays))
    return labels, arrays, cases.make_case(labels, classes, known=KNOWN, cut=classes, **parts)


def scores(case, classes=2, weight=0.7, **options):
    attack = cases.build_without_splitting(module.ROW, classes, **options)
    return np.asarray(cases.attack(attack, case, weight=weight, known=KNOWN).train)


@pytest.mark.parametrize(("signal", "place", "classes"), [("norm", 1, 3), ("direction", -1, 2)])
def test_agrees_with_the_numpy_twin(signal, place, classes):
    labels, arrays, case = run(classes)
    known, sent = case.common.known_order[0][:KNOWN], arrays[2][place]
    asked = known, labels[known], classes, signal, place
    expected = reference.scores(*arrays, *asked, theta=1.5, mu=1.0, weight=0.7)
    found = scores(case, classes, signal=signal, epoch=place)
    np.testing.assert_allclose(found[sent], expected[sent], atol=2e-4)


def test_swapped_rows_are_those_that_send_what_a_row_of_other_columns_sends():
    z = jnp.float32([[0, 1], [0, 1], [1, 0], [1, 0], [2, 2], [1, 1]])
    columns = jnp.float32([[5], [5], [5], [6], [7], [7]])  # rows 0 and 1 are one row twice
    np.testing.assert_array_equal(np.flatnonzero(module.swapped(z, columns)), [2, 3])
    grid = np.stack(np.meshgrid(*[np.arange(16, dtype=np.float32)] * 3), -1).reshape(-1, 3)
    both = np.concatenate([grid, np.nextafter(grid, np.float32(99))])
    assert len(np.unique(module.numbered(jnp.asarray(both)))) == len(both)


def test_reads_swapped_rows_and_without_a_weight_or_a_swap_what_columns_tell():
    labels, arrays, case = run()
    rows, sent = np.isfinite(reference.grades(*arrays, -1, 1.5, 1.0)), arrays[2][-1]
    rows[case.common.known_order[0][:KNOWN]] = False
    alone, with_swaps = (scores(case, weight=weight, signal="norm") for weight in (0.0, 10.0))
    of_columns, read = (roc_auc_score(labels[rows], s[rows, 1]) for s in (alone, with_swaps))
    assert read > 0.97 > 0.85 > of_columns
    honest = run(share=0.0)[-1]
    np.testing.assert_allclose(scores(honest, signal="norm")[sent], alone[sent], atol=1e-6)
