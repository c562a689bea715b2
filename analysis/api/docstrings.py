"""How a docstring of vfljax becomes reStructuredText. Sphinx is not needed here.

Docstrings are written to be read where they stand. Three habits of theirs are not reStructuredText and are
made so: what is indented (equations, tables of edge cases) is shown as it stands, full names of ours in
double backticks are links, and the comment beside a record's field is the field's docstring.
"""

import ast
import io
import re
import tokenize

SECTIONS = ("Args:", "Returns:", "Raises:", "Yields:", "Attributes:")
ITEM = re.compile(r"(-|\*|\d+\.) ")
OURS = re.compile(r"(?<!`)``(vfljax(?:\.\w+)+)``(?!`)")
MARKDOWN = re.compile(r"\|[ -].*\|$")  # a row of a table
LETTER = re.compile(r"(?<=: )([A-Z])\.(?= |$)")  # "num_classes: C. Those of ..." begins no list


def as_it_stands(lines: list[str]) -> list[str]:
    """The docstring with its indented blocks as literal ones, except arguments, list items, tables,
    examples and blocks that are literal already."""
    lines = [f"    {line}" if MARKDOWN.match(line) else line for line in lines]
    out: list[str] = []
    head = ""  # the first line of the paragraph or list item
    table = block = False  # within a table of reStructuredText or an example, within a block
    for place, line in enumerate(lines):
        before = lines[place - 1] if place else ""
        if line[:1] == " " and before[:1] != " ":
            last = next((one for one in reversed(lines[:place]) if one.strip()), "")
            listed = ITEM.match(head) and before.strip()
            apart = not (last.strip() in SECTIONS or table or listed or last.endswith("::"))
            if apart and not ITEM.match(line.strip()) and not block:
                out += ["", "::", ""]
                block = True
        elif line.strip() and line[:1] != " " and block:
            out, block = [*out, ""], False
        if line.startswith(("==", ">>> ")):
            table = True
        if not line.strip():
            table = False
        elif ITEM.match(line) or (line[:1] != " " and not before.strip()):
            head = line
        out.append(line.replace("``", "") if block else line if table else prose(line))
    return out


def prose(line: str) -> str:
    """A line of text with links to what is ours; bars are those of a norm, never substitutions, and a star
    before a dot is that of a file's pattern."""
    parts = re.split(r"(``.*?``)", line)
    parts[::2] = [re.sub(r"(?<!\\)(\||\*(?=\.))", r"\\\1", part) for part in parts[::2]]
    return OURS.sub(r":py:obj:`\1`", LETTER.sub(r"\1\\.", "".join(parts)))


def field_comments(source: str) -> dict[tuple[str, str], str]:
    """What the comments above and beside each field of a module's records say, by (class, field); of the
    fields that have any."""
    said, found, lines = comments(source), {}, source.splitlines()
    for owner in (node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)):
        for node in owner.body:
            if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name):
                continue
            above, line = [], node.lineno - 1
            while lines[line - 1].strip().startswith("#"):
                above, line = [said[line], *above], line - 1
            beside = [said[n] for n in range(node.lineno, (node.end_lineno or 0) + 1) if n in said]
            if above or beside:
                text = "; ".join([*([" ".join(above)] if above else []), *beside])
                found[owner.name, node.target.id] = plain(text)
    return found


def comments(source: str) -> dict[int, str]:
    """The comment at the end of a line, or alone on it, by the line's number."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {t.start[0]: t.string.lstrip("# ") for t in tokens if t.type == tokenize.COMMENT}


def plain(text: str) -> str:
    """A comment as reStructuredText: only what stands between backticks is markup."""
    parts = text.replace("``", "`").split("`")
    words = ("".join(f"\\{c}" if c in "*|_<>\\" else c for c in part) for part in parts[::2])
    marked = iter([*(f"``{part}``" for part in parts[1::2]), ""])
    return "".join(f"{word}{next(marked)}" for word in words)
