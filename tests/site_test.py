"""The guide (``analysis/guide``) uses what exists, and every code block of it runs. The links
of all Markdown pages lead somewhere.

    python -m pytest -m slow tests/site_test.py

runs the blocks of every page in order, in one folder, on smaller sweeps than the pages have. The pages on
search and logging need the extras ``tune``, ``mlflow``, ``wandb`` and ``tensorboard``.
"""

import ast
import importlib.util
import os
import pathlib
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import vfljax
from vfljax import config
from vfljax.api.commands import COMMANDS
from vfljax.api.loading import Sweep
from vfljax.store import StoredTrial

ROOT = pathlib.Path(__file__).parents[1]
PAGES = sorted((ROOT / "analysis" / "guide").glob("[1-9]_*.md"))  # the course
FIRST = PAGES[0]  # trains what the pages after it read
SEARCH, LOGGING = PAGES[6:]
# packages of extras that a page imports
NEEDS = {SEARCH: ("optuna",), LOGGING: ("mlflow", "wandb", "tensorboardX")}
# what variables of the pages hold
HOLDS = {"sweep": Sweep, "longer": Sweep, "trial": StoredTrial}
CONSOLE = [sys.executable, "-c", "from vfljax.api import commands; commands.main()"]
# the sweeps of the pages, made small enough for a test
FEWER = {
    "configs/quickstart.py": {
        "training.epochs": "2",
        "teacher.epochs": "2",
        "known_draws": "1",
        "grid": "{'undefended': {}, 'kdk': {'kdk': {'epsilon': (0.0, 0.3), 'k': 3}}}",
        "attacks": "{'direct': {}, 'probe': {'known': 40}}",
    },
    "configs/breast_cancer.py": {
        "training.epochs": "2",
        "grid": "{'undefended': {}, 'noise': {'noise': {'scale': (0.01, 0.1)}}}",
        "attacks": "{'norm': {}}",
    },
}

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


def blocks(page: pathlib.Path) -> list[tuple[str, str]]:
    """The code blocks of a page with their languages, in order."""
    return re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text(), flags=re.M | re.S)


def commands(code: str) -> list[list[str]]:
    """The words of every command of a shell block."""
    return [shlex.split(line) for line in code.replace("\\\n", " ").splitlines() if line]


def value_of(node: ast.expr) -> Any:
    """What an expression of a page is: of ``vfljax`` itself, or of a variable that ``HOLDS`` lists; else None.

    Raises AttributeError for a name that does not exist.
    """
    if isinstance(node, ast.Name):
        return vfljax if node.id == "vfljax" else HOLDS.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value)
        return None if owner is None else getattr(owner, node.attr)
    return None


def absent(code: str) -> Iterator[str]:
    """Names of the library that a Python block uses and that do not exist, and imports from inside it."""
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("vfljax"):
            yield f"from {node.module}"
        if isinstance(node, ast.Attribute):
            try:
                value_of(node)
            except AttributeError as error:
                yield str(error)


def unknown_flags(words: list[str]) -> list[str]:
    """The flags of a command line that its command does not have."""
    if words[0] == "pip":
        return []
    program, name, *flags = words
    assert (program, name in COMMANDS) == ("vfljax", True), words
    names = [flag.removeprefix("--").partition("=")[0] for flag in flags]
    known = {*COMMANDS[name].flags}
    fields = {f"config.{path}" for path in config.FIELDS} if "config" in known else set()
    return [name for name in names if name not in known | fields]


@every_page
def test_a_page_uses_names_and_flags_that_exist(page):
    for language, code in blocks(page):
        if language == "python":
            assert list(absent(code)) == []
        for words in commands(code) if language == "sh" else ():
            assert unknown_flags(words) == []
    every = {flag for command in COMMANDS.values() for flag in command.flags}
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    every |= {f"no{flag}" for flag in every}  # how a true flag is set to false
    assert set(re.findall(r"--([a-z_]+)", prose)) <= every


def program(page: pathlib.Path) -> str:
    """The blocks of a page as one Python program, with the sweeps of ``FEWER`` and without installing. Those of
    plain text are not run."""
    lines = ["import subprocess"]
    for language, code in blocks(page):
        if language == "python":
            lines.append(code)
            continue
        if language == "text":  # what a block prints, or a command on a table of the reader's
            continue
        for words in commands(code):
            named = [word.removeprefix("--config=") for word in words]
            fewer = [f for name in named for f in FEWER.get(name, {}).items()]
            given = {word.partition("=")[0] for word in words}
            words += [f"--config.{k}={v}" for k, v in fewer if f"--config.{k}" not in given]
            if words[0] == "vfljax":
                lines.append(f"subprocess.run({[*CONSOLE, *words[1:]]!r}, check=True)")
    return "\n".join(lines)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    """Where the pages run."""
    return tmp_path_factory.mktemp("guide")


@pytest.fixture(scope="module")
def run_page(folder) -> Callable[..., str]:
    """Runs a page in a folder where the first page was run. Returns the end of what it wrote to stderr."""

    def run(page: pathlib.Path, edit: Callable[[str], str] = str, code: int = 0) -> str:
        for package in NEEDS.get(page, ()):
            if importlib.util.find_spec(package) is None:
                pytest.skip(f"{page.name} needs {package}")
        if page != FIRST and not (folder / "runs" / "first").exists():
            run(FIRST)
        quiet = {"MLFLOW_DISABLE_TELEMETRY": "true", "WANDB_SILENT": "true"}
        done = subprocess.run(
            [sys.executable, "-c", edit(program(page))],
            cwd=folder,
            env={**os.environ, **quiet, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == code, done.stdout[-2000:] + done.stderr[-4000:]
        return done.stderr[-4000:]

    return run


@pytest.mark.slow
@every_page
def test_every_block_of_a_page_runs(page, run_page):
    run_page(page)
    if page == SEARCH:  # its batches are stored: another search in the folder needs the same ranges
        other = run_page(
            page, lambda code: code.replace("ranges =", "low = 1e-3\nranges ="), code=1
        )
        assert "holds another sweep" in other


def test_every_link_between_pages_leads_to_a_file():
    templates = ROOT / "analysis" / "reproduction" / "templates"
    below = [path for path in (ROOT / "analysis").rglob("*.md") if path.parent != templates]
    lost = []
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *below]:
        prose = re.sub(r"^```.*?^```$|`[^`\n]*`", "", page.read_text(), flags=re.M | re.S)
        links = re.findall(r"\]\((?!\w+:|#)([^)#\s]+)", prose)
        lost += [f"{page}: {link}" for link in links if not (page.parent / link).exists()]
    assert lost == []
