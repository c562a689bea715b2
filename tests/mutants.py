"""Realistic bugs, and whether the tests catch them: ``python tests/mutants.py [--only NAME ...]``.

``mutants.txt`` lists them, each by the lines that are replaced and those that replace them, without indentation
or line ends where these do not matter. A mutant names no file and no test, so that the list survives moves of
both: it belongs to the one file of ``ROOTS`` that holds its ``before`` exactly once. ``before`` avoids local
names. Which tests are to catch it comes from a run of the whole suite with coverage by test, of which
``--coverage FILE`` keeps the result and its times (FILE.xml) for later calls on the same checkout. Tests that
did not pass there take no part.

Mutants are applied one at a time in a temporary copy of the checkout. Each is tried by tests that run a line
of ``before``, then by others that run its file, or that its test file has: of what tests share, such as a
trained sweep or a traced function, coverage knows only the first test that ran a line. A module that no test
runs in its own process is tried by the test files that name it. A run that exceeds ``--limit`` seconds of
processor time counts as caught, but is told apart.
"""

from __future__ import annotations

import argparse
import collections
import contextlib
import multiprocessing
import os
import pathlib
import re
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import pytest
from coverage import CoverageData

ROOT = pathlib.Path(__file__).resolve().parents[1]
ROOTS = ("vfljax", "analysis")
LIMIT = 60  # seconds of processor time
# times as long by the clock: longer than a busy machine takes, and some bugs wait for ever
WAIT = 10
SECONDS = 40  # of the tests that are tried together, as the run with coverage measured them
CAUGHT = ("caught", "TOO LONG")
# imported once, for all processes that try a mutant: they take longer than most tests
LIBRARIES = (
    *("jax", "flax.linen", "optax", "orbax.checkpoint", "matplotlib.figure"),
    *("pandas", "pyarrow.parquet", "scipy.stats", "sklearn.ensemble", "xarray"),
)


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


class Outcome(NamedTuple):
    """Of some tests, or of one mutant."""

    verdict: str
    by: str = ""  # the first test that failed


class FirstFailure:
    """A plugin of pytest that notes the first test, or test file, that fails."""

    name = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.name = self.name or report.nodeid * report.failed

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.name = self.name or report.nodeid * report.failed


def run_here(root: pathlib.Path, tests: Sequence[str], limit: int, answer: Any) -> None:
    """Runs tests of the copy in ``root`` in this process, which they may end; answers with their outcome."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    os.chdir(root)
    # what a mutant does not touch is compiled once
    sys.dont_write_bytecode = False
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.path[0] = os.environ["PYTHONPATH"] = str(root)
    with open(os.devnull, "r+") as nothing:
        for stream in range(3):
            os.dup2(nothing.fileno(), stream)
    first = FirstFailure()
    options = ["-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    code = pytest.main([*options, *tests], plugins=[first])
    verdicts = {pytest.ExitCode.OK: "SURVIVED", pytest.ExitCode.TESTS_FAILED: "caught"}
    verdicts[pytest.ExitCode.INTERRUPTED] = "caught"  # a test file cannot be imported
    answer.send((verdicts.get(code, "NO TESTS"), first.name))
    os._exit(0)  # without waiting for threads


def pytest_on(root: pathlib.Path, tests: Sequence[str], limit: int) -> Outcome:
    """The outcome of some tests of the copy in ``root``, in a process of their own."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([*LIBRARIES])
    answer, sender = context.Pipe(duplex=False)
    process = context.Process(target=run_here, args=(root, tests, limit, sender))
    process.start()
    assert process.pid is not None
    sender.close()
    outcome = Outcome("TOO LONG", f"no end after {limit} s")
    try:
        if answer.poll(limit * WAIT):
            outcome = Outcome(*answer.recv())
    except EOFError:  # nothing was answered: the process was killed, by its limit or by the bug
        process.join()
        ended = process.exitcode or 0
        if ended not in (-signal.SIGXCPU, -signal.SIGKILL):
            verdict = "caught" if ended < 0 else "NO TESTS"
            outcome = Outcome(verdict, f"the process ended with {ended}")
    finally:
        process.kill()
        with contextlib.suppress(ProcessLookupError):  # and what the tests have started
            os.killpg(process.pid, signal.SIGKILL)
        process.join()
    return outcome


