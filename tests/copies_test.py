"""A short run of ``tests.copies``, with locks and without."""

import subprocess
import sys

import pytest

from tests.conftest import ROOT


@pytest.mark.parametrize("flags", [["--trials=8"], ["--trials=4", "--locks=0"]])
def test_copies_of_a_command_make_each_unit_once_whatever_becomes_of_them(flags):
    command = [sys.executable, "-m", "tests.copies", *flags]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
