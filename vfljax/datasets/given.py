"""What a person gave: folders and options, checked; and faults told in one line.

What enters: ``data.dir`` and an option's value. What leaves: the same, usable, or a ``UserError``.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import math
import pathlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, TypeVar

import numpy as np

from vfljax.datasets.faults import unpermitted
from vfljax.errors import UserError, unknown

NAMELESS = re.compile(r" *'?<[^<>]* object at 0x[0-9a-f]+>'?")  # a stream, where a name would stand
MAX_BYTES = 8 << 30  # of one data set's decoded images, in memory
BYTES = (1, 1 << 50)  # what ``max_bytes`` may be
MOST = 1_000_000_000  # rows

P = ParamSpec("P")
T = TypeVar("T")


def fault(text: str) -> UserError:
    """An error of one printable line, whatever a file's or an archive member's name holds."""
    return UserError(" ".join("".join(c if c.isprintable() else " " for c in text).split()))


@contextlib.contextmanager
def explained(what: object, remedy: str) -> Iterator[None]:
    """Anything a library raises over a file becomes one line: decoders of damaged files raise
    nearly every type of exception there is. A missing package or too little memory is told as that."""
    try:
        yield
    except UserError:
        raise
    except ImportError as error:
        package = (error.name or str(error)).split(".")[0]
        raise fault(f"{what} needs the package {package}: install it ({error}).") from error
    except PermissionError as error:
        raise unpermitted(what) from error
    except MemoryError as error:
        raise fault(f"{what} does not fit in memory: set rows to read fewer.") from error
    except Exception as error:
        said = f"{type(error).__name__}: {NAMELESS.sub('', str(error))[:200]}"
        raise fault(f"{what} cannot be read ({said}): {remedy}.") from error


def folder_of(folder: str, layouts: str) -> pathlib.Path:
    """``data.dir`` as an existing folder; ``layouts`` says what it should hold."""
    path = pathlib.Path(folder)
    if not folder or not path.is_dir():
        kind = "is a file" if path.is_file() else "is not a folder"
        what = f"data.dir={folder!r} {kind}" if folder else "data.dir is empty"
        raise fault(f"{what}: give the folder that holds {layouts}.")
    return path


def without(root: pathlib.Path, layouts: str, notes: Sequence[str] = ()) -> UserError:
    """A folder that holds nothing of a set's ``layouts``; ``notes`` may say why."""
    said = "".join(f" ({note})" for note in notes)
    return fault(f"{root} does not hold {layouts}{said}: correct data.dir.")


def inside(folder: pathlib.Path) -> list[pathlib.Path]:
    """What lies in a folder, in order of name, hidden names left out."""
    with explained(folder, "check the folder and its permissions"):
        return sorted(p for p in folder.iterdir() if not p.name.startswith("."))


def content(path: pathlib.Path, largest: int = 1 << 30) -> bytes:
    """A file's bytes."""
    if not path.is_file():
        raise fault(f"{path} is not a file: put the data set's own file there.")
    with explained(path, "check the file and its permissions"):
        if path.stat().st_size > largest:
            raise fault(f"{path} is larger than {largest:,} bytes: it is not the data set's file.")
        return path.read_bytes()


def checked(
    loader: Callable[..., Any], options: Mapping[str, Any], limits: Mapping[str, Any]
) -> dict[str, Any]:
    """``options`` over the loader's defaults, each of its default's type. ``limits`` holds the least and
    the most of an integer (else 0 and ``MOST``) and the words that a text may be (else any); a float is a
    share of rows below 1, 0 for none. What has no such default is not looked at. Raises UserError."""
    defaults = {p.name: p.default for p in inspect.signature(loader).parameters.values()}
    values = {**(loader.__kwdefaults__ or {}), **options}
    for option, value in values.items():
        kind, limit = type(defaults[option]), limits.get(option)
        name, remedy = f"config.data.options.{option}", ""
        if kind is bool and not isinstance(value, bool | np.bool_):
            remedy = "True or False"
        elif kind is int:
            least, most = limit or (0, MOST)
            whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
            if not whole or not least <= value <= most:
                remedy = f"an integer from {least} to {most:,}"
        elif kind is float:
            if type(value) not in (int, float) or not 0 <= value < 1:
                remedy = "a share above 0 and below 1, or 0 for none"
        elif kind is str and limit and value not in limit:
            raise unknown(name, value, limit)
        elif kind is str and not isinstance(value, str):
            remedy = "a text"
        if remedy:
            value = value.item() if isinstance(value, np.generic) else value
            raise fault(f"{name}={value!r}: give {remedy}.")
    return values


def limited(**limits: Any) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """A loader whose options are ``checked`` before it looks for a file."""

    def decorate(loader: Callable[P, T]) -> Callable[P, T]:
        @functools.wraps(loader)
        def call(*args: P.args, **options: P.kwargs) -> T:
            checked(loader, options, limits)
            return loader(*args, **options)

        return call

    return decorate


def fits(what: object, shape: Sequence[int], itemsize: int, max_bytes: int, remedy: str) -> None:
    """Refuse an array that would not fit before it is made."""
    size = math.prod(map(int, shape)) * itemsize
    if size > max_bytes:
        raise fault(
            f"{what}: {'x'.join(map(str, shape))} values take {size:,} bytes, more than "
            f"{max_bytes:,}: {remedy}."
        )


def spread(labels: np.ndarray, rows: int) -> np.ndarray:
    """Places of ``rows`` rows, in order; all of them for 0.

    Classes keep their shares (largest remainders; a tie goes to the larger class), and within each
    class the rows are evenly spread: so neither files sorted by class nor periodic ones lose one.
    """
    if rows == 0 or rows >= len(labels):
        return np.arange(len(labels))
    _, place, counts = np.unique(labels, return_inverse=True, return_counts=True)
    quotas, rest = np.divmod(counts * rows, len(labels))
    quotas[np.lexsort((-counts, -rest))[: rows - quotas.sum()]] += 1
    kept = [
        np.flatnonzero(place == c)[np.arange(quota) * count // max(quota, 1)]
        for c, (quota, count) in enumerate(zip(quotas, counts))
    ]
    return np.sort(np.concatenate(kept))
