"""Every suite of benchmarks, at a tiny size: its rows, its table, one compile a program. No times."""

import contextlib
import dataclasses
import json

import jax
import numpy as np
import pytest

from analysis.benchmark import (
    attack_effort,
    attack_speed,
    command,
    convolutions,
    defense_cost,
    draws,
    gpu,
    grid_speed,
    measuring,
)
from tests.stored_sweep import FIXTURE
from vfljax.models import MLP

TINY = convolutions.Images(batch=2, image=(8, 4, 3), steps=1, blocks=(1,))


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """One run of training a turn, whatever its time; no large products."""
    measure = measuring.TimedStep.measure
    monkeypatch.setattr(
        measuring.TimedStep, "measure", lambda case, *asked: measure(case, 0.0, *asked[1:])
    )
    monkeypatch.setattr(grid_speed, "matmul_rate", lambda: 1.0)
    monkeypatch.setattr(gpu, "matmul_rate", lambda n: 2.0)


def table_rows(text):
    """Cells of a Markdown table's rows, its header left out."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.slow
def test_the_grid_s_sizes_are_a_program_and_a_row_each(monkeypatch):
    tiny = dataclasses.replace(
        grid_speed.GRID,
        bottoms=(MLP((4,), 2),) * 2,
        top=MLP((), 3),
        num_classes=3,
        num_rows=16,
        batch_size=8,
        epochs=1,
    )
    monkeypatch.setattr(grid_speed, "GRID", tiny)
    monkeypatch.setattr(grid_speed, "SIZES", (1, 2))
    result, text = grid_speed.measured(2, None)
    assert [row["trials"] for row in result["rows"]] == [1, 2]
    assert [row["compiles"] for row in result["rows"]] == [1, 1]
    for row in result["rows"]:
        assert row["lowest"] <= row["microseconds_a_trial_and_step"] <= row["highest"]
    assert [row[0] for row in table_rows(text)] == ["1", "2"]


@pytest.mark.slow
def test_a_defense_s_rows_stand_beside_its_undefended_twin(monkeypatch):
    monkeypatch.setattr(defense_cost, "TRIALS", 2)
    monkeypatch.setattr(defense_cost, "SHAPES", ((4, 2, 3),))
    result, text = defense_cost.measured(2, None, "max_norm")
    (row,) = result["rows"]
    assert (row["defense"], row["batch"], row["cut"], row["classes"]) == ("max_norm", 4, 2, 3)
    assert row["compiles"] == 1
    assert row["lowest"] <= row["added_microseconds"] <= row["highest"]
    assert [row[0] for row in table_rows(text)] == ["max_norm"]


def test_every_defense_of_the_table_is_timed_and_its_other_rules_behind_its_default_one():
    forms = defense_cost.timed_defenses()
    assert [label for label, spec in forms if not spec.options] == list(defense_cost.TABLE)
    labels = [label for label, _ in forms]
    assert labels[labels.index("noise") + 1] == "noise gaussian"


@contextlib.contextmanager
def torch_of(spec, columns, trials):
    yield lambda: 1e6, "PyTorch is 2.0."


@pytest.mark.slow
def test_a_machine_without_a_gpu_runs_every_row_small_and_says_so(monkeypatch):
    monkeypatch.setattr(gpu, "FORMS", gpu.FORMS[:2])
    sizes = gpu.SMALL._replace(images=TINY, width=2)
    result, text = gpu.measured(2, torch_of, sizes)
    assert text.splitlines()[0].startswith("This is no GPU: 2 cpu device(s)")
    names = ["float32", "TF32", "bfloat16", gpu.QUEUED, gpu.EAGER, "xla vmap", "matmul vmap"]
    assert [row["name"] for row in result["rows"]] == names
    assert [row["attack"] for row in result["attacks"]] == [*attack_speed.FAMILIES]
    assert all(row["median"] > 0 for row in result["attacks"])
    held = ["float32", "xla vmap", "matmul vmap"]
    assert [row["name"] for row in result["memory"]] == 2 * held
    ours, *_ = result["rows"]
    # GFLOP/s: operations over microseconds
    assert ours["useful_gflops"] == pytest.approx(ours["operations"] / ours["median"] / 1e3)
    # memory of what ran, by XLA too; of the aims' sizes counted alone
    small, large = result["memory"][:3], result["memory"][3:]
    assert [row["members"] for row in large] == [1024, 16, 16]
    for row in small:
        assert row["counted"] / row["bytes_a_member"] / row["members"] == pytest.approx(1, abs=0.6)
    assert not any(row["bytes_a_member"] or row["fitting"] for row in large)


def test_time_between_calls_precision_and_pytorch_are_ratios_of_turns():
    times = {
        "float32": (2.0, 4.0),
        gpu.QUEUED: (1.5, 2.0),
        "TF32": (1.0, 2.0),
        gpu.EAGER: (200, 800),
    }
    lines = [gpu.Measurement(name, each, 1.0, None) for name, each in times.items()]
    between = measuring.ratios(times[gpu.QUEUED], times["float32"])._asdict()
    about = {
        "between_calls": between,
        "changes": {"TF32": {"loss": 0.002, "accuracy": -0.01}},
        "accuracy": 0.5,
        "eager": "PyTorch is 2.0.",
    }
    first, second, third = gpu._tabular_verdicts(lines, about)
    assert first.startswith("Time between calls takes 37.5% (25.0% to 50.0%) of an epoch;")
    assert second.startswith("TF32 takes 0.50 (0.50 to 0.50) of float32's time;")
    assert third.startswith("Eager PyTorch takes 150.0 (100.0 to 200.0) times as long as vfljax;")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite=grids", "--out=x"], "--suite='grids' is unknown: choose"),
        (["--suite=grid"], "--out is needed"),
        (["--suite=gpu", "--write"], "--write: JAX finds no GPU"),
    ],
)
def test_a_suite_that_cannot_be_run_is_one_line(refused, arguments, message):
    assert message in refused("benchmark", *arguments)


def test_a_gpu_s_figures_are_written_where_there_is_one(launch, monkeypatch, tmp_path):
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(gpu, "measured", lambda repeats, eager: ({"turns": repeats}, "| a table |"))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert launch("benchmark", "--suite=gpu", "--write").returncode == 0
    written = json.loads((tmp_path / "gpu.json").read_text())
    assert (written["turns"], len(written["devices"])) == (9, jax.device_count())
    assert (tmp_path / "gpu.md").read_text() == "| a table |\n"


def test_operations_are_those_of_convolutions_and_the_last_layer():
    """ResNet of one stage of one block: three 3x3 convolutions at stride 1 and a Linear."""
    width, positions = 2, 2 * 8 * 4
    kernels = 9 * 3 * width + 2 * 9 * width * width
    linear = 2 * width * 10
    assert gpu.forward_operations(width, TINY) == 2 * (positions * kernels + linear)


@pytest.mark.slow
def test_the_effort_of_attacks_is_a_row_for_each_program_and_level(capsys):
    attack_effort.report(FIXTURE, levels=["0", "full"], only=["direct"])
    rows = table_rows(capsys.readouterr().out)
    assert [(row[0], row[4]) for row in rows[:2]] == [("direct", "0"), ("direct", "full")]
    assert all(float(row[5]) > 0 for row in rows)


@pytest.mark.slow
def test_draws_of_known_labels_are_compared_on_the_same_exchanges(tmp_path):
    exchanges, tables = tmp_path / "x.npz", [tmp_path / f"{k}.csv" for k in range(3)]
    draws.save(str(FIXTURE), str(exchanges))
    for table, ridge in zip(tables, (1, 1, 1e6), strict=True):
        draws.measure(
            str(exchanges), "probe", str(table), options={"ridge": ridge}, known=20, draws=2
        )
    same, other = (draws.compared(str(tables[0]), str(table)) for table in tables[1:])
    assert (same["moves"] == 0).all()
    assert (other["moves"] != 0).any()
    arrays = np.load(exchanges)
    labels = arrays["0.labels"]
    known = draws.known_draws(labels, 20, 2, 0)
    assert (known.labels[:, 20:] == -1).all()
    classes = labels.max() + 1
    for rows in known.rows:
        assert (np.sort(rows) == np.arange(len(labels))).all()
        assert (np.bincount(labels[rows[:classes]], minlength=classes) == 1).all()
