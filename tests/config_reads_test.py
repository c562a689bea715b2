"""The config is parsed once: behind the parser, code reads records with named fields.

A config is a nested mapping of strings, in which a misspelt field is found only when it is read. So it
is read in the modules of ``ALLOWED`` alone; every other module takes the parsed record.
"""

import ast
import pathlib
import re
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parents[1]
ALLOWED = {
    "vfljax/config.py": "defaults and checks of the fields, before anything is parsed",
    "vfljax/cli/common.py": "the flag --config becomes the fields of a config",
    "vfljax/cli/reproduce.py": "a paper's config gets the folder of its data before it is parsed",
    "vfljax/auditing/stages.py": "an audit keeps the config that it made until it is parsed",
    "vfljax/auditing/sentences.py": "and says what it put there",
    "vfljax/report/rows.py": "the report reads the stored parties and attackers of a sweep",
    "vfljax/report/settle.py": "and the config file of the command that it advises",
    "vfljax/launching/running.py": "a stored config is handed to the parser",
    "vfljax/library/sweeps.py": "a notebook's config likewise",
    "vfljax/sweep/experiment.py": "the parser: a config becomes an Experiment",
    "vfljax/store/header.py": "the config is written to and read from a sweep's JSON as it is",
    "vfljax/store/loading.py": "a loaded sweep shows its stored config to notebooks and to the parser",
}

NAME = re.compile(r"(^|_)(config|cfg)(_|$)")
MAPPING = re.compile(r"\b(Mapping|MutableMapping|dict|Dict|ConfigDict|FrozenConfigDict)\b")
METHODS = {"get", "items", "keys", "values", "pop", "setdefault", "to_dict"}


def reads_of(source: str, name: str) -> list[str]:
    """``file:line: text`` of every place where ``source`` takes or reads a config."""
    tree = ast.parse(source, name)
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    numbers = {line for node in ast.walk(tree) for line in _reads(node, imported)}
    lines = source.splitlines()
    return [f"{name}:{number}: {lines[number - 1].strip()}" for number in sorted(numbers)]


def _reads(node: ast.AST, imported: set[str]) -> Iterator[int]:
    """The lines in which one node takes or reads a config; ``imported`` names are modules."""
    match node:
        case ast.arg(arg=name, annotation=annotation):
            if name == "config" or (NAME.search(name) and _is_mapping(annotation)):
                yield node.lineno
        case ast.ClassDef(body=body):  # fields of a record
            for field in body:
                match field:
                    case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                        if NAME.search(name) and _is_mapping(annotation):
                            yield field.lineno
        case ast.Subscript(slice=ast.Constant(value="config")):
            yield node.lineno
        case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value="config"), *_]):
            yield node.lineno
        case ast.Subscript(value=value):
            if _is_config(value, imported):
                yield node.lineno
        case ast.Call(func=ast.Attribute(value=value, attr=method)):
            if method in METHODS and _is_config(value, imported):
                yield node.lineno
        case ast.Compare(ops=[ast.In() | ast.NotIn()], comparators=[value]):
            if _is_config(value, imported):
                yield node.lineno
        case ast.Dict(keys=keys, values=values):  # {**config}
            for key, value in zip(keys, values, strict=True):
                if key is None and _is_config(value, imported):
                    yield value.lineno
        case ast.keyword(arg=None, value=value):  # f(**config)
            if _is_config(value, imported):
                yield value.lineno
        case ast.Assign(value=value) | ast.AnnAssign(value=value) | ast.NamedExpr(value=value):
            # by another name it would be read unseen
            if value is not None and _is_config(value, imported):
                yield node.lineno


def _is_mapping(annotation: ast.expr | None) -> bool:
    return annotation is not None and bool(MAPPING.search(ast.unparse(annotation)))


def _is_config(value: ast.expr, imported: set[str]) -> bool:
    """Whether an expression is named as a config: ``cfg``, ``x.config``; not ``jax.config``."""
    match value:
        case ast.Name(id=name):
            return bool(NAME.search(name)) and name not in imported
        case ast.Attribute(value=ast.Name(id="jax" | "vfljax")):
            return False
        case ast.Attribute(attr=name):
            return bool(NAME.search(name))
    return False


def test_no_module_but_the_parser_reads_a_config():
    lines = []
    for path in sorted((ROOT / "vfljax").glob("**/*.py")):
        name = str(path.relative_to(ROOT))
        if name not in ALLOWED:
            lines += reads_of(path.read_text(), name)
    assert not lines, f"{len(lines)} lines read the config:\n" + "\n".join(lines)


def test_allowed_modules_exist():
    assert [name for name in ALLOWED if not (ROOT / name).is_file()] == []


def test_a_read_is_shown_with_its_line_and_what_only_looks_like_one_is_not():
    for line in (
        *("def f(config): ...", "async def f(cfg: ConfigDict): ...", "x = config['seeds']"),
        *("x = lab.config['model']['cut']", "x = config.get('seeds')", "x = header.get('config')"),
        *("x = 'grid' in lab.config", "x = {**lab.config, 'seeds': 1}", "x = f(**config)"),
        *("fields = lab.config", "class Lab(NamedTuple): config: dict[str, Any]"),
    ):
        assert reads_of(f"import jax\n{line}\n", "a.py") == [f"a.py:2: {line}"]
    for line in (
        *("x = jax.config.values", "def f(teacher_config: TeacherConfig): ..."),
        *(
            "from vfljax import config; x = config.DEFAULT['seeds']",
            "header = {'config': resolved}",
        ),
    ):
        assert reads_of(f"{line}\n", "a.py") == []
