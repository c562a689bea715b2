"""The generated pages of the site, and what they are made of.

``sources()`` has the text of every page by its name, as reStructuredText: the visible tables, the fields of a
config, the modules, the glossary of ``vfljax.types`` and the gallery of notebooks. ``examples()`` has the
notebooks and their pictures. Sphinx fills in the docstrings (``docstrings``), and is not needed here. A new
row, module or notebook has its page without an edit.
"""

from __future__ import annotations

import ast
import base64
import inspect
import json
import pathlib
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import vfljax
from analysis.api.docstrings import plain
from vfljax import attacks, config, datasets, defenses, models, types
from vfljax.types import NO_SPLIT, SPLIT

ROOMS = ("sweep", "store", "attacking", "report", "papers", "auditing")
"""Packages whose modules are shown by what they say of themselves, without their functions."""

NOTEBOOKS = pathlib.Path(__file__).parents[1]  # the folder that holds them
REPOSITORY = "https://github.com/vfljax/vfljax/blob/main/analysis/"
# a link of a notebook to a file of that folder that is no page of the site
LINK = re.compile(r"\]\((?=[\w./]+\))(?![\w.]+\.ipynb\))")


class Row(NamedTuple):
    """One row of a visible table."""

    name: str
    value: Any
    facts: Mapping[str, str]  # what the row says beyond its factory, as reStructuredText


class Table(NamedTuple):
    """A visible table and the package that it stands in."""

    package: str
    title: str
    mappings: Mapping[str, tuple[Row, ...]]  # the rows of each mapping of the package

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for rows in self.mappings.values() for row in rows)


def modules() -> tuple[str, ...]:
    """Every module of the library, by its full name."""
    walk = pkgutil.walk_packages(vfljax.__path__, "vfljax.")
    return tuple(module.name for module in walk)


def maker(value: Any) -> Any:
    """A row's factory, loader or network; of a partial, what it fixes fields of."""
    value = getattr(value, "factory", value)
    return getattr(value, "func", value)


def defined_in(value: Any) -> str:
    """The module of a row's ``maker``."""
    return maker(value).__module__


def _code(value: object) -> str:
    return f"``{value}``"


def _values(names: Mapping[str, Any]) -> str:
    """Names with their defaults, as a call would have them."""
    empty = inspect.Parameter.empty
    return ", ".join(_code(n if d is empty else f"{n}={d!r}") for n, d in names.items()) or "none"


def _defense(name: str, row: defenses.DefenseRow) -> Row:
    of_run = {SPLIT: "with model splitting", NO_SPLIT: "without model splitting"}
    facts = {
        "in an arm": _code({name: dict(row.example)}),
        "knobs": _values({n: p.default for n, p in row.knobs.items()}),
        "options": _values({n: p.default for n, p in row.options.items()}),
        "changes nothing at": _values(row.neutral) if row.neutral else "no value",
        "defined for": "two classes" if row.two_classes else "any number of classes",
    }
    if row.needs_top:
        facts["needs"] = "a top model, hence model splitting"
    for federation, words in of_run.items():
        if row.advice(federation):
            facts[f"known by, {words}"] = f"``{row.advice(federation)}``"
    if row.strengths is not None:
        at = ", ".join(map(str, row.strengths.values))
        facts["a search tries"] = f"``{row.strengths.knob}`` at {at}"
    return Row(name, row, facts)


def _attack(name: str, row: attacks.AttackRow) -> Row:
    attack = row((models.MLP(out=2, hidden=(4,)),), 2)
    facts = {
        "runs on": ", ".join(map(_code, attack.federations)),
        "knobs": _values(attack.knobs),
        "options": _values(row.options),
        "defined for": "two classes" if attack.binary else "any number of classes",
        "beside it": ", ".join(map(_code, attack.baselines)) or "no baseline",
        "number of its rule": str(row.rule),
    }
    return Row(name, row, facts)


def _loader(name: str, loader: Callable[..., datasets.Dataset]) -> Row:
    where = "comes with the install" if name in datasets.EMBEDDED else "``config.data.dir``"
    return Row(name, loader, {"files": where, "options": _values(datasets.options_of(name))})


def _network(name: str, network: Any, field: str) -> Row:
    facts = {"in a config": _code(f"model.{field}={name!r}")}
    if hasattr(network, "func"):
        facts["is"] = f"``{network.func.__name__}`` with {_values(network.keywords)}"
    else:
        facts["is"] = _code(network.__name__)
    return Row(name, network, facts)


