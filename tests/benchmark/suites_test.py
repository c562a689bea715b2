"""Every suite of benchmarks, at a tiny size: its rows, its table, one compile a program. No times."""

import contextlib
import dataclasses
import json

import jax
import numpy as np
import pytest

from analysis.benchmark import command, convolutions, defense_cost, gpu, grid_speed, measuring
from vfljax import machine
from vfljax.models import MLP, Generator

TINY = convolutions.Images(batch=2, image=(8, 4, 3), steps=1, blocks=(1,))
NO_MEMORY = jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: out of memory")


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
    assert result["width"] == 1
    assert [row[0] for row in table_rows(text)] == ["1", "2"]
    assert "median of 2 pairs" in text


@pytest.mark.slow
def test_a_defense_s_rows_stand_beside_its_undefended_twin(monkeypatch, capsys):
    monkeypatch.setattr(defense_cost, "TRIALS", 2)
    monkeypatch.setattr(defense_cost, "SHAPES", ((4, 2, 3),))
    result, text = defense_cost.measured(2, None, "max_norm")
    (row,) = result["rows"]
    assert (row["defense"], row["batch"], row["cut"], row["classes"]) == ("max_norm", 4, 2, 3)
    assert row["compiles"] == 1
    assert row["lowest"] <= row["added_microseconds"] <= row["highest"]
    assert [row[0] for row in table_rows(text)] == ["max_norm"]
    assert "max_norm 4 x 2: " in capsys.readouterr().out  # progress is printed


def test_defenses_of_two_classes_have_the_generator_and_two_classes():
    many, two = (defense_cost.spec_of((4, 2, 3), None, binary) for binary in (False, True))
    assert (many.num_classes, many.batch_size, many.bottoms[0].out) == (3, 4, 2)
    assert two.num_classes == 2
    assert isinstance(two.top, Generator)


def test_every_defense_of_the_table_is_timed_and_its_other_rules_behind_its_default_one():
    forms = defense_cost.timed_defenses()
    assert [label for label, spec in forms if not spec.options] == list(defense_cost.TABLE)
    labels = [label for label, _ in forms]
    assert labels[labels.index("noise") + 1] == "noise gaussian"


@pytest.mark.slow
def test_convolutions_have_a_row_a_form(monkeypatch):
    monkeypatch.setattr(convolutions, "FORMS", (("matmul", "vmap"), ("xla", "vmap")))
    monkeypatch.setattr(convolutions, "WIDTHS", (2,))
    result, text = convolutions.measured(1, 2, TINY)
    forms = [(row["width"], row["form"]) for row in result["rows"]]
    assert forms == [(2, "matmul vmap"), (2, "xla vmap")]
    assert all(row["ratio"] is None and len(row["all"]) == 1 for row in result["rows"])
    assert [(int(row[0]), row[1]) for row in table_rows(text)] == forms


@pytest.mark.parametrize(("backend", "count"), [("cpu", 4 + 2), ("gpu", 4 + 4)])
def test_slow_forms_are_timed_at_the_first_width_and_ratios_are_to_pytorch(
    monkeypatch, backend, count
):
    monkeypatch.setattr(convolutions, "ours", lambda *form: (lambda: 6.0, 0))
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    rows = convolutions.measured(2, 2, reference=lambda width: lambda: 2.0)[0]["rows"]
    ours = [row for row in rows if row["form"] != "PyTorch"]
    assert len(ours) == count
    assert len(rows) == count + 2  # PyTorch's, at each width
    assert all(row["ratio"] == 3 and row["all"] == [6.0, 6.0] for row in ours)


def test_what_every_suite_says_of_the_machine():
    described = measuring.machine("grid")
    assert described["suite"] == "grid"
    assert len(described["devices"]) == jax.device_count()
    assert "jax" in described["versions"]


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
    held = ["float32", "xla vmap", "matmul vmap"]
    assert [row["name"] for row in result["memory"]] == 2 * held
    shown = [row[0].partition(" (")[0] for row in table_rows(text)]
    assert shown == [*names, "program", "---", *2 * held]
    assert result["gpu"] is False
    assert all(len(row["microseconds"]) == 2 for row in result["rows"])
    ours, *_, grouped, products = result["rows"]
    # GFLOP/s: operations over microseconds
    assert ours["useful_gflops"] == pytest.approx(ours["operations"] / ours["median"] / 1e3)
    best = max(row["share"] for row in (grouped, products))
    assert f"reaches {best:.0%} of the matrix rate" in text
    assert "times as long as grouped convolutions." in text
    # memory of what ran, by XLA too; of the aims' sizes counted alone
    small, large = result["memory"][:3], result["memory"][3:]
    assert [row["members"] for row in large] == [1024, 16, 16]
    for row in small:
        assert row["counted"] / row["bytes_a_member"] / row["members"] == pytest.approx(1, abs=0.6)
    assert not any(row["bytes_a_member"] or row["fitting"] for row in large)
    assert min(row["counted"] for row in large) > 1e9


