"""bfloat16: operands of products, and what hidden layers store, are rounded to 8 significant bits, to nearest
and ties to even; sums are exact."""

import ml_dtypes
import numpy as np

from tests.reference.protocol import Arithmetic


def rounded(x):
    """The nearest bfloat16 of each float32 number, as float64."""
    return np.float32(x).astype(ml_dtypes.bfloat16).astype(np.float64)


def multiply(x, y):
    return rounded(x) @ rounded(y)


ARITHMETIC = Arithmetic(multiply, rounded)
