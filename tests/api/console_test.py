"""The console command ``vfljax``."""

import importlib.metadata
import inspect
import io
import os
import re
import shlex
import subprocess
import sys

import pytest

from vfljax.api import commands
from vfljax.api import console as shell


@pytest.fixture
def console(monkeypatch, capsys):
    """``console(*arguments)``: the exit status of the command within this process, and what it prints."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["/usr/bin/vfljax", *arguments])
        monkeypatch.setattr(sys, "path", list(sys.path))
        with pytest.raises(SystemExit) as ended:
            commands.main()
        shown = capsys.readouterr()
        return ended.value.code, shown.out, shown.err

    return run


def test_help_lists_every_command(console):
    status, out, err = console()
    assert (status, err) == (0, "")
    for name, command in commands.COMMANDS.items():
        head = inspect.getdoc(command.run).splitlines()[0]
        assert re.search(rf"^{name} +{re.escape(head)}$", out, re.MULTILINE)


def test_an_unknown_command_is_one_line_with_the_nearest_name(console):
    status, out, err = console("swep", "--workdir=x")
    assert (status, out) == (2, "")
    assert "'swep': did you mean 'sweep'?" in err
    assert err.count("\n") == 1


def test_help_names_the_command_as_it_was_started(console, launch):
    _, out, _ = console("report", "--help")
    assert "vfljax report --workdir=runs/quickstart" in out
    assert "python -m launch.report --workdir=runs/q" in launch("report", "--help").stdout


def test_closed_streams_are_opened_and_others_write_any_text(monkeypatch):
    ascii_only = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
    for name, stream in (("stdin", None), ("stdout", ascii_only), ("stderr", None)):
        monkeypatch.setattr(sys, name, stream)
    shell._open_streams()
    assert sys.stdin.read() == ""
    print("lost", file=sys.stderr, flush=True)
    print("± 0.1")
    assert ascii_only.buffer.getvalue() == b"\\xb1 0.1\n"
    for stream in (sys.stdin, sys.stderr):
        stream.close()


def test_work_goes_on_where_nobody_reads_the_progress_and_streams_are_closed(tmp_path):
    """No file takes the number of a closed stream either."""
    code = "import sys; from vfljax.api import console; console._open_streams(); "
    code += "print('progress', file=sys.stderr, flush=True); "
    code += f"print(open({str(tmp_path / 'file')!r}, 'w').fileno() > 2)"
    reader, writer = os.pipe()
    os.close(reader)
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(code)} <&-"
    done = subprocess.run(command, shell=True, stdout=subprocess.PIPE, stderr=writer, check=True)
    os.close(writer)
    assert done.stdout == b"True\n"


def test_the_version_is_the_package_s(console):
    import vfljax

    assert console("--version")[:2] == (0, f"{vfljax.__version__}\n")
    assert vfljax.__version__ == importlib.metadata.version("vfljax")


def test_modules_of_the_current_folder_are_found_first(console, tmp_path, monkeypatch):
    """As by ``python -m``: plugins and configs."""
    monkeypatch.chdir(tmp_path)
    before = []
    monkeypatch.setattr(
        shell, "end_with_help", lambda text: before.append(sys.path[0]) or sys.exit(0)
    )
    console("--help")
    assert before == [os.fspath(tmp_path)]
