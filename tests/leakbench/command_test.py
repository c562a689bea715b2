"""``launch.leakbench``: what cannot be meant is one line, and stored entries are checked without being run."""

import json

import pytest

from analysis.leakbench import command, entry_files
from analysis.leakbench.autoleak import autoleak
from tests.leakbench.ranking_test import EVERY

ENTRY = {"method": {"mine:shuffle": {}}, "plugin": "mine.py"}


@pytest.fixture
def folder(launch, tmp_path, monkeypatch):  # ``launch`` changes the folder too
    (tmp_path / "mine.json").write_text(json.dumps(ENTRY))
    (tmp_path / "mine.py").write_text("raise SystemExit('a file of an entry was run')\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/mine.json").write_text(json.dumps(ENTRY))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--entries=other/none"], "holds no entry"),
        (["--entry=mine.json", "--data=mnist", "--workdir=w"], "--data 'mnist'"),
        (
            ["--entry=mine.json", "--data=digits", "--workdir=w", "--attacks=norm"],
            "--by is needed: who breaks the entry",
        ),
        (
            ["--entry=mine.json", "--data=digits", "--break=s.npz", "--by=Eve"],
            "--how is needed: what the attack does",
        ),
        (
            ["--entries=.", "--data=digits", "--break=s.npz", "--by=Eve", "--how=so"],
            "mine has no figure on digits that could be broken",
        ),
        (
            ["--entry=mine.json", "--data=digits", "--readers=r.py", "--by=Eve", "--how=so"],
            "--workdir is needed",
        ),
        (
            [*("--entry=mine.json", "--data=digits", "--readers=r.py", "--by=Eve", "--how=so")]
            + ["--workdir=w"],
            "there is no file r.py",
        ),
        (
            ["--entry=mine.json", "--data=digits", "--exchange=e", "--workdir=w"],
            "mine has no figure on digits",
        ),
        (["--verify", "--retrain", "--entry=mine.json", "--data=digits"], "--workdir is needed"),
        (
            ["--verify", "--retrain", "--entry=mine.json", "--data=digits", "--workdir=w"],
            "names no entry with scores",
        ),
        (["--retrain", "--entry=mine.json", "--data=digits", "--workdir=w"], "--verify is needed"),
        (["--entry=mine.json,other/mine.json", "--data=digits"], "two entries of one name"),
        (["--entry=mine.json", "--data=digits", "--workdir=w"], "name it by --plugin=mine"),
    ],
)
def test_what_cannot_be_meant_is_one_line(refused, folder, tmp_path, arguments, message):
    del folder
    assert message in refused("leakbench", *arguments)
    assert not (tmp_path / "w").exists()


def test_entries_are_checked_without_running_anything(launch, folder):
    del folder
    done = launch("leakbench", "--verify", "--entries=.")
    assert (done.returncode, done.stdout) == (0, "1 entries are sound\n")


def test_a_rank_among_no_others_is_not_printed(tmp_path, capsys):
    worst, best = EVERY[1], EVERY[3]
    file = tmp_path / "mine" / "worst.json"
    for path in (tmp_path / "best.json", file):
        path.parent.mkdir(exist_ok=True)
        entry_files.write(path, best if path.stem == "best" else worst)
    read = entry_files.read(file)
    command._show_ranks({file: read}, tmp_path, "digits")
    assert "worst has rank 2 of 2" in capsys.readouterr().out
    entry_files.write(file.with_name("undefended.json"), EVERY[0])
    command._show_ranks({file: read}, file.parent, "digits")
    why = f"has scores of AutoLeak {autoleak().version} on digits"
    (line,) = capsys.readouterr().out.splitlines()
    assert line == f"worst has no rank: no other entry in {file.parent} {why}"
