"""Runs learners on the host in several processes, because fitting holds Python's global lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import joblib
import numpy as np
from threadpoolctl import threadpool_limits

from vfljax.machine import cores

WORTH_PROCESSES = 100_000  # rows read in all, which take learners about a second


def in_processes(
    function: Callable[..., np.ndarray], tasks: Sequence[tuple[Any, ...]], rows: int
) -> list[np.ndarray]:
    """Returns ``function(*task)`` of each task, computed in as many processes as there are cores.

    Args:
      function: defined by a module; it holds Python's global lock while it computes.
      tasks: the arguments of each call.
      rows: read by all tasks together. Few rows are read in this process: others would take longer to start.
    """
    if rows < WORTH_PROCESSES or cores() == 1:
        # the products are small: threads of BLAS that wait for a busy core take many times as long
        with threadpool_limits(1, "blas"):
            return [function(*task) for task in tasks]
    options: Any = {"batch_size": max(1, len(tasks) // (4 * cores()))}
    results: Any = joblib.Parallel(n_jobs=cores(), **options)(
        joblib.delayed(function)(*task) for task in tasks
    )
    return results
