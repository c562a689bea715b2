"""The error that a user's mistake raises: a record of what is wrong, of which field, and the remedy."""

from __future__ import annotations

import dataclasses
import difflib
import importlib
import inspect
import math
import os
import pathlib
import re
import string
import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

__all__ = ["UnmetError", "UserError", "check", "check_choice", "unknown"]

MOST = 40  # a message lists all known names up to this number
# the folder of a wheel that holds configs, by their paths in a checkout
PACKAGED = pathlib.Path(__file__).with_name("packaged")
URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
LARGEST = 1e30  # the largest number without an upper bound of its own, well inside float32's range
MOST_WHOLE = 2**31 - 1  # likewise of whole numbers: JAX counts in int32


@dataclasses.dataclass(frozen=True)
class Field:
    """A config field in a message. Entry points without a config show their own flag instead.

    Attributes:
      path: "seeds", "data.dir", or "data.options.drop".
      text: how messages write the field; "config." and the path by default.
    """

    path: str
    text: str = ""

    def __str__(self) -> str:
        return self.text or f"config.{self.path}"


def argument(name: str) -> Field:
    """Returns an argument of a function that users call. A command shows it as its flag.

    Args:
      name: of the argument; "option.drop" is the entry "drop" of the mapping ``option``.
    """
    return Field(f"argument.{name}", name.rpartition(".")[2])


Text = str | Sequence["str | Field"]  # a message, or its parts, which are concatenated as they are


def options_in(template: str) -> tuple[str | Field, ...]:
    """Splits a text into parts. Names in braces become ``data.options`` fields: "give {decimal}=','"."""
    parts: list[str | Field] = []
    for text, name, _, _ in string.Formatter().parse(template):
        parts += [text, Field(f"data.options.{name}", name)] if name else [text]
    return tuple(parts)


class UserError(ValueError):
    """Bad input. Entry points print it as one line and exit with status 2.

    The line is ``FIELD=VALUE WHAT: REMEDY.``, without the parts that are not given. The line of
    ``UserError("a whole sentence.")`` is that sentence.

    >>> print(UserError("is beyond the limit", field="seeds", value=9, remedy="give at most 5"))
    config.seeds=9 is beyond the limit: give at most 5.
    """

    status = 2

    def __init__(
        self, what: Text = "", *, field: Field | str = "", value: Any = ..., remedy: Text = ""
    ) -> None:
        super().__init__(what)
        self.what, self.value, self.remedy = _parts(what), value, _parts(remedy)
        self.field = Field(field) if field and isinstance(field, str) else field or None

    @property
    def reason(self) -> tuple[str | Field, ...]:
        """The parts of the line without the field and its value."""
        if not self.remedy:
            return self.what
        joint = (": ",) if self.what else ()
        ended = str(self.remedy[-1]).endswith(".")  # the remedy may quote another message
        return (*self.what, *joint, *self.remedy, *(() if ended else (".",)))

    @property
    def parts(self) -> tuple[str | Field, ...]:
        """The parts of the line, for another message to quote."""
        if self.field is None:
            return self.reason
        value = "" if self.value is ... else f"={written(self.value)}"
        return (self.field, value, " " if self.what else ": ", *self.reason)

    def line(self, spell: Callable[[Field], str] = str) -> str:
        """Returns the message, with every field spelled by ``spell``."""
        return "".join(spell(p) if isinstance(p, Field) else p for p in self.parts)

    def renamed(self, rename: Callable[[Field], Field | str]) -> UserError:
        """Returns the same error with other fields, or texts in their place, in its line."""
        return type(self)(tuple(rename(p) if isinstance(p, Field) else p for p in self.parts))

    def __str__(self) -> str:
        return self.line()


class UnknownError(UserError, KeyError):
    """A name that is in no table. It is a KeyError too, for programs that look names up."""


class UnmetError(UserError):
    """A sweep does not meet a requirement, such as --fail_above. Entry points exit with status 3."""

    status = 3


def _parts(text: Text | Field) -> tuple[str | Field, ...]:
    if isinstance(text, str | Field):
        return (text,) if text else ()
    return tuple(text)


def written(value: Any) -> str:
    """Returns a value as messages show it. Python itself cannot print integers of thousands of digits."""
    try:
        return repr(value)
    except ValueError:
        exact = isinstance(value, int)
        return f"about 10^{int(value.bit_length() * math.log10(2))}" if exact else "(too long)"


def bounds(low: float, high: float, whole: bool = False) -> str:
    """Returns a range in words: "a number from 0 to 1", "a whole number of at least 1".

    Args:
      low: the least number.
      high: the largest number, which may be infinite.
      whole: whether only whole numbers are meant.
    """
    noun = "a whole number" if whole else "a number"
    if math.isinf(low):
        return noun
    if math.isinf(high):
        return f"{noun} of at least {low:g}"
    return f"{noun} from {low:g} to {f'{high:,}' if whole else f'{high:g}'}"


