"""The progress line."""

import io
import threading

import pytest

from vfljax.sweep import progress


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (65, "1:05"), (3725, "1:02:05")])
def test_times_read_as_a_clock(seconds, text):
    assert progress.clock(seconds) == text


def test_it_says_settings_steps_a_second_and_time_left(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    out = io.StringIO()
    line = progress.Progress("train", trials=4, steps=400, stream=out)
    line.resume(1, 100)
    now[0] = 10.0  # compilation
    line.update(0, 10)
    assert "estimating" in out.getvalue()
    now[0] = 20.0  # 10 steps a second since: 190 left
    line.update(1, 100)
    said = out.getvalue().splitlines()[-1]
    assert "2/4 trials" in said
    assert "0:19 left" in said
    line.close()
    assert out.getvalue().splitlines()[-1].endswith("done")


def test_what_is_being_done_is_said_while_nothing_else_is(monkeypatch):
    monkeypatch.setattr(progress, "QUIET", 0.0)
    said, heard = [], threading.Event()

    def say(line: str) -> None:
        said.append(line)
        heard.set()

    with progress.heartbeat(say, lambda: "compiling"):
        assert heard.wait(30)
    assert {*said} == {"compiling"}


class NoStream:
    """What programs put in place of a stream: it only writes, and the console may be gone."""

    def write(self, text):
        raise OSError("the console is gone")

    def flush(self):
        pass


def test_a_program_without_a_console_trains_all_the_same(monkeypatch):
    closed = io.StringIO()
    closed.close()
    for stream in (None, closed, NoStream()):
        monkeypatch.setattr(progress.sys, "stderr", stream)
        line = progress.Progress("train", trials=1, steps=1)
        line.update(1, 1)
        line.say("another")
        line.close()
