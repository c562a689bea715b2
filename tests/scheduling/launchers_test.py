"""Launchers are refused in one line where they cannot be had, and copies end a sweep as one process does."""

import contextlib
import functools
import os
import pickletools
import signal
import stat
import sys
import threading
import time

import jax
import pytest

from tests.refusals import refused
from tests.sweeps import TINY, comparable, drop_units, silent
from vfljax import store
from vfljax.api import sweep as api
from vfljax.scheduling import launchers
from vfljax.scheduling.launchers import Copy, Died, Handle
from vfljax.scheduling.work import Outcome
from vfljax.sweep.grid import parse

SBATCH = """#!/bin/sh
cp "$1" "$(dirname "$0")/script"
echo "Submitted batch job 17"
"""
REFUSES = """#!/bin/sh
echo "sbatch: error: invalid partition specified: gpuu" >&2
echo "sbatch: error: Batch job submission failed: Invalid partition name specified" >&2
exit 1
"""


def elsewhere(*outcomes):
    """Stands for a call of another process."""
    return [Outcome(given_up) for given_up in outcomes]


def copy_in(folder, *outcomes) -> Copy:
    return Copy(
        functools.partial(elsewhere, *outcomes), str(folder / "sweep"), "a" * 8, ("a.module",)
    )


def handle(result=None, died="", ended=lambda: True, cancel=lambda: None) -> Handle:
    def of():
        if died:
            raise Died(died)
        return {} if result is None else result

    return Handle(ended, of, cancel)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch):
    monkeypatch.setattr(launchers, "POLL", 0.001)


def test_a_copy_uses_the_plugins_before_it_makes_the_call(tmp_path, monkeypatch):
    made = []
    (tmp_path / "sweep").mkdir()
    monkeypatch.setattr(store, "sweep_id", lambda folder: "a" * 8)
    monkeypatch.setattr(launchers, "_set_up", lambda folder: None)
    monkeypatch.setattr(launchers.plugins, "use", made.append)
    copy = copy_in(tmp_path)._replace(
        call=lambda: made.append("call") or (), plugins=("a.py", "b.module")
    )
    assert copy() == {}
    assert made == ["a.py", "b.module", "call"]


@pytest.fixture
def cluster(tmp_path, monkeypatch):
    """``cluster(sbatch)``: a machine with srun and this sbatch, which leaves the script it was given."""

    def install(sbatch):
        for name, text in (("srun", "#!/bin/sh\n"), ("sbatch", sbatch)):
            (tmp_path / name).write_text(text)
            (tmp_path / name).chmod(0o700)
        monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
        return tmp_path / "script"

    return install


def started(name, folder, jobs=1, **options):
    start = launchers.opened(name, jobs, options)
    assert start is not None
    return start(copy_in(folder), folder)


def test_launchers_that_cannot_be_had_are_refused(tmp_path, monkeypatch):
    for name in ("local", "slurm"):
        with refused("nodes=2: a copy is one process"):
            launchers.opened(name, 1, {"nodes": 2})
        launchers.opened(name, 1, {"nodes": 1})
    with refused("did you mean 'local'?"):
        launchers.opened("loacl", 0, {})
    with refused("are for --launcher=local"):
        launchers.opened("inline", 2, {})
    assert launchers.opened("inline", 0, {}) is None
    with monkeypatch.context() as patched, refused("divides the cores of a machine"):
        patched.setattr(jax, "default_backend", lambda: "gpu")
        with started("local", tmp_path):
            pass
    for name, package, extra in (("slurm", "submitit", "launch"), ("ray", "ray", "ray")):
        monkeypatch.setitem(sys.modules, package, None)
        line = f"--launcher={name} needs {package}: pip install 'vfljax[{extra}]'."
        with refused(line), started(name, tmp_path):
            pass


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
    with refused(line), started("slurm", tmp_path, **options):
        pass


def test_slurm_gets_an_array_that_is_requeued(cluster, tmp_path):
    script, jobs = cluster(SBATCH), tmp_path / "jobs"
    options = {"slurm_partition": "gpu", "timeout_min": 90, "gpus_per_node": 1, "mem_gb": 32}
    start = launchers.opened("slurm", 2, options)
    assert start is not None
    copy = copy_in(tmp_path)
    with start(copy, jobs) as handles:
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
    operations = pickletools.genops(next(jobs.glob("*.pkl")).read_bytes())
    strings = {argument for operation, argument, _ in operations if isinstance(argument, str)}
    ours = {copy.workdir, copy.sweep, *copy.plugins}
    assert ours <= strings
    assert not [s for s in strings - ours if "/" in s]  # what is left names functions
    assert copy.checkpoint().function == copy


