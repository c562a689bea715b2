"""Guide, notebooks, configs, LeakBench's entries and README import public names alone."""

import ast
import contextlib
import json
import pathlib
import re
from collections.abc import Iterator

import pytest

from analysis.reference.tables import public

ROOT = pathlib.Path(__file__).parents[1]
FENCE = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
MAGIC = re.compile(r"^( *)[%!].*", re.MULTILINE)
# an entry's files are pinned by their SHA-256, and this one builds on a factory of the table
PINNED = {"analysis/leakbench/attacks/exchange_back.py": {"vfljax.attacks.direct.direct"}}


def programs(path: pathlib.Path) -> Iterator[str]:
    """The Python code of a file, page or notebook; of a page, the blocks that are whole programs."""
    text = path.read_text()
    if path.suffix == ".py":
        yield text
    elif path.suffix == ".md":
        for block in FENCE.findall(text):
            with contextlib.suppress(SyntaxError):  # a signature, or lines to be filled in
                ast.parse(block)
                yield block
    else:
        for cell in json.loads(text)["cells"]:
            if cell["cell_type"] == "code":
                yield MAGIC.sub(r"\1pass", "".join(cell["source"]))


def dotted(node: ast.expr) -> str:
    """``vfljax.testing.check`` of such an expression, else ""."""
    if isinstance(node, ast.Attribute):
        before = dotted(node.value)
        return f"{before}.{node.attr}" if before else ""
    return node.id if isinstance(node, ast.Name) and node.id == "vfljax" else ""


def names(program: str) -> Iterator[str]:
    """What a program imports or reads of vfljax, in full."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Attribute):
            yield dotted(node)


def is_public(name: str) -> bool:
    """Whether a full name is a public module, or listed by one, or read of what one lists."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        module = public().get(".".join(parts[:end]))
        if module is not None:
            return end == len(parts) or parts[end] in module.__all__
    return False


def places() -> list[pathlib.Path]:
    return [
        ROOT / "README.md",
        *sorted((ROOT / "analysis" / "guide").glob("*.md")),
        *sorted((ROOT / "analysis").glob("*.ipynb")),
        *sorted((ROOT / "configs").rglob("*.py")),
        *sorted((ROOT / "analysis" / "leakbench" / "entries").glob("*.py")),
        *sorted((ROOT / "analysis" / "leakbench" / "attacks").glob("*.py")),
    ]


def test_only_public_names_are_imported():
    found = {}
    for path in places():
        where = path.relative_to(ROOT).as_posix()
        used = {name for program in programs(path) for name in names(program)}
        private = {n for n in used if n.split(".")[0] == "vfljax" and not is_public(n)}
        if private - PINNED.get(where, set()):
            found[where] = private
    assert found == {}


@pytest.mark.parametrize("module", public().values(), ids=public())
def test_what_a_public_module_lists_is_there(module):
    assert {name for name in module.__all__ if not hasattr(module, name)} == set()


def test_a_private_name_is_found():
    assert is_public("vfljax.defenses.core.per_party")
    assert is_public("vfljax.VERDICTS.items")
    assert not is_public("vfljax.store.load")
    assert not is_public("vfljax.attacks.direct.direct")
    used = ["vfljax", "vfljax.errors.slug", "vfljax.errors"]
    assert [*names("import vfljax\nvfljax.errors.slug('a')")] == used
