"""What every entry point shares: one-line errors, all cores, the exact command.

Entry points import what they use when they run, and not before: ``--help`` and a misspelt flag must not wait
for JAX.
"""

from __future__ import annotations

import _thread
import contextlib
import os
import pathlib
import re
import shlex
import signal
import sys
import threading
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from absl import app, flags, logging

from vfljax.errors import UserError, unknown

if TYPE_CHECKING:
    from vfljax.launching import Way

flags.disclaim_key_flags()  # what is defined here are flags of the entry point, and in its --help

CALLBACK = os.path.join("jax", "_src", "callback.py")
HELP = re.compile(r"--?(help|helpfull|helpshort|helpxml|h|\?)(=.*)?")


def use_this_machine(**options: Any) -> None:
    """``vfljax.use_this_machine``."""
    from vfljax import machine

    machine.use_this_machine(**options)


def define_plugin(what: str) -> Any:
    """The flag --plugin of an entry point that trains or attacks."""
    return flags.DEFINE_multi_string(
        "plugin",
        [],
        f"a Python file, or the name of a module, with defenses or attacks of your own, {what}; can be "
        "given several times",
    )


class LauncherFlags(NamedTuple):
    """The flags of an entry point whose shards others may train and attack."""

    name: Any
    jobs: Any
    options: Any


def define_launcher() -> LauncherFlags:
    """The flags --launcher, --jobs and --launcher_options."""
    return LauncherFlags(
        flags.DEFINE_string(
            "launcher",
            "inline",
            "where shards are trained and attacked: inline, in this process; local, in processes of this "
            "machine, and slurm, in a job array, by submitit (extra 'launch'); ray, in tasks of a Ray cluster "
            "(extra 'ray')",
        ),
        flags.DEFINE_integer(
            "jobs",
            0,
            "jobs at once of local, slurm and ray; 0: a process a core, 16 tasks of an array, as many as Ray's "
            "cluster has room for",
            lower_bound=0,
        ),
        flags.DEFINE_multi_string(
            "launcher_options",
            [],
            "KEY=VALUE, can be given several times: of submitit's executors, such as slurm_partition=gpu, "
            "timeout_min=240, gpus_per_node=1, mem_gb=32; of ray, address=HOST:PORT, num_cpus=2, num_gpus=1",
        ),
    )


@contextlib.contextmanager
def launched(
    launcher: LauncherFlags, plugins: Sequence[str], names: Sequence[str] | None = None
) -> Iterator[Way]:
    """The way that the flags name, open while it is used. What was given up is an error when it ends."""
    from vfljax import launching

    name = launcher.name.value
    if name == "inline":
        if launcher.options.value or launcher.jobs.value:
            raise UserError(
                "--jobs and --launcher_options are for --launcher=local, slurm or ray: inline uses all that "
                "this process has."
            )
        yield launching.INLINE
        return
    options = dict(map(_option, launcher.options.value))
    with launching.opened(name, launcher.jobs.value, options) as engine:
        way = launching.way(engine, plugins, names)
        yield way
    if way.given_up:
        first, rest = way.given_up[0], len(way.given_up) - 1
        more = f" (and {rest} more)" if rest else ""
        raise UserError(f"{first}{more}. All else is done; the same command tries again.")


def _option(text: str) -> tuple[str, str | int | float]:
    key, is_there, value = text.partition("=")
    if not key or not is_there:
        raise UserError(
            f"--launcher_options={text!r}: give KEY=VALUE, for example timeout_min=240."
        )
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return key, kind(value)
    return key, value


def use_plugins(sources: Sequence[str]) -> None:
    """Put the rows of plugins into the tables; before a config is parsed."""
    from vfljax import plugins

    for source in sources:
        plugins.use(source)


def command() -> str:
    """The command line that was given, ready to be pasted."""
    module = sys.argv[0].rsplit("/", 1)[-1].removesuffix(".py")
    return f"python -m launch.{module} {shlex.join(sys.argv[1:])}"


