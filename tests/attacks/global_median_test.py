"""GAFM's released median attack: above or below the median of its batch."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from tests.attacks import cases
from vfljax.attacks.centers import global_median


def twin(g, batch_size):
    """Which rows are above the median of their batch, entries summed; one batch after the other."""
    sums = [sum(float(entry) for entry in row) for row in g]
    out = []
    for first in range(0, len(sums), batch_size):
        batch = sums[first : first + batch_size]
        ranked = sorted(batch)
        low, high = ranked[(len(batch) - 1) // 2], ranked[len(batch) // 2]
        out += [float(value > (low + high) / 2) for value in batch]
    return np.array(out)


def run(labels, g, sent=None):
    case = cases.make_case(labels, 2, gradients=g[None], sent=sent)
    return np.asarray(cases.attack(global_median(cases.BOTTOMS, 2), case).train)


@pytest.mark.parametrize("width", [1, 3])
@pytest.mark.parametrize("rows", [60, 50, 7], ids=["whole batches", "a short last one", "B > N"])
def test_it_agrees_with_the_twin_batch_by_batch(rows, width):
    # whole numbers, so that sums are exact: rows equal to the median are not above it
    g = np.random.default_rng(rows).integers(-3, 4, size=(rows, width)).astype(np.float32)
    g += 10 * (np.arange(rows) // cases.BATCH)[:, None]  # another median in every batch
    scores = run(np.arange(rows) % 2, g)
    expected = twin(g, cases.BATCH)
    np.testing.assert_array_equal(scores, np.stack([1 - expected, expected], axis=1))


@pytest.mark.parametrize("p", [0.394, 0.2, 0.5])
def test_of_gradients_that_part_the_classes_it_reaches_its_ceiling(p):
    """Without a defense positives receive negative, negatives positive gradients: the half called
    positive holds all negatives it can. On Spambase, p = .394, that is the published .9125."""
    rng = np.random.default_rng(1)
    rows = 2000
    per_batch = cases.BATCH
    # as many positives in every batch, up to the rounding of p to whole rows over all of them
    labels = np.zeros(rows, int)
    whole = np.floor(p * per_batch * np.arange(1, rows // per_batch + 1) + 1e-9).astype(int)
    for b, count in enumerate(np.diff(np.concatenate([[0], whole]))):
        labels[b * per_batch : b * per_batch + count] = 1
    assert labels.mean() == pytest.approx(p)
    g = np.where(labels == 1, -1.0, 1.0) * rng.uniform(0.1, 1, rows)
    a = roc_auc_score(labels, run(labels, g[:, None])[:, 1])
    ceiling = 1 - (0.5 - p) / (2 * (1 - p))
    assert max(a, 1 - a) == pytest.approx(ceiling, abs=1e-3)
    if p == 0.394:
        assert ceiling == pytest.approx(0.9125, abs=1e-4)
