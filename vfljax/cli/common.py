"""What every command shares: flags, one line for a user's mistake, and the exit status.

Commands import what they use when they run: ``--help`` and a misspelt flag must not wait for JAX.
"""

from __future__ import annotations

import _thread
import contextlib
import io
import math
import os
import pathlib
import re
import shlex
import signal
import sys
import threading
import time
import types
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn

from absl import flags, logging

import vfljax
from vfljax.errors import Field, UnmetError, UserError, shown, unknown, user_path, writable

HELP = re.compile(r"--?(help|helpfull|helpshort|h|\?)(=.*)?")
FIELD = "config.FIELD"  # the flag that collects --config.training.epochs=3 and the like
CALLBACKS = tuple(os.path.join("jax", "_src", f"{name}callback.py") for name in ("", "buffer_"))
DEFINERS: dict[type, Callable[..., Any]] = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    list: flags.DEFINE_multi_string,
    tuple: flags.DEFINE_list,
}


class Flag(NamedTuple):
    """A flag of its default's type, which is given as --name=value."""

    name: str
    use: str  # a line for --help
    # None: a text that may be absent; []: may be given several times; (): names between commas
    default: Any = None
    least: int | None = None  # the smallest whole number that is allowed
    path: bool = False  # a path, or several, which ``_parse`` makes absolute


class Options(flags.FlagValues):
    """The flags of one call of a command, for its ``run``.

    Attributes:
      line: the command line, for the header of what is stored.
    """

    def __init__(self, defined: Iterable[Flag], line: str = "") -> None:
        super().__init__()
        self.__dict__["line"] = line  # absl takes other attributes for flags
        for name, use, default, least, _ in defined:
            define = DEFINERS.get(type(default), flags.DEFINE_string)
            limits = {} if least is None else {"lower_bound": least}
            define(name, default, use, flag_values=self, **limits)

    @property
    def folder(self) -> pathlib.Path:
        """The sweep's folder, --workdir."""
        what = "the folder of a sweep made by `vfljax sweep`"
        return pathlib.Path(self.required("workdir", what))

    def required(self, name: str, what: str) -> Any:
        """Returns a flag's value.

        Args:
          name: of the flag.
          what: it is, for the message.

        Raises:
          UserError: if it was not given.
        """
        if not self[name].value:
            raise UserError(f"--{name} is needed: {what}.")
        return self[name].value


# goes with --config: ``start`` replaces both by the fields of the config
CHANGES = Flag(FIELD, "change a field, for example --config.training.epochs=100", [])
OWN_ROWS = "a Python file, or the name of a module, with defenses or attacks of your own"
ROOM = "0: a process a core, 16 tasks of an array, as many as Ray's cluster has room for"
LAUNCHER = (
    Flag("plugin", f"{OWN_ROWS}, which configs and --attacks name 'file:row'", []),
    Flag(
        "launcher",
        "where shards are trained and attacked: inline, in this process; local, in processes of this "
        "machine, and slurm, in a job array, by submitit (extra 'launch'); ray, in tasks of a Ray cluster "
        "(extra 'ray')",
        "inline",
    ),
    Flag("jobs", f"jobs at once of local, slurm and ray; {ROOM}", 0, least=0),
    Flag(
        "launcher_options",
        "KEY=VALUE of submitit's executors, such as slurm_partition=gpu, timeout_min=240, gpus_per_node=1, "
        "mem_gb=32; of ray, address=HOST:PORT, num_cpus=2, num_gpus=1",
        [],
    ),
)
"""--plugin, whose rows ``start`` puts into the tables, and the flags on where a sweep is computed."""
JUDGED = "what is recommended, or of undefended where nothing is"
REQUIREMENTS = (
    Flag("fail_above", f"exit with status 3 if more may leak of {JUDGED}", math.nan),
    Flag("fail_verdict", "likewise for these verdicts, such as cannot_say,unclear", ()),
)
"""The flags that ``requirement`` checks, for use in scripts."""
TRACE = "write a trace that https://ui.perfetto.dev opens to this file, such as trace.json.gz"
PROFILE = Flag("profile", f"print where the seconds went, and {TRACE}", "", path=True)


def requirement(options: Options) -> Callable[[pathlib.Path], None]:
    """Returns ``require(workdir)``, which raises UnmetError if the sweep there does not meet the flags."""
    from vfljax.report import requirements

    for name in options.fail_verdict:
        if name not in requirements.NAMES:
            raise unknown("verdict of --fail_verdict", name, requirements.NAMES)
    refused = {requirements.NAMES[name] for name in options.fail_verdict}

    def require(workdir: pathlib.Path) -> None:
        if sentence := requirements.unmet(workdir, options.fail_above, refused):
            raise UnmetError(sentence)

    return require


def start(command: Any, arguments: Sequence[str], program: str) -> NoReturn:
    """Run a command and exit.

    The exit status is 0 where all is done, 2 after one line about a user's mistake, 130 on Ctrl-C
    and 143 on SIGTERM.

    Args:
      command: the module of the command. Where the docstring of ``vfljax.cli.sweep`` has "vfljax sweep",
        --help has ``program``.
      arguments: those of the command line, after the command's name.
      program: how the user started the command, "python -m launch.sweep" or "vfljax sweep".
    """
    _open_streams()
    options, began = Options(command.FLAGS, f"{program} {shlex.join(arguments)}"), time.monotonic()
    # SIGTERM ends a run as Ctrl-C does, so that half-written files are removed
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else SIGINT is ignored
        signal.signal(signal.SIGINT, _interrupt)
    sys.unraisablehook = _interrupt_again
    try:
        _parse(options, command, arguments, program)
        vfljax.use_this_machine(min_compile_seconds=0.1)
        sys.exit(_status(command, options, began))
    except KeyboardInterrupt as error:
        sys.exit(_stopped(error, options.line, command.RESUMES))


