"""``launch.leakbench``: what cannot be meant is one line, and stored entries are checked without being run."""

import json

import pytest

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
        ([], "holds no entry"),
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
