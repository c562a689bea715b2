"""What a person gave: folders and options, checked; and faults told in one line.

What enters: ``data.dir`` and an option's value. What leaves: the same, usable, or a ``UserError``.
"""

from __future__ import annotations

import contextlib
import math
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vfljax.datasets.faults import unpermitted
from vfljax.errors import UserError

NAMELESS = re.compile(r" *'?<[^<>]* object at 0x[0-9a-f]+>'?")  # a stream, where a name would stand
MAX_BYTES = 8 << 30  # of one data set's decoded images, in memory


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


def _option(option: str, value: Any, good: bool, kind: str) -> Any:
    if not good:
        value = value.item() if isinstance(value, np.generic) else value
        raise fault(f"config.data.options.{option}={value!r} must be {kind}.")
    return value


def count(option: str, value: Any, least: int = 0, most: float = math.inf) -> int:
    """An option that is a whole number."""
    bounds = f"of {least} or more" if most == math.inf else f"from {least} to {most:,}"
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    good = bool(whole and least <= value <= most)
    return int(_option(option, value, good, f"an integer {bounds}"))


def flag(option: str, value: object) -> bool:
    """An option that is True or False."""
    return bool(_option(option, value, isinstance(value, bool | np.bool_), "True or False"))


def choice(option: str, value: object, choices: Sequence[str]) -> str:
    """An option that is one of a few words."""
    good = isinstance(value, str) and value in choices
    return _option(option, value, good, f"one of {', '.join(choices)}")


def word(option: str, value: object, empty: bool = False) -> str:
    """An option that is a name."""
    return _option(option, value, isinstance(value, str) and bool(value or empty), "a name")


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
