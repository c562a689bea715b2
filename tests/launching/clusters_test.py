"""Real processes and a real two-node Ray cluster give the inline table, whatever of them is killed with -9.

These tests start a dozen processes with JAX in each: about two minutes on two cores.

    python -m pytest -m slow tests/launching/clusters_test.py
"""

import contextlib
import importlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT
from tests.launching.work_test import tables
from vfljax import store

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
    """Wait until a shard is finished and others are being trained."""
    while not any(workdir.glob("shards/[0-9]*")) or not makers(workdir):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)


def makers(workdir: pathlib.Path) -> set[int]:
    """The processes that are making a unit."""
    found = set()
    for path in (workdir / "failures").glob("*/*.json"):
        with contextlib.suppress(OSError, ValueError):  # the unit is finished
            found.add(json.loads(path.read_text())["process"])
    return found


def has_ended(pid: int) -> bool:
    """Whether a process is gone, or waits for its parent to notice."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.fixture(scope="module")
def inline(config, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("inline") / "w"
    finish(begin(config, workdir))
    return tables(workdir)


def test_two_processes_that_are_killed_give_the_inline_table(config, inline, tmp_path):
    workdir = tmp_path / "w"
    process = begin(config, workdir, "--launcher=local", "--jobs=2")
    first_shard(process, workdir)
    for pid in makers(workdir):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    err = finish(process)
    assert "a worker ended: " in err
    assert tables(workdir) == inline


def test_three_copies_started_by_hand_of_which_one_is_killed_give_the_inline_table(
    config, inline, tmp_path
):
    workdir = tmp_path / "w"
    copies = [begin(config, workdir) for _ in range(3)]
    first_shard(copies[0], workdir)
    copies[0].kill()
    copies[0].communicate()
    for copy in copies[1:]:
        finish(copy)
    assert tables(workdir) == inline
    assert store.load(workdir).unfinished == ()


def test_the_next_command_works_beside_the_workers_of_one_that_was_killed(config, inline, tmp_path):
    workdir = tmp_path / "w"
    process = begin(config, workdir, "--launcher=local", "--jobs=2")
    first_shard(process, workdir)
    process.kill()  # it alone
    process.communicate()
    finish(begin(config, workdir))  # which may find them at work
    assert tables(workdir) == inline


def test_an_interrupt_stops_the_processes(config, inline, tmp_path):
    workdir = tmp_path / "w"
    process = begin(config, workdir, "--launcher=local", "--jobs=2")
    first_shard(process, workdir)
    pids = makers(workdir)
    process.send_signal(signal.SIGTERM)
    process.communicate()
    assert process.returncode == 143
    time.sleep(1.0)
    assert all(map(has_ended, pids))
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
    (pid,) = makers(workdir)
    os.kill(pid, signal.SIGUSR2)  # as SLURM says it, by --signal
    err = finish(process)
    assert "a worker ended: " not in err
    assert "Requeued job" in "".join(p.read_text() for p in workdir.glob("launcher/*/*/*log.*"))
    assert tables(workdir) == inline
