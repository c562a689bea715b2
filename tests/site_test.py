"""The guide of the site (``analysis/api/guide``) uses what exists, and every code block of it runs.

    python -m pytest -m slow tests/site_test.py

runs the blocks of every page in order, in one folder, on smaller sweeps than the pages have.
"""

import ast
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
from vfljax import cli, config
from vfljax.library.sweeps import Sweep
from vfljax.store import StoredTrial

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "analysis" / "api"
PAGES = sorted((FOLDER / "guide").glob("*.md"))
FIRST = PAGES[0]  # trains what the pages after it read
LINES = 80  # of a page
# what variables of the pages hold
HOLDS = {"sweep": Sweep, "longer": Sweep, "trial": StoredTrial}
CONSOLE = [sys.executable, "-c", "from vfljax import cli; cli.console()"]
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


def flags_of(name: str) -> set[str]:
    """The flags of a command."""
    return {flag.name for flag in cli.COMMANDS[name].FLAGS}


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
    assert (program, name in cli.COMMANDS) == ("vfljax", True), words
    names = [flag.removeprefix("--").partition("=")[0] for flag in flags]
    known = flags_of(name)
    fields = {f"config.{path}" for path in config.FIELDS} if "config" in known else set()
    return [name for name in names if name not in known | fields]


def test_there_are_six_short_pages():
    assert [page.name[0] for page in PAGES] == list("123456")
    for page in PAGES:
        assert len(page.read_text().splitlines()) <= LINES, page.name
        assert {language for language, _ in blocks(page)} <= {"python", "sh"}, page.name


@every_page
def test_a_page_uses_names_and_flags_that_exist(page):
    for language, code in blocks(page):
        if language == "python":
            assert list(absent(code)) == []
        for words in commands(code) if language == "sh" else ():
            assert unknown_flags(words) == []
    every = {flag for name in cli.COMMANDS for flag in flags_of(name)}
    prose = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.M | re.S)
    assert set(re.findall(r"--([a-z_]+)", prose)) <= every


@pytest.mark.parametrize(
    "code", ["vfljax.lode('x')", "sweep.verdict()", "from vfljax.report import page"]
)
def test_names_that_do_not_exist_are_found(code):
    assert list(absent(code))


def test_flags_that_do_not_exist_are_found():
    words = ["vfljax", "sweep", "--workdr=x", "--config.seed=1", "--dry_run"]
    assert unknown_flags(words) == ["workdr", "config.seed"]


def test_the_start_page_has_commands_of_the_first_page():
    block = re.search(r"code-block:: sh\n\n((?:   .*\n)+)", (FOLDER / "index.rst").read_text())
    assert block is not None
    assert all(line.strip() in FIRST.read_text() for line in block[1].splitlines())


def program(page: pathlib.Path) -> str:
    """The blocks of a page as one Python program, with the sweeps of ``FEWER`` and without installing."""
    lines = ["import subprocess"]
    for language, code in blocks(page):
        if language == "python":
            lines.append(code)
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
def run_page(tmp_path_factory) -> Callable[[pathlib.Path], None]:
    """Runs a page in a folder where the first page was run."""
    folder = tmp_path_factory.mktemp("guide")

    def run(page: pathlib.Path) -> None:
        if page != FIRST and not (folder / "runs" / "first").exists():
            run(FIRST)
        done = subprocess.run(
            [sys.executable, "-c", program(page)],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]

    return run


@pytest.mark.slow
@every_page
def test_every_block_of_a_page_runs(page, run_page):
    run_page(page)