def check(
    field: Field | str,
    value: Any,
    low: float = 0.0,
    high: float = math.inf,
    *,
    whole: bool = False,
    infinite: bool = False,
    remedy: str = "",
) -> None:
    """Raises UserError unless a knob or an option is a number from ``low`` to ``high``. NaN never is.

    A traced array passes: its values were checked when the sweep was planned.

    Args:
      field: the name of the knob, for the message.
      value: the number.
      low: the least number.
      high: the largest number. Infinity means ``LARGEST``, which every program can hold.
      whole: whether the number must be whole.
      infinite: whether infinity itself passes.
      remedy: another sentence, for the end of the line.

    >>> check("epsilon", 1.5, 0.0, 1.0)
    Traceback (most recent call last):
    vfljax.errors.UserError: epsilon=1.5 is out of range: give a number from 0 to 1.
    """
    if hasattr(value, "aval") or (infinite and value == math.inf):
        return
    field = Field(field, field) if isinstance(field, str) else field
    number = isinstance(value, int | float | np.integer | np.floating)
    number = number and not isinstance(value, bool)
    most = min(high, MOST_WHOLE if whole else LARGEST)
    within = number and low <= value <= most
    if within and (not whole or float(value).is_integer()):
        return
    allowed = bounds(low, math.inf if infinite else most, whole)
    what = "is no number" if not number else "is no whole number" if within else "is out of range"
    raise UserError(what, field=field, value=value, remedy=f"give {allowed}.{remedy}")


def check_choice(field: Field | str, value: Any, choices: Iterable[Any]) -> None:
    """Raises UserError unless an option has one of its values, ``choices``."""
    if value not in tuple(choices):
        field = Field(field, field) if isinstance(field, str) else field
        remedy = f"choose one of {', '.join(map(str, choices))}"
        raise UserError("is unknown", field=field, value=value, remedy=remedy)


def slug(name: str) -> str:
    """Returns a name as a part of a file's name: at most 200 bytes, without characters that paths give a sense.

    >>> slug("kdk+noise"), slug("a/b $x$")
    ('kdk+noise', 'a_b_x_')
    """
    kept = re.sub(r"[^\w.+:=,%()-]+", "_", name)
    return kept.encode()[:200].decode(errors="ignore") or "_"


def short_path(path: str | os.PathLike[str]) -> str:
    """Returns a path as messages name it: relative to the current folder if it lies below that."""
    whole = pathlib.Path(path)
    try:
        here = pathlib.Path.cwd()
    except OSError:  # it was removed
        return str(whole)
    below = whole.is_absolute() and whole.is_relative_to(here)
    return str(whole.relative_to(here) if below else whole)


def writable(text: str) -> bool:
    """Returns whether a text can be written, as UTF-8 to a file and as the name of one."""
    try:
        text.encode()
        os.fsencode(text)
    except UnicodeError:  # it holds bytes of another encoding, or the locale's encoding is ASCII
        return False
    return True


def user_path(path: str | os.PathLike[str], field: Field | str = "path") -> pathlib.Path:
    """Returns the absolute form of a path that a user gives, with ``~`` expanded.

    Every function that takes a path from a user calls this before its work begins, because libraries read
    relative paths in ways of their own: pyarrow takes "run-12:30" for a URI, and expands ``~``, which pathlib
    does not.

    Args:
      path: of a file or folder, which need not exist.
      field: what messages call the path.

    Raises:
      UserError: for a URI, for the home folder of an unknown user, for a name that no file can have, and for a
        relative path if the current folder was removed.
    """
    text = os.fsdecode(path)
    field = Field(field, field) if isinstance(field, str) else field
    if URI.match(text):
        remedy = "give a path on this machine, where other storage can be mounted"
        raise UserError("is a URI and no path", field=field, value=text, remedy=remedy)
    if "\0" in text or not writable(text):
        what = f"has characters that no path can have here, in {sys.getfilesystemencoding()}"
        remedy = "rename it, or set the environment variable PYTHONUTF8=1"
        raise UserError(what, field=field, value=text, remedy=remedy)
    expanded = os.path.expanduser(text)
    if expanded.startswith("~") and not os.path.lexists(expanded):
        what = "begins with a home folder of no known user"
        raise UserError(what, field=field, value=text, remedy=f"correct it, or give ./{text}")
    try:
        return pathlib.Path(expanded).absolute()
    except OSError as error:
        remedy = "give an absolute path, or go to a folder that exists"
        what = "is relative to the current folder, which was removed"
        raise UserError(what, field=field, value=text, remedy=remedy) from error


def check_call(what: str, function: Any, *names: str) -> None:
    """Raises TypeError unless ``function`` can be called with one positional argument per name.

    Args:
      what: how the message calls the function.
      function: what is checked; it may be any object.
      *names: the names of the arguments, for the message.
    """
    given = f"={function!r}"
    try:
        given = inspect.signature(function)
        given.bind(*names)
    except TypeError:
        expected = f"{what}({', '.join(names)})"
        raise TypeError(f"{what}{given} is given where {expected} is expected") from None


