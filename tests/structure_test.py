"""The structure of the package: no circle, few rooms, floors, arrows and lines, and light imports."""

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.structure import PACKAGE, ROOT, House, house, lengths, shared_names

# whoever breaks one of these changes the design, and not the number
ROOMS = 23
FLOORS = 9
ARROWS = 108
LINES = {PACKAGE: 43_700, "tests": 40_190}
LONGEST = 350
# data sets know nothing of what is trained on them
NOT_FOR_DATASETS = {"federation", "sweep", "attacking", "report", "defenses", "attacks", "models"}
# attacks and the report read a stored sweep, never the running one
NOT_FOR_SWEEP = {"report", "attacking"}

# what is imported, and what must not be loaded by it
LIGHT = {
    "vfljax": ("jax", "numpy"),
    "vfljax.federation.protocol": ("vfljax.attacks",),
    "vfljax.sweep.plan": ("vfljax.report", "matplotlib"),
}
LOADED = """
import importlib, json, os, sys
names = json.loads(sys.argv[1])
for name in names:
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        try:
            importlib.import_module(name)
            answer = {"modules": sorted(sys.modules)}
        except Exception as error:
            answer = {"error": repr(error)}
        with os.fdopen(writer, "w") as file:
            json.dump(answer, file)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as file:
        print(file.read())
    os.waitpid(child, 0)
"""


@functools.cache
def built() -> House:
    return house()


def only(room: str, forbidden: set[str]) -> list[str]:
    """The imports by which ``room`` reaches a forbidden room directly."""
    return [line for end in sorted(forbidden) for line in built().arrows.get((room, end), [])]


@functools.cache
def loaded() -> dict[str, dict]:
    """The modules that each import of ``LIGHT`` loads: one process, which forks before each."""
    names = [name for name in LIGHT if exists(name)]
    done = subprocess.run(
        [sys.executable, "-c", LOADED, json.dumps(names)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        text=True,
    )
    return dict(zip(names, map(json.loads, done.stdout.splitlines()), strict=True))


def exists(name: str) -> bool:
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its parent is a module, not a package
        return False


def test_no_rooms_import_each_other_in_a_circle():
    assert not built().circle, str(built())


def test_few_rooms_floors_and_arrows():
    assert len(built().floors) <= ROOMS, str(built())
    assert len(set(built().floors.values())) <= FLOORS, str(built())
    assert len(built().arrows) <= ARROWS, str(built())


@pytest.mark.parametrize("folder", LINES)
def test_few_lines(folder):
    assert sum(lengths(folder).values()) <= LINES[folder]


def test_no_long_file():
    assert not {name for name, lines in lengths(PACKAGE).items() if lines > LONGEST}


def test_no_name_of_a_module_or_class_is_shared():
    assert not shared_names()


def test_datasets_know_nothing_of_training():
    lines = only("datasets", NOT_FOR_DATASETS)
    assert not lines, "\n".join(lines)


def test_a_sweep_does_not_know_who_reads_it():
    lines = only("sweep", NOT_FOR_SWEEP)
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("name", LIGHT)
def test_an_import_loads_only_what_it_needs(name):
    assert exists(name), f"there is no module {name}"
    answer = loaded()[name]
    assert "error" not in answer, answer["error"]
    heavy = {
        module
        for module in answer["modules"]
        for absent in LIGHT[name]
        if module == absent or module.startswith(f"{absent}.")
    }
    assert not heavy


def package(root: pathlib.Path, **sources: str) -> House:
    """The house of a package of these sources; ``a__b`` is the module ``a.b``."""
    for name, source in {"__init__": "from vfljax import top\n", **sources}.items():
        path = root / "vfljax" / f"{name.replace('__', '/', 1) if name[0] != '_' else name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(source)
    return house(root)


def test_floors_count_from_the_ground_and_a_package_is_one_room(tmp_path):
    small = package(
        tmp_path,
        ground="import os\n",
        room____init__="from vfljax.room import inner\n",
        room__inner="from . import other\nfrom .. import ground\nimport jax\n",
        top="import vfljax.room as m\nfrom vfljax.ground import x\n",
        aside="import vfljax\nimport other.ground\nfrom vfljax import load\n",
    )
    assert small.floors == {"ground": 0, "aside": 0, "room": 1, "top": 2}
    assert set(small.arrows) == {("room", "ground"), ("top", "room"), ("top", "ground")}
    assert small.arrows["room", "ground"] == ["vfljax/room/inner.py:2: from .. import ground"]


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    from vfljax.ground import x\n",
        "def f():\n    import vfljax.ground\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vfljax import ground\n",
        "from importlib import import_module\nx = import_module('vfljax.ground.part')\n",
        "import importlib\nx = importlib.import_module('.ground', 'vfljax')\n",
        "import importlib\nx = lambda part: importlib.import_module(f'vfljax.ground.{part}')\n",
    ],
)
def test_imports_anywhere_count(tmp_path, source):
    assert set(package(tmp_path, ground="", top=source).arrows) == {("top", "ground")}


def test_a_circle_is_shown_with_its_imports(tmp_path):
    small = package(
        tmp_path,
        a="import vfljax.b\n",
        b="from vfljax import c\n",
        c="\ndef f():\n    from vfljax.a import x\n",
    )
    assert set(small.circle) == {"a", "b", "c"}
    assert "vfljax/c.py:3: from vfljax.a import x" in str(small)
