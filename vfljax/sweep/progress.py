"""Lines of progress: trials done, steps a second, time left; and what is being done if nothing else is said."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TextIO

QUIET = 8.0  # seconds without a line, after which ``heartbeat`` says what is being done
_last_line_at = time.monotonic()  # when any line was last printed


def note_line() -> None:
    """Notes that a line was printed, so that ``heartbeat`` waits anew."""
    global _last_line_at
    _last_line_at = time.monotonic()


@contextlib.contextmanager
def heartbeat(say: Callable[[str], None], doing: Callable[[], str]) -> Iterator[None]:
    """Says what is being done whenever no line was printed for ``QUIET`` seconds, while the body runs.

    Compiling a program, or reading a large table, takes long and prints nothing itself.

    Args:
      say: is given the line, in a thread of its own.
      doing: returns the line.
    """
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            if time.monotonic() - _last_line_at >= QUIET:
                note_line()
                say(doing())

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def clock(seconds: float) -> str:
    """3725 -> '1:02:05', 65 -> '1:05'."""
    whole = max(0, round(seconds))
    hours, rest = divmod(whole, 3600)
    minutes, seconds = divmod(rest, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}" if hours else f"{minutes}:{seconds:02d}"


def _is_terminal(stream: TextIO | None) -> bool:
    """Returns whether a stream is a terminal; one that a program put in its place need not say."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):
        return False


class Progress:
    """The progress line of one phase of work. A terminal's line is rewritten; elsewhere lines are added."""

    def __init__(self, phase: str, trials: int, steps: int, stream: TextIO | None = None) -> None:
        self.phase, self.trials, self.steps = phase, trials, max(1, steps)
        self.stream = sys.stderr if stream is None else stream
        self.terminal = _is_terminal(self.stream)
        self.started = self.printed_at = time.monotonic()
        self.interval = 0.2 if self.terminal else 5.0
        self.done_trials, self.done_steps, self.skipped = 0, 0, 0
        self.warm: tuple[float, int] | None = None  # time and steps done at the first update

    def resume(self, trials: int, steps: int) -> None:
        """Counts work that an earlier process finished, which does not enter the rate.

        Args:
          trials: number of finished trials.
          steps: number of finished steps, those of unfinished trials included.
        """
        self.done_trials += trials
        self.done_steps += steps
        self.skipped += steps

    def update(self, trials: int, steps: int, note: str = "") -> None:
        """Counts work that was done, and shows it now and then.

        Args:
          trials: number of trials that were finished.
          steps: number of steps that were done.
          note: for the end of the line.
        """
        self.done_trials += trials
        self.done_steps += steps
        if self.warm is None:  # the time until here is mostly compiling: the estimate leaves it out
            self.warm = time.monotonic(), self.done_steps
        due = time.monotonic() - self.printed_at >= self.interval
        if due and self.done_trials < self.trials:  # ``close`` shows the last line
            self._show(note)

    def _show(self, note: str, end: bool = False) -> None:
        self.printed_at = time.monotonic()
        note_line()
        elapsed = self.printed_at - self.started
        rate = (self.done_steps - self.skipped) / max(elapsed, 1e-9)
        left = "done" if end else "estimating"
        if self.warm is not None and not end:
            since, steps = self.printed_at - self.warm[0], self.done_steps - self.warm[1]
            if since > 0.5 and steps > 0:
                left = f"{clock((self.steps - self.done_steps) / steps * since)} left"
        line = (
            f"{self.phase}: {self.done_trials}/{self.trials} trials, "
            f"{rate:,.0f} steps/s, {clock(elapsed)} elapsed, {left} {note}"
        )
        if self.terminal:
            self._write("\r\x1b[2K" + line + ("\n" if end else ""))
        else:
            self._write(line.rstrip() + "\n")

    def say(self, line: str) -> None:
        """Shows another text on a line of its own."""
        note_line()
        self._write("\r\x1b[2K" * self.terminal + line + "\n")

    def _write(self, text: str) -> None:
        """Writes to the stream, if it can: a program without a console has none, or a closed one."""
        if self.stream is not None:
            with contextlib.suppress(OSError, ValueError):
                self.stream.write(text)
                self.stream.flush()

    def close(self) -> None:
        """Show the line for the last time."""
        self._show("", end=True)
