"""The structure of the package: no circles, few floors, few arrows, and light imports."""

import functools
import importlib.util
import json
import os
import pathlib
import subprocess
import sys

import pytest

from tests.structure import ROOT, House, describe, house

ROOMS = 22
FLOORS = 9
ARROWS = 100
# data sets know nothing of what is trained on them
NOT_FOR_DATASETS = {
    "federation",
    "sweep",
    "attacking",
    "report",
    "defenses",
    "attacks",
    "models",
}
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
    arrows = [(room, end) for end in sorted(forbidden)]
    return [str(line) for arrow in arrows for line in built().arrows.get(arrow, [])]


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
    assert not built().circles, describe(built())


def test_few_rooms():
    assert len(built().floors) <= ROOMS, describe(built())


def test_few_floors():
    assert built().height <= FLOORS, describe(built())


def test_few_arrows():
    assert len(built().arrows) <= ARROWS, describe(built())


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


# the script itself, on small packages


def package(root: pathlib.Path, **modules: str) -> House:
    """The house of a package of these sources; ``a__b`` is the module ``a.b``."""
    (root / "vfljax").mkdir()
    (root / "vfljax" / "__init__.py").write_text("import importlib\nfrom vfljax import top\n")
    (root / "vfljax" / "py.typed").write_text("")
    for name, source in modules.items():
        path = root / "vfljax" / f"{name.replace('__', '/', 1)}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(source)
    return house(root)


def test_floors_count_from_the_ground(tmp_path):
    small = package(
        tmp_path,
        ground="import os\n",
        middle="from vfljax import ground\nimport jax\n",
        top="import vfljax.middle as m\nfrom vfljax.ground import x\n",
        aside="",
    )
    assert small.floors == {"ground": 0, "aside": 0, "middle": 1, "top": 2}
    assert small.height == 3
    assert set(small.arrows) == {("middle", "ground"), ("top", "middle"), ("top", "ground")}
    assert small.circles == []
    assert small.imported_by("top") == {"middle", "ground"}


def test_a_package_is_one_room(tmp_path):
    small = package(
        tmp_path,
        ground="",
        room____init__="from vfljax.room import inner\n",
        room__inner="from . import other\nfrom .. import ground\n",
        room__other="from .inner import f\nfrom ..ground import g\n",
    )
    assert set(small.arrows) == {("room", "ground")}
    assert [line.path for line in small.arrows["room", "ground"]] == [
        "vfljax/room/inner.py",
        "vfljax/room/other.py",
    ]
    assert small.modules["vfljax/room/inner.py"] == ("ground",)
    assert small.modules["vfljax/room/__init__.py"] == ()


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    from vfljax.ground import x\n",
        "def f():\n    import vfljax.ground\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from vfljax import ground\n",
        "from vfljax import (\n    absent,\n    ground,\n)\n",
        "import importlib\nx = importlib.import_module('vfljax.ground')\n",
        "from importlib import import_module\nx = import_module('vfljax.ground.part')\n",
        "import importlib\nx = importlib.import_module('.ground', 'vfljax')\n",
        "import importlib\nx = lambda part: importlib.import_module(f'vfljax.ground.{part}')\n",
    ],
)
def test_imports_anywhere_count(tmp_path, source):
    small = package(tmp_path, ground="", top=source)
    assert set(small.arrows) == {("top", "ground")}


def test_other_packages_and_names_do_not_count(tmp_path):
    source = "import vfljax\nimport other.ground\nfrom vfljax import load\nimport ground\n"
    small = package(tmp_path, ground="", top=source)
    assert not small.arrows


def test_a_circle_is_shown_with_its_imports(tmp_path):
    small = package(
        tmp_path,
        ground="",
        a="import vfljax.b\nfrom vfljax import ground\n",
        b="from vfljax import c\n",
        c="\ndef f():\n    from vfljax.a import x\n",
        top="from vfljax import a\n",
    )
    assert small.circles == [("a", "b", "c")]
    assert [str(line) for line in small.causes(small.circles[0])] == [
        "vfljax/a.py:1: import vfljax.b",
        "vfljax/b.py:1: from vfljax import c",
        "vfljax/c.py:3: from vfljax.a import x",
    ]
    assert small.floors == {"ground": 0, "a": 1, "b": 1, "c": 1, "top": 2}
    text = describe(small)
    assert "5 rooms, 5 arrows, 3 floors, 1 circles" in text
    assert "  vfljax/c.py:3: from vfljax.a import x" in text


def test_the_script_prints_what_each_data_set_imports(tmp_path):
    small = package(
        tmp_path, rows="", datasets____init__="", datasets__core="from vfljax import rows"
    )
    assert describe(small).endswith("datasets import:\n  vfljax/datasets/core.py: rows")
