"""Processes of PyTorch that are kept alive and asked in turn.

What enters: what ``torch_peers`` is to train. What leaves: times. Each has its own number of threads and its
own memory, and waits, without work, while others are timed.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from typing import Any

from analysis.benchmark.peers.problem import Problem

ABSENT = "PyTorch is not installed: pip install -e '.[parity]'"


class Failed(ChildProcessError):
    """A process that cannot train its form: why, in one line."""


class Worker:
    """One process; ``ready`` gives its version of PyTorch, and whatever waits for it raises ``Failed``."""

    def __init__(
        self, form: str, problem: Problem, first: int = 0, threads: int = 1, device: str = "cpu"
    ) -> None:
        fields = ("form", "problem", "first", "threads", "device")
        values = (form, problem, first, threads, device)
        arguments = json.dumps(dict(zip(fields, values, strict=True)))
        count = str(threads)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "analysis.benchmark.peers.torch_peers", arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count},
        )

    def ready(self) -> str:
        """Wait for the first steps, compilation included."""
        answer = self._read()
        if "failed" in answer:
            raise Failed(answer["failed"])
        return answer["ready"]

    def ask(self, seconds: float) -> None:
        """Begin training for at least ``seconds``."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def rate(self) -> float:
        """Wait for what was asked: trials' steps a second."""
        answer = self._read()
        return answer["steps"] / answer["seconds"]

    def _read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise Failed(f"the process ended with status {self.process.wait()}")
        return json.loads(line)


def absent() -> str:
    """Why there can be no such process, "" where there can."""
    return "" if importlib.util.find_spec("torch") else ABSENT


def measure(workers: Sequence[Worker], seconds: float) -> float:
    """Microseconds a trial and step as the machine sees it, all ``workers`` at once."""
    for worker in workers:
        worker.ask(seconds)
    return 1e6 / sum(worker.rate() for worker in workers)


@contextlib.contextmanager
def started(workers: Sequence[Worker]) -> Iterator[str]:
    """The ``workers``, until the block ends; gives their version of PyTorch once all are ready."""
    try:
        versions = [worker.ready() for worker in workers]
        yield versions[0]
    finally:
        for worker in workers:
            worker.process.kill()
            worker.process.communicate()