def tables() -> tuple[Table, ...]:
    """The four visible tables, with what each of their rows says."""

    def rows(say: Callable[..., Row], table: Mapping[str, Any], *more: str) -> tuple[Row, ...]:
        return tuple(say(name, value, *more) for name, value in table.items())

    networks = {
        "BOTTOMS": rows(_network, models.BOTTOMS, "bottom"),
        "TOPS": rows(_network, models.TOPS, "top"),
    }
    return (
        Table("defenses", "Defenses", {"TABLE": rows(_defense, defenses.TABLE)}),
        Table("attacks", "Attacks", {"TABLE": rows(_attack, attacks.TABLE)}),
        Table("models", "Networks", networks),
        Table("datasets", "Data sets", {"TABLE": rows(_loader, datasets.TABLE)}),
    )


def _title(text: str, mark: str = "=") -> str:
    return f"{text}\n{mark * len(text)}\n"


def _contents(names: Iterable[str]) -> str:
    return ".. toctree::\n   :maxdepth: 1\n\n" + "".join(f"   {name}\n" for name in names)


def _grid(head: tuple[str, ...], rows: Iterable[tuple[str, ...]], widths: str) -> str:
    """A table of one line a cell."""
    lines = [".. list-table::", "   :header-rows: 1", f"   :widths: {widths}", ""]
    for row in (head, *rows):
        lines += [f"   {'*' if place == 0 else ' '} - {cell}" for place, cell in enumerate(row)]
    return "\n".join(lines) + "\n"


def _data(name: str) -> str:
    """What links to the name of a mapping lead to."""
    return f".. py:data:: {name}\n\n"


def _module(name: str, rows: tuple[Row, ...] = ()) -> str:
    """A module's page: what its rows say, and its docstrings."""
    text = _title(name.removeprefix("vfljax."))
    for row in rows:
        text += f"\n.. rubric:: {row.name}\n\n"
        text += "".join(f":{fact}: {said}\n" for fact, said in row.facts.items())
    flax = "   :exclude-members: name, parent, scope, setup\n" * name.startswith("vfljax.models.")
    return f"{text}\n.. automodule:: {name}\n   :members:\n   :undoc-members:\n{flax}"


def _docstring(module: str) -> str:
    root, path = pathlib.Path(vfljax.__file__).parents[1], pathlib.Path(*module.split("."))
    return ast.get_docstring(ast.parse((root / path).with_suffix(".py").read_text())) or ""


def _about(row: Row, rows: tuple[Row, ...]) -> str:
    """The first paragraph of the row's module; where others of another maker are from there, its maker's."""
    module = defined_in(row.value)
    beside = {maker(other.value) for other in rows if defined_in(other.value) == module}
    said = inspect.getdoc(maker(row.value)) if len(beside) > 1 else _docstring(module)
    return plain((said or "").partition("\n\n")[0].replace("\n", " "))


def _table(table: Table, every: Iterable[str]) -> dict[str, str]:
    """The pages of a visible table: its own, and one a module of its package."""
    pages, package = {}, f"vfljax.{table.package}"
    for name in (name for name in every if name.startswith(f"{package}.")):
        rows = tuple(row for row in table.rows if defined_in(row.value) == name)
        pages[name] = _module(name, rows)
    index = f"{_title(table.title)}\n.. automodule:: {package}\n   :no-members:\n\n"
    for mapping, rows in table.mappings.items():
        lines = [
            (_code(row.name), f":doc:`{defined_in(row.value)}`", _about(row, table.rows))
            for row in rows
        ]
        grid = _grid(("name", "page", "what it is"), lines, "18 27 55")
        index += f"{_data(f'{package}.{mapping}')}{grid}\n"
    index += f"\n{_title('Modules', '-')}\n{_contents(pages)}"
    functions = f"\n{_title('Functions', '-')}\n.. currentmodule:: {package}\n\n"
    functions += "".join(f".. autofunction:: {name}\n\n" for name in _functions(package))
    return {package: index + (functions if _functions(package) else ""), **pages}


def _functions(package: str) -> list[str]:
    """The public functions that a package's ``__init__`` itself defines."""
    module = vars(vfljax)[package.split(".")[-1]]
    found = inspect.getmembers(module, inspect.isfunction)
    return [n for n, f in found if f.__module__ == package and not n.startswith("_")]


