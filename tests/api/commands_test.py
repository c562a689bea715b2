"""Entry points, as a user runs them: mostly within this process, which has imported JAX already."""

import gc
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import jax
import numpy as np
import pytest
from jax.experimental.buffer_callback import buffer_callback

import vfljax
from vfljax.api.commands import COMMANDS
from vfljax.api.console import start as start_command
from vfljax.api.flags import Command
from vfljax.config import FIELDS

ROOT = pathlib.Path(__file__).parents[2]
LAUNCHED = sorted(path.stem for path in (ROOT / "launch").glob("[a-z]*.py"))


def process(name, *arguments):
    """An entry point in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", f"launch.{name}", *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


QUICK = "--config=configs/quickstart.py"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (PermissionError(13, "Permission denied", "x"), "PermissionError: [Errno 13] Permission"),
        (OSError(28, "No space left on device", "x"), "OSError: [Errno 28] No space"),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating"),
            "memory is exhausted (RESOURCE_EXHAUSTED: Out of memory allocating): choose a smaller",
        ),
    ],
)
def test_what_the_machine_refuses_is_one_line_too(monkeypatch, capsys, error, line):
    def run():
        raise error

    with pytest.raises(SystemExit, match="2"):
        start(run, monkeypatch)
    shown = capsys.readouterr().err
    assert line in shown
    assert shown.count("\n") == 1


@pytest.mark.parametrize(
    "error", [MemoryError(), OverflowError("x"), FileNotFoundError(2, "x"), ValueError("x")]
)
def test_a_fault_of_ours_shows_its_traceback(monkeypatch, error):
    def run():
        raise error

    with pytest.raises(type(error)):
        start(run, monkeypatch)


def start(run, monkeypatch, resumes=False):
    """Start a command that does nothing but ``run``."""
    command = Command(run, resumes=resumes)
    monkeypatch.setattr(vfljax, "use_this_machine", lambda **_: None, raising=False)
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    # as in a terminal: what a script runs in the background is told to ignore it
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        start_command(command, [], "python -m launch.attack")
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def stopped(monkeypatch, capsys):
    """``stopped(run, **options)``: the exit status of a command within this process, and what it prints."""

    def status(run, **options):
        with pytest.raises(SystemExit) as ended:
            start(run, monkeypatch, **options)
        return ended.value.code, capsys.readouterr().err

    return status


def wait():
    """Some seconds, in which an interrupt that comes again is noticed soon."""
    for _ in range(100):
        time.sleep(0.05)


SIGNALS = [(signal.SIGTERM, 143, " by SIGTERM"), (signal.SIGINT, 130, "")]
COMMAND = "\n  python -m launch.attack \n"


@pytest.mark.parametrize(("number", "status", "by"), SIGNALS)
def test_a_signal_stops_a_run_which_cleans_up_and_says_how_to_go_on(stopped, number, status, by):
    cleaned = []

    def run():
        try:
            os.kill(os.getpid(), number)
            time.sleep(5)
        except KeyboardInterrupt:
            if number == signal.SIGTERM:
                os.kill(os.getpid(), number)  # a scheduler's second one does not cut it short
            cleaned.append(True)
            raise

    said = f"\nstopped{by}: nothing finished is lost. To go on:{COMMAND}"
    assert stopped(run, resumes=True) == (status, said)
    assert cleaned
    said = f"\nstopped{by}: nothing is kept. To begin again:{COMMAND}"
    assert stopped(run) == (status, said)


@pytest.mark.parametrize(("number", "status", "by"), SIGNALS)
def test_a_signal_within_a_callback_of_the_garbage_collector_comes_again(
    stopped, number, status, by
):
    calls = []

    def callback(phase, info):
        if not calls:
            calls.append(phase)
            os.kill(os.getpid(), number)
            sum(range(10))  # where Python handles it

    def run():
        gc.callbacks.append(callback)
        try:
            gc.collect()
            wait()
        finally:
            gc.callbacks.remove(callback)

    assert stopped(run, resumes=True)[0] == status
    assert calls


def buffered(callback, out, x):
    """A callback that writes what another one returns, as ``jax.pure_callback``."""

    def write(_, out, x):
        np.asarray(out)[...] = callback(np.asarray(x))

    return buffer_callback(write, out)(x)


@pytest.mark.parametrize("call", [jax.pure_callback, buffered])
@pytest.mark.parametrize(("number", "status", "by"), SIGNALS)
def test_a_signal_within_a_callback_of_jax_waits_for_its_end(stopped, number, status, by, call):
    """Streamed rows are fetched by callbacks; JAX makes another error of what is raised there."""
    done = []

    def callback(x):
        os.kill(os.getpid(), number)
        return x

    def run():
        x = jax.numpy.ones(3)
        out = jax.jit(lambda x: call(callback, x, x))(x)
        done.append(jax.block_until_ready(out))
        wait()

    assert stopped(run, resumes=True)[0] == status
    assert done


def test_every_command_is_a_module_of_launch_too():
    of_a_checkout = {"benchmark", "leakbench"}
    assert set(LAUNCHED) == {*COMMANDS, *of_a_checkout}


def test_a_process_that_refuses_exits_with_2_and_says_why_in_one_line(tmp_path):
    refused = process("sweep", QUICK, f"--workdir={tmp_path / 'w'}", "--config.seeds=0")
    said, line = refused.communicate()
    assert refused.returncode == 2
    assert said == ""
    assert line == "error: config.seeds=0: give a whole number from 1 to 2,147,483,647.\n"
    assert not (tmp_path / "w").exists()


@pytest.fixture
def config(tmp_path):
    """A config file of TINY with one attack and a seed more."""
    path = tmp_path / "tiny.py"
    path.write_text(
        "from vfljax.config import ordered\nfrom tests.sweeps import TINY\n"
        "def get_config():\n    return ordered({**TINY, 'seeds': 3, 'attacks': {'direct': {}}})\n"
    )
    return path


def test_the_whole_way_from_a_config_to_a_report(launch, refused, tmp_path, config):
    workdir = tmp_path / "w"
    done = launch("sweep", f"--config={config}", f"--workdir={workdir}", "--config.seeds=2")
    assert done.returncode == 0, done.stderr
    assert "passive party 0 can read the labels" in done.stdout
    assert "24/24 trials" in done.stderr
    assert "steps/s" in done.stderr
    assert "--config.seeds=2" in (workdir / "report.html").read_text()
    trace = tmp_path / "new" / "trace.json.gz"
    arguments = f"--workdir={workdir}", "--attacks=direct,norm,active", f"--profile={trace}"
    done = launch("attack", *arguments)
    assert done.returncode == 0, done.stderr
    assert f"profile: {trace}" in done.stdout
    assert "skipped norm" in done.stdout
    assert "skipped active" in done.stdout
    assert launch("report", f"--workdir={workdir}").returncode == 0
    done = launch("attack", f"--workdir={workdir}", "--drop=direct")
    assert "dropped: direct\n" in done.stdout
    assert "No attack has a figure" in done.stdout
    assert not (workdir / "attacks.csv").exists()
    done = launch("verify", f"--workdir={workdir}")
    assert (done.returncode, "attacks/direct" in done.stdout) == (0, False)
    assert "leave --attacks" in refused("attack", *arguments[:2], "--drop=direct")
    assert "unknown attack 'direct': choose from norm, active. No other" in refused(
        "attack", f"--workdir={workdir}", "--drop=direct"
    )
    assert "unknown attack 'other'" in refused("attack", f"--workdir={workdir}", "--attacks=other")


def test_a_sweep_with_malicious_parties_is_attacked_by_others(launch, tmp_path):
    """Its plan has the federations that were trained, not those that the attacks would need."""
    workdir = tmp_path / "w"
    shutil.copytree(ROOT / "tests" / "fixtures" / "stored_sweep", workdir)
    done = launch("attack", f"--workdir={workdir}", "--attacks=norm", "--unfinished")
    assert done.returncode == 0, done.stderr
    assert "skipped norm: defined for two classes" in done.stdout


def test_every_field_can_be_overridden_whether_a_config_file_names_it_or_not(launch, tmp_path):
    changes = ["--config.training.drop_last=True", "--config.data.train=0.5", "--config.seeds=x"]
    done = launch("sweep", QUICK, f"--workdir={tmp_path / 'w'}", *changes)
    assert "seeds" in done.stderr  # the one fault among them
    assert "drop_last" not in done.stderr


def test_every_field_is_printed_with_its_value_its_default_and_what_it_means(launch):
    done = launch("sweep", QUICK, "--print_config", "--config.seeds=7")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[4:6] == ["seeds = 7 (default 3)", f"    {FIELDS['seeds'].meaning}"]
    assert "training.momentum = 0.9 (the default)" in lines
    assert [line.split(" = ")[0] for line in lines[::2]] == list(FIELDS)
    help_text = launch("sweep", "--help").stdout
    assert f"\nseeds = 3 (the default)\n    {FIELDS['seeds'].meaning}\n" in help_text


def test_a_reader_that_goes_away_is_no_error():
    with process("data", "--help") as one:
        assert one.stdout is not None
        one.stdout.readline()
        one.stdout.close()
        assert one.stderr is not None
        assert one.stderr.read() == ""
        assert one.wait() == 0


@pytest.mark.parametrize("name", LAUNCHED)
def test_help_is_printed_without_loading_jax(name):
    """So that it takes no seconds; a misspelt flag is found before JAX is loaded too."""
    program = f"""
import runpy, sys
class NoJax:
    def find_spec(name, path=None, target=None):
        if name in ("jax", "flax", "sklearn", "matplotlib", "pyarrow"):
            raise RuntimeError(f"{{name}} is loaded")
sys.meta_path.insert(0, NoJax)
sys.argv = ["launch/{name}.py", "--help"]
runpy.run_module("launch.{name}", run_name="__main__")
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "--" in done.stdout
    assert done.stderr == ""
