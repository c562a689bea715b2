"""What every command shares: streams, signals, one line for a user's mistake, and the exit status.

Commands import what they use when they run: ``--help`` and a misspelt flag must not wait for JAX.
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import io
import os
import pathlib
import re
import shlex
import signal
import sys
import textwrap
import threading
import time
import types
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NoReturn

from absl import logging

import vfljax
from vfljax.api import flags
from vfljax.api.arguments import Path, checked
from vfljax.errors import UserError, argument, short_path

HELP = re.compile(r"--?(help|helpfull|helpshort|h|\?)(=.*)?")
CALLBACKS = tuple(os.path.join("jax", "_src", f"{name}callback.py") for name in ("", "buffer_"))
if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

REFUSED = (
    *(errno.ENOSPC, errno.EDQUOT),  # a full disk
    *(errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG),  # a path that cannot be used
)
"""Errors of the file system that only the user can mend. Any other one is a fault of ours."""
BEGAN = time.monotonic()  # when this process began, about


def start(command: flags.Command, arguments: Sequence[str], program: str) -> NoReturn:
    """Runs a command and exits.

    The exit status is 0 where all is done, 2 after one line about a user's mistake, 3 if a requirement is not
    met, 130 on Ctrl-C and 143 on SIGTERM.

    Args:
      command: the command.
      arguments: those of the command line, after the command's name.
      program: how the user started the command, "python -m launch.sweep" or "vfljax sweep". Where the
        docstring of the command has "vfljax sweep", --help has ``program``.
    """
    _open_streams()
    line = f"{program} {shlex.join(arguments)}"
    # SIGTERM ends a run as Ctrl-C does, so that half-written files are removed
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else SIGINT is ignored
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _interrupt_again
    logging.use_absl_handler()
    logging.set_verbosity(logging.ERROR)
    try:
        if any(map(HELP.fullmatch, arguments)):
            name = f"vfljax {program.replace('.', ' ').rpartition(' ')[2]}"
            end_with_help(flags.page(command, name, program))
        sys.exit(_status(command, arguments, line))
    except KeyboardInterrupt as error:
        sys.exit(_stopped(error, line, command.resumes))


def end_with_help(text: str) -> NoReturn:
    """Print a help text and exit with 0, also where its reader has gone, as ``| head`` does."""
    with contextlib.suppress(BrokenPipeError):
        print(text, flush=True)
        sys.exit(0)
    sys.exit(_unread())


def fail(error: UserError, command: flags.Command | None = None) -> int:
    """Prints an error as one line, with flags for arguments of the command; returns the exit status."""
    line = error.line(flags.spelled(command)) if command else str(error)
    print(f"error: {printable(' '.join(line.split()))}", file=sys.stderr)
    return error.status


def printable(text: str) -> str:
    """Escape characters that would command a terminal; keep line breaks."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


class _Unread(io.FileIO):
    """A stream that drops its text if its reader has gone, so that a closed pipe does not end the work."""

    def write(self, data: ReadableBuffer, /) -> int:
        try:
            return super().write(data)
        except BrokenPipeError:
            return memoryview(data).nbytes


