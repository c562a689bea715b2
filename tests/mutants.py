"""Realistic bugs, and whether the tests catch them: ``python tests/mutants.py [--only NAME ...]``.

``mutants.txt`` lists them, each as the lines that are replaced and those that replace them, without indentation
or line ends where these do not matter. A mutant names no file and no test, so that the list survives moves of
both: it belongs to the one file of ``ROOTS`` that holds its lines exactly once.

Mutants are applied one at a time in a temporary copy of the checkout. Each is tried by the test file of its
module, then by the tests of the module's room and by those beside the rooms, such as the contracts, and last by
all tests. Tests that exceed ``--limit`` seconds count as having caught it, but are told apart: some bugs wait
for ever.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOTS = ("vfljax", "analysis")
LIMIT = 1200
CAUGHT = ("caught", "TOO LONG")


class Mutant(NamedTuple):
    """One bug: ``before`` stands once in all of ``ROOTS`` and is replaced by ``after``."""

    name: str
    before: str
    after: str


def listed() -> list[Mutant]:
    """The mutants of ``mutants.txt``."""
    mutants = []
    for entry in pathlib.Path(__file__).with_suffix(".txt").read_text().strip().split("\n\n"):
        name, *lines = entry.splitlines()
        if not name.startswith("#"):
            sides = ("\n".join(line[2:] for line in lines if line[0] == side) for side in "-+")
            mutants.append(Mutant(name, *sides))
    return mutants


def copy_checkout(to: pathlib.Path) -> None:
    """The checkout's files, tracked and new, without what git ignores."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    for name in filter(None, names.split("\0")):
        if (ROOT / name).is_file():  # a deleted file is listed until the deletion is committed
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, to / name)


def tests_of(module: pathlib.Path, root: pathlib.Path) -> Iterator[list[str]]:
    """Yields the tests of the copy in ``root`` that try the mutants of a module, the nearest first."""
    room = pathlib.Path("tests", *module.relative_to(root).parts[1:-1])
    own = room / f"{module.stem}_test.py"
    if (root / own).exists():
        yield ["-n", "0", str(own)]
    beside = [str(path.relative_to(root)) for path in sorted((root / "tests").glob("*_test.py"))]
    if room.name != "tests" and (root / room).exists():
        yield ["-n", "2", str(room), *beside]
    yield ["-n", "2", "tests"]


def outcome_of(root: pathlib.Path, tests: list[str], limit: int) -> tuple[str, str]:
    """The verdict of some tests of the copy in ``root``, and the first of them that failed."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            command,
            cwd=root,
            env={**os.environ, "PYTHONPATH": str(root)},
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            code = process.wait(limit)
        except subprocess.TimeoutExpired:
            return "TOO LONG", f"no end after {limit} s"
        finally:
            with contextlib.suppress(ProcessLookupError):  # and what the tests have started
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        output.seek(0)
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", output.read(), re.MULTILINE)
    # 2: a test file cannot be imported; below 0: a signal ended the process
    verdict = {0: "SURVIVED", 1: "caught", 2: "caught"}.get(
        code, "caught" if code < 0 else "NO TESTS"
    )
    return verdict, failed[1] if failed else ""


def tried(mutant: Mutant, root: pathlib.Path, limit: int) -> tuple[str, str]:
    """The outcome of a mutant in the copy in ``root``, which is restored."""
    files = (path for name in ROOTS for path in sorted((root / name).rglob("*.py")))
    holders = [path for path in files for _ in range(path.read_text().count(mutant.before))]
    if len(holders) != 1:
        return "AMBIGUOUS" if holders else "NOT FOUND", ""
    (path,) = holders
    text, outcome = path.read_text(), ("NO TESTS", "")
    path.write_text(text.replace(mutant.before, mutant.after))
    try:
        for tests in tests_of(path, root):
            outcome = outcome_of(root, tests, limit)
            if outcome[0] in CAUGHT:
                break
        return outcome
    finally:
        path.write_text(text)


def main() -> int:
    """0 if every mutant was caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants, by name")
    what = "seconds of the tests that are run together"
    parser.add_argument("--limit", type=int, default=LIMIT, help=what)
    options = parser.parse_args()
    mutants = listed()
    if unknown := sorted({*(options.only or ())} - {mutant.name for mutant in mutants}):
        parser.error(f"no mutant is called {', '.join(unknown)}")
    # programs that a mutant does not touch are not compiled again
    cache = pathlib.Path(tempfile.gettempdir()) / "vfljax_mutants_compiled"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    verdicts = []
    with tempfile.TemporaryDirectory(prefix="vfljax_mutants_") as folder:
        root = pathlib.Path(folder) / "checkout"
        copy_checkout(root)
        for mutant in mutants:
            if options.only is None or mutant.name in options.only:
                start = time.monotonic()
                verdict, by = tried(mutant, root, options.limit)
                verdicts.append(verdict)
                took = f"{time.monotonic() - start:6.1f} s"
                print(f"{verdict:9} {took}  {mutant.name}  {by}".rstrip(), flush=True)
    counts = ", ".join(f"{verdicts.count(kind)} {kind}" for kind in dict.fromkeys(verdicts))
    print(f"{len(verdicts)} mutants: {counts}")
    return 0 if {*verdicts} <= {*CAUGHT} else 1


if __name__ == "__main__":
    sys.exit(main())
