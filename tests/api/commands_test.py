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
from tests.stored_sweep import FIXTURE
from vfljax.api import commands
from vfljax.api.commands import COMMANDS
from vfljax.api.console import start as start_command
from vfljax.api.flags import Command
from vfljax.config import FIELDS
from vfljax.scheduling import running

ROOT = pathlib.Path(__file__).parents[2]
LAUNCHED = sorted(path.stem for path in (ROOT / "launch").glob("[a-z]*.py"))
QUICK = "--config=configs/quickstart.py"


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


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(28, "No space left on device", "x"), "OSError: [Errno 28] No space"),
        (OSError(1, "Operation not permitted", "x"), "not permitted: 'x': ask the owner of the"),
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating"),
            "memory is exhausted (RESOURCE_EXHAUSTED: Out of memory allocating): choose a smaller",
        ),
        (FileNotFoundError(2, "x"), None),
        (ValueError("x"), None),
    ],
)
def test_what_the_machine_refuses_is_one_line_and_a_fault_of_ours_a_traceback(
    stopped, monkeypatch, error, line
):
    def run():
        raise error

    if line is None:
        with pytest.raises(type(error)):
            start(run, monkeypatch)
    else:
        status, shown = stopped(run)
        assert (status, shown.count("\n")) == (2, 1)
        assert line in shown


def test_a_command_is_told_its_line_which_a_report_names(stopped):
    lines = []

    def run(command: str = ""):
        lines.append(command)

    assert stopped(run) == (0, "")
    assert lines == ["python -m launch.attack "]


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
            gc.collect(0)
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


@pytest.mark.parametrize(
    ("call", "number", "status"),
    [(jax.pure_callback, signal.SIGTERM, 143), (buffered, signal.SIGINT, 130)],
)
def test_a_signal_within_a_callback_of_jax_waits_for_its_end(stopped, call, number, status):
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
    of_a_checkout = {"benchmark", "leakbench", "reproduce"}
    assert set(LAUNCHED) == {*COMMANDS, *of_a_checkout}


def test_a_finished_sweep_is_reported_attacked_verified_and_cleared(
    launch, refused, workdir, tmp_path, monkeypatch
):
    config, trace = tmp_path / "tiny.py", tmp_path / "new" / "trace.json.gz"
    config.write_text(
        "from vfljax.config import ordered\nfrom tests.sweeps import TINY\n"
        "def get_config():\n    return ordered({**TINY, 'seeds': 3})\n"
    )
    done = launch("sweep", f"--config={config}", f"--workdir={workdir}", "--config.seeds=2")
    assert done.returncode == 0, done.stderr
    assert "Open: 2 seeds allow no limits" in done.stdout
    arguments = f"--workdir={workdir}", "--attacks=direct,norm,active", f"--profile={trace}"
    with monkeypatch.context() as patch:
        patch.setattr(running, "report", lambda folder, verbose=False: "")
        done = launch("attack", *arguments)
        dropped = launch("attack", f"--workdir={workdir}", "--drop=direct,passive")
    assert done.returncode == 0, done.stderr
    assert f"profile: {trace}" in done.stdout
    assert "skipped norm: defined for two classes" in done.stdout
    assert "skipped active" in done.stdout
    said = "dropped: passive, direct/first_negative, direct/most_negative\n"
    assert said in dropped.stdout
    assert not (workdir / "attacks.csv").exists()
    done = launch("verify", f"--workdir={workdir}")
    assert (done.returncode, "attacks/direct" in done.stdout) == (0, False)
    assert "leave --attacks" in refused("attack", *arguments[:2], "--drop=direct")
    assert "unknown attack 'direct'" in refused("attack", f"--workdir={workdir}", "--drop=direct")
    assert "unknown attack 'other'" in refused("attack", f"--workdir={workdir}", "--attacks=other")


def test_a_sweep_with_malicious_parties_is_attacked_by_others(launch, tmp_path, monkeypatch):
    """Its plan has the federations that were trained, not those that the attacks would need."""
    monkeypatch.setattr(running, "report", lambda folder, verbose=False: "")
    workdir = shutil.copytree(FIXTURE, tmp_path / "w")
    done = launch("attack", f"--workdir={workdir}", "--attacks=norm", "--unfinished")
    assert done.returncode == 0, done.stderr
    assert "skipped norm: defined for two classes" in done.stdout


def test_every_field_is_printed_with_its_value_its_default_and_what_it_means(launch):
    done = launch("sweep", QUICK, "--print_config", "--config.seeds=7", "--config.data.train=0.5")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[4:6] == ["seeds = 7 (default 3)", f"    {FIELDS['seeds'].meaning}"]
    assert "training.momentum = 0.9 (the default)" in lines
    assert [line.split(" = ")[0] for line in lines[::2]] == list(FIELDS)
    help_text = launch("sweep", "--help").stdout
    assert f"\nseeds = 3 (the default)\n    {FIELDS['seeds'].meaning}\n" in help_text


def process(*command):
    """A process of its own."""
    return subprocess.Popen(
        [sys.executable, *command],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )


def test_a_reader_that_goes_away_is_no_error():
    with process("-m", "launch.data", "--help") as one:
        assert one.stdout is not None
        one.stdout.readline()
        one.stdout.close()
        assert one.stderr is not None
        assert one.stderr.read() == ""
        assert one.wait() == 0


def test_help_is_printed_without_loading_jax():
    """So that it takes no seconds; a misspelt flag is found before JAX is loaded too."""
    program = f"""
import runpy, sys
class NoJax:
    def find_spec(name, path=None, target=None):
        if name in ("jax", "flax", "sklearn", "matplotlib", "pyarrow"):
            raise RuntimeError(f"{{name}} is loaded")
sys.meta_path.insert(0, NoJax)
for name in {LAUNCHED}:
    sys.argv = [f"launch/{{name}}.py", "--help"]
    try:
        runpy.run_module(f"launch.{{name}}", run_name="__main__")
    except SystemExit as ended:
        print(name, ended.code)
"""
    with process("-c", program) as one:
        said, errors = one.communicate()
    assert errors == ""
    ended = [line for line in said.splitlines() if line in {f"{name} 0" for name in LAUNCHED}]
    assert ended == [f"{name} 0" for name in LAUNCHED]


def test_help_needs_no_docstrings(monkeypatch, capsys):
    """As ``python -OO`` strips them."""
    monkeypatch.setattr(commands.inspect, "getdoc", lambda of: None)
    monkeypatch.setattr(sys, "argv", ["vfljax", "--help"])
    with pytest.raises(SystemExit) as ended:
        commands.main()
    assert ended.value.code == 0
    assert "sweep" in capsys.readouterr().out
