"""Entry points, as a user runs them."""

import os
import pathlib
import signal
import subprocess
import sys
import time

import jax
import pytest

from launch import common
from vfljax.datasets import TABLE
from vfljax.datasets.core import checksum

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
        ([QUICK, "--workdir=x", "--config.data.options.lable=y"], "has no field 'lable' for"),
        (["--config=configs/spambase.py", "--workdir=x"], "data.dir is empty"),
        ([QUICK, "--workdir=x", "surplus"], "unexpected argument 'surplus'"),
        (
            [QUICK, "--workdir=x", "--config.data.options.rows=5"],
            "the config file has no field 'rows' for --config.data.options.rows to change: add it",
        ),
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


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "x"), "PermissionError: [Errno 13] Permission"),
        (MemoryError(), "error: MemoryError\n"),
        (OverflowError("too\nlarge"), "error: OverflowError: too large\n"),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating"),
            "memory is exhausted (RESOURCE_EXHAUSTED: Out of memory allocating): choose a smaller",
        ),
    ],
)
def test_what_the_machine_refuses_is_one_line_too(monkeypatch, capsys, error, line):
    def run():
        raise error

    monkeypatch.setattr(common.app, "run", lambda main, flags_parser: main(["launch"]))
    monkeypatch.setattr(common.lanes, "use_all_cores", lambda: None)
    with pytest.raises(SystemExit, match="2"):
        common.start(run)
    said = capsys.readouterr().err
    assert line in said
    assert said.count("\n") == 1


def test_a_scheduler_s_signal_ends_a_run_as_an_interrupt_does(monkeypatch, capsys):
    cleaned = []

    def run():
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            cleaned.append(True)

    monkeypatch.setattr(common.app, "run", lambda main, flags_parser: main(["launch"]))
    monkeypatch.setattr(common.lanes, "use_all_cores", lambda: None)
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="130"):
            common.start(run)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert cleaned
    assert "the same command continues" in capsys.readouterr().err


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


def test_launch_data_lists_every_data_set_with_its_options():
    done = launch("data")
    assert done.returncode == 0
    for name in TABLE:
        assert f"\n{name}: " in f"\n{done.stdout}"
    assert "    label (needed)" in done.stdout


def test_launch_data_says_what_a_data_set_is_and_who_owns_what():
    done = launch("data", "--dataset=digits", "--passive=2", "--shares=2,1,1")
    assert "digits: 1,797 rows of kind 'image'" in done.stdout
    assert "0: 178 (9.91%)" in done.stdout
    assert "passive party 0: image, 8 x 4 a row: rows 0-7, columns 0-3" in done.stdout
    assert "label party: image, 8 x 2 a row: rows 0-7, columns 6-7" in done.stdout
    assert f"sha256 of the values: {checksum(TABLE['digits'](''))}" in done.stdout


def test_launch_data_prepares_a_copy_that_is_the_data_set(tmp_path):
    out = tmp_path / "new"
    done = launch("data", "--dataset=breast_cancer", f"--prepare={out}")
    again = launch("data", "--dataset=breast_cancer", f"--data_dir={out}")
    assert done.returncode == again.returncode == 0
    for told in (done.stdout, again.stdout):
        assert "prepared by the loader 'breast_cancer' with no options" in told
    total = f"sha256 of the values: {checksum(TABLE['breast_cancer'](''))}"
    assert total in done.stdout
    assert total in again.stdout
    assert "its checksum is right" in again.stdout
    named = launch("data", "--dataset=prepared", f"--data_dir={out}")
    assert named.stdout == again.stdout
    taken = launch("data", "--dataset=digits", f"--prepare={out}")
    assert taken.returncode == 2
    assert "is not overwritten: name a new folder" in taken.stderr
    spec = out / "vfljax.json"
    spec.write_text(spec.read_text().replace('"num_classes": 2', '"num_classes": 2147483647'))
    changed = launch("data", "--dataset=prepared", f"--data_dir={out}")
    assert (changed.returncode, changed.stdout) == (2, "")
    assert "vfljax.json is not what was recorded" in changed.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dataset=digit"], "did you mean 'digits'"),
        (["--dataset=digits", "--option=x"], "must be name=value"),
        (["--dataset=digits", "--option=x=1"], "unknown option of the data set digits 'x'"),
        (["--dataset=table", "--data_dir=x.csv"], "gives no 'label'"),
        (["--dataset=digits", "--shares=a,b"], "must be numbers"),
        (["--dataset=digits", "--passive=20"], "would own none"),
        (["--dataset=spambase", "--data_dir=nowhere"], "is not a folder"),
        (["--dataset=digits", "--data_dir=nowhere"], "digits comes with this package"),
        (["--dataset=table", f"--data_dir={300 * 'x'}", "--option=label=y"], "File name too long"),
        (["--dataset=digits", f"--prepare={300 * 'x'}"], "File name too long"),
        (["--dataset=digits", "--prepare="], "--prepare is empty: name a new folder"),
        (["--option=label=y"], "--option needs --dataset=NAME"),
        (["--dataset=table", "--option=a=1", "--option=a=2"], "--option=a=... is given twice"),
        (["--dataset=table", "--option=label={'a'}"], "give a number, a text"),
        (["--dataset=table", "--data_dir=no.csv", "--option=label={[]:1}"], "no.csv is missing"),
        (
            [QUICK, "--dataset=digits", "--data_dir=x", "--option=a=1", "--shares=1,2"],
            "--dataset, --data_dir, --option, --shares beside --config",
        ),
        (["--dataset=digits", "--shares=0,1"], "every share must be above 0"),
    ],
)
def test_launch_data_s_mistakes_are_one_line_too(arguments, message):
    done = launch("data", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


def test_every_field_can_be_overridden_whether_a_config_file_names_it_or_not(tmp_path):
    changes = ["--config.training.drop_last=True", "--config.data.train=0.5", "--config.seeds=x"]
    done = launch("sweep", QUICK, f"--workdir={tmp_path / 'w'}", *changes)
    assert "seeds" in done.stderr  # the one fault among them
    assert "drop_last" not in done.stderr
