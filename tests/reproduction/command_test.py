"""launch.reproduce in a checkout: what it prints, keeps and draws."""

import json
import shutil

import pytest

from analysis.reproduction import command, reproduction_page
from vfljax.report import page
from vfljax.store import header, sealed


@pytest.fixture
def of_a_figure(defended, tmp_path):
    """A copy of a stored sweep, as of GAFM's Figure 3."""
    workdir = shutil.copytree(defended.workdir, tmp_path / "w")
    stored = header.read_header(workdir)
    stored["config"]["reproduces"] = {
        "table": "gafm/figure3",
        "dataset": "Criteo",
        "arms": {"undefended": "none", "gafm": "gafm"},
        "attacks": {"norm": "direct/most_negative"},
    }
    sealed.write_root(workdir, stored)
    return workdir


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        ((), "give --table, --workdir, --list, --status or --write"),
        (("--record", "--list"), "--record keeps the comparison of a table: give --table too"),
        (("--workdir=nowhere",), "nowhere"),
    ],
)
def test_what_it_cannot_do_is_one_line(refused, arguments, line):
    assert line in refused("reproduce", *arguments)


def test_the_status_counts_every_number_once(launch):
    done = launch("reproduce", "--status")
    assert done.returncode == 0
    last = done.stdout.strip().splitlines()[-1].split()
    assert last[0] == "all"
    assert sum(map(int, last[1:-1])) == int(last[-1]) == 869


def test_a_report_written_again_has_the_figure_and_what_is_recorded_has_it_too(
    launch, of_a_figure, monkeypatch, tmp_path
):
    figure = of_a_figure / "figures" / f"{page.PAPER}.png"
    done = launch("reproduce", f"--workdir={of_a_figure}")
    assert done.returncode == 0, done.stderr
    assert figure.exists()
    monkeypatch.chdir(tmp_path)  # where --record keeps it
    kept = reproduction_page.keep(command.STORED, of_a_figure, [])
    (name,) = [f.name for f in command.STORED.glob("*.csv")]
    assert command.STORED / name == kept.with_name(f"{kept.name}_leaks.csv")
    assert kept.with_suffix(".png").read_bytes() == figure.read_bytes()
    runs = json.loads((command.STORED / reproduction_page.RUNS).read_text())
    assert runs.keys() == {kept.name}
    # there is no revision outside of a git checkout
    assert all(value for name, value in runs[kept.name].items() if name != "revision")


def test_a_table_is_run_and_recorded(launch, of_a_figure, monkeypatch):
    kept = []
    monkeypatch.setattr(command.running, "reproduce", lambda **given: (of_a_figure, []))
    monkeypatch.setattr(reproduction_page, "keep", lambda *given: kept.append(given) or "a/b")
    done = launch("reproduce", "--table=gafm/figure3", "--record")
    assert (done.returncode, done.stdout) == (0, "kept: a/b*\n")
    assert kept == [(command.STORED, of_a_figure, [])]


def test_the_pages_are_those_that_the_stored_files_make(launch):
    launch("reproduce")  # in the checkout's folder
    pages = reproduction_page.pages(command.STORED, command.command_line)
    assert [
        name for name, text in pages.items() if (command.PAGES / name).read_text() != text
    ] == []
