"""Which parts of vfljax import which: rooms, floors, arrows and circles.

    python tests/structure.py

A room is a module or package directly below the package ``vfljax``: ``vfljax/types.py`` is the room
``types``, everything in ``vfljax/sweep/`` the room ``sweep``. An arrow leads from a room to one
that it imports, anywhere in the code: imports inside functions and those for type checkers only
count too. Rooms that import no other are on floor 0, any other one floor above the highest
room that it imports. A circle is a set of rooms that import each other, directly or by way of
others; its rooms share a floor.
"""

from __future__ import annotations

import ast
import pathlib
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).parents[1]
PACKAGE = "vfljax"


class Import(NamedTuple):
    """One import of a room by a module of another: where it stands, and what it says."""

    path: str
    line: int
    text: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text}"


class House(NamedTuple):
    """The rooms of a package: their floors, and the imports of every arrow (from, to).

    ``modules`` maps each module's path, relative to the root, to the rooms that it imports.
    """

    floors: dict[str, int]
    arrows: dict[tuple[str, str], list[Import]]
    circles: list[tuple[str, ...]]
    modules: dict[str, tuple[str, ...]]

    @property
    def height(self) -> int:
        """Number of floors."""
        return len(set(self.floors.values()))

    def imported_by(self, room: str) -> set[str]:
        """The rooms that ``room`` imports."""
        return {end for start, end in self.arrows if start == room}

    def causes(self, circle: tuple[str, ...]) -> list[Import]:
        """The imports that make a circle: all of its arrows."""
        inside = [a for a in sorted(self.arrows) if a[0] in circle and a[1] in circle]
        return [line for arrow in inside for line in self.arrows[arrow]]


def house(root: pathlib.Path = ROOT, package: str = PACKAGE) -> House:
    """Read every module of ``root / package`` and return the house of its rooms."""
    top = root / package
    rooms = sorted(
        path.stem
        for path in top.iterdir()
        if (path.suffix == ".py" and path.stem != "__init__") or any(path.glob("**/*.py"))
    )
    arrows: dict[tuple[str, str], list[Import]] = {}
    modules = {}
    for path in sorted(top.glob("**/*.py")):
        if path == top / "__init__.py":
            continue  # not a room; what it resolves lazily is no part of the structure
        name, parts = str(path.relative_to(root)), path.relative_to(top).with_suffix("").parts
        imports = list(_imports(path, (package, *parts), name))
        reached = sorted({end for end, _ in imports if end in rooms and end != parts[0]})
        modules[name] = tuple(reached)
        for end, line in imports:
            if end in reached:
                arrows.setdefault((parts[0], end), []).append(line)
    circles = _circles(rooms, set(arrows))
    return House(_floors(rooms, set(arrows), circles), arrows, circles, modules)


def _imports(
    path: pathlib.Path, module: tuple[str, ...], name: str
) -> Iterator[tuple[str, Import]]:
    """(room or attribute of the package, import) of every import of the package in a file."""
    for node in ast.walk(ast.parse(path.read_text(), name)):
        if not isinstance(node, ast.Import | ast.ImportFrom | ast.Call):
            continue
        line = Import(name, node.lineno, ast.unparse(node))
        for parts in {tuple(target.split(".")[:2]) for target in _targets(node, module[:-1])}:
            if len(parts) == 2 and parts[0] == module[0]:
                yield parts[1], line


def _targets(node: ast.AST, folder: tuple[str, ...]) -> list[str]:
    """Dotted names that one node imports; ``folder`` is the package that relative names start from."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        start = _absolute("." * node.level + (node.module or ""), folder)
        return [f"{start}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Call) and node.args and _called(node.func) == "import_module":
        name = _literal(node.args[0])
        return [_absolute(name, folder)] if name else []
    return []


def _absolute(name: str, folder: tuple[str, ...]) -> str:
    """A dotted name without leading dots."""
    rest = name.lstrip(".")
    level = len(name) - len(rest)
    start = folder[: len(folder) - level + 1] if level else ()
    return ".".join([*start, *([rest] if rest else [])])


def _called(function: ast.expr) -> str:
    """``import_module`` for both ``importlib.import_module`` and ``import_module``."""
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def _literal(node: ast.expr) -> str:
    """A literal string, or what an f-string starts with: enough to name a room."""
    if isinstance(node, ast.JoinedStr) and node.values:
        node = node.values[0]
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else ""


def _circles(rooms: list[str], arrows: set[tuple[str, str]]) -> list[tuple[str, ...]]:
    """Strongly connected sets of more than one room."""
    reach = {room: _reached(room, arrows) for room in rooms}
    sets = {tuple(r for r in rooms if r in reach[room] and room in reach[r]) for room in rooms}
    return sorted(circle for circle in sets if len(circle) > 1)


def _reached(start: str, arrows: set[tuple[str, str]]) -> set[str]:
    """The rooms that ``start`` imports, directly or by way of others."""
    reached: set[str] = set()
    new = {start}
    while new:
        new = {end for room, end in arrows if room in new} - reached
        reached |= new
    return reached


def _floors(
    rooms: list[str], arrows: set[tuple[str, str]], circles: list[tuple[str, ...]]
) -> dict[str, int]:
    """The floor of every room; a circle counts as one room."""
    unit = {room: (room,) for room in rooms}
    unit |= {room: circle for circle in circles for room in circle}
    below = {(unit[a], unit[b]) for a, b in arrows if unit[a] != unit[b]}
    floors: dict[tuple[str, ...], int] = {}
    while left := set(unit.values()) - set(floors):
        for one in left:
            ends = [end for start, end in below if start == one]
            if all(end in floors for end in ends):
                floors[one] = 1 + max((floors[end] for end in ends), default=-1)
    return {room: floors[unit[room]] for room in rooms}


def describe(house: House) -> str:
    """The house as plain text: floors from the ground up, counts, circles, and data sets' imports."""
    lines = []
    for floor in sorted(set(house.floors.values())):
        rooms = [room for room, at in house.floors.items() if at == floor]
        lines.append(f"floor {floor}: {' '.join(rooms)}")
    lines.append(
        f"{len(house.floors)} rooms, {len(house.arrows)} arrows, {house.height} floors, "
        f"{len(house.circles)} circles"
    )
    for circle in house.circles:
        lines += [
            "",
            f"circle: {' '.join(circle)}",
            *(f"  {line}" for line in house.causes(circle)),
        ]
    lines += ["", "datasets import:"]
    for path, rooms in house.modules.items():
        if pathlib.PurePath(path).parts[1].removesuffix(".py") == "datasets" and rooms:
            lines.append(f"  {path}: {' '.join(rooms)}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(describe(house()))
