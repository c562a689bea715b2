"""A stored sweep in MLflow, Weights & Biases and TensorBoard, read back from their files."""

import json
import pathlib
import struct
import sys

import pytest

import vfljax
from tests.refusals import refused
from tests.stored_sweep import FIXTURE
from vfljax.library import logs
from vfljax.report.assessment import assess_sweep

NOISE = "noise scale=0.01, with model splitting"
pytestmark = pytest.mark.filterwarnings("ignore")  # other packages warn of their own


@pytest.fixture(scope="module")
def sweep():
    """The stored sweep, as if it was finished. It is not written to."""
    return vfljax.load(FIXTURE)._replace(unfinished=())


@pytest.fixture(scope="module")
def runs(sweep):
    return logs.logged_runs(sweep)


@pytest.fixture
def few(runs, monkeypatch):
    """One configuration with its seeds, and another without."""
    chosen = [run for run in runs if run.group == NOISE or run.name == run.group]
    monkeypatch.setattr(logs, "logged_runs", lambda sweep: chosen)
    return chosen


@pytest.fixture
def changed(few, monkeypatch):
    """The same after another attack read more on one of the seeds."""

    def change():
        place = next(i for i, run in enumerate(few) if run.curves)
        leaks = few[place].metrics | {"leak of probe known 20": 0.99}
        again = [*few[:place], few[place]._replace(metrics=leaks), *few[place + 1 :]]
        monkeypatch.setattr(logs, "logged_runs", lambda sweep: again)
        return again[place]

    return change


def test_each_configuration_has_its_figures_and_its_seeds(sweep, runs):
    heads = {run.name: run for run in runs if run.name == run.group}
    assessed = assess_sweep(FIXTURE)
    assert len(heads) == len(assessed.assessments)
    assert len(runs) - len(heads) == sweep.results.num_rows
    assert len({run.key for run in runs}) == len(runs) == len({run.digest for run in runs})
    (a,) = [a for a in assessed.attacked if (a.method, a.federation) == ("noise", "split")]
    head = heads[NOISE]
    assert head.params == {"method": "noise", "federation": "split", "noise.scale": 0.01}
    assert head.metrics["leak"] == a.leak.mean
    assert head.tags["strongest"] == a.strongest.name
    assert head.tags["verdict"] == str(a.verdict or "")
    seeds = {run.key: run for run in runs if run.group == NOISE and run is not head}
    stored = [r for r in sweep.results.to_pylist() if f"trial {r['trial']}" in seeds]
    assert {(row["method"], row["seed"]) for row in stored} == {("noise", 0), ("noise", 1)}
    attacks = sweep.attacks.to_pylist()
    for row in stored:
        run = seeds[f"trial {row['trial']}"]
        assert run.metrics["test_accuracy"] == row["test_accuracy"]
        assert run.curves == {name: row[name] for name in ("loss", "train_accuracy")}
        assert not {"noise.scale", "learning_rate", "seconds"} & run.metrics.keys()
        norms = [x["leak"] for x in attacks if (x["trial"], x["label"]) == (row["trial"], "norm")]
        assert [run.metrics[name] for name in run.metrics if name == "leak of norm"] == norms


def test_an_unfinished_sweep_is_refused():
    with refused("is not finished"):
        logs.logged_runs(vfljax.load(FIXTURE))


