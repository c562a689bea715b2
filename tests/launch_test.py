"""Entry points, as a user runs them."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[1]


def launch(name, *arguments):
    return subprocess.run(
        [sys.executable, "-m", f"launch.{name}", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )


QUICK = "--config=configs/quickstart.py"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workdir=x"], "--config and --workdir are needed"),
        ([QUICK, "--workdir=x", "--config.training.epoch=3"], "did you mean 'training.epochs'"),
        ([QUICK, "--workdir=x", "--config.training.epochs=many"], "many"),
        ([QUICK, "--workdir=x", "--config.seeds=0"], "config.seeds=0 is too small"),
        (["--config=nowhere.py", "--workdir=x"], "nowhere.py"),
        (["--config=configs/spambase.py", "--workdir=x"], "data.dir is empty"),
        ([QUICK, "--workdir=x", "surplus"], "unexpected argument 'surplus'"),
    ],
)
def test_a_mistake_is_one_line_and_a_bad_exit_status(tmp_path, arguments, message):
    arguments = [a.replace("--workdir=x", f"--workdir={tmp_path / 'w'}") for a in arguments]
    done = launch("sweep", *arguments)
    assert done.returncode != 0
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "w").exists()


def test_help_says_what_it_does_and_how():
    done = launch("sweep", "--help")
    assert "python -m launch.sweep --config=configs/quickstart.py" in done.stdout
    assert "--workdir" in done.stdout


def test_the_whole_way_from_a_config_to_a_report(tmp_path):
    config = tmp_path / "tiny.py"
    config.write_text(
        "from vfljax.config import ordered\nfrom tests.sweeps import TINY\n"
        "def get_config():\n    return ordered({**TINY, 'attacks': {'direct': {}}})\n"
    )
    workdir = tmp_path / "w"
    done = launch("sweep", f"--config={config}", f"--workdir={workdir}", "--config.seeds=1")
    assert done.returncode == 0, done.stderr
    assert "kdk epsilon=0.45 k=3" in done.stdout
    assert "12/12 settings" in done.stderr
    assert "steps/s" in done.stderr
    assert "--config.seeds=1" in (workdir / "report.html").read_text()
    done = launch("attack", f"--workdir={workdir}", "--attacks=direct,norm,active")
    assert done.returncode == 0, done.stderr
    assert "skipped norm" in done.stdout
    assert "skipped active" in done.stdout
    assert launch("report", f"--workdir={workdir}").returncode == 0
    done = launch("attack", f"--workdir={workdir}", "--attacks=nothing")
    assert done.returncode == 2
    assert "unknown attack 'nothing'" in done.stderr