def test_a_job_that_slurm_has_taken_away_has_died(cluster, tmp_path, monkeypatch):
    submitit = pytest.importorskip("submitit")
    cluster(SBATCH)
    monkeypatch.setattr(submitit.SlurmJob, "done", lambda self, **_: False)
    monkeypatch.setattr(submitit.SlurmJob, "state", "RUNNING")
    with started("slurm", tmp_path / "jobs") as (of,):
        assert not of.ended()
        for state in ("PREEMPTED", "TIMEOUT"):
            monkeypatch.setattr(submitit.SlurmJob, "state", state)
            assert of.ended()
            with pytest.raises(Died, match=f"{state}, its log is "):
                of.result()


def test_processes_of_a_background_job_can_be_canceled(tmp_path, monkeypatch):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell's & does
    monkeypatch.setattr(launchers, "_submitted", lambda *of: [])
    try:
        with started("local", tmp_path):
            os.kill(os.getpid(), signal.SIGINT)  # this process still ignores it
            # and its children, which inherit no handler, do not
            assert signal.getsignal(signal.SIGINT) not in (
                signal.SIG_IGN,
                signal.default_int_handler,
            )
    finally:
        signal.signal(signal.SIGINT, before)


def waited(folder, *handles, say=silent):
    (folder / "sweep").mkdir()

    def start(copy, folder):
        del copy, folder
        return contextlib.nullcontext([*handles])

    return launchers.launched(start, copy_in(folder), say)


def test_others_make_what_a_dead_copy_left_and_what_is_given_up_is_told(tmp_path):
    said = []
    given_up = {"shards/00000": "no"}
    outcome = waited(tmp_path, handle(died="killed"), handle(given_up), say=said.append)
    assert outcome.given_up == given_up
    assert said == ["a copy died: killed"]
    for path in (tmp_path / "sweep" / "launcher", *(tmp_path / "sweep" / "launcher").iterdir()):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700  # for this user alone


def test_where_all_copies_die_the_last_reason_is_the_error(tmp_path):
    with refused("all copies died (out of memory); their logs are in", "the same command goes on"):
        waited(tmp_path, *[handle(died="out of memory")] * 2)


def test_an_error_of_the_user_ends_the_other_copies_too_and_waits_for_them(tmp_path):
    canceled, ended = [], threading.Event()

    def cancel():
        canceled.append(1)
        ended.set()

    working = handle(ended=ended.is_set, cancel=cancel)
    with refused("the disk is full"):
        waited(tmp_path, working, handle("the disk is full"))
    assert canceled == [1]
    assert ended.is_set()


def test_copies_give_the_tables_of_one_process(tiny_sweep, workdir, monkeypatch):
    """Two copies that follow each other in this process, the second of which finds nothing left."""
    drop_units(workdir, "direct/most_negative")
    made = []

    def here(copy, folder):
        del folder
        made.extend([copy(), copy()])
        return contextlib.nullcontext([handle(result) for result in made])

    monkeypatch.setattr(launchers, "_set_up", lambda workdir: None)  # JAX has started
    monkeypatch.setattr(launchers, "opened", lambda *of: here)
    api.run_sweep(parse(TINY), workdir, launcher="local", say=silent)
    assert made == [{}, {}]
    assert comparable(store.load(workdir).attacks) == comparable(store.load(tiny_sweep).attacks)


def test_a_folder_that_a_copy_cannot_see_is_named(tmp_path):
    line = copy_in(tmp_path)()
    assert f"{tmp_path / 'sweep'} cannot be seen from " in line
    assert "choose a --workdir on a file system" in line


@pytest.mark.slow
@pytest.mark.parametrize("name", ["local", "ray"])
def test_a_process_elsewhere_reports_what_it_cannot_see(name, tmp_path):
    pytest.importorskip({"local": "submitit"}.get(name, name))
    with started(name, tmp_path) as (of,):
        while not of.ended():
            time.sleep(0.05)
        assert "cannot be seen from" in of.result()
