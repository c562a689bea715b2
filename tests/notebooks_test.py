"""The notebooks of ``analysis/`` are as they were executed, and run from a fresh folder.

    python -m pytest -m slow tests/notebooks_test.py

executes them, in about four minutes on two cores. ``python -m tests.notebooks`` stores their outputs anew.
"""

import ast
import json
import pathlib
import re

import pytest

from tests import notebooks
from vfljax import config

LARGEST = 300_000  # bytes of a notebook
# roots of file systems, where a path of somebody's machine begins; URLs and fractions are none
ABSOLUTE = re.compile(
    r"(?<![\w./:>-])/(home|Users|root|tmp|var|opt|mnt|work|usr|content|private)/|[A-Z]:\\\\"
)

# modules that are no part of the library that the notebooks show
INSIDE = ("vfljax.report", "vfljax.sweep", "vfljax.attack_runs", "vfljax.scheduling", "configs")

every_notebook = pytest.mark.parametrize("path", notebooks.paths(), ids=lambda path: path.stem)


def read(path: pathlib.Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


def text(lines: str | list[str]) -> str:
    return lines if isinstance(lines, str) else "".join(lines)


def code_cells(notebook: dict) -> list[dict]:
    return [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]


def code(cell: dict) -> str:
    """The source, with ``pass`` for the lines that are IPython's."""
    return re.sub(r"^(\s*)%.*", r"\1pass", text(cell["source"]), flags=re.M)


def names_of_paths(notebook: dict) -> set[str]:
    """Files of the checkout that its text and links name."""
    markdown = "\n".join(
        text(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "markdown"
    )
    named = set(re.findall(r"`((?:analysis|configs|launch|tests|vfljax)/[\w/.]*)`", markdown))
    return named | {f"analysis/{link}" for link in re.findall(r"\]\(([\w.]+)\)", markdown)}


@every_notebook
def test_a_notebook_is_stored_as_it_was_executed(path):
    cells = code_cells(read(path))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    outputs = [output for cell in cells for output in cell["outputs"]]
    assert "error" not in {output["output_type"] for output in outputs}
    assert path.stat().st_size < LARGEST
    found = ABSOLUTE.search(path.read_text(encoding="utf-8"))
    assert found is None, f"it names a path of a machine: {found}"


@every_notebook
def test_it_says_what_colab_needs_installs_itself_and_names_what_exists(path):
    notebook = read(path)
    assert text(notebook["cells"][0]["source"]).splitlines()[2].startswith("On Colab, upload")
    first = text(code_cells(notebook)[0]["source"])
    assert "    %pip install" in first  # below a condition
    missing = [name for name in names_of_paths(notebook) if not (notebooks.ROOT / name).exists()]
    assert missing == []
    source = "\n".join(map(code, code_cells(notebook)))
    ast.parse(source)
    imported = re.findall(r"^\s*(?:from|import) ([\w.]+)", source, flags=re.M)
    assert [name for name in imported if name.startswith(INSIDE)] == []


def test_the_quickstart_writes_out_the_config_that_the_others_read():
    (cell,) = [c for c in code_cells(read(notebooks.paths()[0])) if "config = {" in code(c)]
    names: dict = {}
    exec(code(cell), names)
    assert config.resolve(names["config"]) == config.resolve(
        config.from_file("configs/notebooks.py")
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where they run: the first trains, and the others find what it stored."""
    return tmp_path_factory.mktemp("notebooks")


@pytest.mark.slow
@every_notebook
def test_a_notebook_runs_from_a_fresh_folder_to_what_is_stored_of_it(path, folder):
    pytest.importorskip("nbclient", reason="install the extra `analysis`")
    pytest.importorskip("ipykernel", reason="install the extra `analysis`")
    if "import optuna" in path.read_text():
        pytest.importorskip("optuna", reason="install the extra `tune`")
    notebook = notebooks.execute(path, folder)
    stored = read(path)
    assert [cell.source for cell in notebook.cells] == [text(c["source"]) for c in stored["cells"]]
    for cell, before in zip(
        [c for c in notebook.cells if c.cell_type == "code"], code_cells(stored)
    ):
        assert _kinds(cell.outputs) == _kinds(before["outputs"]), cell.source


def _kinds(outputs: list[dict]) -> set[str]:
    """What a cell shows: pictures, tables, text."""
    return {kind for output in outputs for kind in (output.get("data") or {"text": ""})}