def _config_path(arguments: Sequence[str]) -> str | None:
    """The config file that --config names, without its variant."""
    for argument, after in zip(arguments, [*arguments[1:], ""], strict=True):
        match = re.fullmatch(r"--?config(?:=(.*))?", argument)
        if match is not None:
            return (after if match[1] is None else match[1]).split(":")[0]
    return None


def _check_overrides(arguments: Sequence[str]) -> None:
    """Refuse a missing config file and --config.field overrides of fields that do not exist."""
    from vfljax.config import DEFAULT, FREE

    path = _config_path(arguments)
    if path is not None and not pathlib.Path(path).is_file():
        raise UserError(f"--config={path} is not a file: try configs/quickstart.py.")
    for argument in arguments:
        match = re.match(r"--?config\.([\w.]+)", argument)
        if match is None:
            continue
        fields, walked = DEFAULT, []
        for part in match[1].split("."):
            if not isinstance(fields, dict) or part not in fields:
                known = (
                    [".".join([*walked, name]) for name in fields]
                    if isinstance(fields, dict)
                    else walked
                )
                raise unknown("config field", match[1], known)
            if ".".join([*walked, part]) in FREE:
                break
            fields, walked = fields[part], [*walked, part]


def _raised_by_config(error: BaseException | None, path: str | None) -> str:
    """'FILE, line N: what it raised' of an error that began while the config file was executed, else
    ''. absl and ml_collections wrap it: it is the first error, from outside, that passed the file."""
    while error is not None and path is not None:
        lines = [
            frame.lineno
            for frame in traceback.extract_tb(error.__traceback__)
            if _same(frame.filename, path)
        ]
        if isinstance(error, SyntaxError) and _same(error.filename or "", path):
            lines, text = [error.lineno], error.msg
        elif isinstance(error, KeyError) and error.args:
            text = repr(error.args[0])
        else:
            text = str(error)
        if lines:
            kind = "" if isinstance(error, UserError) else f"{type(error).__name__}: "
            if isinstance(error, SystemExit):
                kind, text = "", f"it called sys.exit({error.code!r}), and should give a config"
            return f"{path}, line {lines[-1]}: {kind}{text}".removesuffix(": ")
        error = error.__cause__ or error.__context__
    return ""


def _check_loaded(path: str) -> None:
    """Refuse what is no config. A file's OSError, which ml_collections keeps until its config is read,
    is raised by ``hasattr``."""
    value = flags.FLAGS["config"].value
    if not hasattr(value, "keys"):
        raise UserError(
            f"{path}: get_config() returned {type(value).__name__}: let it return ordered({{...}})."
        )


def _same(filename: str, path: str) -> bool:
    return os.path.realpath(filename) == os.path.realpath(path)


def _parse(arguments: Sequence[str]) -> list[str]:
    path = _config_path(arguments)
    try:
        logging.set_verbosity(logging.ERROR)
        _check_overrides(arguments)
        rest = flags.FLAGS(list(arguments))
        if path is not None:
            _check_loaded(path)
        return rest
    except BrokenPipeError:  # --help | head
        sys.exit(_unread())
    except SystemExit as error:  # --help, or the config file
        raised = _raised_by_config(error, path)
        if not raised and any(map(HELP.fullmatch, arguments)):
            sys.exit(0)  # which absl ends with 1
        if not raised:
            raise
        sys.exit(_fail(f"config: {raised}"))
    except Exception as error:  # absl and ml_collections raise many kinds for a bad file or value
        raised = _raised_by_config(error, path)
        if raised:
            sys.exit(_fail(f"config: {raised}"))
        # ml_collections' KeyError carries its text, with a line break, as its argument
        text = error.args[0] if isinstance(error, KeyError) and error.args else error
        line = " ".join(str(text).split())
        line = _absent(line, arguments) or line.split(" Other fields present")[0]
        plain = isinstance(error, UserError) or (path is None and not line.startswith("config"))
        prefix = "" if plain else "config: "
        sys.exit(_fail(f"{prefix}{line or type(error).__name__}"))


