"""Every module of the library can be the first one a program imports, without any extra installed."""

import pathlib
import pkgutil
import subprocess
import sys

import pytest

import vfljax

# one process for all modules: where each comes first, only its room is forgotten between imports, since no
# circle leads from a room to another and back (``structure_test``)
PROGRAM = """
import importlib, sys
class Plain:  # an installation without any extra
    def find_spec(name, path=None, target=None):
        if name in ("hypothesis", "pytest", "torch", "safetensors", "tokenizers"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Plain)
first, *names = sys.argv[1:]
failed = []
for name in names:
    room = name.split(".")[:2]
    for loaded in [m for m in sys.modules if m.split(".")[:2] == room] if first == "first" else ():
        del sys.modules[loaded]
    try:
        importlib.import_module(name)
    except ImportError as error:
        failed.append(f"{name}: {error}")
print("\\n".join(failed))
"""


@pytest.mark.parametrize("order", ["any", pytest.param("first", marks=pytest.mark.slow)])
def test_every_module_can_be_imported(order):
    names = [m.name for m in pkgutil.walk_packages(vfljax.__path__, "vfljax.")]
    assert "vfljax.federation.protocol" in names
    root = pathlib.Path(vfljax.__file__).parents[1]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, order, *names],
        capture_output=True,
        text=True,
        cwd=root,
        check=True,
    )
    assert done.stdout.strip() == ""
