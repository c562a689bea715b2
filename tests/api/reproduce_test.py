"""vfljax reproduce: what it refuses, what it prints, and the sweep that it runs."""

import re
import sys
import types

import pytest

from configs.papers import tables
from configs.papers.tables import TABLES, Run
from tests.sweeps import tiny


def test_another_sweep_in_the_folder_is_refused(refused, workdir):
    line = refused("reproduce", "--table=gafm/2", "--data_dir=nowhere", f"--workdir={workdir}")
    assert "holds the sweep 'tiny' and not 'gafm_2_spambase': give another --workdir" in line


def test_the_list_names_every_table_with_what_it_needs(launch):
    done = launch("reproduce", "--list")
    assert done.returncode == 0
    for table in TABLES:
        assert re.search(rf"^{re.escape(table)} ", done.stdout, re.MULTILINE)


@pytest.mark.slow
def test_a_table_is_trained_resumed_and_compared(launch, tmp_path, monkeypatch):
    config = tiny(
        data={"name": "breast_cancer", "train": 200, "validation": 100, "test": 100},
        grid={"undefended": {}},
        attacks={"norm": {}},
        reproduces={"table": "gafm/2", "dataset": "Criteo", "arms": {"undefended": "none"}},
    )
    module = types.SimpleNamespace(get_config=lambda variant: config)
    monkeypatch.setitem(sys.modules, "configs.papers.tiny", module)
    run = Run("tiny", "criteo", "nothing", "2 CPU cores", 0.0)
    monkeypatch.setitem(tables.TABLES, "gafm/2", {"Criteo": (run,)})
    workdir = tmp_path / "w"
    done = launch("reproduce", "--table=gafm/2", f"--workdir={workdir}")
    assert done.returncode == 0, done.stderr
    assert "0.72 (0.69 to 0.77 of 10)" in done.stdout
    assert (workdir / "report.html").exists()
    config["reproduces"]["attacks"] = {"mean": "mean/oracle"}  # what it is compared with may change
    again = launch("reproduce", "--table=gafm/2", f"--workdir={workdir}")
    beside = [line for line in done.stdout.splitlines() if line.startswith("none ")]
    assert beside
    assert [line for line in again.stdout.splitlines() if line.startswith("none ")] == beside
