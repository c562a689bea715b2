"""Write the reference pages that are made from the code.

    python -m analysis.reference.tables

``pages()`` has the text of each page by its file name. A new defense, attack, data set, network, flag, field of
a config or word of the glossary is in its table without an edit. ``tests/reference_pages_test.py`` fails if a
stored page differs from what the code gives.
"""

from __future__ import annotations

import ast
import inspect
import pathlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import vfljax
from vfljax import attacks, config, datasets, defenses, models, types
from vfljax.api.commands import COMMANDS
from vfljax.attacks import core as attack_helpers
from vfljax.defenses import core as defense_helpers
from vfljax.report import requirements
from vfljax.types import NO_SPLIT, SPLIT, DefenseSpec

FOLDER = pathlib.Path(__file__).parent
MADE = "This page is made from the code by `python -m analysis.reference.tables`."
SLOTS = ("targets", "loss", "gradient", "read")
NEEDED = inspect.Parameter.empty
UNSAID = (None, False, "", (), NEEDED)  # defaults that are no value
CELL = re.compile(r"(?<!\\)\|")  # a bar that would end a table's cell


def table(header: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    """Returns a Markdown table."""
    columns = tuple(header)
    lines = [columns, ("---",) * len(columns), *rows]
    cells = ([CELL.sub(r"\|", str(cell)) for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def maker(row: Any) -> Any:
    """Returns the factory, loader or network of a table's row; of a partial, the function that it calls."""
    made = getattr(row, "factory", row)
    return getattr(made, "func", made)


def link(row: Any, name: str) -> str:
    """Returns the row's name as a link to the file that defines it."""
    path = maker(row).__module__.replace(".", "/")
    return f"[`{name}`](../../{path}.py)"


def summary(row: Any, rows: Iterable[Any]) -> str:
    """Returns the first paragraph of the row's module, or of its factory if other rows share the module."""
    made = maker(row)
    shared = {maker(other) for other in rows if maker(other).__module__ == made.__module__}
    text = inspect.getdoc(made) if len(shared) > 1 else _docstring(made.__module__)
    return " ".join((text or "").partition("\n\n")[0].split()).replace("``", "`")


def _docstring(module: str) -> str:
    path = pathlib.Path(vfljax.__file__).parents[1] / f"{module.replace('.', '/')}.py"
    return ast.get_docstring(ast.parse(path.read_text())) or ""


def values(names: Mapping[str, Any]) -> str:
    """Returns names with their defaults, as a call would have them."""
    empty = inspect.Parameter.empty
    return ", ".join(f"`{n}`" if d is empty else f"`{n}={d!r}`" for n, d in names.items())


def defaults(parameters: Mapping[str, inspect.Parameter]) -> str:
    """Returns parameters with their defaults."""
    return values({name: parameter.default for name, parameter in parameters.items()})


def _defenses() -> str:
    rows, known = [], []
    for name, row in defenses.TABLE.items():
        spec = (DefenseSpec(name),)
        acts = [slot for slot in SLOTS if defenses.having(slot, spec)]
        acts += ["top model"] * (row.network is not defenses.DefenseRow.network)
        needs = ["a top model"] * row.needs_top + ["two classes"] * row.two_classes
        needs += ["classes"] * (bool(row.not_for_numbers) and not row.two_classes)
        claims = row.remarks(row.example, {}).epsilon is not None
        rows.append(
            (
                *(link(row, name), summary(row, defenses.TABLE.values()), ", ".join(acts)),
                *(defaults(row.knobs), defaults(row.options), values(row.neutral or {})),
                *(", ".join(needs), "yes" if claims else ""),
            )
        )
        known.append((f"`{name}`", row.advice(SPLIT), row.advice(NO_SPLIT)))
    head = ("name", "what it does", "acts on", "knobs", "options", "neutral", "needs", "claims ε")
    return f"""# Defenses

{MADE}

A defense acts on the *targets* before the loss, in the *loss*, on the *gradient* that a party receives, or on
how logits are *read* as predictions. Knobs are numbers that a grid may vary within one program. Each
combination of options has a program of its own. At its neutral knobs a defense changes nothing. *Claims ε*
marks defenses with a formal guarantee of ε-label differential privacy at their default options. The docstring
of each file has the equation, the reference, the guarantee and the deviations from the paper.

{table(head, rows)}

## Attacks that take a defense into account

A defense is recommended only if one of these attacks was run on it.

{table(("defense", "with a top model", "without a top model"), known)}
"""


def _attacks() -> str:
    rows = []
    for name, row in attacks.TABLE.items():
        attack = row((models.MLP(out=2, hidden=(4,)),), 2)
        rows.append(
            (
                *(link(row, name), summary(row, attacks.TABLE.values())),
                *(", ".join(attack.federations), ", ".join(attack.reads)),
                *("yes" if "known" in attack.knobs else "", "two" if attack.binary else "any"),
                *(f"no: {row.not_for_numbers}" if row.not_for_numbers else "yes",),
                values(row.options),
            )
        )
    head = ("name", "what it does", "federations", "reads", "known labels", "classes", "numbers")
    head += ("options",)
    return f"""# Attacks

{MADE}

An attack runs on every federation of the column *federations* that a sweep trains. *Reads* lists what it
reads of the attackers' view at its default options. If it uses *known labels*, its option `known` is their
number. *Numbers* says whether labels may be numbers. The docstring of each file has the equation, the reference
and the deviations from the paper; "ours" marks attacks that are in no paper.

{table(head, rows)}
"""


def _data_sets() -> str:
    rows = (
        (
            link(loader, name),
            summary(loader, datasets.TABLE.values()),
            "" if name in datasets.EMBEDDED else "`--data_dir`",
            values(datasets.options_of(name)),
        )
        for name, loader in datasets.TABLE.items()
    )
    return f"""# Data sets

{MADE}

The data sets without `--data_dir` come with the installation. Nothing is downloaded: the docstring of each
file names the source of the others. `vfljax data --dataset=NAME --data_dir=DIR` prints rows, classes, owners
of columns and a checksum. Options are given as `config.data.options`, or as `--option=NAME=VALUE`.

{table(("name", "what it is", "files", "options"), rows)}

## Converted sets

The first command that reads a published set (a file of `vfljax/datasets/converters`) converts it into a
*prepared* folder of arrays, which later commands map from disk. The folder is `.vfljax/NAME-KEY` beside the
publisher's files or, if that cannot be written, `vfljax/datasets/NAME-KEY` in `$XDG_CACHE_HOME` or `~/.cache`.
The environment variable `VFLJAX_DATA_CACHE` names another place. The key changes with the files, the options
and the converter. Such a folder may be removed at any time, and the next command makes it again.
`vfljax data --prepare=DIR` writes a copy that can be moved, and `config.data.dir=DIR` reads it.
"""


def _networks() -> str:
    def rows(networks: Mapping[str, Any]) -> Iterable[tuple[str, ...]]:
        for name, network in networks.items():
            fixed = values(getattr(network, "keywords", {}))
            yield link(network, name), f"`{maker(network).__name__}`", fixed

    head = ("name", "network", "fixed fields")
    return f"""# Networks

{MADE}

`config.model.bottom` names the network of each party's columns, and `config.model.top` that of the label
party's top model. Teachers are bottom models too.

`config.model.pretrained` and `config.teacher.pretrained` name released weights of `Bert` or `ResNet`: a
`.safetensors` file, or a Hugging Face folder that has `model.safetensors`. Other files are not read. The
docstring of [`weights.py`](../../vfljax/models/weights.py) has three lines of PyTorch that convert a file of
`torch.save`.

## Bottom models

{table(head, rows(models.BOTTOMS))}

## Top models

{table(head, rows(models.TOPS))}
"""


def _verdicts() -> str:
    rows = ((f"*{verdict}*", meaning) for verdict, meaning in vfljax.VERDICTS.items())
    return f"""# Verdicts

{MADE}

A verdict is about one configuration, with or without a top model. It follows from confidence limits over
seeds, and the first line that holds is given. Every verdict is about the attacks that were run.

{table(("verdict", "meaning"), rows)}

## Answers

An answer is given on each panel, with and without a top model. It rests on limits that are corrected: of what
is said of one point for the choice among all, of *no defense* for the limits that may deny a point, and of both
for looks at growing numbers of seeds (the docstring of [`decision.py`](../../vfljax/report/decision.py) is the
rule). Points that are added to a sweep at a number of seeds that was looked at before are not corrected for.
`--fail_above` and `--fail_verdict` end a command with status 3 if what follows from the answer is not met:

{table(("answer", "--fail_above compares", "--fail_verdict compares"), requirements.FOLLOWS.values())}
"""


def _flags() -> str:
    parts = []
    for name, command in COMMANDS.items():
        head = (inspect.getdoc(command.run) or "").partition("\n")[0]
        listed = sorted(
            command.flags.items(), key=lambda flag: (flag[1].default is not NEEDED, flag[0])
        )
        rows = [
            (f"`--{flag}`", "" if of.default in UNSAID else f"`{of.default}`", _as_help(of.meaning))
            for flag, of in listed
        ]
        parts.append(f"## vfljax {name}\n\n{head}\n\n{table(('flag', 'default', 'meaning'), rows)}")
    body = "\n\n".join(parts)
    return f"""# Commands and flags

{MADE}

In a checkout `python -m launch.NAME` runs `vfljax NAME`, and `launch.reproduce` runs the tables of papers.
`--help` prints the same list. The functions `vfljax.run_sweep`, `attack`, `attack_wire`, `data` and `verify`
take the same arguments. Those of an audit are divided: `vfljax.partitioned_table` takes what the table is,
`vfljax.config.Goal` what is required of a defense, and `vfljax.audit`, or `vfljax.audit_trees` in place of
`--trees`, the others.

Switches are written `--name` or `--noname`. Several values are separated by commas, or the flag is repeated.
Options such as `--option` are written `name=value`, once for each, or as one JSON object. A command with
`--config` also takes `--config.FIELD=VALUE` for any [field](config.md). `--flagfile=FILE` reads flags of all
kinds from a file, one a line.

{body}
"""


def _as_help(meaning: str) -> str:
    return meaning.replace("``", "`").removesuffix(".")


def _config() -> str:
    rows = ((f"`{p}`", f"`{f.default!r}`", f.meaning) for p, f in config.FIELDS.items())
    return f"""# Fields of a config

{MADE}

A config file sets some of these fields, and the others have their defaults. `--config.FIELD=VALUE` sets one
on the command line.

{table(("field", "default", "meaning"), rows)}
"""


def _glossary() -> str:
    block = (types.__doc__ or "").partition("Glossary::\n\n")[2]
    entries = re.findall(r"^    (\S.*?)  +(.*(?:\n {6,}.*)*)$", block, flags=re.M)
    rows = ((f"**{word}**", " ".join(meaning.split())) for word, meaning in sorted(entries))
    return f"""# Glossary

{MADE}

{table(("word", "meaning"), rows)}
"""


def public() -> dict[str, Any]:
    """Returns the public modules, by the name that users import, which list their names in ``__all__``."""
    modules = {
        n: getattr(vfljax, n) for n in vfljax.__all__ if inspect.ismodule(getattr(vfljax, n))
    }
    shared = {"attacks.core": attack_helpers, "defenses.core": defense_helpers}
    named = {f"vfljax.{name}": module for name, module in sorted({**modules, **shared}.items())}
    return {"vfljax": vfljax, **named}


def _first_sentence(value: Any) -> str:
    """Returns the first paragraph of a class's or function's docstring; a constant's value, or its type if it
    is long."""
    if inspect.isclass(value) or inspect.isroutine(value):
        text = inspect.getdoc(value) or ""
        return " ".join(text.partition("\n\n")[0].split()).replace("``", "`")
    return f"`{value!r}`" if len(repr(value)) < 80 else f"a {type(value).__name__}"


def _python() -> str:
    parts = []
    for name, module in public().items():
        head = " ".join((inspect.getdoc(module) or "").partition("\n\n")[0].split())
        values = ((n, getattr(module, n)) for n in sorted(module.__all__))
        rows = [(f"`{n}`", _first_sentence(v)) for n, v in values if not inspect.ismodule(v)]
        body = table(("name", "what it is"), rows)
        parts.append(f"## {name}\n\n{head.replace('``', '`')}\n\n{body}")
    body = "\n\n".join(parts)
    return f"""# Public names

{MADE}

These names are public, and the changelog names what changes of them. All else is private: it may change or go
without notice. The guide, the notebooks, the configs and the entries of LeakBench import nothing else.

{body}
"""


PAGES: dict[str, Callable[[], str]] = {
    "defenses.md": _defenses,
    "attacks.md": _attacks,
    "data_sets.md": _data_sets,
    "networks.md": _networks,
    "verdicts.md": _verdicts,
    "flags.md": _flags,
    "config.md": _config,
    "glossary.md": _glossary,
    "python.md": _python,
}


def pages() -> dict[str, str]:
    """Returns the text of every page by its file name."""
    return {name: page() for name, page in PAGES.items()}


def main() -> None:
    for name, text in pages().items():
        (FOLDER / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
