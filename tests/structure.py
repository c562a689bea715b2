"""Which parts of vfljax import which, and how long they are: ``python tests/structure.py``.

A room is a module or package directly below the package ``vfljax``: ``vfljax/types.py`` is the room
``types``, everything in ``vfljax/sweep/`` the room ``sweep``. An arrow leads from a room to one that it
imports, anywhere in the code: imports inside functions and those for type checkers only count too. Rooms
that import no other are on floor 0, any other one floor above the highest room that it imports.
"""

from __future__ import annotations

import ast
import collections
import graphlib
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = "vfljax"


class House(NamedTuple):
    """The rooms of a package with their floors, and the imports that make each arrow (from, to)."""

    floors: dict[str, int]  # of each room; empty where there is a circle
    arrows: dict[tuple[str, str], list[str]]
    circle: list[str]  # rooms of which each is imported by the next; empty without one

    def __str__(self) -> str:
        lines = [
            f"floor {floor}: {' '.join(r for r, at in self.floors.items() if at == floor)}"
            for floor in sorted(set(self.floors.values()))
        ]
        lines.append(
            f"{len(self.floors)} rooms, {len(self.arrows)} arrows, {len(set(self.floors.values()))} floors, "
            f"{bool(self.circle):d} circles"
        )
        for end, start in zip(self.circle, self.circle[1:]):
            lines += self.arrows[start, end]
        return "\n".join(lines)


def house(root: pathlib.Path = ROOT) -> House:
    """Reads every module of the package below ``root``."""
    top = root / PACKAGE
    rooms = sorted({path.relative_to(top).parts[0].removesuffix(".py") for path in modules(root)})
    arrows: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for path in modules(root):
        module = path.relative_to(root).with_suffix("").parts
        for end, line in _imports(path, module):
            if end in rooms and end != module[1]:
                arrows[module[1], end].append(f"{path.relative_to(root)}:{line}")
    below = {room: {end for start, end in arrows if start == room} for room in rooms}
    floors: dict[str, int] = {}
    try:
        for room in graphlib.TopologicalSorter(below).static_order():
            floors[room] = 1 + max((floors[end] for end in below[room]), default=-1)
    except graphlib.CycleError as error:
        return House({}, dict(arrows), error.args[1])
    return House(floors, dict(arrows), [])


def modules(root: pathlib.Path = ROOT) -> list[pathlib.Path]:
    """Every module of the package but its own ``__init__``, which resolves names lazily."""
    top = root / PACKAGE
    return [path for path in sorted(top.rglob("*.py")) if path != top / "__init__.py"]


def shared_names(root: pathlib.Path = ROOT) -> dict[str, list[str]]:
    """Names of modules and classes that several files of the package have, and these files."""
    owners: dict[str, list[str]] = collections.defaultdict(list)
    for path in modules(root):
        name = str(path.relative_to(root))
        if path.stem not in ("__init__", "core", "rows"):
            owners[path.stem].append(name)
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                owners[node.name].append(name)
    return {name: files for name, files in owners.items() if len(files) > 1}


def lengths(folder: str, root: pathlib.Path = ROOT) -> dict[str, int]:
    """The lines of each Python file below a folder of the checkout."""
    files = sorted((root / folder).rglob("*.py"))
    return {str(path.relative_to(root)): path.read_text().count("\n") for path in files}


def _imports(path: pathlib.Path, module: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """(name directly below the package, "line: import") of every import of the package in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            start = _absolute("." * node.level + (node.module or ""), module[:-1])
            targets = [f"{start}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            first = node.args[0]  # of an f-string the beginning names the room
            first = first.values[0] if isinstance(first, ast.JoinedStr) else first
            name = first.value if isinstance(first, ast.Constant) else ""
            targets = [_absolute(str(name), module[:-1])]
        else:
            continue
        for end in {name.split(".")[1] for name in targets if name.startswith(f"{PACKAGE}.")}:
            yield end, f"{node.lineno}: {ast.unparse(node)}"


def _absolute(name: str, folder: tuple[str, ...]) -> str:
    """A dotted name without leading dots, which start from ``folder``."""
    rest = name.lstrip(".")
    level = len(name) - len(rest)
    start = folder[: len(folder) - level + 1] if level else ()
    return ".".join([*start, *filter(None, [rest])])


if __name__ == "__main__":
    print(house())
    print(*(f"{name}: {' '.join(files)}" for name, files in shared_names().items()), sep="\n")
    for folder in (PACKAGE, "tests"):
        lines = lengths(folder)
        print(
            f"{folder}: {sum(lines.values())} lines; longest: {max(lines, key=lines.__getitem__)}"
        )
