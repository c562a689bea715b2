"""launch.reproduce: what it refuses, what it prints, and the sweep that it runs."""

import re
import sys
import types

import pytest

from configs.papers import tables
from configs.papers.tables import TABLES, Run
from tests.sweeps import tiny
from vfljax import papers
from vfljax.cli import reproduce
from vfljax.papers import reproduction, reproduction_page
from vfljax.sweep.experiment import parse

ARMS = {"undefended": "none", "plain": "label_dp"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("give --table, --list, --status or --write",)),
        (("--table=gafm/9",), ("--table", "'gafm/9'", "gafm/2")),
        (("--table=gafm/2", "--dataset=mnist"), ("data set of gafm/2", "mnist", "spambase")),
        (
            ("--table=gafm/2", "--dataset=spambase", "--variant=maxmin"),
            ("variant of gafm/2 on spambase", "maxmin"),
        ),
        (
            ("--table=gafm/2", "--data_dir=nowhere", "--workdir={}/w"),
            ("data.dir='nowhere' is missing", "spambase.data"),
        ),
        (
            ("--table=gafm/2", "--data_dir=nowhere", "--workdir={tiny}"),
            ("holds the sweep 'tiny' and not 'gafm_2_spambase'", "another --workdir"),
        ),
    ],
)
def test_what_nobody_published_or_is_not_there_is_one_line(
    launch, tmp_path, tiny_sweep, arguments, words
):
    places = (a.replace("{tiny}", str(tiny_sweep)).replace("{}", str(tmp_path)) for a in arguments)
    done = launch("reproduce", *places)
    assert done.returncode == 2
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert [word for word in words if word not in done.stderr] == [], done.stderr
    assert not (tmp_path / "w").exists()


def test_the_status_counts_every_number_once(launch):
    done = launch("reproduce", "--status")
    assert done.returncode == 0
    last = done.stdout.strip().splitlines()[-1].split()
    assert last[0] == "all"
    assert last[-1] == "549"
    assert sum(map(int, last[1:-1])) == 549


def test_the_list_names_every_table_with_what_it_needs(launch):
    done = launch("reproduce", "--list")
    assert done.returncode == 0
    for table in TABLES:
        assert re.search(rf"^{re.escape(table)} ", done.stdout, re.MULTILINE)


def test_a_table_is_trained_resumed_compared_and_kept(launch, tmp_path, monkeypatch):
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
    monkeypatch.chdir(tmp_path)  # where --record keeps it
    reproduction_page.keep(reproduce.STORED, workdir, [])
    assert [f.name for f in tmp_path.rglob("*.csv") if "analysis" in str(f)] == ["tiny_leaks.csv"]


RUNS = [
    (table, dataset, run)
    for table, datasets in TABLES.items()
    for dataset, runs in datasets.items()
    for run in runs
]


@pytest.mark.parametrize(
    ("table", "dataset", "run"), RUNS, ids=[f"{r.config}:{r.variant}" for _, _, r in RUNS]
)
def test_each_run_of_the_table_is_of_a_config_that_names_it(table, dataset, run):
    module = __import__(f"configs.papers.{run.config}", fromlist=["get_config"])
    reproduces = parse(module.get_config(run.variant)).reproduces
    assert reproduces is not None
    assert reproduces.table == table
    assert reproduces.dataset == dataset
    assert reproduction.slug(dataset) in (run.variant.partition("-")[0], run.config.split("_")[-1])
    assert run.variant.endswith(run.rule)


def test_every_table_of_the_papers_has_a_run():
    absent = set(papers.tables()) - set(TABLES)
    assert absent == {"kdk/text"}  # statements about other tables, weighed as claims
    for table in TABLES:
        if not table.endswith("/text"):
            assert set(papers.tables()[table]) <= set(TABLES[table]), table


def test_no_two_runs_of_a_data_set_are_called_alike():
    for datasets in TABLES.values():
        for runs in datasets.values():
            rules = [run.rule for run in runs]
            assert len(set(rules)) == len(rules), runs


def test_the_first_run_of_a_data_set_is_the_published_setting():
    for table, dataset, run in RUNS:
        if run is TABLES[table][dataset][0]:
            assert not run.rule, (table, dataset)


def test_the_page_is_the_one_that_the_stored_files_make(launch):
    assert launch("reproduce", "--status").returncode == 0  # in the checkout's folder
    text = reproduction_page.text(reproduce.STORED, reproduce._command)
    assert reproduce.PAGE.read_text() == text