def _open_streams() -> None:
    """Gives closed standard streams the null device, and lets the others write any text."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # else a file that is opened later would get the number of a closed stream
    os.close(number)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # Python found it closed
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - it stays open
    if sys.stderr is sys.__stderr__ and isinstance(sys.stderr, io.TextIOWrapper):
        raw = _Unread(sys.stderr.fileno(), "w", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw), sys.stderr.encoding, line_buffering=True
        )
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII locale has no "±"


def _status(command: flags.Command, arguments: Sequence[str], line: str) -> int:
    """Runs a command; prints an error that the user can mend as one line; returns the exit status."""
    try:
        given = flags.parsed(command, arguments)
        _use_this_machine()
        if "command" in command.arguments:
            given["command"] = line
        with profiled(**flags.taken(profiled, given)):
            command.run(**given)
    except UserError as error:
        return fail(error, command)
    except BrokenPipeError:
        return _unread()
    except OSError as error:
        if error.errno not in REFUSED:
            raise
        what, remedy = f"{type(error).__name__}: {error}", ""
        if isinstance(
            error, PermissionError
        ):  # as of files of another user in a folder with a sticky bit
            remedy = "ask the owner of the folder, or copy it and work on the copy"
        return fail(UserError(what, remedy=remedy))
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):  # of XLA, in any of its error classes
            raise
        why = textwrap.shorten(str(error), 160, placeholder=" ...")
        what = f"the device's memory is exhausted ({why})"
        fewer = "fewer trials a shard, or config.execution.width=1"
        return fail(UserError(what, remedy=f"choose a smaller network or batch, {fewer}"))
    return 0


def _use_this_machine() -> None:
    try:
        vfljax.use_this_machine(min_compile_seconds=0.1)
    except (RuntimeError, AssertionError) as error:
        from vfljax import switches

        raise switches.no_platform(error) from error


@contextlib.contextmanager
@checked
def profiled(profile: Path | None = None) -> Iterator[None]:
    """Prints where the seconds of the block went, and writes their trace, if a file is named.

    Args:
      profile: print where the seconds went, and write a trace that https://ui.perfetto.dev opens to this file,
        such as trace.json.gz.
    """
    if profile is None:
        yield
        return
    from vfljax.report.terminal import aligned
    from vfljax.sweep import profile as recorder

    path = pathlib.Path(profile)
    try:  # a file that cannot be written is refused before the work
        path.parent.mkdir(parents=True, exist_ok=True)
        path.open("ab").close()
    except OSError as error:
        what = f"cannot be written ({error.strerror})"
        remedy = "name another file"
        raise UserError(
            what, field=argument("profile"), value=short_path(path), remedy=remedy
        ) from error
    recorder.record(BEGAN)
    try:
        yield
    finally:
        spans = recorder.stop()
    print(aligned(recorder.COLUMNS, recorder.table(spans)))
    if of_attacks := recorder.by_attack(spans):
        print(aligned(recorder.BY_ATTACK, of_attacks))
    recorder.write(spans, path)
    print(f"profile: {short_path(path)}")


def _unread() -> int:
    """Send further output nowhere, because its reader has gone; return the exit status 0."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a scheduler sends it. Code that handles an interrupt handles it in the same way."""


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    """Raise for SIGINT or SIGTERM.

    A callback of JAX would turn the exception into another error, so inside one the signal is sent again
    later. SIGTERM is obeyed once, because schedulers repeat it while trained trials are saved.
    """
    while frame is not None:
        if frame.f_code.co_filename.endswith(CALLBACKS):
            _again(number)
            return
        frame = frame.f_back
    if number == signal.SIGTERM:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated
    raise KeyboardInterrupt


def _interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Send an interrupt again that arrived in a callback of the garbage collector: Python ignored it."""
    if issubclass(ignored.exc_type, KeyboardInterrupt):
        number = signal.SIGTERM if issubclass(ignored.exc_type, Terminated) else signal.SIGINT
        signal.signal(number, _interrupt)
        _again(number)
    else:
        sys.__unraisablehook__(ignored)


def _again(number: int) -> None:
    timer = threading.Timer(0.05, _thread.interrupt_main, [number])
    timer.daemon = True
    timer.start()


def _stopped(error: KeyboardInterrupt, command: str, resumes: bool) -> int:
    """Print the command that continues, or begins again; return the exit status."""
    kept = "nothing finished is lost. To go on" if resumes else "nothing is kept. To begin again"
    by, status = (" by SIGTERM", 143) if isinstance(error, Terminated) else ("", 130)
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"\nstopped{by}: {kept}:\n  {printable(command)}", file=sys.stderr)
    return status
