"""Mean and median: the nearer class center of known rows; GAFM's released median: that of a row's batch."""

import numpy as np

from tests.attacks import cases
from tests.reference import gradients as reference
from vfljax.attacks.centers import global_median, mean, median

ROWS, KNOWN, TIED = 60, 20, 40


def test_agrees_with_the_numpy_twin_and_a_tie_goes_to_class_1_as_published():
    rng, labels = np.random.default_rng(0), np.arange(ROWS) % 2
    g = rng.normal(size=(ROWS, 3)) + labels[:, None]
    g[0:KNOWN:2] = np.rint(3 * g[0:KNOWN:2])  # whole numbers, whose sums are exact
    g[1:KNOWN:2], g[TIED] = -g[0:KNOWN:2], 0.0  # the centers are opposite, with this row between
    case = cases.make_case(labels, 2, gradients=g[None], known=KNOWN)
    known = cases.known_of(case)
    statistics = {mean: np.mean, median: np.median}
    forms = [
        cases.build(attack, 2, scores=scores)
        for attack in statistics
        for scores in ("distance", "nearest")
    ]
    results = cases.attack_all(forms, case, known=KNOWN)
    for statistic, distance, near in zip(statistics.values(), results[::2], results[1::2]):
        far = reference.nearest_center(np.float32(g), known, labels[known], statistic, 2)
        np.testing.assert_allclose(distance, -far, atol=1e-5)
        assert far[TIED, 0] == far[TIED, 1]
        to_class_1 = far[:, 1] < far[:, 0] + 1e-6
        np.testing.assert_array_equal(near, np.eye(2)[to_class_1.astype(int)])


def batch_medians(g, batch_size):
    """Which rows are above the median of their batch, entries summed; one batch after the other."""
    sums = [sum(float(entry) for entry in row) for row in g]
    out = []
    for first in range(0, len(sums), batch_size):
        batch = sums[first : first + batch_size]
        ranked = sorted(batch)
        low, high = ranked[(len(batch) - 1) // 2], ranked[len(batch) // 2]
        out += [float(value > (low + high) / 2) for value in batch]
    return np.array(out)


def test_the_median_is_that_of_a_row_s_batch():
    rows = 50  # the last batch is shorter
    # whole numbers, so that sums are exact: rows equal to the median are not above it
    g = np.random.default_rng(rows).integers(-3, 4, size=(rows, 3)).astype(np.float32)
    g += 10 * (np.arange(rows) // cases.BATCH)[:, None]  # another median in every batch
    case = cases.make_case(np.arange(rows) % 2, 2, gradients=g[None])
    scores = cases.attack(global_median(cases.ONE_BOTTOM, 2), case).train
    expected = batch_medians(g, cases.BATCH)
    np.testing.assert_array_equal(scores, np.stack([1 - expected, expected], axis=1))
