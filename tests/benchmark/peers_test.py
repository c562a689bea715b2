"""The least program of the grid suite makes NumPy's update, and rows are ratios to vfljax's. No times."""

import subprocess
import types

import jax
import numpy as np
import pytest

from analysis.benchmark import grid_speed
from analysis.benchmark.peers import comparison, workers
from analysis.benchmark.peers.minimal import Least
from analysis.benchmark.peers.problem import NETWORKS, Problem, draw
from tests.reference import protocol as reference
from vfljax.models import MLP
from vfljax.types import Spec

TINY = Problem(bottom=(3, 5, 4, 2), top=(4, 6, 3), rows=22, batch=5, trials=3)
# one passive party, three classes, 22 rows in batches of 5, one epoch
SPEC = Spec((MLP((5, 4), 2),) * 2, MLP((6,), 3), 1, 3, 22, 5, 1, ("sgd",) * 3, drop_last=True)


def trial(weights, s):
    """The weights of one trial."""
    return {
        name: [(kernel[s], bias[s]) for kernel, bias in layers] for name, layers in weights.items()
    }


def test_the_peers_problem_is_the_structure_that_vfljax_trains():
    assert comparison.problem_of(SPEC, 3, 3) == TINY
    published = comparison.problem_of(grid_speed.GRID, grid_speed.COLUMNS, 50)
    assert published.bottom == (32, 64, 64, 16)
    assert (published.top, published.batch) == ((32, 64, 10), 256)
    few, many = draw(TINY), draw(TINY._replace(trials=7))  # a trial is drawn alike in both
    for a, b in zip(jax.tree.leaves(few.weights), jax.tree.leaves(many.weights), strict=True):
        np.testing.assert_array_equal(a, b[:3])
    np.testing.assert_array_equal(few.orders, many.orders[:3])


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2])
def test_the_least_program_makes_numpy_s_update_and_records_its_exchange(width):
    least = Least(TINY, width)
    least.epoch()
    (weights, _), (sent, received) = jax.tree.map(np.asarray, (least.state, least.exchange))
    assert len(received) == least.trials >= 3
    drawn = draw(TINY)
    for lane in range(least.trials):  # the fourth, on two devices, is the first again
        s = lane % 3
        nets = {
            name: [reference.Dense(*map(np.float64, layer)) for layer in net]
            for name, net in trial(drawn.weights, s).items()
        }
        bottoms, top = [nets["a"], nets["b"]], nets["top"]
        state = reference.start([*bottoms, top])
        for t, rows in enumerate(drawn.orders[s]):
            features = [np.float64(x[rows]) for x in drawn.features]
            bottoms, top, state, expected = reference.step(
                bottoms,
                top,
                state,
                features,
                np.eye(3)[drawn.labels[rows]],
                **{"lr": drawn.rates[s], "mu": 0.9, "wd": 5e-4},
            )
            np.testing.assert_allclose(sent[lane][t], expected.embeddings[0], rtol=1e-4, atol=1e-5)
            theirs = expected.gradients[0]
            np.testing.assert_allclose(received[lane][t], theirs, rtol=1e-4, atol=1e-6)
        ours = trial(weights, lane)
        assert set(ours) == set(NETWORKS)
        for name, net in zip(("a", "b", "top"), [*bottoms, top], strict=True):
            for a, b in zip(jax.tree.leaves(ours[name]), jax.tree.leaves(net), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


class Silent:
    """A process that fails, or answers as it is told to."""

    def __init__(self, form, problem, first=0, threads=1, device="cpu"):
        self.form, self.process = form, subprocess.Popen(["true"])

    def ready(self):
        if self.form == "compiled":
            raise workers.Failed("there is no compiler")
        return "2.0"

    def ask(self, seconds):
        pass

    def rate(self):
        return {"eager": 2e4, "ensemble": 1e5, "gradient": 5e4}[self.form]


@pytest.fixture
def timed(monkeypatch):
    """Programs of vfljax and of the least one that take 4 and 2 microseconds."""
    least = types.SimpleNamespace(epoch=lambda: None, measure=lambda seconds: 2.0, width=1)
    monkeypatch.setattr(comparison, "Least", lambda problem: least)
    return types.SimpleNamespace(measure=lambda seconds: 4.0)


def test_ratios_are_to_vfljax_and_a_process_that_fails_is_left_out(monkeypatch, timed):
    monkeypatch.setattr(workers, "absent", lambda: "")
    monkeypatch.setattr(comparison, "Worker", Silent)
    monkeypatch.setattr(comparison, "cores", lambda: 2)
    result, text = comparison.measured(timed, TINY, 3)
    rows = {row["name"]: row for row in result["rows"]}
    assert list(rows) == [
        *("vfljax", "the least JAX program", "PyTorch eager, one thread"),
        "PyTorch eager, 2 processes",
        *("PyTorch torch.func, 3 trials at once, eager",),
        "PyTorch torch.func, 3 trials at once, compiled gradient",
    ]
    # microseconds: 50 on one thread; half of it, as the machine sees it, in two processes
    assert [row["median"] for row in rows.values()] == pytest.approx([4, 2, 50, 25, 10, 20])
    found = [row["ratio"]["median"] for row in rows.values()]
    assert found == pytest.approx([1, 0.5, 12.5, 6.25, 2.5, 5])
    assert "vfljax takes 2.00 (2.00 to 2.00) times as long as the least JAX program" in text
    assert "PyTorch's best, torch.func, 3 trials at once, eager, takes 2.50" in text
    assert result["notes"][1].endswith("3 trials at once, compiled step. there is no compiler")


def test_without_pytorch_a_line_says_how_to_get_it(monkeypatch, timed):
    monkeypatch.setattr(workers, "absent", lambda: "pip install -e '.[parity]'")
    result, text = comparison.measured(timed, TINY, 2)
    assert [row["name"] for row in result["rows"]] == ["vfljax", "the least JAX program"]
    assert "pip install -e '.[parity]'" in text
