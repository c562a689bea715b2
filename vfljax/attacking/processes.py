"""Learners of the host in several processes, because they hold Python's lock while they are fitted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from vfljax.machine import cores

WORTH_PROCESSES = 100_000  # rows that learners read, which take about a second


def in_processes(
    function: Callable[..., np.ndarray], tasks: Sequence[tuple[Any, ...]], rows: int
) -> list[np.ndarray]:
    """Returns ``function(*task)`` of each task, computed in as many processes as there are cores.

    Args:
      function: one that a module defines; it holds Python's lock while it computes.
      tasks: its arguments.
      rows: that all tasks read together. Where these are few, processes take longer to start than they save.
    """
    if rows < WORTH_PROCESSES or cores() == 1:
        # their products are small: threads of BLAS that wait for a busy core take many times as long
        with threadpool_limits(1, "blas"):
            return [function(*task) for task in tasks]
    options: Any = {"batch_size": max(1, len(tasks) // (4 * cores()))}
    results: Any = joblib.Parallel(n_jobs=cores(), **options)(
        joblib.delayed(function)(*task) for task in tasks
    )
    return results
