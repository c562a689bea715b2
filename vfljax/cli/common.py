"""What every command shares: flags, one line for a user's mistake, and the exit status.

Commands import what they use when they run: ``--help`` and a misspelt flag must not wait for JAX.
"""

from __future__ import annotations

import _thread
import contextlib
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
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NoReturn

from absl import flags, logging

import vfljax
from vfljax.errors import UnmetError, UserError, packaged, unknown

HELP = re.compile(r"--?(help|helpfull|helpshort|h|\?)(=.*)?")
FIELD = "config.FIELD"  # the flag that collects --config.training.epochs=3 and the like
CALLBACK = os.path.join("jax", "_src", "callback.py")
DEFINERS: dict[type, Callable[..., Any]] = {
    bool: flags.DEFINE_bool,
    int: flags.DEFINE_integer,
    float: flags.DEFINE_float,
    list: flags.DEFINE_multi_string,
    tuple: flags.DEFINE_list,
}


class Options(flags.FlagValues):
    """The flags of one call of a command: defined by its ``define``, read by its ``run``.

    Attributes:
      line: the command line, for the header of what is stored.
    """

    def __init__(self, line: str = "") -> None:
        super().__init__()
        self.__dict__["line"] = line  # absl takes other attributes for flags

    @property
    def folder(self) -> pathlib.Path:
        """The sweep's folder, --workdir."""
        return pathlib.Path(
            self.required("workdir", "the folder of a sweep made by `vfljax sweep`")
        )

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

    def add(self, name: str, use: str, default: Any = None, least: int | None = None) -> None:
        """Define a flag of its default's type.

        Args:
          name: the flag is given as --name=value.
          use: a line for --help.
          default: None for a text that may be absent, [] for a flag that may be given several times,
            () for names between commas.
          least: the smallest whole number that is allowed.
        """
        define = DEFINERS.get(type(default), flags.DEFINE_string)
        limits = {} if least is None else {"lower_bound": least}
        define(name, default, use, flag_values=self, **limits)


def define_config(options: Options, use: str) -> None:
    """Define --config and --config.FIELD, which ``start`` replaces by the fields of the config.

    Args:
      options: of the command.
      use: a line for --help.
    """
    options.add("config", use)
    options.add(FIELD, "change a field, for example --config.training.epochs=100", [])


def define_launcher(options: Options) -> None:
    """Define --plugin, whose rows ``start`` puts into the tables, and where a sweep is computed."""
    file = "a Python file, or the name of a module, with defenses or attacks of your own"
    options.add("plugin", f"{file}, which configs and --attacks name 'file:row'", [])
    options.add(
        "launcher",
        "where shards are trained and attacked: inline, in this process; local, in processes of this "
        "machine, and slurm, in a job array, by submitit (extra 'launch'); ray, in tasks of a Ray cluster "
        "(extra 'ray')",
        "inline",
    )
    text = "0: a process a core, 16 tasks of an array, as many as Ray's cluster has room for"
    options.add("jobs", f"jobs at once of local, slurm and ray; {text}", 0, least=0)
    options.add(
        "launcher_options",
        "KEY=VALUE of submitit's executors, such as slurm_partition=gpu, timeout_min=240, gpus_per_node=1, "
        "mem_gb=32; of ray, address=HOST:PORT, num_cpus=2, num_gpus=1",
        [],
    )


def define_requirements(options: Options) -> None:
    """Define what ``requirement`` asks, for use in scripts: the exit status is then 3."""
    what = "what is recommended, or of undefended where nothing is"
    options.add("fail_above", f"exit with status 3 if more may leak of {what}", math.nan)
    options.add("fail_verdict", "likewise for these verdicts, such as cannot_say,unclear", ())


def requirement(options: Options) -> Callable[[pathlib.Path], None]:
    """Returns what raises UnmetError for a sweep in a folder that does not meet what the flags ask."""
    from vfljax.report import requirements

    verdicts = requirements.NAMES
    for name in options.fail_verdict:
        if name not in verdicts:
            raise unknown("verdict of --fail_verdict", name, list(verdicts))
    refused = {verdicts[name] for name in options.fail_verdict}

    def require(workdir: pathlib.Path) -> None:
        if sentence := requirements.unmet(workdir, options.fail_above, refused):
            raise UnmetError(sentence)

    return require


def define_profile(options: Options) -> None:
    """Define --profile, which ``start`` obeys."""
    text = (
        "print where the seconds went, and write a trace that https://ui.perfetto.dev opens to this"
    )
    options.add("profile", f"{text} file, such as trace.json.gz", "")


