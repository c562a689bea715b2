"""Where the time of the tests goes, by file: ``python -m pytest -n 2 -p tests.profiling``.

A plugin of pytest. At the end it prints a table of the files, the dearest first: seconds, how many of them
JAX spent tracing, lowering and compiling programs, and the CPU seconds of all threads. What a fixture takes
counts for the test that asked for it first.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Generator
from typing import Any

import jax
import pytest

from vfljax.sweep.profile import EVENTS, Span, own_seconds

COLUMNS = ("seconds", "trace", "lower", "compile", "cpu")
spans: list[Span] = []  # since the last report of this process
cpu = time.process_time()
of_file: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)


def on_event(event: str, duration_secs: float, **kwargs: str | int) -> None:
    del kwargs
    if event in EVENTS:
        now = time.monotonic()
        spans.append(Span(EVENTS[event], "", now - duration_secs, now, threading.get_ident()))


jax.monitoring.register_event_duration_secs_listener(on_event)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    """A report takes the seconds since the last one along, also from a worker to the main process."""
    global cpu
    report = yield
    seconds = collections.Counter[str](cpu=time.process_time() - cpu)
    recorded, spans[:] = spans[:], []
    for span, own in zip(recorded, own_seconds(recorded), strict=True):
        seconds[span.kind] += own
    report.seconds, cpu = dict(seconds), time.process_time()
    return report


def pytest_runtest_logreport(report: Any) -> None:
    file = of_file[report.nodeid.partition("::")[0]]
    file.update(report.seconds, seconds=report.duration, tests=report.when == "call")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    whole = collections.Counter[str]()
    for seconds in of_file.values():
        whole.update(seconds)
    files = sorted(of_file.items(), key=lambda item: -item[1]["seconds"])
    terminalreporter.section("seconds of the files")
    terminalreporter.write_line("".join(f"{c:>9}" for c in COLUMNS) + "    tests  file")
    for name, file in [*files, ("all", whole)]:
        line = "".join(f"{file[column]:9.1f}" for column in COLUMNS)
        terminalreporter.write_line(f"{line}{file['tests']:9}  {name}")
