"""The notebooks of ``analysis/``: executed, and written back with their outputs.

    pip install -e '.[analysis,tune]'
    python -m tests.notebooks                # all of them, in order
    python -m tests.notebooks 6_read_a_papers_table.ipynb
    python tests/notebooks.py --check        # with the vfljax that is installed, and without storing outputs

They run in a temporary folder, so that what they train is thrown away, and the first trains what the next ones
read. Run it after a change of what they show, and look at the pictures.
"""

from __future__ import annotations

import os
import pathlib
import sys
import tempfile
import time
from typing import Any

ROOT = pathlib.Path(__file__).parents[1]
FOLDER = ROOT / "analysis"
SECONDS = 600  # of one cell, on a busy machine


def paths() -> list[pathlib.Path]:
    """Every notebook, in the order of reading."""
    return sorted(FOLDER.glob("*.ipynb"))


def execute(path: pathlib.Path, folder: pathlib.Path, checkout: bool = True) -> Any:
    """The notebook with the outputs of a run in ``folder``, by this checkout or by the vfljax that is
    installed; raises nbclient's CellExecutionError where a cell does."""
    import nbclient  # pyright: ignore[reportMissingImports]  # of the extra `analysis`, as nbformat
    import nbformat  # pyright: ignore[reportMissingImports]

    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(
        notebook,
        timeout=SECONDS,
        kernel_name="python3",
        resources={"metadata": {"path": str(folder)}},
        record_timing=False,
    )
    search = [str(ROOT)] * checkout + [os.environ.get("PYTHONPATH", "")]
    client.execute(env={**os.environ, "PYTHONPATH": os.pathsep.join(search).strip(os.pathsep)})
    return notebook


def write(notebook: Any, path: pathlib.Path) -> None:
    """Store an executed notebook: texts that came in pieces as one, and nothing of the machine."""
    import nbformat  # pyright: ignore[reportMissingImports]

    for place, cell in enumerate(notebook.cells):
        cell["id"] = f"cell-{place}"
        cell.metadata.clear()
        if cell.cell_type == "code":
            cell["outputs"] = _joined(cell.outputs)
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    nbformat.validate(notebook)
    nbformat.write(notebook, path)


def _joined(outputs: list[Any]) -> list[Any]:
    """The outputs of a cell, with neighboring pieces of one stream as one."""
    joined: list[Any] = []
    for output in outputs:
        before = joined[-1] if joined else {}
        if output.output_type == "stream" and output.name == before.get("name"):
            before["text"] += output.text
        else:
            joined.append(output)
    return joined


def main() -> None:
    names = [name for name in sys.argv[1:] if name != "--check"]
    check = "--check" in sys.argv
    with tempfile.TemporaryDirectory() as folder:
        for path in paths():
            if not names or path.name in names:
                began = time.monotonic()
                notebook = execute(path, pathlib.Path(folder), checkout=not check)
                print(f"{path.relative_to(ROOT)}: {time.monotonic() - began:.0f} s")
                if not check:
                    write(notebook, path)


if __name__ == "__main__":
    main()
