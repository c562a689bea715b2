"""Every module of the library can be the first one a program imports, without any extra installed."""

import pathlib
import pkgutil
import subprocess
import sys

import pytest

import vfljax

ROOT = pathlib.Path(vfljax.__file__).parents[1]
# what must not be loaded by an import
ABSENT = {
    "vfljax": ("jax", "numpy"),
    "vfljax.federation.protocol": ("vfljax.attacks",),
    "vfljax.sweep.plan": ("vfljax.report", "matplotlib"),
}

# one process for all modules: where each comes first, only its package is forgotten between imports, since no
# circle leads from a package to another and back (``lint-imports``)
PROGRAM = """
import importlib, sys
class Plain:  # an installation without any extra
    def find_spec(name, path=None, target=None):
        if name in ("hypothesis", "pytest", "torch", "tokenizers"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Plain)
first, *names = sys.argv[1:]
failed = []
for name in names:
    package = name.split(".")[:2]
    for loaded in [m for m in sys.modules if m.split(".")[:2] == package] if first == "first" else ():
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
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, order, *names],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=True,
    )
    assert done.stdout.strip() == ""


@pytest.mark.parametrize("name", ABSENT)
def test_an_import_loads_only_what_it_needs(name):
    program = f"import sys, {name}; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True
    )
    loaded = {".".join(m.split(".")[:n]) for m in done.stdout.split() for n in (1, 2)}
    assert not loaded & {*ABSENT[name]}
