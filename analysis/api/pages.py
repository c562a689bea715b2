"""The generated pages of the site: one for every module of the library, and the list of them.

``sources()`` has the text of each page by its name, as reStructuredText. Sphinx fills in the docstrings
(``docstrings``), and is not needed here. A new module has its page without an edit.
"""

from __future__ import annotations

import pathlib
import pkgutil
from collections.abc import Iterable

import vfljax

SEPARATE = ("config", "defenses", "attacks", "models", "datasets")
"""Packages with a page for each module and its functions. Others have one page of docstrings."""


def modules() -> tuple[str, ...]:
    """Returns every module of the library, by its full name."""
    walk = pkgutil.walk_packages(vfljax.__path__, "vfljax.")
    return tuple(module.name for module in walk)


def _title(text: str, mark: str = "=") -> str:
    return f"{text}\n{mark * len(text)}\n"


def _contents(names: Iterable[str]) -> str:
    return ".. toctree::\n   :maxdepth: 1\n\n" + "".join(f"   {name}\n" for name in names)


def _module(name: str) -> str:
    """Returns a module's page: its docstring, its functions and its classes."""
    flax = "   :exclude-members: name, parent, scope, setup\n" * name.startswith("vfljax.models.")
    title = _title(name.removeprefix("vfljax."))
    return f"{title}\n.. automodule:: {name}\n   :members:\n   :undoc-members:\n{flax}"


def _package(package: str, members: Iterable[str]) -> str:
    """Returns a package's page, with the docstrings of its modules or the list of their pages."""
    text = _title(package.removeprefix("vfljax."))
    text += f"\n.. automodule:: {package}\n   :no-members:\n"
    if package.removeprefix("vfljax.") in SEPARATE:
        return f"{text}\n{_contents(members)}"
    for name in members:
        text += f"\n{_title(name.removeprefix('vfljax.'), '-')}"
        text += f"\n.. automodule:: {name}\n   :no-members:\n"
    return text


def sources() -> dict[str, str]:
    """Returns the text of every generated page, by its name without a suffix."""
    every, pages = modules(), {}
    for name in (name for name in every if name.count(".") == 1):
        members = [member for member in every if member.startswith(f"{name}.")]
        pages[name] = _package(name, members) if members else _module(name)
        if name.removeprefix("vfljax.") in SEPARATE:
            pages |= {member: _module(member) for member in members}
    return {**pages, "modules": f"{_title('Every module')}\n{_contents(sorted(pages))}"}


def write(folder: pathlib.Path) -> None:
    """Make ``folder`` hold the generated files and no other; files that are the same are not written."""
    folder.mkdir(exist_ok=True)
    files = {f"{name}.rst": text.encode() for name, text in sources().items()}
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