def _absent(line: str, arguments: Sequence[str]) -> str:
    """What to say where an override's field, which exists, is not in the config file: the error is
    then the bare name of the field."""
    name = line.split("' Did you mean")[0].split(" Did you mean")[0].strip("'\"")
    for argument in arguments:
        match = re.match(r"--?config\.([\w.]+)", argument)
        if match is not None and name in match[1].split("."):
            return (
                f"the config file has no field {name!r} for --config.{match[1]} to change: add it to "
                "the file, or give a config that has it."
            )
    return ""


def printable(text: str) -> str:
    """A text for a terminal: characters that would command it, such as escape codes, stand as Python
    writes them; lines stay lines."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _fail(text: str) -> int:
    """Print the error as one line; returns the exit status."""
    print(f"error: {printable(' '.join(text.split()))}", file=sys.stderr)
    return 2


def _unread() -> int:
    """Whoever read the output has closed it, as ``| head`` does: nothing is wrong and nothing is said.
    Returns the exit status."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is flushed at exit
    return 0


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a scheduler sends it: whatever an interrupt saves and takes back, it does too."""


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    """The handler of SIGINT and SIGTERM: raises, but within a callback of JAX, which would make another
    error of it, comes again. SIGTERM is obeyed once: schedulers repeat it while what is trained is saved."""
    while frame is not None:
        if frame.f_code.co_filename.endswith(CALLBACK):
            _again(number)
            return
        frame = frame.f_back
    if number == signal.SIGTERM:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated
    raise KeyboardInterrupt


def _interrupt_again(ignored: sys.UnraisableHookArgs) -> None:
    """Python ignores what is raised in a callback of the garbage collector, and JAX has one: an interrupt
    that falls there comes again."""
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


def _listen() -> None:
    """Let SIGTERM end a run as Ctrl-C does, so that what is half written is taken back."""
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is to be ignored
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _interrupt_again


def _stopped(error: KeyboardInterrupt, resumes: bool) -> int:
    """Say how to go on, or to begin again; returns the exit status."""
    said = "nothing finished is lost. To go on" if resumes else "nothing is kept. To begin again"
    by, status = (" by SIGTERM", 143) if isinstance(error, Terminated) else ("", 130)
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"\nstopped{by}: {said}:\n  {printable(command())}", file=sys.stderr)
    return status


def start(run: Callable[[], None], resumes: bool = False) -> None:
    """Run an entry point and exit: with 0 where all is done, 2 after one line about a user's mistake,
    130 on Ctrl-C and 143 on SIGTERM, with the command that goes on where the entry point ``resumes``
    and otherwise begins again."""

    def main(arguments: Sequence[str]) -> None:
        if len(arguments) > 1:
            sys.exit(
                _fail(f"unexpected argument {arguments[1]!r}: options start with --; see --help.")
            )
        logging.set_verbosity(logging.ERROR)
        use_this_machine(min_compile_seconds=0.1)
        from vfljax.machine import exhausted

        try:
            run()
        except UserError as error:
            sys.exit(_fail(str(error)))
        except BrokenPipeError:
            sys.exit(_unread())
        except (OSError, MemoryError, OverflowError) as error:  # of the machine, or of absurd sizes
            kind, why = type(error).__name__, str(error)
            sys.exit(_fail(f"{kind}: {why}" if why else kind))
        except RuntimeError as error:
            if not exhausted(error):
                raise
            said = " ".join(str(error).split())[:160]
            remedy = (
                "a smaller network or batch, fewer settings a shard, or config.execution.width=1"
            )
            sys.exit(_fail(f"the device's memory is exhausted ({said}): choose {remedy}."))

    _listen()
    try:
        app.run(main, flags_parser=_parse)
    except KeyboardInterrupt as error:
        sys.exit(_stopped(error, resumes))
