"""Every program that the grid suite compares makes the same update, and is timed in turn. No times."""

import importlib.util
import json
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from analysis.benchmark import grid_speed, measuring
from analysis.benchmark.peers import comparison, workers
from analysis.benchmark.peers.minimal import Least
from analysis.benchmark.peers.problem import NETWORKS, Problem, draw
from tests.reference import grid_step
from vfljax.federation import training
from vfljax.models import MLP
from vfljax.sweep import batch_layout
from vfljax.types import Spec, Weights

TINY = Problem(bottom=(3, 5, 4, 2), top=(4, 6, 3), rows=22, batch=5, trials=3)
# one passive party, three classes, 22 rows in batches of 5, one epoch
SPEC = Spec((MLP((5, 4), 2),) * 2, MLP((6,), 3), 1, 3, 22, 5, 1, ("sgd",) * 3, drop_last=True)


@pytest.fixture(scope="module")
def case():
    """vfljax's row."""
    return measuring.TimedStep(SPEC, 3, 3, {}, None)


def trial(weights, s):
    """The weights of one trial."""
    return {
        name: [(kernel[s], bias[s]) for kernel, bias in layers] for name, layers in weights.items()
    }


def by_numpy(s, order=None, rate=None):
    """What NumPy makes of trial ``s`` in one epoch."""
    drawn = draw(TINY)
    return grid_step.train(
        trial(drawn.weights, s),
        drawn.features,
        drawn.labels,
        drawn.orders[s] if order is None else order,
        drawn.rates[s] if rate is None else rate,
    )


def check_weights(weights, expected):
    """Equal but for rounding."""
    for name in NETWORKS:
        for layer, other in zip(weights[name], expected[name], strict=True):
            for a, b in zip(layer, other, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_the_peers_problem_is_the_structure_that_vfljax_trains():
    assert comparison.problem_of(SPEC, 3, 3) == TINY
    published = comparison.problem_of(grid_speed.GRID, grid_speed.COLUMNS, 50)
    assert published.bottom == (32, 64, 64, 16)
    assert (published.top, published.batch) == ((32, 64, 10), 256)


def test_a_trial_is_drawn_alike_whatever_the_number_of_trials():
    few, many = draw(TINY), draw(TINY._replace(trials=7))
    for a, b in zip(jax.tree.leaves(few.weights), jax.tree.leaves(many.weights), strict=True):
        np.testing.assert_array_equal(a, b[:3])
    np.testing.assert_array_equal(few.orders, many.orders[:3])
    np.testing.assert_array_equal(few.rates, many.rates[:3])
    assert len(np.unique(many.rates)) == 7


@pytest.mark.slow
@pytest.mark.parametrize("width", [1, 2])
def test_the_least_program_makes_numpy_s_update_and_records_its_exchange(width):
    least = Least(TINY, width)
    assert least.width == width
    least.epoch()
    (weights, _), (sent, received) = jax.tree.map(np.asarray, (least.state, least.exchange))
    assert len(received) == least.trials >= 3
    for lane in range(least.trials):  # the fourth, on two devices, is the first again
        expected, cut, gradients = by_numpy(lane % 3)
        check_weights(trial(weights, lane), expected)
        np.testing.assert_allclose(sent[lane], cut, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(received[lane], gradients, rtol=1e-4, atol=1e-6)


@pytest.mark.slow
def test_vfljax_s_row_makes_numpy_s_update(case, monkeypatch):
    """The very program that is timed, its initial weights and table replaced."""
    drawn = draw(TINY)
    table, initial = case.shared
    table = table._replace(
        features=tuple(map(jnp.asarray, drawn.features)), labels=jnp.asarray(drawn.labels)
    )

    def variables(layers):
        names = (f"Dense_{place}" for place in range(len(layers)))
        return {
            "params": {
                name: {"kernel": kernel, "bias": bias}
                for name, (kernel, bias) in zip(names, layers, strict=True)
            }
        }

    a, b, top = (variables(drawn.weights[name]) for name in NETWORKS)
    given = Weights((a, b), top)
    assert jax.tree.structure(given) == jax.tree.structure(initial)
    given = jax.tree.map(jnp.asarray, given)
    monkeypatch.setattr(case, "shared", batch_layout.share((table, given)))
    weights = jax.tree.map(np.asarray, case.train().state.weights)
    orders = training.epoch_of(jnp.int32(0), case.seeds, SPEC.num_rows).order
    for s in range(3):
        order = np.asarray(orders)[s][:20].reshape(4, 5)
        rate = np.linspace(0.01, 0.1, 3, dtype=np.float32)[s]
        nets = dict(zip(NETWORKS, (*weights.bottoms, weights.active), strict=True))
        ours = {
            name: [(layer["kernel"][s], layer["bias"][s]) for layer in net["params"].values()]
            for name, net in nets.items()
        }
        check_weights(ours, by_numpy(s, order, rate)[0])


def test_a_process_without_pytorch_says_why_in_one_line():
    """Whether or not PyTorch is installed here: a module that cannot be imported stands before it."""
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from analysis.benchmark.peers import torch_peers; torch_peers.main(sys.argv[1])"
    )
    asked = {"form": "eager", "problem": TINY, "first": 0, "threads": 1, "device": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(asked)], capture_output=True, text=True, check=True
    )
    failed = json.loads(done.stdout)["failed"]
    assert failed.startswith("ModuleNotFoundError")
    assert "torch" in failed


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


