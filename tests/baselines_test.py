"""What a linear model is given of codes and texts."""

import numpy as np

from vfljax.baselines import numbers_of
from vfljax.datasets.core import Input


def test_numbers_stay_and_codes_become_one_hot():
    x = np.array([[0.5, 2, 0], [-1.0, 0, 1]], np.float32)
    found = numbers_of(x, Input("table", (3,), (0, 3, 2))).toarray()
    # codes first, then numbers
    np.testing.assert_array_equal(found, [[0, 0, 1, 1, 0, 0.5], [1, 0, 0, 0, 1, -1.0]])
    np.testing.assert_array_equal(numbers_of(x, Input("table", (3,))).toarray(), x)


def test_a_text_is_a_bag_of_its_tokens():
    x = np.array([[2, 5, 5, 0], [2, 3, 0, 0]], np.float32)
    found = numbers_of(x, Input("text", (4,), (7,), 0)).toarray()
    np.testing.assert_array_equal(found, [[1, 0, 1, 0, 0, 1, 0], [1, 0, 1, 1, 0, 0, 0]])
