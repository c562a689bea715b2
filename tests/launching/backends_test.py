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

from tests.refusals import refused
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


def test_engines_that_cannot_be_had_are_refused(monkeypatch):
    def opened(name, **options):
        with launching.opened(name, 1, options):
            pass

    for name in ("local", "slurm"):
        with refused("nodes=2: a job is one process"):
            opened(name, nodes=2)
        opened(name, nodes=1)
    with refused("did you mean 'local'?"):
        opened("loacl")
    with monkeypatch.context() as patched, refused("divides the cores of a machine"):
        patched.setattr(jax, "default_backend", lambda: "gpu")
        opened("local")
    for name, package, extra in (("slurm", "submitit", "launch"), ("ray", "ray", "ray")):
        monkeypatch.setitem(sys.modules, package, None)
        with refused(f"--launcher={name} needs {package}: pip install 'vfljax[{extra}]'."):
            opened(name)


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


@pytest.mark.parametrize(
    ("sbatch", "options", "line"),
    [
        (SBATCH, {"partitoin": "gpu"}, "partitoin"),
        (REFUSES, {}, "--launcher=slurm: sbatch: error: Batch job submission failed: Invalid"),
        ("#!/bin/sh\necho 17\n", {}, "--launcher=slurm: Could not make sense of sbatch output"),
        ("", {}, "--launcher=slurm: this machine has no srun"),
    ],
)
def test_what_slurm_refuses_is_one_line(cluster, tmp_path, monkeypatch, sbatch, options, line):
    if sbatch:
        cluster(sbatch)
    else:
        monkeypatch.setenv("PATH", str(tmp_path))
    with launching.opened("slurm", 1, options) as engine, refused(line):
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
