"""What the modules of the library load: no extra, and of the bare package no JAX."""

import ast
import pathlib
import subprocess
import sys
from collections.abc import Iterator

import vfljax

PACKAGE = pathlib.Path(vfljax.__file__).parent
EXTRAS = {"hypothesis", "pytest", "torch", "tokenizers", "xarray", "submitit", "ray", "optuna"}


def imported(body: list[ast.stmt]) -> Iterator[str]:
    """The packages that statements import when a module is loaded, but for those of type checkers."""
    for statement in body:
        if isinstance(statement, ast.Import):
            yield from (alias.name.split(".")[0] for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom):
            yield (statement.module or "").split(".")[0]
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            yield from imported(statement.orelse)
        elif not isinstance(statement, ast.FunctionDef):
            for part in ("body", "orelse", "finalbody"):
                yield from imported(getattr(statement, part, []))


def test_no_module_loads_a_package_of_an_extra():
    found = {
        f"{path.relative_to(PACKAGE)}: {name}"
        for path in PACKAGE.rglob("*.py")
        for name in {*imported(ast.parse(path.read_text()).body)} & EXTRAS
    }
    assert found == set()


def test_the_package_is_imported_without_jax():
    """Commands print their help at once."""
    program = "import sys, vfljax; print(*sys.modules)"
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent, check=True)
    assert not {*done.stdout.split()} & {"jax", "numpy"}