def test_ratios_are_to_vfljax_and_a_process_that_fails_is_left_out(monkeypatch, case):
    monkeypatch.setattr(workers, "absent", lambda: "")
    monkeypatch.setattr(comparison, "Worker", Silent)
    monkeypatch.setattr(comparison, "cores", lambda: 2)
    monkeypatch.setattr(Least, "measure", lambda least, seconds: 2.0)
    monkeypatch.setattr(case, "measure", lambda seconds: 4.0)
    result, text = comparison.measured(case, TINY, 3)
    rows = {row["name"]: row for row in result["rows"]}
    names = [
        *("vfljax", "the least JAX program", "PyTorch eager, one thread"),
        "PyTorch eager, 2 processes",
        *("PyTorch torch.func, 3 trials at once, eager",),
        "PyTorch torch.func, 3 trials at once, compiled gradient",
    ]
    assert list(rows) == names
    # microseconds: 50 on one thread; half of it, as the machine sees it, in two processes
    assert [row["median"] for row in rows.values()] == pytest.approx([4, 2, 50, 25, 10, 20])
    assert [row["ratio"]["median"] for row in rows.values()] == pytest.approx(
        [1, 0.5, 12.5, 6.25, 2.5, 5]
    )
    assert all(len(row["all"]) == 3 for row in rows.values())
    assert "vfljax takes 2.00 (2.00 to 2.00) times as long as the least JAX program" in text
    assert "PyTorch's best, torch.func, 3 trials at once, eager, takes 2.50" in text
    assert result["notes"] == [
        "PyTorch is 2.0.",
        "Left out: PyTorch torch.func, 3 trials at once, compiled step. there is no compiler",
    ]


def test_without_pytorch_a_line_says_how_to_get_it(monkeypatch, case):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(comparison, "SECONDS", 0.0)
    result, text = comparison.measured(case, TINY, 2)
    assert [row["name"] for row in result["rows"]] == ["vfljax", "the least JAX program"]
    assert "pip install -e '.[parity]'" in text


def test_the_rows_are_timed_in_turn():
    asked = []
    measures = {name: lambda name=name: asked.append(name) or 1.0 for name in "ab"}
    assert measuring.in_turn(measures, 2) == {"a": [1.0, 1.0], "b": [1.0, 1.0]}
    assert asked == ["a", "b", "a", "b"]
