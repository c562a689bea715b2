"""Processes of this machine and a Ray cluster of two nodes give the inline tables, whatever of them is killed.

The sweep has a defense and an attack of a plugin. These tests start a dozen processes with JAX in each.

    python -m pytest -m slow tests/launching/clusters_test.py
"""

import importlib
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import pytest

from tests.conftest import ROOT
from tests.kills import PROGRAM, bits, figures

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("real_learners")]
OWN = pathlib.Path(__file__).parents[1] / "plugins" / "own.py"
CONFIG = {
    "name": "elsewhere",
    "seeds": 2,
    "data": {"name": "breast_cancer"},
    "model": {"hidden": (4,)},
    "training": {"epochs": 200, "batch_size": 16},
    "parties": {"passive": 1, "label_features": True},
    "execution": {"shard_seconds": 0.001},
    "grid": {
        "undefended": {},
        "swapped": {"mine:shuffle": {"rate": (0.1, 0.4, 0.7), "rows": "next"}},
    },
    "attacks": {"norm": {}, "mine:guess": {"sign": ("plus", "minus")}, "passive": {"steps": 50}},
}


@pytest.fixture(scope="module")
def flags(tmp_path_factory):
    folder = tmp_path_factory.mktemp("config")
    (folder / "elsewhere.py").write_text(PROGRAM.format(config=CONFIG))
    shutil.copy(OWN, folder / "mine.py")
    return [f"--config={folder / 'elsewhere.py'}", f"--plugin={folder / 'mine.py'}"]


def begin(workdir, flags, **env):
    """Starts the sweep."""
    return subprocess.Popen(
        [sys.executable, "-m", "launch.sweep", f"--workdir={workdir}", *flags],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), **env},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def said(process, status=0):
    """Returns what a sweep said on stderr."""
    _, err = process.communicate()
    assert process.returncode == status, err[-3000:]
    return err


def first_shard(process, workdir):
    """Waits until a shard is finished."""
    while not any(workdir.glob("shards/[0-9]*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)


def tables(workdir):
    return bits(figures(workdir))


@pytest.fixture(scope="module")
def inline(flags, tmp_path_factory):
    workdir = tmp_path_factory.mktemp("inline") / "w"
    said(begin(workdir, flags))
    return tables(workdir)


def workers(workdir):
    """Returns the processes that make units of a sweep for a command."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "submitit.core._submit" in words and str(workdir) in words:
            found.append(int(path.parent.name))
    return found


def test_of_two_processes_one_is_killed(flags, inline, tmp_path):
    process = begin(tmp_path / "w", [*flags, "--launcher=local", "--jobs=2"])
    first_shard(process, tmp_path / "w")
    os.kill(workers(tmp_path / "w")[0], signal.SIGKILL)
    assert "a worker ended: " in said(process)
    assert tables(tmp_path / "w") == inline
    assert workers(tmp_path / "w") == []


def test_a_worker_that_is_preempted_is_requeued_and_goes_on(flags, inline, tmp_path):
    process = begin(tmp_path / "w", [*flags, "--launcher=local", "--jobs=1"])
    first_shard(process, tmp_path / "w")
    (worker,) = workers(tmp_path / "w")
    os.kill(worker, signal.SIGUSR2)  # as SLURM does before it takes a job away
    assert "a worker ended" not in said(process)
    logs = (tmp_path / "w").glob("launcher/*/*/*log.*")
    assert "Requeued job" in "".join(path.read_text() for path in logs)
    assert tables(tmp_path / "w") == inline


def test_of_two_nodes_of_ray_one_is_killed(flags, inline, tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="Ray is the extra 'ray'")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    cluster = importlib.import_module("ray.cluster_utils").Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1}
    )
    try:
        node = cluster.add_node(num_cpus=1)
        process = begin(tmp_path / "w", [*flags, "--launcher=ray"], RAY_ADDRESS=cluster.address)
        first_shard(process, tmp_path / "w")
        cluster.remove_node(node, allow_graceful=False)
        said(process)
    finally:
        cluster.shutdown()
    assert tables(tmp_path / "w") == inline