def _config() -> str:
    head, lines = ("field", "default", "meaning"), []
    for path, field in config.FIELDS.items():
        lines.append((_code(path), _code(repr(field.default)), plain(field.meaning)))
    return (
        f"{_title('Config')}\n.. automodule:: vfljax.config\n   :members:\n\n"
        f"{_title('Every field', '-')}\n"
        f"{_data('vfljax.config.DEFAULT')}{_grid(head, lines, '30 22 48')}"
    )


def _room(package: str, every: Iterable[str]) -> str:
    text = _title(package.removeprefix("vfljax."))
    text += f"\n.. automodule:: {package}\n   :no-members:\n"
    for name in (name for name in every if name.startswith(f"{package}.")):
        text += f"\n{_title(name.removeprefix('vfljax.'), '-')}"
        text += f"\n.. automodule:: {name}\n   :no-members:\n"
    return text


def _glossary() -> str:
    """The words that the docstring of ``vfljax.types`` explains, a line or more each."""
    block = (types.__doc__ or "").partition("Glossary::\n\n")[2]
    entries = re.findall(r"^    (\S.*?)  +(.*(?:\n {6,}.*)*)$", block, flags=re.M)
    text = f"{_title('Glossary')}\n.. glossary::\n   :sorted:\n"
    for word, meaning in entries:
        text += f"\n   {word}\n      {plain(' '.join(meaning.split()))}\n"
    return text


class Notebook(NamedTuple):
    """A notebook as the gallery shows it."""

    name: str
    title: str
    about: str  # its first paragraph
    picture: bytes  # its first one, as PNG; empty without one
    source: str  # as the site has it


def notebooks() -> tuple[Notebook, ...]:
    """Every notebook, in the order of reading."""
    found = []
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        content = json.loads(path.read_text(encoding="utf-8"))
        for cell in content["cells"]:
            if cell["cell_type"] == "markdown":
                cell["source"] = LINK.sub(f"]({REPOSITORY}", "".join(cell["source"]))
        outputs = (output for cell in content["cells"] for output in cell.get("outputs", ()))
        pictures = (output.get("data", {}).get("image/png") for output in outputs)
        heading = next(
            cell["source"] for cell in content["cells"] if cell["source"].startswith("# ")
        )
        title, *paragraphs = heading.removeprefix("# ").split("\n\n")
        about = next(text for text in paragraphs if not text.startswith("["))
        picture = base64.b64decode("".join(next(filter(None, pictures), "")))
        found.append(Notebook(path.stem, title, about, picture, json.dumps(content)))
    return tuple(found)


def _gallery(shown: tuple[Notebook, ...]) -> str:
    text = f"{_title('Examples')}\nEach page is a notebook with what it printed when it was last run.\n"
    for notebook in shown:
        text += f"\n{_title(notebook.title, '-')}\n{plain(notebook.about)}\n\n"
        text += f":doc:`Open the notebook <{notebook.name}>`\n"
        if notebook.picture:
            text += f"\n.. image:: {notebook.name}.png\n   :width: 560\n   :target: {notebook.name}.html\n"
            text += f"   :alt: {notebook.title}\n"
    names = "".join(f"   {notebook.name}\n" for notebook in shown)
    return f"{text}\n.. toctree::\n   :hidden:\n\n{names}"


def examples() -> dict[str, bytes]:
    """The notebooks and their pictures, by the names of their files."""
    files = {}
    for notebook in notebooks():
        files[f"{notebook.name}.ipynb"] = notebook.source.encode()
        if notebook.picture:
            files[f"{notebook.name}.png"] = notebook.picture
    return files


def sources() -> dict[str, str]:
    """The text of every generated page, by its name without a suffix."""
    every, pages = modules(), {}
    for table in tables():
        pages |= _table(table, every)
    pages["vfljax.config"] = _config()
    pages |= {f"vfljax.{room}": _room(f"vfljax.{room}", every) for room in ROOMS}
    others = [n for n in every if n.count(".") == 1 and n not in pages]
    pages |= {name: _module(name) for name in others}
    for name in [n for n in others if any(m.startswith(f"{n}.") for m in every)]:
        pages[name] = _room(name, every)  # a room that is new
    pages["modules"] = f"{_title('Every module')}\n{_contents(sorted(pages))}"
    return {**pages, "glossary": _glossary(), "examples": _gallery(notebooks())}


def write(folder: pathlib.Path) -> None:
    """Make ``folder`` hold the generated files and no other; files that are the same are not written."""
    folder.mkdir(exist_ok=True)
    files = {f"{name}.rst": text.encode() for name, text in sources().items()} | examples()
    for path in folder.iterdir():
        if path.name not in files:
            path.unlink()
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)
