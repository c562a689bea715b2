"""The pages ``analysis/guide/add_*.md`` name what exists, and what they ask of a new member holds of ours."""

import functools
import pathlib
import re
import shutil

import pytest

from tests.plugins.use_test import OWN, forget
from vfljax import attacks, datasets, defenses, models, testing

ROOT = pathlib.Path(__file__).parents[1]
GUIDE = ROOT / "analysis" / "guide"
PAGES = sorted(GUIDE.glob("add_*.md"))
TOPS = ("analysis", "configs", "launch", "tests", "vfljax")
PATH = re.compile(rf"(?:{'|'.join(TOPS)})/[\w/]+(?:\.\w+)?")
NAME = re.compile(r"[A-Za-z_][\w.]*")
# words of the pages that are no names of ours: what is written in a config, or brought by others
OTHERS = {"nn.BatchNorm", "hidden", "mine"}

every_page = pytest.mark.parametrize("path", PAGES, ids=lambda path: path.stem)


@functools.cache
def words() -> frozenset[str]:
    """Every word of the sources, and the names of their files."""
    files = [path for top in TOPS for path in (ROOT / top).rglob("*.py")]
    found = {path.name for path in files}
    return frozenset(found.union(*(re.findall(r"\w+", path.read_text()) for path in files)))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, flags=re.S)


def in_backticks(page: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", page, flags=re.S))


def absent(page: str) -> list[str]:
    """The files and names that a page mentions and that are not there."""
    lines = []
    for said in [*in_backticks(page), *blocks(page, "sh")]:
        lines += [path for path in PATH.findall(said) if not (ROOT / path).exists()]
        modules = re.findall(r"python -m (launch\.\w+)", said)
        lines += [m for m in modules if not (ROOT / (m.replace(".", "/") + ".py")).exists()]
    for said in in_backticks(page):
        if not NAME.fullmatch(said) or said in OTHERS or said in words():
            continue
        lines += [said for part in said.split(".") if part not in words()]
    return lines


def not_quoted(page: str) -> list[str]:
    """The code blocks that are not in the file that their first line names, as they stand."""
    lines = []
    for block in blocks(page, "python"):
        head, _, code = block.partition("\n")
        path = ROOT / head.removeprefix("# ")
        if not path.is_file() or code.strip("\n") not in path.read_text():
            lines.append(block)
    return lines


@every_page
def test_every_file_and_name_that_a_page_mentions_exists(path):
    assert absent(path.read_text()) == []


@every_page
def test_every_piece_of_code_on_a_page_stands_in_its_file(path):
    page = path.read_text()
    assert blocks(page, "python")
    assert not_quoted(page) == []


@pytest.mark.parametrize(("page", "row"), [("a_defense", "shuffle"), ("an_attack", "guess")])
def test_the_contract_is_asked_of_a_plugin_as_the_page_says(page, row, tmp_path, monkeypatch):
    tables = dict(defenses.TABLE), dict(attacks.TABLE)
    shutil.copy(OWN, tmp_path / "mine.py")
    monkeypatch.chdir(tmp_path)
    *_, lines = blocks((GUIDE / f"add_{page}.md").read_text(), "py")
    names: dict = {}
    try:
        exec(lines, names)
        (mark,) = names["test_the_contract"].pytestmark
        assert mark.args == ("rule", testing.rules(f"mine:{row}"))
        names["test_the_contract"](mark.args[1][0])
    finally:
        forget(tables)


def test_what_a_page_says_that_is_not_so_is_noticed():
    name = "core." + "x" * 40  # written out it would be a word of this file
    page = f"`vfljax/absent.py`, `{name}`, `python -m launch.absent`, `core.check`\n"
    assert absent(page) == ["vfljax/absent.py", "launch.absent", name]
    quoted = "```python\n# vfljax/attacks/norm.py\nROW = AttackRow({})\n```\n"
    assert not_quoted(quoted.format("norm")) == []
    assert not_quoted(quoted.format("other")) != []
    assert absent("```sh\npython -m pytest tests/absent_test.py\n```") == ["tests/absent_test.py"]


@pytest.mark.parametrize("name", defenses.TABLE)
def test_every_defense_has_a_twin_and_tests_of_its_own(name):
    assert (ROOT / "tests" / "reference" / f"{name}.py").is_file()
    assert (ROOT / "tests" / "defenses" / f"{name}_test.py").is_file()


@pytest.mark.parametrize("name", attacks.TABLE)
def test_every_attack_has_tests_of_its_own(name):
    module = attacks.TABLE[name].factory.__module__.split(".")[-1]
    assert (ROOT / "tests" / "attacks" / f"{module}_test.py").is_file()


def named_in(folder: str, names) -> list[str]:
    """The names that no test in a folder of the tests has as a word."""
    files = (ROOT / "tests" / folder).glob("*_test.py")
    found = set(re.findall(r"\w+", "\n".join(path.read_text() for path in files)))
    return [name for name in names if name not in found]


def test_every_data_set_is_tested_by_name():
    assert named_in("datasets", datasets.TABLE) == []


def test_every_network_is_tested_by_name():
    assert named_in("models", models.BOTTOMS) == []
