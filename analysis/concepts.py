"""Counts what a reader of the package must keep in mind.

    python -m analysis.concepts [REVISION ...]
    python -m analysis.concepts --list=names

Prints a line for each revision of git, and for the checkout where none is given:

    records      classes of vfljax/ that are a NamedTuple, a dataclass or a Struct
    names        names that modules import by name from at least two that define them, ``ROW`` apart
    parameters   functions with more than six parameters, ``self`` not counted
    code         lines of vfljax/ with code
    docstrings   lines of docstrings in vfljax/
    words        words of the Markdown files of the whole checkout

`--list=records`, `--list=names` and `--list=parameters` say which.
"""

from __future__ import annotations

import argparse
import ast
import collections
import dataclasses
import io
import pathlib
import subprocess
import tarfile
import tokenize
from collections.abc import Iterator, Mapping

PACKAGE = "vfljax"
RECORDS = {"NamedTuple", "Struct"}
MOST = 6  # parameters that need no count
BLANK = {
    *(tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT),
    *(tokenize.ENCODING, tokenize.ENDMARKER),
}
PATTERN = {"ROW"}  # what every module of a table defines
HEADER = ("", "records", "names", "parameters", "code", "docstrings", "words")


@dataclasses.dataclass
class Counted:
    """What is counted in one checkout; each entry of a list names a place."""

    records: list[str]
    names: list[str]
    parameters: list[str]
    code: int
    docstrings: int
    words: int


def texts_of(revision: str) -> dict[str, str]:
    """Returns the Python and Markdown files of a revision by path; "" is the checkout's tracked files."""
    if not revision:
        listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True)
        paths = [pathlib.Path(line) for line in listed.stdout.splitlines()]
        found = [path for path in paths if path.suffix in (".py", ".md") and path.exists()]
        return {path.as_posix(): path.read_text() for path in found}
    archive = subprocess.run(["git", "archive", revision], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as members:
        files = [m for m in members if m.isfile() and m.name.endswith((".py", ".md"))]
        streams = {m.name: members.extractfile(m) for m in files}
        return {name: stream.read().decode() for name, stream in streams.items() if stream}


def last_name(node: ast.expr) -> str:
    """Returns the last part of a name: of ``chex.dataclass(frozen=True)`` "dataclass"."""
    if isinstance(node, ast.Call | ast.Subscript):
        return last_name(node.func if isinstance(node, ast.Call) else node.value)
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def records_of(trees: Mapping[str, ast.Module]) -> list[str]:
    """Returns the records, also those that inherit from a record of the package."""
    classes = [
        (module, node)
        for module, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    kinds, found = set(RECORDS), {}
    for _ in classes:  # until no class is added
        for module, node in classes:
            bases = {last_name(base) for base in node.bases}
            marked = any(last_name(mark) == "dataclass" for mark in node.decorator_list)
            if bases & kinds or marked:
                found[f"{module}.{node.name}"] = node.name
        if kinds >= {*found.values()}:
            break
        kinds |= {*found.values()}
    return sorted(found)


def defined(tree: ast.Module) -> Iterator[str]:
    """Yields the names that a module defines at its top level."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def used(tree: ast.Module, modules: Mapping[str, ast.Module]) -> Iterator[tuple[str, str]]:
    """Yields the module and name of what a module imports by name. A name that is read of an imported module,
    such as ``prepared.write``, says itself which is meant."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                if f"{node.module}.{alias.name}" not in modules:
                    yield node.module, alias.asname or alias.name


def names_of(trees: Mapping[str, ast.Module]) -> list[str]:
    """Returns the names that others import by name from at least two modules, with these modules."""
    by_module = {module: set(defined(tree)) for module, tree in trees.items()}
    shared = collections.defaultdict(set)
    for user, tree in trees.items():
        for module, name in used(tree, trees):
            own = module.startswith(user)  # a package that brings up what its modules define
            if not own and name in by_module.get(module, ()):
                shared[name].add(module)
    several = {n: sorted(m) for n, m in shared.items() if len(m) > 1 and n not in PATTERN}
    return [f"{name}: {', '.join(modules)}" for name, modules in sorted(several.items())]


def parameters_of(trees: Mapping[str, ast.Module]) -> list[str]:
    """Returns the functions with more than six parameters."""
    out = []
    for module, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                count = sum(argument.arg not in ("self", "cls") for argument in every)
                if count > MOST:
                    out.append(f"{module}.{node.name}: {count}")
    return sorted(out)


def docstring_lines(tree: ast.Module) -> set[int]:
    """Returns the lines of strings that stand alone: docstrings, and those below a field or constant."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }


def code_lines(text: str) -> set[int]:
    """Returns the lines that hold more than comments and blanks."""
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return {
        line
        for token in tokens
        if token.type not in BLANK
        for line in range(token.start[0], token.end[0] + 1)
    }


def count(texts: Mapping[str, str]) -> Counted:
    """Counts the files of a checkout, which are given by path."""
    own = {p: t for p, t in texts.items() if p.startswith(f"{PACKAGE}/") and p.endswith(".py")}
    trees = {
        path.removesuffix(".py").removesuffix("/__init__").replace("/", "."): ast.parse(text)
        for path, text in own.items()
    }
    docs = [docstring_lines(tree) for tree in trees.values()]
    code = [code_lines(text) for text in own.values()]
    return Counted(
        records=records_of(trees),
        names=names_of(trees),
        parameters=parameters_of(trees),
        code=sum(len(lines - doc) for lines, doc in zip(code, docs, strict=True)),
        docstrings=sum(map(len, docs)),
        words=sum(len(text.split()) for path, text in texts.items() if path.endswith(".md")),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("revisions", nargs="*", default=[""])
    parser.add_argument("--list", choices=("records", "names", "parameters"))
    flags = parser.parse_args()
    rows: list[tuple[str, ...]] = [HEADER]
    for revision in flags.revisions:
        counted = count(texts_of(revision))
        if flags.list:
            print(*getattr(counted, flags.list), sep="\n")
        values = [getattr(counted, name) for name in HEADER[1:]]
        sizes = [len(value) if isinstance(value, list) else value for value in values]
        rows.append((revision or "checkout", *map(str, sizes)))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


if __name__ == "__main__":
    main()