@pytest.mark.slow  # MLflow makes a database
def test_mlflow_holds_parents_and_seeds_once(sweep, few, changed, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    mlflow = pytest.importorskip("mlflow", reason="the extra 'mlflow' is not installed")
    uri = f"sqlite:///{tmp_path / 'mlflow.db'}"
    client = mlflow.MlflowClient(uri)
    parents = sweep.to_mlflow(uri)

    def stored():
        found = client.get_experiment_by_name("stored_sweep")
        return {run.info.run_id: run for run in client.search_runs([found.experiment_id])}

    runs = stored()
    assert len(runs) == len(few)
    assert len(parents) == len({run.group for run in few})
    (head,) = [run for run in runs.values() if run.info.run_name == NOISE]
    assert head.data.params == {"method": "noise", "federation": "split", "noise.scale": "0.01"}
    assert head.info.run_id in parents
    nested = [
        run for run in runs.values() if run.data.tags.get("mlflow.parentRunId") == head.info.run_id
    ]
    assert {run.data.params["seed"] for run in nested} == {"0", "1"}
    assert {run.info.status for run in runs.values()} == {"FINISHED"}
    for run in nested:
        (logged,) = [one for one in few if one.key == run.data.tags["vfljax.key"]]
        assert run.data.metrics.items() >= logged.metrics.items()
        history = client.get_metric_history(run.info.run_id, "loss")
        assert [(m.step, m.value) for m in history] == [*enumerate(logged.curves["loss"])]
    before = {number: run.to_dictionary() for number, run in runs.items()}
    assert sweep.to_mlflow(uri) == parents
    assert {number: run.to_dictionary() for number, run in stored().items()} == before
    new = changed()
    assert sweep.to_mlflow(uri) == parents
    (run,) = [run for run in stored().values() if run.data.tags["vfljax.key"] == new.key]
    assert len(stored()) == len(few)
    assert run.data.metrics["leak of probe known 20"] == 0.99
    with refused("MLflow refuses: "):
        sweep.to_mlflow("nonsense://x")


def wandb_records(path: pathlib.Path):
    """The records of a file of W&B: blocks of LevelDB's log after seven bytes."""
    wandb_internal_pb2 = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    data, place, parts = path.read_bytes(), 7, b""
    while place + 7 <= len(data):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        _, length, kind = struct.unpack_from("<IHB", data, place)
        parts += data[place + 7 : place + 7 + length]
        place += 7 + length
        if kind in (1, 4):  # whole, or the last part
            record = wandb_internal_pb2.Record()
            record.ParseFromString(parts)
            parts = b""
            yield record


@pytest.mark.slow  # W&B starts a process
def test_wandb_holds_groups_of_seeds_once(sweep, few, changed, tmp_path):
    pytest.importorskip("wandb", reason="the extra 'wandb' is not installed")
    folders = sweep.to_wandb("mine", tmp_path)
    assert len(folders) == len(few) == len({*folders})
    groups = {}
    for folder, logged in zip(folders, few, strict=True):
        (file,) = folder.glob("*.wandb")
        records = [*wandb_records(file)]
        (run,) = [r.run for r in records if r.WhichOneof("record_type") == "run"]
        assert (run.project, run.run_group, run.display_name) == ("mine", logged.group, logged.name)
        config = {u.key: json.loads(u.value_json) for u in run.config.update if u.key[0] != "_"}
        assert config == logged.params
        updates = [u for r in records for u in r.summary.update if u.key]
        summary = {u.key: json.loads(u.value_json) for u in updates}
        assert summary.items() >= {**logged.metrics, **logged.tags}.items()
        history = [
            {i.nested_key[0]: json.loads(i.value_json) for i in r.history.item}
            for r in records
            if r.WhichOneof("record_type") == "history"
        ]
        for name, curve in logged.curves.items():
            assert [(h["_step"], h[name]) for h in history] == [*enumerate(curve)]
        groups.setdefault(run.run_group, []).append(run.run_id)
    assert len(groups[NOISE]) == 5  # with two seeds of each kind of parties
    assert sweep.to_wandb("mine", tmp_path) == folders
    assert len([*(tmp_path / "wandb").glob("offline-run-*")]) == len(few)
    new = changed()
    again = sweep.to_wandb("mine", tmp_path)
    (renewed,) = set(again) - set(folders)
    before = folders[few.index(next(run for run in few if run.key == new.key))]
    assert renewed.name.split("-")[-1] == before.name.split("-")[-1]  # the same run to W&B


def test_tensorboard_has_the_curves_of_each_seed_once(sweep, few, tmp_path):
    pytest.importorskip("tensorboardX", reason="the extra 'tensorboard' is not installed")
    event_pb2 = pytest.importorskip("tensorboardX.proto.event_pb2")
    assert sweep.to_tensorboard(tmp_path) == tmp_path
    files = {file.parent.name: file for file in tmp_path.rglob("events*")}
    names = {f"{kind} seed {seed}" for kind in ("split", "malicious") for seed in (0, 1)}
    assert {*files} == names == {run.name for run in few if run.curves}
    for run in [run for run in few if run.curves]:
        file = files[run.name]
        assert file.parent.parent.name == NOISE
        data, place, curves = file.read_bytes(), 0, {}
        while place < len(data):  # the length, its checksum, the event, its checksum
            (length,) = struct.unpack_from("<Q", data, place)
            event = event_pb2.Event()
            event.ParseFromString(data[place + 12 : place + 12 + length])
            place += length + 16
            for value in event.summary.value:
                curves.setdefault(value.tag, []).append((event.step, value.simple_value))
        for name, curve in run.curves.items():
            assert curves[name] == [*enumerate(curve)]
    before = {file: file.stat().st_mtime_ns for file in files.values()}
    sweep.to_tensorboard(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("events*")} == before


def test_without_the_extra_a_line_says_what_to_install(sweep, monkeypatch):
    monkeypatch.setitem(sys.modules, "mlflow", None)
    with refused("to_mlflow needs mlflow: pip install 'vfljax[mlflow]'"):
        sweep.to_mlflow()
