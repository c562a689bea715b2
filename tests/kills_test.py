"""A short run of ``tests.kills``: three copies of which one is killed, and what the comparison notices."""

import subprocess
import sys

import pyarrow as pa
import pytest

from tests.conftest import ROOT
from tests.kills import bits

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("copies", [1, 3])
def test_copies_that_are_killed_end_in_the_same_tables(tmp_path, copies):
    flags = ["--trials=2", f"--copies={copies}", f"--folder={tmp_path / 'k'}"]
    command = [sys.executable, "-m", "tests.kills", *flags]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert "0 of 2 sweeps went wrong" in run.stdout


def test_tables_are_compared_bit_for_bit():
    def of(*values):
        return bits({"results": pa.table({"loss": pa.array(values, pa.float64())})})

    assert of(1.0, float("nan")) == of(1.0, float("nan"))
    assert of(1.0) != of(1.0 + 2e-16 * 2)
    assert of(1.0, 2.0) != of(2.0, 1.0)
