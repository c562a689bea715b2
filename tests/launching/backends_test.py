"""Engines are refused in one line where they cannot be had, and workers reach them as paths and names."""

import os
import pathlib
import pickletools
import signal
import stat
import sys
import time

import jax
import pytest

from vfljax import launching
from vfljax.errors import UserError
from vfljax.launching import worker

SBATCH = """#!/bin/sh
cp "$1" "$(dirname "$0")/script"
echo "Submitted batch job 17"
"""
REFUSES = """#!/bin/sh
echo "sbatch: error: invalid partition specified: gpuu" >&2
echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2
exit 1
"""


def worker_in(folder: pathlib.Path) -> worker.Worker:
    return worker.Worker(
        workdir=str(folder / "sweep"),
        sweep="a" * 8,
        assignment=str(folder / "assignment.json"),
        plugins=("a.module",),
    )


def refused(name: str, jobs: int = 0, **options) -> str:
    with pytest.raises(UserError) as error, launching.opened(name, jobs, options):
        pass
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """``cluster(sbatch)``: a machine with srun and this sbatch, which leaves the script it was given."""

    def install(sbatch: str) -> pathlib.Path:
        for name, text in (("srun", "#!/bin/sh\n"), ("sbatch", sbatch)):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o700)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return tmp_path / "script"

    return install


def test_an_unknown_launcher_is_refused():
    assert "did you mean 'local'?" in refused("loacl")


@pytest.mark.parametrize(("name", "package"), [("slurm", "submitit"), ("ray", "ray")])
def test_a_launcher_whose_package_is_missing_says_how_to_get_it(name, package, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    extra = "ray" if package == "ray" else "launch"
    assert refused(name) == f"--launcher={name} needs {package}: pip install 'vfljax[{extra}]'."


def test_local_processes_are_for_cores(monkeypatch):
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert "divides the cores of a machine without accelerators" in refused("local")


def test_processes_of_a_background_job_can_be_canceled():
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell's & does
    try:
        with launching.opened("local", 1, {}):
            os.kill(os.getpid(), signal.SIGINT)  # this process still ignores it
            # and its children, which inherit no handler, do not
            assert signal.getsignal(signal.SIGINT) not in (
                signal.SIG_IGN,
                signal.default_int_handler,
            )
    finally:
        signal.signal(signal.SIGINT, before)


def test_slurm_is_refused_where_there_is_none(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        launching.opened("slurm", 1, {}) as engine,
        pytest.raises(UserError, match="^--launcher=slurm: this machine has no srun"),
    ):
        engine.start(worker_in(tmp_path), 1, tmp_path / "jobs")


def test_slurm_gets_an_array_that_is_requeued(cluster, tmp_path):
    script = cluster(SBATCH)
    options = {"slurm_partition": "gpu", "timeout_min": 90, "gpus_per_node": 1, "mem_gb": 32}
    with launching.opened("slurm", 2, options) as engine:
        handles = engine.start(worker_in(tmp_path), 2, tmp_path / "jobs")
    assert len(handles) == 2
    lines = {line.strip() for line in script.read_text().splitlines()}
    assert {
        "#SBATCH --array=0-1%2",
        "#SBATCH --partition=gpu",
        "#SBATCH --time=90",
        "#SBATCH --gpus-per-node=1",
        "#SBATCH --mem=32GB",
        "#SBATCH --job-name=vfljax",
        "#SBATCH --signal=USR2@90",
    } <= lines
    assert any(line.startswith("srun") and "submitit.core._submit" in line for line in lines)
    # files of jobs are for this user alone, and hold paths and names
    assert stat.S_IMODE((tmp_path / "jobs").stat().st_mode) == 0o700
    operations = pickletools.genops(next((tmp_path / "jobs").glob("*.pkl")).read_bytes())
    strings = {argument for operation, argument, _ in operations if isinstance(argument, str)}
    one = worker_in(tmp_path)
    ours = {one.workdir, one.sweep, one.assignment, *one.plugins}
    assert ours <= strings
    assert not [s for s in strings - ours if "/" in s]  # what is left names functions


@pytest.mark.parametrize(
    ("sbatch", "line"),
    [
        (REFUSES, "sbatch: error: Batch job submission failed: Invalid partition name specified"),
        ("#!/bin/sh\necho 17\n", "Could not make sense of sbatch output"),
    ],
)
def test_what_slurm_refuses_or_says_that_is_not_understood_is_one_line(
    cluster, tmp_path, sbatch, line
):
    cluster(sbatch)
    with (
        launching.opened("slurm", 1, {"slurm_partition": "gpuu"}) as engine,
        pytest.raises(UserError, match=f"^--launcher=slurm: {line}") as error,
    ):
        engine.start(worker_in(tmp_path), 1, tmp_path / "jobs")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "option"), [("local", "nodes"), ("slurm", "slurm_ntasks_per_node")]
)
def test_a_job_is_one_process(name, option):
    assert f"{option}=2: a job is one process" in refused(name, **{option: 2})
    with launching.opened(name, 1, {option: 1}):
        pass


def test_an_unknown_option_is_refused(cluster, tmp_path):
    cluster(SBATCH)
    with (
        launching.opened("slurm", 1, {"partitoin": "gpu"}) as engine,
        pytest.raises(UserError, match=r"--launcher_options: .*partitoin"),
    ):
        engine.start(worker_in(tmp_path), 1, tmp_path / "jobs")


def test_a_requeued_worker_is_the_same_worker(tmp_path):
    assert worker_in(tmp_path).checkpoint().function == worker_in(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "ray"])
def test_a_process_elsewhere_reports_what_it_cannot_see(name, tmp_path):
    pytest.importorskip({"local": "submitit"}.get(name, name))
    one = worker_in(tmp_path)
    with launching.opened(name, 1, {}) as engine:
        (handle,) = engine.start(one, 1, tmp_path / "jobs")
        while not handle.ended():
            time.sleep(0.05)
        with pytest.raises(UserError, match=f"{one.workdir} cannot be seen from"):
            handle.why()


def test_a_job_that_slurm_has_taken_away_has_ended(cluster, tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit")
    cluster(SBATCH)
    monkeypatch.setattr(submitit.SlurmJob, "done", lambda self, **_: False)
    monkeypatch.setattr(submitit.SlurmJob, "state", "RUNNING")
    with launching.opened("slurm", 1, {}) as engine:
        (handle,) = engine.start(worker_in(tmp_path), 1, tmp_path / "jobs")
    assert not handle.ended()
    for state in ("PREEMPTED", "TIMEOUT"):
        monkeypatch.setattr(submitit.SlurmJob, "state", state)
        assert handle.ended()
        assert handle.why().startswith(f"{state} (log: ")
