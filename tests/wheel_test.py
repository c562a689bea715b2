"""The built wheel, in an environment of its own and without a checkout. Needs the package index."""

import os
import pathlib
import subprocess
import sys

import pytest

from tests import notebooks

pytestmark = pytest.mark.slow
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


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory) -> pathlib.Path:
    """The scripts of an environment that holds the wheel and what it needs."""
    venv = tmp_path_factory.mktemp("installed")
    run(sys.executable, "-m", "venv", venv, cwd=venv)
    run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", wheel, cwd=venv)
    return venv / "bin"


def test_it_trains_and_reports_without_a_checkout(installed, tmp_path):
    run(installed / "python", "-c", PROGRAM, cwd=tmp_path)
    assert " sound" in run(installed / "vfljax", "verify", "--workdir=sweep", cwd=tmp_path)
    run(installed / "vfljax", "report", "--workdir=sweep", cwd=tmp_path)


def test_it_brings_the_configs_that_readme_names(installed, tmp_path):
    config = "--config=configs/quickstart.py"
    counts = run(installed / "vfljax", "sweep", config, "--dry_run", "--workdir=w", cwd=tmp_path)
    assert "189 trials in " in counts
    assert list(tmp_path.iterdir()) == []


def test_notebooks_run_without_a_checkout(installed, wheel, tmp_path):
    extras = f"vfljax[analysis,tune] @ {wheel.as_uri()}"
    run(installed / "python", "-m", "pip", "install", "--quiet", extras, cwd=tmp_path)
    texts = {path.name: path.read_text() for path in notebooks.paths()}
    names = [name for name, text in texts.items() if "analysis.reproduction" not in text]
    assert len(texts) - len(names) == 1  # reads the stored figures of a checkout
    # -P: nothing is imported from the checkout
    script = ROOT / "tests" / "notebooks.py"
    run(installed / "python", "-P", script, "--check", *names, cwd=tmp_path)
