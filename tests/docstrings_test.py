"""Every example of the docstrings holds."""

import doctest
import importlib
import pathlib

import pytest

ROOT = pathlib.Path(__file__).parents[1]
PROMPT = ">>> "
FILES = [
    path.relative_to(ROOT)
    for path in sorted((ROOT / "vfljax").rglob("*.py"))
    if PROMPT in path.read_text()
]


@pytest.mark.parametrize("path", FILES, ids=str)
def test_the_examples_hold(path):
    name = ".".join(path.with_suffix("").parts).removesuffix(".__init__")
    done = doctest.testmod(importlib.import_module(name))
    assert done.failed == 0
    written = [line for line in (ROOT / path).read_text().splitlines() if PROMPT in line]
    assert done.attempted == len(written)  # one that stands in no docstring of a member is not run
