"""Work beside the main thread that nobody waits for, such as compiling what is needed later.

A task that fails or is never begun changes nothing but the time that is taken: whoever needs what it would
have made makes it then, and reports what is wrong with it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

from vfljax.machine import cores
from vfljax.sweep import programs

Task = Callable[[], object]


@contextlib.contextmanager
def background(workers: int | None = None) -> Iterator[Callable[[Task], None]]:
    """``submit(task)``: tasks run in ``workers`` threads (None: all cores but one, at least one), in the
    order of submission. When the block ends, by an error or interrupt too, tasks that run are waited for
    and the others dropped."""
    most = max(1, cores() - 1) if workers is None else workers
    pool = ThreadPoolExecutor(max_workers=most, thread_name_prefix="ahead")

    def unless_full(task: Task) -> None:
        if programs.has_room():
            task()

    def submit(task: Task) -> None:
        pool.submit(unless_full, task)

    try:
        yield submit
    finally:
        pool.shutdown(cancel_futures=True)