def raised(error: BaseException, path: str | os.PathLike[str]) -> str:
    """Returns what a user's Python file raised, in one line: "mine.py, line 3: KeyError: 'a'".

    Args:
      error: what was raised.
      path: the file. The line that is named is the file's last one in the traceback.
    """
    file, text = os.path.realpath(path), f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if os.path.realpath(frame.filename) == file]
    if isinstance(error, SyntaxError) and os.path.realpath(error.filename or "") == file:
        lines, text = [error.lineno], f"{type(error).__name__}: {error.msg}"
    elif isinstance(error, UserError):
        text = str(error)
    place = f"{short_path(path)}, line {lines[-1]}" if lines else short_path(path)
    return f"{place}: {' '.join(text.split())}".removesuffix(":")


def nearest(name: str, known: Iterable[str]) -> list[str]:
    """Returns the known name that was probably meant, as a list of at most one. This is an equal name up to
    case, dashes, underscores and blanks, a plugin's row of that name, else a name that ``name`` abbreviates,
    else a similar name.

    >>> nearest("lr", ["epochs", "learning_rate"]), nearest("guess", ["norm", "mine:guess"])
    (['learning_rate'], ['mine:guess'])
    """
    known = list(known)
    letters = {other: re.sub("[-_ ]", "", other.casefold()) for other in (name, *known)}
    same = [other for other in known if letters[other] == letters[name]]
    same += [other for other in known if other.partition(":")[2] == name]
    # an abbreviation: each letter follows the previous letter, or begins a later word
    pattern = "(?:[a-z]*_)?".join(map(re.escape, name))
    longer = [other for other in known if len(name) > 1 and re.match(pattern, other, re.IGNORECASE)]
    return same[:1] or longer[:1] or difflib.get_close_matches(name, known, n=1)


def unknown(
    kind: Text | Field,
    name: object,
    known: Iterable[str],
    remedy: Text = "",
    near: Sequence[str] | None = None,
) -> UnknownError:
    """Returns the error for a name that is in no table, with a suggestion.

    Args:
      kind: what was looked up, "defense" or a ``Field``.
      name: what was given, which may be no string at all.
      known: the names of the table.
      remedy: another sentence, for the end of the line.
      near: names that the error suggests; None: the ``nearest`` of the known names.

    >>> print(unknown("defense", "nosie", ["kdk", "noise"]))
    unknown defense 'nosie': did you mean 'noise'? choose from kdk, noise.
    """
    known = list(known)
    if near is None:
        near = nearest(name, known) if isinstance(name, str) else []
    if len(known) > MOST:  # the message shows a part of the table
        known = list(dict.fromkeys([*near, *known[: MOST // 2], "..."]))
    hint = f"did you mean {' or '.join(map(repr, near[:3]))}? " if near else ""
    choice = f"choose from {', '.join(known)}" if known else "there is none"
    return UnknownError(("unknown ", *_parts(kind), f" {name!r}: {hint}{choice}.", *_parts(remedy)))


def imported(package: str, *, extra: str, needed_by: str) -> Any:
    """Imports and returns an optional package.

    Args:
      package: the name of the package.
      extra: the extra of vfljax that installs it, as in ``pip install 'vfljax[extra]'``.
      needed_by: the feature that needs the package, for the message.

    Raises:
      UserError: if the package is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError as error:
        raise UserError(f"{needed_by} needs {package}: pip install 'vfljax[{extra}]'.") from error


def packaged(path: str | os.PathLike[str]) -> pathlib.Path:
    """Returns the path if it exists, else the copy of that file that comes with vfljax, if there is one.

    Args:
      path: a path as in a checkout, such as "configs/quickstart.py".
    """
    home = PACKAGED if PACKAGED.exists() else PACKAGED.parents[1]
    if pathlib.Path(path).exists() or not (home / path).exists():
        return pathlib.Path(path)
    if str(home) not in sys.path:
        sys.path.append(str(home))  # config files import each other
    return home / path


def not_in_use(plugin: str, name: str = "") -> UserError:
    """Returns the error for a row of a plugin that is not in use in this process.

    Args:
      plugin: the part of the row's name before the colon.
      name: the row's name, such as "mine:shuffle", if it is known.
    """
    what = f"{name!r} is of the plugin {plugin}, which" if name else f"the plugin {plugin}"
    return UserError(
        f"{what} is not in use: name it by --plugin={plugin} or --plugin=PATH/{plugin}.py (in Python, "
        "vfljax.plugins.use)."
    )


def unknown_row(kind: str, name: Any, table: Iterable[str]) -> UserError:
    """Returns the error for an unknown name, which may name a row of a plugin that is not in use.

    Args:
      kind: what was looked up.
      name: what was given.
      table: the known names.
    """
    plugin, colon, _ = name.partition(":") if isinstance(name, str) else ("", "", "")
    known = list(table)
    if colon and plugin.isidentifier() and not any(row.startswith(f"{plugin}:") for row in known):
        return not_in_use(plugin, name)
    return unknown(kind, name, known)