def test_time_between_calls_precision_and_pytorch_are_ratios_of_turns():
    times = {
        "float32": (2.0, 4.0),
        gpu.QUEUED: (1.5, 2.0),
        "TF32": (1.0, 2.0),
        gpu.EAGER: (200, 800),
    }
    lines = [gpu.Measurement(name, each, 1.0, None) for name, each in times.items()]
    between = measuring.ratios(times[gpu.QUEUED], times["float32"])._asdict()
    changes = {"TF32": {"loss": 0.002, "accuracy": -0.01}}
    about = {
        "between_calls": between,
        "changes": changes,
        "accuracy": 0.5,
        "eager": "PyTorch is 2.0.",
    }
    texts = gpu._tabular_verdicts(lines, about)
    assert texts[0].startswith("Time between calls takes 37.5% (25.0% to 50.0%) of an epoch;")
    assert texts[1].startswith("TF32 takes 0.50 (0.50 to 0.50) of float32's time;")
    assert "differs by 0.002 at most" in texts[1]
    assert texts[2].startswith(
        "Eager PyTorch takes 150.0 (100.0 to 200.0) times as long as vfljax;"
    )
    texts = gpu._tabular_verdicts(lines[:3], about | {"eager": "It is absent."})
    assert texts[2] == "Eager PyTorch is left out: It is absent."


def test_members_that_fit_are_of_a_device_s_memory(monkeypatch):
    monkeypatch.setattr(machine, "offered", lambda: machine.Offered(False, memory=1e9))
    monkeypatch.setattr(gpu, "_counted", lambda sizes: {"float32": (8, 4000)})
    rows, text = gpu._memory(gpu.SMALL, {"float32": 1_000_000})
    assert [row["fitting"] for row in rows] == [int(machine.FITS * 1000), None]
    assert table_rows(text)[0][1:] == ["8", "4e-06", "0.008", "800"]


@pytest.mark.slow
def test_epochs_given_to_the_device_at_once_end_as_those_that_are_waited_for():
    spec = dataclasses.replace(gpu.SMALL.spec, epochs=3)
    case = measuring.TimedStep(spec, 4, 8, {}, 1)
    waited, queued = (np.asarray(case.train(q).record.loss) for q in (False, True))
    np.testing.assert_array_equal(waited, queued)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--suite=grids", "--out=x"], "--suite='grids' is unknown: choose"),
        (["--suite=grid"], "--out is needed"),
    ],
)
def test_a_suite_that_cannot_be_run_is_one_line(refused, arguments, message):
    assert message in refused("benchmark", *arguments)


def test_a_gpu_s_figures_are_written_where_there_is_one(launch, monkeypatch, tmp_path):
    done = launch("benchmark", "--suite=gpu", "--write")
    assert (done.returncode, "--write: JAX finds no GPU" in done.stderr) == (2, True)
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    monkeypatch.setattr(gpu, "measured", lambda repeats, eager: ({"turns": repeats}, "| a table |"))
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert launch("benchmark", "--suite=gpu", "--write").returncode == 0
    assert json.loads((tmp_path / "gpu.json").read_text())["turns"] == 9
    assert (tmp_path / "gpu.md").read_text() == "| a table |\n"
    monkeypatch.setattr(command, "RESULTS", tmp_path / "absent")
    assert "run it in a checkout" in launch("benchmark", "--suite=grid", "--write").stderr


def tabular(monkeypatch):
    """No tabular trials and no counting of memory: the sizes that are asked for."""
    asked, about = [], {"bytes_a_trial": 1, "changes": {}, "eager": ""}
    line = gpu.Measurement("float32", (1.0,), 1.0, None)
    about["between_calls"] = measuring.times([0.5])._asdict()
    monkeypatch.setattr(
        gpu, "_tabular", lambda sizes, *_: asked.append(sizes) or ([line], dict(about))
    )
    monkeypatch.setattr(gpu, "_counted", lambda sizes: {})
    return asked


def test_what_does_not_fit_is_a_row_that_says_so(monkeypatch):
    def ours(implementation, mode, *sizes):
        if (implementation, mode) == ("matmul", "vmap"):
            raise NO_MEMORY
        return lambda: 5.0, 100

    monkeypatch.setattr(convolutions, "ours", ours)
    tabular(monkeypatch)
    result, text = gpu.measured(2, torch_of, gpu.SMALL)
    cells = [row[:2] for row in table_rows(text)]
    assert ["matmul vmap (matrix products)", "exhausts the memory"] in cells
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
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    asked = tabular(monkeypatch)
    monkeypatch.setattr(gpu, "_networks", lambda sizes, turns: ([], {}))
    text = gpu.measured(9, torch_of)[1]
    assert (asked[0].trials, asked[0].networks) == (1024, 16)
    assert dataclasses.replace(asked[0].spec, epochs=2) == gpu.GRID
    assert not text.startswith("This is no GPU")