def start(command: Any, arguments: Sequence[str], program: str, name: str) -> NoReturn:
    """Run a command and exit.

    The exit status is 0 where all is done, 2 after one line about a user's mistake, 130 on Ctrl-C
    and 143 on SIGTERM.

    Args:
      command: the module of the command.
      arguments: those of the command line, after the command's name.
      program: how the user started the command, "python -m launch.sweep" or "vfljax sweep".
      name: how the command's docstring writes that.
    """
    options, began = Options(f"{program} {shlex.join(arguments)}"), time.monotonic()
    _listen()
    try:
        _parse(options, command, arguments, program, name)
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


def _parse(
    options: Options, command: Any, arguments: Sequence[str], program: str, name: str
) -> None:
    """Define and parse the flags of a command; exit after --help or a mistake."""
    logging.use_absl_handler()
    logging.set_verbosity(logging.ERROR)
    command.define(options)
    if any(map(HELP.fullmatch, arguments)):
        listed = options.get_help(include_special_flags=False).partition(":\n")[2]
        if "config" in options:
            fields = vfljax.config.described(vfljax.config.resolve({}))
            listed += f"\n\nfields of a config, changed by --config.FIELD=VALUE:\n{fields}"
        end_with_help(f"{command.__doc__.replace(name, program)}\nflags:\n{listed}")
    try:
        has_config = "config" in options
        surplus = options([program, *(_fields(arguments) if has_config else arguments)])[1:]
        if surplus:
            raise UserError(
                f"unexpected argument {surplus[0]!r}: options start with --; see --help."
            )
        if has_config and options.config is not None:
            file = options.config.partition(":")[0]
            if packaged(file) != pathlib.Path(file):
                print(f"config: {file} is the copy that comes with vfljax", file=sys.stderr)
            fields = dict(field.split("=", 1) for field in options[FIELD].value or [])
            options["config"].value = vfljax.config.from_file(options.config, fields)
    except (flags.Error, UserError) as error:
        sys.exit(fail(error))


def _fields(arguments: Sequence[str]) -> list[str]:
    """Rewrite --config.a=1 and --config.a 1 as --config.FIELD=a=1."""
    out, left = [], list(arguments)
    while left:
        argument = left.pop(0)
        match = re.fullmatch(r"--?config\.([^=]+)(=.*)?", argument, re.DOTALL)
        if match is None:
            out.append(argument)
        else:
            value = f"={left.pop(0)}" if match[2] is None and left else match[2] or "="
            out.append(f"--{FIELD}={match[1]}{value}")
    return out


def _status(command: Any, options: Options, began: float) -> int:
    """Run a command; return the exit status, after one line about what the user can mend."""
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
        reason = " ".join(str(error).split())[:160]
        return fail(
            UserError(
                f"the device's memory is exhausted ({reason}): choose a smaller network or batch, fewer "
                "settings a shard, or config.execution.width=1."
            )
        )
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
    path.open("ab").close()  # what cannot be written is refused before the work
    profile.record(began)
    try:
        yield
    finally:
        spans = profile.stop()
    print(aligned(profile.COLUMNS, profile.table(spans)))
    profile.write(spans, path)
    print(f"profile: {path}")


def _unread() -> int:
    """Return 0 where the reader of standard output has gone; what is flushed at exit goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


class Terminated(KeyboardInterrupt):
    """SIGTERM, as a scheduler sends it: whatever an interrupt saves and takes back, it does too."""


def _interrupt(number: int, frame: types.FrameType | None) -> None:
    """Raise for SIGINT or SIGTERM.

    A callback of JAX would make another error of it: the signal then comes again. SIGTERM is obeyed
    once, since schedulers repeat it while what is trained is saved.
    """
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
    """Send an interrupt again that fell in a callback of the garbage collector, where Python ignores it."""
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


def _stopped(error: KeyboardInterrupt, command: str, resumes: bool) -> int:
    """Print the command that continues, or begins again; return the exit status."""
    kept = "nothing finished is lost. To go on" if resumes else "nothing is kept. To begin again"
    by, status = (" by SIGTERM", 143) if isinstance(error, Terminated) else ("", 130)
    with contextlib.suppress(OSError):  # the terminal may be gone
        print(f"\nstopped{by}: {kept}:\n  {printable(command)}", file=sys.stderr)
    return status
