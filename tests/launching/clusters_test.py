"""Real processes and a real two-node Ray cluster give the inline table, whatever of them is killed with -9.

These tests start a dozen processes with JAX in each: about two minutes on two cores.

    python -m pytest -m slow tests/launching/clusters_test.py
"""

import contextlib
import importlib
import os
import pathlib
import signal
import subprocess
import sys
import time

import filelock
import pytest

from tests.conftest import ROOT
from tests.launching.scheduler_test import tables

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("real_learners")]
CONFIG = """
from vfljax.config import ordered

def get_config():
    return ordered({
        "name": "elsewhere",
        "seeds": 3,
        "data": {"name": "breast_cancer", "train": 384, "validation": 85, "test": 100},
        "parties": {"passive": 1, "label_features": True},
        "model": {"hidden": (16,), "cut": 4, "top": "mlp", "top_hidden": (8,)},
        "training": {"epochs": 40, "batch_size": 32, "learning_rate": 0.05, "record": (-1,)},
        "execution": {"shard_seconds": 0.05},
        "grid": {
            "undefended": {},
            "noise": {"noise": {"scale": (1e-4, 1e-3, 1e-2)}},
            "label_dp": {"label_dp": {"epsilon": (1.0, 3.0)}},
        },
        "attacks": {"norm": {}, "direct": {}, "passive": {"steps": 50}},
    })
"""


@pytest.fixture(scope="module")
def config(tmp_path_factory):
    path = tmp_path_factory.mktemp("config") / "elsewhere.py"
    path.write_text(CONFIG)
    return path


def begin(config: pathlib.Path, workdir: pathlib.Path, *flags: str, **env: str):
    """The sweep in a process group of its own."""
    return subprocess.Popen(
        [
            sys.executable,
            "-m",
            "launch.sweep",
            f"--config={config}",
            f"--workdir={workdir}",
            *flags,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(process) -> str:
    """What it said on stderr, of a sweep that ends well."""
    _, err = process.communicate()
    assert process.returncode == 0, err[-2000:]
    return err


def first_shard(process, workdir: pathlib.Path) -> None:
    """Wait until a shard is finished and others are not."""
    while not any(workdir.glob("shards/[0-9]*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


@pytest.fixture(scope="module")
def inline(config, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("inline") / "w"
    finish(begin(config, workdir))
    return tables(workdir)


def workers(workdir: pathlib.Path) -> list[int]:
    """The processes that do jobs."""
    return [int(path.name.rpartition("-")[2]) for path in (workdir / ".jobs").glob("*")]


def test_two_processes_that_are_killed_give_the_inline_table(config, inline, tmp_path):
    workdir = tmp_path / "w"
    process = begin(config, workdir, "--launcher=local", "--jobs=2")
    first_shard(process, workdir)
    for pid in workers(workdir):  # one may be done
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    err = finish(process)
    assert "is tried again" in err
    assert tables(workdir) == inline


def test_the_next_command_waits_for_the_jobs_of_one_that_was_killed(config, inline, tmp_path):
    workdir = tmp_path / "w"
    process = begin(config, workdir, "--launcher=local", "--jobs=2")
    first_shard(process, workdir)
    process.kill()  # the leader alone
    process.communicate()
    assert workers(workdir)
    finish(begin(config, workdir))  # which may find them at work
    assert tables(workdir) == inline


def test_an_interrupt_stops_the_processes(config, inline, tmp_path):
    workdir = tmp_path / "w"
    process = begin(config, workdir, "--launcher=local", "--jobs=2")
    first_shard(process, workdir)
    assert workers(workdir)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 143
    for path in (workdir / ".jobs").glob("*"):  # a process's lock goes with it
        with filelock.FileLock(path).acquire(timeout=5):
            pass
    finish(begin(config, workdir))
    assert tables(workdir) == inline


@pytest.mark.parametrize("killed", [False, True])
def test_two_nodes_of_ray_give_the_inline_table_also_where_one_is_killed(
    config, inline, tmp_path, monkeypatch, killed
):
    pytest.importorskip("ray", reason="Ray is the extra 'ray'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = importlib.import_module("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1}
    )
    try:
        node, workdir = cluster.add_node(num_cpus=1), tmp_path / "w"
        process = begin(config, workdir, "--launcher=ray", RAY_ADDRESS=cluster.address)
        if killed:
            first_shard(process, workdir)
            cluster.remove_node(node, allow_graceful=False)
        finish(process)
    finally:
        cluster.shutdown()
    assert tables(workdir) == inline


def test_a_preempted_job_is_requeued_and_goes_on(config, inline, tmp_path):
    workdir = tmp_path / "w"
    process = begin(config, workdir, "--launcher=local", "--jobs=1")
    first_shard(process, workdir)
    (pid,) = workers(workdir)
    os.kill(pid, signal.SIGUSR2)  # as SLURM says it, by --signal
    err = finish(process)
    assert "is tried again" not in err
    assert "Requeued job" in "".join(p.read_text() for p in workdir.glob("launcher/*/0/*log.*"))
    assert tables(workdir) == inline