def end_with_help(text: str) -> NoReturn:
    """Print a help text and exit with 0, also where its reader has gone, as ``| head`` does."""
    with contextlib.suppress(BrokenPipeError):
        print(text, flush=True)
        sys.exit(0)
    sys.exit(_unread())


def fail(error: Exception) -> int:
    """Print an error as one line; return the exit status."""
    print(f"error: {printable(' '.join(str(error).split()))}", file=sys.stderr)
    return error.status if isinstance(error, UserError) else UserError.status


def printable(text: str) -> str:
    """Escape characters that would command a terminal; keep line breaks."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def _open_streams() -> None:
    """Give closed standard streams the null device, and let the others write any text."""
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass  # else a file that is opened later would get the number of a closed stream
    os.close(number)
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # Python found it closed
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115 - it stays open
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # an ASCII locale has no "±"


def _parse(options: Options, command: Any, arguments: Sequence[str], program: str) -> None:
    """Parse the flags of a command; exit after --help or a mistake."""
    logging.use_absl_handler()
    logging.set_verbosity(logging.ERROR)
    if any(map(HELP.fullmatch, arguments)):
        listed = options.get_help(include_special_flags=False).partition(":\n")[2]
        if "config" in options:
            fields = vfljax.config.described(vfljax.config.resolve({}))
            listed += f"\n\nfields of a config, changed by --config.FIELD=VALUE:\n{fields}"
        name = f"vfljax {command.__name__.removeprefix('vfljax.cli.')}"
        end_with_help(f"{command.__doc__.replace(name, program)}\nflags:\n{listed}")
    try:
        for argument in arguments:
            if not writable(argument):
                what = f"{argument!r} is no text in {sys.getfilesystemencoding()}"
                raise UserError(
                    what, remedy="set the environment variable PYTHONUTF8=1, or rename it"
                )
        has_config = "config" in options
        surplus = options([program, *(_fields(arguments) if has_config else arguments)])[1:]
        if surplus:
            raise UserError(
                f"unexpected argument {surplus[0]!r}: options start with --; see --help."
            )
        for flag in command.FLAGS:
            if flag.path and options[flag.name].present:
                options[flag.name].value = _absolute(flag.name, options[flag.name].value)
        if has_config and options.config is not None:
            file = vfljax.config.located(options.config)
            if file.path != file.given:
                print(f"config: {file.given} is the copy that comes with vfljax", file=sys.stderr)
            fields = dict(field.split("=", 1) for field in options[FIELD].value or [])
            options["config"].value = vfljax.config.from_file(options.config, fields)
    except (flags.Error, UserError) as error:
        sys.exit(fail(error))


def _absolute(name: str, value: Any) -> Any:
    """Return the value of a flag of paths, a text or a list of texts, with absolute paths."""
    if isinstance(value, str):
        return str(user_path(value, Field(name, f"--{name}"))) if value else value
    return value and [_absolute(name, part) for part in value]


def _fields(arguments: Sequence[str]) -> list[str]:
    """Rewrite --config.a=1 and --config.a 1 as --config.FIELD=a=1."""
    out, left = [], iter(arguments)
    for argument in left:
        if match := re.fullmatch(r"--?config\.([^=]+)(?:=(.*))?", argument, re.DOTALL):
            value = next(left, "") if match[2] is None else match[2]
            argument = f"--{FIELD}={match[1]}={value}"
        out.append(argument)
    return out


def _status(command: Any, options: Options, began: float) -> int:
    """Run a command; print an error that the user can mend as one line; return the exit status."""
    try:
        for source in options.plugin if "plugin" in options else ():
            vfljax.plugins.use(source)
        with _profiled(options.profile if "profile" in options else "", began):
            command.run(options)
    except UserError as error:
        return fail(error)
    except BrokenPipeError:
        return _unread()
    except (OSError, MemoryError, OverflowError) as error:  # of the machine, or of absurd sizes
        kind = type(error).__name__
        return fail(UserError(f"{kind}: {error}" if str(error) else kind))
    except RuntimeError as error:
        if "RESOURCE_EXHAUSTED" not in str(error):  # of XLA, in any of its error classes
            raise
        what = f"the device's memory is exhausted ({' '.join(str(error).split())[:160]})"
        fewer = "fewer trials a shard, or config.execution.width=1"
        return fail(UserError(what, remedy=f"choose a smaller network or batch, {fewer}"))
    return 0


@contextlib.contextmanager
def _profiled(file: str, began: float) -> Iterator[None]:
    """Print where the body's seconds went and write their trace to a file, if one is named."""
    if not file:
        yield
        return
    from vfljax.report.terminal import aligned
    from vfljax.sweep import profile

    path = pathlib.Path(file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.open("ab").close()  # a file that cannot be written is refused before the work
    profile.record(began)
    try:
        yield
    finally:
        spans = profile.stop()
    print(aligned(profile.COLUMNS, profile.table(spans)))
    profile.write(spans, path)
    print(f"profile: {shown(path)}")


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
