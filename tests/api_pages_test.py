"""The pages of the API have every module; building the site is a slow test, where Sphinx is."""

import importlib.util
import inspect
import pathlib
import re
import subprocess
import sys

import pytest

import vfljax
from analysis.api import docstrings, pages

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "analysis" / "api"


def test_every_module_is_on_one_page_and_every_function_on_that_of_the_library():
    written = {path.stem: path.read_text() for path in FOLDER.glob("*.rst")}
    sources = {**written, **pages.sources()}
    files = [path.relative_to(ROOT) for path in (ROOT / "vfljax").rglob("*.py")]
    names = {".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in files}
    documented = re.findall(r"^\.\. automodule:: (\S+)$", "\n".join(sources.values()), flags=re.M)
    assert sorted(documented) == sorted(names)
    functions = {n for n in vfljax.__all__ if inspect.isfunction(getattr(vfljax, n))} - {"chain"}
    listed = re.findall(r"^\.\. autofunction:: (\w+)$", sources["library"], flags=re.M)
    assert sorted(listed) == sorted(functions)  # chain is on the page of defenses


def shown(docstring: str) -> str:
    return "\n".join(docstrings.as_it_stands(docstring.splitlines()))


def test_what_is_indented_is_shown_as_it_stands():
    assert (
        shown("The rule:\n\n    y = ``f``(x)\n\nText.")
        == "The rule:\n\n\n::\n\n    y = f(x)\n\n\nText."
    )
    assert "::" in shown("| a | b |\n|---|---|\n| 1 | 2 |")
    for plain in (
        "Args:\n  x: a number.\n  y: another.",
        "* an item\n  that goes on",
        "==  ==\na   b\n    c\n==  ==",
        ">>> f()\nTraceback:\n  raised |x|",
    ):
        assert shown(plain) == plain


def test_names_are_links_bars_are_no_markup_and_comments_are_docstrings():
    assert shown("Args:\n  num_classes: C.") == "Args:\n  num_classes: C\\."
    assert shown("See ``vfljax.types``: |x| of ``|y|``.") == (
        "See :py:obj:`vfljax.types`: \\|x\\| of ``|y|``."
    )
    fields = (
        "    a: int  # |a| of `b`\n    # what stands\n    # above\n    b: int = 0\n    c: int = 0\n"
    )
    said = {("R", "a"): "\\|a\\| of ``b``", ("R", "b"): "what stands above"}
    assert docstrings.field_comments(f"class R:\n{fields}") == said


@pytest.mark.slow
def test_the_pages_are_built_without_a_warning(tmp_path):
    if importlib.util.find_spec("sphinx") is None:
        pytest.skip("sphinx is not installed: pip install -e '.[docs]'")
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-E", "-c", FOLDER]
    folders = [ROOT / "analysis", tmp_path / "build", "-d", tmp_path / "trees"]
    done = subprocess.run(
        [*command, *folders], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    built = tmp_path / "build" / "api"
    kdk = (built / "generated" / "vfljax.defenses.kdk.html").read_text()
    assert "the anchor has the SMALLEST of the k masses" in kdk
    types = (built / "generated" / "vfljax.types.html").read_text()
    assert "place among the training rows" in types  # of a field without a default
    assert "whose cut gradients the gradient slot treats" in types  # and of one with
    assert "Alias for field number" not in types
    assert "TypeAliasForwardRef" not in kdk + types
