"""The embedded data sets."""

import numpy as np

from vfljax.datasets import LOADERS


def test_synthetic_rows_are_the_same_every_time_and_of_two_equal_classes():
    one, again = LOADERS["synthetic"](""), LOADERS["synthetic"]("")
    assert one.features.shape == (52_000, 32)
    np.testing.assert_array_equal(one.features, again.features)
    assert abs(one.labels.mean() - 0.5) < 0.01
    gap = one.features[one.labels == 1].mean(0) - one.features[one.labels == 0].mean(0)
    np.testing.assert_allclose(gap, 0.3, atol=0.05)
    assert LOADERS["synthetic"]("", rows=30, columns=4).features.shape == (30, 4)
