"""A short run of each drill: commands that are killed, and folders that are damaged."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("drill", ["copies --trials=8", "kills --trials=2", "damage --trials=12"])
def test_drills_end_in_the_figures_of_a_sweep_that_nothing_happened_to(drill):
    name, trials = drill.split()
    command = [sys.executable, "-m", f"tests.{name}", trials]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
