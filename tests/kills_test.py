"""A short run of ``tests.kills``: a tiny sweep killed twice, and what the comparison notices."""

import os
import pathlib
import sys

import pytest

from tests import kills
from tests.damage import figures
from tests.sweeps import tiny, train

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("real_learners")]

CONFIG = tiny(
    grid={"noise": {"noise": {"scale": (0.0, 0.1)}}},
    federations=("no_split",),
    attacks={"direct": {"rule": ("first_negative", "most_negative")}},
    **{"execution.shard_seconds": 0.01},  # many shards
)
# what ``launch.sweep`` does before its report, which takes long to import
PROGRAM = f"""
import pathlib, sys
import tests.conftest  # the devices and compiler options of this process
from vfljax.launching import running
from vfljax.sweep.grid import parse
running.finish(parse({CONFIG!r}), pathlib.Path(sys.argv[1]), "test").check()
"""


def test_killed_in_training_and_in_attacking_it_ends_with_the_same_table(tmp_path):
    """SIGKILL, then the same command: every column but times equals an uninterrupted run."""
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    train(whole, CONFIG)
    command = [sys.executable, "-c", PROGRAM, str(killed)]
    for begun in ("shards/[0-9]*", "attacks/*/*/rows.parquet"):
        run = kills.run_until(
            command, tmp_path / "log", lambda begun=begun: any(killed.glob(begun))
        )
        assert run.status is None  # it was not done yet
        assert kills.phase_of(killed, run.text).split()[0] in ("training", "attacks")
    train(killed, CONFIG)
    one, other = figures(whole), figures(killed)
    assert kills.differences(one, other) == []
    other.results[1]["test_loss"] = "0.5"
    other.attacks.pop()
    before = one.results[1]["test_loss"]
    assert kills.differences(one, other) == [
        f"results, row 1, test_loss: 0.5 instead of {before}",
        "attacks: 7 rows instead of 8",
    ]


def alive(process):
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    state = pathlib.Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    return state != "Z"


def test_a_kill_ends_all_that_a_command_began_in_other_sessions_too(tmp_path):
    child = "import os, time; print(os.getpid(), flush=True); time.sleep(60)"
    parent = (
        "import subprocess, sys, time\n"
        f"command = [sys.executable, '-c', {child!r}]\n"
        "for alone in (False, True):\n"
        "    subprocess.Popen(command, start_new_session=alone)\n"
        "time.sleep(60)\n"
    )
    log = tmp_path / "log"
    run = kills.run_until(
        [sys.executable, "-c", parent], log, lambda: len(log.read_text().split()) == 2
    )
    assert run.status is None
    assert not any(alive(process) for process in map(int, log.read_text().split()))


def test_a_command_that_ends_before_its_kill_says_how(tmp_path):
    command = [sys.executable, "-c", "print('done'); raise SystemExit(3)"]
    run = kills.run_until(command, tmp_path / "log", lambda: False)
    assert (run.status, run.text) == (3, "done\n")