def file_of(test: str) -> str:
    """The test file of a test's id."""
    return test.partition("::")[0]


# of coverage's files: how many files of code each test runs, by test and phase
FILES_RUN = """
    select context, count(distinct file_id) from context join
    (select context_id, file_id from arc union all select context_id, file_id from line_bits)
    on context.id = context_id group by context
"""


class Suite:
    """Which tests run which lines, and how long they take."""

    def __init__(self, file: pathlib.Path) -> None:
        self._data = CoverageData(str(file))
        self._data.read()
        self._files_run = collections.Counter()
        with contextlib.closing(sqlite3.connect(file)) as tables:
            for context, count in tables.execute(FILES_RUN):
                self._files_run[context.rpartition("|")[0]] += count
        self.seconds: dict[str, float] = {}  # by test, of those that passed
        self._of_file = collections.defaultdict(set)  # tests by their file
        for case in xml.etree.ElementTree.parse(f"{file}.xml").iter("testcase"):
            place = case.attrib["classname"].replace(".", "/")
            if case.find("failure") is None and case.find("error") is None:
                test = f"{place}.py::{case.attrib['name']}"
                self.seconds[test] = float(case.attrib["time"])
                self._of_file[file_of(test)].add(test)

    def by_line(self, name: str) -> dict[int, set[str]]:
        """The tests that run each line of a file, which is named by its path in the checkout. What a fixture
        runs serves all tests of its file."""
        tests = collections.defaultdict(set)
        for path in self._data.measured_files():
            if f"/{path}".endswith(f"/{name}"):
                for line, contexts in self._data.contexts_by_lineno(path).items():
                    for test, _, phase in (context.rpartition("|") for context in contexts):
                        tests[line] |= self._of_file[file_of(test)] if phase == "setup" else {test}
        return {line: of & self.seconds.keys() for line, of in tests.items()}

    def chosen(self, tests: Iterable[str], stem: str) -> list[str]:
        """Those of some tests that are tried for a module, as long as they take less than ``SECONDS``. Test
        files of the module's name come first, then one test of each function before the second of any, those
        that run few other modules first; by file, because tests of a file share what its fixtures make."""
        seen, rank = collections.Counter[str](), dict[str, tuple[bool, int, int]]()

        for test in sorted(tests, key=lambda test: (self._files_run[test], self.seconds[test])):
            function, other = test.partition("[")[0], not file_of(test).endswith(f"/{stem}_test.py")
            rank[test] = other, seen[function], len(rank)
            seen[function] += 1
        left, by_file = float(SECONDS), collections.defaultdict(list)
        for test in sorted(rank, key=rank.__getitem__):
            if self.seconds[test] <= left or not by_file:
                by_file[file_of(test)].append(test)
                left -= self.seconds[test]
        return [test for of in by_file.values() for test in of]


def run_suite(root: pathlib.Path, file: pathlib.Path) -> None:
    """Runs all tests of the copy in ``root``; writes what they cover, and their times."""
    cover = ["--cov=vfljax", "--cov=analysis", "--cov-context=test", "--cov-report="]
    print(f"running all tests with coverage: {file}", flush=True)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-n", "2", *cover, f"--junitxml={file}.xml"],
        cwd=root,
        env={**os.environ, "PYTHONPATH": str(root), "COVERAGE_FILE": str(file)},
        check=False,  # tests that fail take no part
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in done.stdout.splitlines():
        if line.startswith(("FAILED ", "ERROR ")):
            print(f"without any mutant: {line}", flush=True)


def places(snippet: str, root: pathlib.Path) -> list[pathlib.Path]:
    """The files of ``ROOTS`` that hold ``snippet``, each as often as it does."""
    files = sorted(path for name in ROOTS for path in (root / name).rglob("*.py"))
    return [path for path in files for _ in range(path.read_text().count(snippet))]


