"""The import of a plugin, which adds its rows to the tables of defenses and attacks."""

from __future__ import annotations

import dataclasses
import hashlib
import importlib
import importlib.util
import inspect
import pathlib
import sys
from types import ModuleType
from typing import Any

from vfljax import attacks, defenses
from vfljax.attacks import AttackRow
from vfljax.defenses import DefenseRow, Knower
from vfljax.errors import UserError, check_call, raised, short_path, unknown, user_path
from vfljax.types import NO_SPLIT, SPLIT, Origin

Row = DefenseRow | AttackRow
FEDERATIONS = (SPLIT, NO_SPLIT)


def all_rows() -> dict[str, Row]:
    """Returns the rows of both tables by name."""
    return {**defenses.TABLE, **attacks.TABLE}


def use(source: str | pathlib.Path) -> dict[str, Row]:
    """Imports a module and adds its rows to the tables of defenses and attacks.

    Args:
      source: the name of a module that Python finds, or the path of a ``.py`` file. A name has no dots:
        it is the first part of the rows' names.

    Returns:
      Its rows by their names in the tables, such as "mine:shuffle". The ``origin`` of each has the plugin's
      version and SHA-256. Using the same file again changes nothing.

    Raises:
      UserError: for a module that is not found or raises, one without rows, a row whose factory cannot be
        called as the tables call it, and a file that has changed since this process imported it.
    """
    name, path = _found(str(source))
    sha256 = _digest(path)
    present = {
        row_name: row
        for row_name, row in all_rows().items()
        if row.factory is not None and row.origin is not None and row.origin.plugin == name
    }
    if present:
        if any(row.origin and row.origin.sha256 != sha256 for row in present.values()):
            raise UserError(
                f"the plugin {name} ({short_path(path)}) has changed since this process imported it: restart "
                "Python, which keeps compiled programs; if it is another file of that name, rename it."
            )
        return present
    module = _imported(name, path)
    origin = Origin(name, str(getattr(module, "__version__", "")), sha256)
    rows = {
        f"{name}:{attribute}": dataclasses.replace(row, origin=origin)
        for attribute, row in vars(module).items()
        if isinstance(row, DefenseRow | AttackRow)
        and not any(row is r for r in all_rows().values())
    }
    if not rows:
        raise UserError(
            f"the plugin {name} ({short_path(path)}) has no row: let it end in `signs = DefenseRow(...)` or "
            "`line = AttackRow(...)`, as analysis/guide/add_a_defense.md and add_an_attack.md show."
        )
    for row_name, row in rows.items():
        try:
            _check_row(row_name, row)
        except TypeError as error:  # its factory has other parameters
            raise UserError(f"{row_name}: {error}.") from error
    for row_name, row in rows.items():
        table_with(row)[row_name] = row
    return rows


def _found(source: str) -> tuple[str, pathlib.Path]:
    """Returns the name of a plugin and its file, or its folder if it is a package."""
    path = user_path(source, "plugin") if source.endswith(".py") else pathlib.Path(source)
    name = path.stem if source.endswith(".py") else source
    if not name.isidentifier():
        remedy = "give a module's name without dots, or a path that ends in .py"
        raise UserError(f"the plugin {source!r} has no name that a config could use: {remedy}.")
    if source.endswith(".py"):
        if not path.is_file():
            raise UserError(f"the plugin {source} is missing: give the path of a Python file.")
        return name, path.resolve()
    importlib.invalidate_caches()  # the file may be younger than Python's list of the folder
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        spec = None
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise UserError(
            f"the plugin {name!r} is missing: no {name}.py is in this folder, and no module of that name "
            f"is installed; give the path of a file ending in .py."
        )
    file = pathlib.Path(spec.origin)
    return name, file.parent if spec.submodule_search_locations else file


def _digest(path: pathlib.Path) -> str:
    """Returns the SHA-256 of a file, or of the names and contents of a package's Python files."""
    if path.is_file():
        return hashlib.sha256(path.read_bytes()).hexdigest()
    parts = (f"{f.relative_to(path)} {_digest(f)}" for f in sorted(path.rglob("*.py")))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _imported(name: str, path: pathlib.Path) -> ModuleType:
    file = path if path.is_file() else path / "__init__.py"
    before = sys.modules.get(name)
    if before is not None:
        origin = getattr(before, "__file__", None)
        if origin is None or pathlib.Path(origin).resolve() != file.resolve():
            what = f"the plugin {name} has the name of another module"
            raise UserError(what, remedy=f"rename {short_path(file)}")
        return before
    folders = [str(path)] if path.is_dir() else None
    spec = importlib.util.spec_from_file_location(name, file, submodule_search_locations=folders)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:  # SystemExit too: the file may raise anything
        sys.modules.pop(name)
        if isinstance(error, KeyboardInterrupt):
            raise
        raise UserError(f"the plugin {name} cannot be imported: {raised(error, file)}") from error
    return module


def table_with(row: Row) -> dict[str, Any]:
    """Returns the table that a row belongs in."""
    return defenses.TABLE if isinstance(row, DefenseRow) else attacks.TABLE


def _check_row(name: str, row: Row) -> None:
    """Refuses a row that cannot be called, planned or described. The contract checks what the row does."""
    if row.factory is None or not callable(row.factory):
        raise UserError(f"{name}: its factory is a {type(row.factory).__name__}: give a function.")
    for p in inspect.signature(row.factory).parameters.values():
        if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD):
            raise UserError(f"{name}: its factory takes {p}: name every knob and option.")
        if p.kind is p.KEYWORD_ONLY and p.default is p.empty:
            raise UserError(f"{name}: its option {p.name} has no default: give it one.")
    if isinstance(row, AttackRow):
        check_call("factory", row.factory, "bottoms", "num_classes")
        return
    for field, values in (("example", row.example), ("neutral", row.neutral)):
        if values is not None and set(values) != set(row.knobs):
            raise UserError(
                f"{name}: {field} names {', '.join(values) or 'no knob'}, and the factory's knobs (its "
                f"positional parameters) are {', '.join(row.knobs) or 'none'}: give each a value."
            )
    for federation, knowers in (row.known_by or {"": ()}).items():
        if federation not in FEDERATIONS:
            raise unknown(f"federation in known_by of {name}", federation, FEDERATIONS)
        if not isinstance(knowers, tuple) or not all(isinstance(k, Knower) for k in knowers):
            raise UserError(f"{name}: known_by has {knowers!r}: give (Knower('probe', 'mean'),).")
