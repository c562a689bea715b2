"""The built wheel, in an environment of its own and without a checkout. Needs the package index."""

import os
import pathlib
import subprocess
import sys
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PROGRAM = """
import pathlib, sys
import vfljax
assert "site-packages" in vfljax.__file__, vfljax.__file__
vfljax.use_this_machine()
grid = {"undefended": {}, "noise": {"noise": {"scale": (0.01, 0.1)}}}
config = {"grid": grid, "seeds": 2, "attacks": {"direct": {}}, "training": {"epochs": 2}}
sweep = vfljax.run_sweep(config, "sweep")
sweep.require_finished()
assert vfljax.load("sweep").results.equals(sweep.results)
assert pathlib.Path("sweep/report.html").stat().st_size > 10_000
"""


def run(*command: object, cwd: pathlib.Path) -> str:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "XLA_FLAGS")}
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False, env=clean
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> pathlib.Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "pip", "wheel", "--no-deps", "-w", folder, ROOT, cwd=folder)
    (path,) = folder.glob("*.whl")
    return path


@pytest.mark.slow
def test_it_holds_the_package_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0].split("-")[0] for name in names} == {"vfljax"}
    tracked = run("git", "ls-files", "vfljax", cwd=ROOT).split()
    assert not set(tracked) - set(names)


@pytest.mark.slow
def test_it_trains_and_reports_without_a_checkout(wheel, tmp_path):
    run(sys.executable, "-m", "venv", tmp_path / "venv", cwd=tmp_path)
    python = tmp_path / "venv" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    run(python, "-c", PROGRAM, cwd=tmp_path)
    command = tmp_path / "venv" / "bin" / "vfljax"
    assert " sound" in run(command, "verify", "--workdir=sweep", cwd=tmp_path)
    run(command, "report", "--workdir=sweep", cwd=tmp_path)