def tests_of(
    mutant: Mutant, path: pathlib.Path, root: pathlib.Path, suite: Suite
) -> Iterator[list[str]]:
    """Yields the tests that are to catch a mutant of the file ``path``, and others if these do not."""
    begin = path.read_text()[: path.read_text().index(mutant.before)].count("\n") + 1
    lines = range(begin, begin + mutant.before.rstrip("\n").count("\n") + 1)
    by_line = suite.by_line(path.relative_to(root).as_posix())
    running = {test for line in lines for test in by_line.get(line, ())}
    # a test of the module's own file may run only what an earlier one has traced
    own = {test for test in suite.seconds if file_of(test).endswith(f"/{path.stem}_test.py")}
    others = own.union(*by_line.values()) - running
    for tests in filter(None, (running, others)):
        yield suite.chosen(tests, path.stem)
    if not running | others:
        named = re.compile(rf"\b{path.stem}\b")
        files = sorted((root / "tests").rglob("*_test.py"))
        yield [str(f.relative_to(root)) for f in files if named.search(f.read_text())]


def write(path: pathlib.Path, text: str) -> None:
    """Writes a module so that bytecode of an earlier text of the same size is not taken for its own."""
    seconds = int(path.stat().st_mtime) - 1
    path.write_text(text)
    os.utime(path, (seconds, seconds))


def try_mutant(mutant: Mutant, root: pathlib.Path, suite: Suite, limit: int) -> Outcome:
    """One mutant in the copy in ``root``, which is restored."""
    holders = places(mutant.before, root)
    if len(holders) != 1:
        return Outcome("AMBIGUOUS" if holders else "NOT FOUND")
    (path,) = holders
    text, outcome = path.read_text(), Outcome("NO TESTS")
    groups = [*tests_of(mutant, path, root, suite)]
    write(path, text.replace(mutant.before, mutant.after))
    try:
        for tests in groups:
            outcome = pytest_on(root, tests, limit)
            if outcome.verdict in CAUGHT:
                break
        return outcome
    finally:
        write(path, text)


def run(mutants: Sequence[Mutant], file: pathlib.Path | None, limit: int) -> dict[str, Outcome]:
    """Every mutant's outcome by name, printed as they come."""
    outcomes, began = {}, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="vfljax_mutants_") as folder:
        root = pathlib.Path(folder) / "checkout"
        copy_checkout(root)
        file = (file or root.with_name("coverage")).absolute()
        if not file.exists():
            run_suite(root, file)
        suite = Suite(file)
        for mutant in mutants:
            start = time.monotonic()
            outcome = outcomes[mutant.name] = try_mutant(mutant, root, suite, limit)
            seconds = time.monotonic() - start
            line = f"{outcome.verdict:9} {seconds:6.1f} s  {mutant.name}  {outcome.by}"
            print(line.rstrip(), flush=True)
    kinds = [outcome.verdict for outcome in outcomes.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in dict.fromkeys(kinds))
    print(f"{len(kinds)} mutants: {counts}; {time.monotonic() - began:.0f} s")
    return outcomes


def main() -> int:
    """0 if every mutant was caught."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these mutants, by name")
    what = "what the tests cover; without it, or if it is not there yet, all tests are run first"
    parser.add_argument("--coverage", type=pathlib.Path, metavar="FILE", help=what)
    what = "seconds of processor time of the tests that try a mutant"
    parser.add_argument("--limit", type=int, default=LIMIT, help=what)
    options = parser.parse_args()
    every = listed()
    unknown = sorted({*(options.only or ())} - {mutant.name for mutant in every})
    if unknown:
        parser.error(f"no mutant is called {', '.join(unknown)}")
    mutants = [m for m in every if options.only is None or m.name in options.only]
    # programs that a mutant does not touch are not compiled again
    cache = pathlib.Path(tempfile.gettempdir()) / "vfljax_mutants_compiled"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(cache))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # as in the tests, before libraries are imported
    outcomes = run(mutants, options.coverage, options.limit)
    return 0 if all(outcome.verdict in CAUGHT for outcome in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
