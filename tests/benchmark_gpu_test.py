"""The GPU suite on a CPU, at a tiny size: its rows, its aims and its counts of operations. No times."""

import jax
import pytest

from vfljax.benchmark import convolutions, gpu, measuring
from vfljax.benchmark.convolutions import Images

TINY = Images(batch=2, image=(8, 4, 3), steps=1, blocks=(1,))
NO_MEMORY = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One run of training a turn, whatever its time; no large products."""
    measure = measuring.TimedStep.measure
    monkeypatch.setattr(measuring.TimedStep, "measure", lambda case, seconds: measure(case, 0.0))
    monkeypatch.setattr(gpu, "matmul_rate", lambda n: 2.0)


def rows(text):
    """First and second cells of the table."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")][:2] for line in lines[2:]]


def test_a_machine_without_a_gpu_runs_every_row_small_and_says_so(monkeypatch):
    monkeypatch.setattr(gpu, "FORMS", gpu.FORMS[:2])
    result, text = gpu.measured(2, gpu.SMALL._replace(images=TINY, width=2))
    assert text.splitlines()[0].startswith("This is no GPU: 2 cpu device(s)")
    assert [name for name, _ in rows(text)] == [
        "8 tabular settings",
        "xla vmap (grouped convolutions)",
        "matmul vmap (matrix products)",
    ]
    assert result["gpu"] is False
    assert all(len(row["microseconds"]) == 2 for row in result["rows"])
    ours, *networks = result["rows"]
    # GFLOP/s: operations over microseconds
    assert ours["useful_gflops"] == pytest.approx(ours["operations"] / ours["median"] / 1e3)
    best = max(row["share"] for row in networks)
    assert f"reaches {best:.0%} of the matrix rate" in text
    assert "times as long as grouped convolutions." in text


def test_what_does_not_fit_is_a_row_that_says_so(monkeypatch):
    def ours(implementation, mode, *sizes):
        if (implementation, mode) == ("matmul", "vmap"):
            raise NO_MEMORY
        return lambda: 5.0

    monkeypatch.setattr(convolutions, "ours", ours)
    line = gpu.Measurement("tabular", (1.0,), 1.0, None)
    monkeypatch.setattr(gpu, "_tabular", lambda sizes, turns: line)
    result, text = gpu.measured(2, gpu.SMALL)
    assert ["matmul vmap (matrix products)", "exhausts the memory"] in rows(text)
    assert "grouped convolutions." not in text  # nothing to compare
    operations = 3 * gpu.forward_operations(gpu.SMALL.width, gpu.SMALL.images)
    timed = [row for row in result["rows"][1:] if row["microseconds"]]
    assert [row["share"] for row in timed] == pytest.approx([operations / 5e3 / 1e3 / 2] * 3)


def test_operations_are_those_of_convolutions_and_the_last_layer():
    """ResNet of one stage of one block: three 3x3 convolutions at stride 1 and a Linear."""
    width, positions = 2, 2 * 8 * 4
    kernels = 9 * 3 * width + 2 * 9 * width * width
    linear = 2 * width * 10
    assert gpu.forward_operations(width, TINY) == 2 * (positions * kernels + linear)


def test_sizes_are_those_of_the_aims_where_there_is_a_gpu(monkeypatch):
    asked = []
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    line = gpu.Measurement("tabular", (1.0,), 1.0, None)
    monkeypatch.setattr(gpu, "_tabular", lambda sizes, turns: asked.append(sizes) or line)
    monkeypatch.setattr(gpu, "_networks", lambda sizes, turns: [])
    text = gpu.measured(9)[1]
    assert (asked[0].settings, asked[0].networks, asked[0].spec) == (1024, 16, gpu.GRID)
    assert not text.startswith("This is no GPU")
