"""Attacks on saved exchanges over many draws: those whose scores another file would make are refused."""

import numpy as np
import pytest

from analysis.benchmark import draws
from vfljax.errors import UserError
from vfljax.types import Sums


def test_an_attack_that_makes_its_scores_on_the_host_is_refused(tmp_path):
    of_epochs, of_rows = np.zeros((1, 8, 2), np.float32), np.zeros((8, 2), np.float32)
    arrays = {"embeddings": of_epochs, "gradients": of_epochs, "epochs": np.zeros(1, np.int32)}
    arrays |= {"order": np.zeros((1, 8), np.int32), "sent": np.ones((1, 8), bool)}
    arrays |= {f"sums.{name}": of_rows for name in Sums._fields}
    arrays |= {"features.0": of_rows, "labels": np.arange(8) % 2}
    rows = np.array([["0", "undefended", "split", "0"]])
    np.savez(tmp_path / "x.npz", rows=rows, **{f"0.{name}": a for name, a in arrays.items()})
    with pytest.raises(UserError, match="attack='reader' makes its scores on the host"):
        draws.measure(tmp_path / "x.npz", "reader", tmp_path / "leaks.csv", known=4, draws=1)
