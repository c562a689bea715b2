"""Work beside the main thread that nobody waits for."""

import threading

import pytest

from vfljax.sweep import programs
from vfljax.sweep.background import background


@pytest.fixture(autouse=True)
def _room(monkeypatch):
    """Whatever this process has compiled before."""
    monkeypatch.setattr(programs, "has_room", lambda: True)


def test_tasks_run_in_order_beside_the_main_thread():
    seen, done = [], threading.Event()
    with background(1) as submit:
        submit(lambda: seen.append((1, threading.current_thread())))
        submit(lambda: seen.append((2, threading.current_thread())))
        submit(done.set)
        assert done.wait(10)
    assert [number for number, _ in seen] == [1, 2]
    assert all(thread is not threading.main_thread() for _, thread in seen)


def test_a_task_that_fails_is_nobody_s_error():
    done = threading.Event()
    with background(1) as submit:
        submit(lambda: 1 / 0)
        submit(done.set)
        assert done.wait(10)


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_an_error_ends_the_block_once_the_running_task_has_ended(error):
    begun, seen = threading.Event(), []

    def slow():
        begun.set()
        release.wait(10)
        seen.append("slow")

    def interrupted():
        with background(1) as submit:
            submit(slow)
            submit(lambda: seen.append("never"))
            assert begun.wait(10)
            threading.Timer(0.05, release.set).start()
            raise error

    release = threading.Event()
    with pytest.raises(error):
        interrupted()
    assert seen == ["slow"]


def test_nothing_is_done_ahead_where_programs_would_be_forgotten(monkeypatch):
    monkeypatch.setattr(programs, "MOST_MAPS", 2)
    seen, waited = [], threading.Event()
    with background(1) as submit:
        submit(lambda: seen.append("ahead"))
        monkeypatch.setattr(programs, "has_room", lambda: waited.set() or False)
        submit(lambda: seen.append("ahead"))
        assert waited.wait(10)
    assert seen == []
