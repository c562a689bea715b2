"""launch.reproduce: what it refuses, what it lists, and what it compares."""

import re
import shutil
import sys
import types

from configs.papers import tables
from configs.papers.tables import TABLES, Run


def test_another_sweep_in_the_folder_is_refused(refused, defended):
    workdir = f"--workdir={defended.workdir}"
    line = refused("reproduce", "--table=gafm/2", "--data_dir=nowhere", workdir)
    assert "holds the sweep 'tiny' and not 'gafm_2_spambase': give another --workdir" in line


def test_the_list_names_every_table_with_what_it_needs(launch):
    done = launch("reproduce", "--list")
    assert done.returncode == 0
    for table in TABLES:
        assert re.search(rf"^{re.escape(table)} ", done.stdout, re.MULTILINE)


def test_a_finished_run_is_compared_with_the_printed_numbers(
    launch, defended, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "200")  # a narrow terminal cuts the cells
    workdir = shutil.copytree(defended.workdir, tmp_path / "w")
    # what a stored sweep is compared with may change
    reproduces = {"table": "gafm/2", "dataset": "Criteo", "arms": {"undefended": "none"}}
    config = {**defended.config, "reproduces": reproduces}
    module = types.SimpleNamespace(get_config=lambda variant: config)
    monkeypatch.setitem(sys.modules, "configs.papers.tiny", module)
    run = Run("tiny", "criteo", "nothing", "2 CPU cores", 0.0)
    monkeypatch.setitem(tables.TABLES, "gafm/2", {"Criteo": (run,)})
    done = launch("reproduce", "--table=gafm/2", f"--workdir={workdir}")
    assert done.returncode == 0, done.stderr
    assert "0.72 (0.69 to 0.77 of 10)" in done.stdout
    assert (workdir / "report.html").exists()
