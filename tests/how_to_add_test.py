"""The pages ``analysis/guide/add_*.md`` name what exists, and what they ask of a new member holds of ours."""

import functools
import pathlib
import re
import sys

import pytest

from tests.plugins.use_test import forget
from vfljax import attacks, datasets, defenses, models, testing

ROOT = pathlib.Path(__file__).parents[1]
GUIDE = ROOT / "analysis" / "guide"
PAGES = sorted(GUIDE.glob("add_*.md"))
TOPS = ("analysis", "configs", "launch", "tests", "vfljax")
PATH = re.compile(rf"(?:{'|'.join(TOPS)})/[\w/]+(?:\.\w+)?")
NAME = re.compile(r"[A-Za-z_][\w.]*")
# words of the pages that are no names of ours: what is written in a config, or brought by others
OTHERS = {"nn.BatchNorm", "hidden", "flips.py", "flips_test.py", "unsigned.py", "unsigned_test.py"}


@functools.cache
def words() -> frozenset[str]:
    """Every word of the sources, and the names of their files."""
    files = [path for top in TOPS for path in (ROOT / top).rglob("*.py")]
    found = {path.name for path in files}
    return frozenset(found.union(*(re.findall(r"\w+", path.read_text()) for path in files)))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.S)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)
def test_every_file_name_and_piece_of_code_on_a_page_exists(path):
    page, absent = path.read_text(), []
    in_backticks = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page, flags=re.S))
    for said in [*in_backticks, *blocks(page, "sh")]:
        absent += [file for file in PATH.findall(said) if not (ROOT / file).exists()]
    for said in in_backticks:
        if NAME.fullmatch(said) and said not in OTHERS and said not in words():
            absent += [said for part in said.split(".") if part not in words()]
    assert absent == []
    assert blocks(page, "python")
    for block in blocks(page, "python"):  # each stands in the file that its first line names
        head, _, code = block.partition("\n")
        assert code.strip("\n") in (ROOT / head.removeprefix("# ")).read_text()


@pytest.mark.parametrize(
    ("page", "file", "row"), [("a_defense", "flips", "signs"), ("an_attack", "unsigned", "line")]
)
def test_the_file_of_a_page_is_used_as_it_stands_and_keeps_the_contract(
    page, file, row, tmp_path, monkeypatch
):
    tables = dict(defenses.TABLE), dict(attacks.TABLE)
    plugin, tests = blocks((GUIDE / f"add_{page}.md").read_text(), "py")
    (tmp_path / f"{file}.py").write_text(plugin)
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    try:
        exec(tests, names)
        (mark,) = names["test_the_contract"].pytestmark
        assert mark.args == ("rule", testing.rules(f"{file}:{row}"))
        for rule in mark.args[1]:
            names["test_the_contract"](rule)
    finally:
        forget(tables)
        sys.modules.pop(file, None)


def test_every_member_has_tests_of_its_own():
    tests = ROOT / "tests"
    files = [tests / "reference" / f"{name}.py" for name in defenses.TABLE]  # twins
    files += [tests / "defenses" / f"{name}_test.py" for name in defenses.TABLE]
    modules = {row.factory.__module__.split(".")[-1] for row in attacks.TABLE.values()}
    files += [tests / "attacks" / f"{module}_test.py" for module in modules]
    assert [str(path) for path in files if not path.is_file()] == []
    for folder, names in (("datasets", datasets.TABLE), ("models", models.BOTTOMS)):
        texts = [path.read_text() for path in (tests / folder).glob("*_test.py")]
        assert {*names} - {*re.findall(r"\w+", "\n".join(texts))} == set()
