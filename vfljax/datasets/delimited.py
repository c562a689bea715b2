"""Reads delimited text by ``pandas.read_csv``: its encoding, its separator, its header and its codes.

Numbers that begin with zeros, or that are too large to stay different as numbers, stay texts.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import mmap
import pathlib
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from vfljax.datasets import formats
from vfljax.datasets.notations import WHOLE, are_whole, codes_note, is_number
from vfljax.datasets.table_errors import (
    all_different,
    csv_option,
    fault,
    narrow,
    one_line,
    quoted,
    reading,
)
from vfljax.errors import Field, Text, UserError

OPTIONS = Field("data.options.options", "options")
CORRECT = ("correct it, or give other ", OPTIONS, "= of pandas.read_csv")
# options of ``pandas.read_csv`` that decide how a line becomes fields, and the others that may be given
LINES = (
    *("encoding", "encoding_errors", "compression"),
    *("skiprows", "comment", "lineterminator", "skip_blank_lines"),
)
FIELDS = (
    *("sep", "delimiter", "quotechar", "quoting"),
    *("doublequote", "escapechar", "skipinitialspace", "engine"),
)
VALUES = (
    *("header", "names", "index_col", "usecols", "nrows", "skipfooter", "on_bad_lines", "dtype"),
    *("na_values", "keep_default_na", "na_filter", "true_values", "false_values"),
    *("parse_dates", "date_format", "dayfirst", "cache_dates", "decimal", "thousands"),
    *("low_memory", "float_precision"),
)
READ_CSV = *LINES, *FIELDS, *VALUES
SEPARATORS = ",;\t|"
SEEN = 20  # lines that decide which of them separates
# Excel's own first line, also with a blank, or filled up to the number of columns
EXCEL = re.compile(r"sep= ?(\\t|.)\1*\s*", re.IGNORECASE)
BLOCK = 1 << 18  # bytes: they stay in a processor's cache
SAMPLE = 1000  # rows that mostly show whether a column is of whole numbers
Columns = Callable[[Sequence[str]], Iterable[str]]
Source = Callable[[], contextlib.AbstractContextManager[Any]]  # of a text file, or its path


class ReadTable(NamedTuple):
    """A table as it was read."""

    frame: pd.DataFrame
    index: tuple[str, ...] = ()  # names of an index that is left out
    # of text the options of ``pandas.read_csv``, the guessed ones among them; None of other formats
    text: Mapping[str, Any] | None = None
    hint: Text = ()  # what may be wrong if a column is not there
    # what may be wrong if a column cannot be read: the separator that was chosen, if there was another
    doubt: Text = ()


def read_text(
    file: pathlib.Path, found: formats.Content, path: str, given: dict[str, Any], as_texts: Columns
) -> ReadTable:
    """Reads delimited text, or raises UserError.

    Args:
      file: the file.
      found: what it holds.
      path: its name for messages.
      given: options of ``pandas.read_csv``.
      as_texts: is given the columns' names in one line, and returns those whose values stay texts.
    """
    options = dict[str, Any](skipinitialspace=True, index_col=False) | given | {"compression": None}
    source: Source = found.open if found.packed else functools.partial(contextlib.nullcontext, file)
    guessed = ""
    if "encoding" not in given and (encoding := _utf_16(found.start)):
        options["encoding"], guessed = encoding, f" It was read as {encoding}, by its first bytes."
    with _reading_text(path, source, options, found.start), warnings.catch_warnings():
        warnings.simplefilter("ignore", pd.errors.ParserWarning)  # a regular expression as "sep"
        warnings.filterwarnings("error", "Length of header", pd.errors.ParserWarning)
        warnings.simplefilter("error", pd.errors.DtypeWarning)
        names, separated, doubtful = _header(source, path, options)
        hint = (*separated, guessed) if guessed else separated
        text = None if found.packed else _mapped(file)
        if "skipinitialspace" not in given and text is not None:
            # pandas takes a fifth longer if it has to look for blanks
            options["skipinitialspace"] = text.find(b" ") >= 0
        options["dtype"] = _dtypes(source, options, as_texts)
        try:
            try:
                frame = _read_csv(source, options)
            except pd.errors.DtypeWarning:  # pieces of a column have different types
                options["low_memory"] = False
                frame = _read_csv(source, options)
            frame = _with_codes(
                frame, source, options, lambda: _has_zeros(text or found.open, options)
            )
        except pd.errors.ParserWarning as error:  # pandas would leave the last fields out
            what = f"has rows of more fields than its first line, {quoted(_first_line(source, options))}"
            remedy = ("give ", *csv_option(index_col=0), " if they begin with names of rows, or ")
            remedy = (*remedy, *csv_option(skiprows=1), " if that line is a comment.", *hint)
            raise fault(path, f"{what} ({error})", remedy) from error
        except pd.errors.ParserError as error:  # fields of some line
            what = f"cannot be read (ParserError: {one_line(error)[:200]})"
            raise fault(path, what, (*CORRECT, ".", *hint) if hint else CORRECT) from error
    if len(frame.columns) == 1:
        hint = (*hint, " It has but one column: give ", *csv_option(sep=";"), " or the like.")
    elif numbers := [name for name in names if is_number(name)]:
        first = f" Its first line names the columns, {numbers[0]!r} one of them: give "
        hint = (*hint, first, *csv_option(header=None), " if it is a row.")
    return ReadTable(frame, (), options, hint, separated if doubtful else ())


def _mapped(file: pathlib.Path) -> mmap.mmap:
    """Returns a file's bytes, as a mapping that ends with the last reference to it."""
    with file.open("rb") as f:
        return mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ)


def _read_csv(source: Source, options: Mapping[str, Any], **others: Any) -> Any:
    with source() as file:
        return pd.read_csv(file, **{**options, **others})


def _utf_16(start: bytes) -> str:
    """Returns the form of UTF-16 that a text is in, by its mark or by the zeros between ASCII letters."""
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    for first, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = start[first::2], start[1 - first :: 2]
        if len(zeros) > 1 and not zeros.strip(b"\0") and b"\0" not in others:
            return name
    return ""


@contextlib.contextmanager
def _reading_text(
    path: str, source: Source, options: Mapping[str, Any], start: bytes
) -> Iterator[None]:
    try:
        with reading(path, CORRECT):
            yield
    except UserError as error:
        if not isinstance(error.__cause__, UnicodeDecodeError):
            raise
        if "encoding" not in options and formats.CONTROL.search(start):
            what = "is of a format that is not known, and no text"
            raise fault(path, what, "give the table as text, .parquet or .npz") from None
        encoding = options.get("encoding", "UTF-8")
        line, text = _undecoded(source, encoding)
        where = f" in line {line:,}: {quoted(text)} if it is Latin-1" if line else ""
        what = f"is not {encoding} text ({error.__cause__.reason}{where})"
        remedy = ("save it as UTF-8, or name its encoding: ", *csv_option(encoding="latin-1"))
        raise fault(path, what, remedy) from None


def _undecoded(source: Source, encoding: str) -> tuple[int, str]:
    """Returns the number of the first line that is no text in an encoding, and its part around the first wrong
    byte as Latin-1; (0, "") if no single line is wrong."""
    if encoding.lower().startswith(("utf-16", "utf_16", "utf16", "utf-32")):
        return 0, ""  # a line break is no byte of its own
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(source())
        raw = stack.enter_context(file.open("rb")) if isinstance(file, pathlib.Path) else file
        for number, line in enumerate(raw, 1):
            try:
                line.decode(encoding)
            except UnicodeDecodeError as error:
                around = line[max(0, error.start - 15) : error.start + 15]
                return number, one_line(around.decode("latin-1"))
            except UnicodeError:
                break
    return 0, ""


def _first_line(source: Source, options: Mapping[str, Any]) -> str:
    """Returns the first line that ``pandas.read_csv`` would read, as it is in the file."""
    lines = _lines(source, options, 1)
    return lines[0] if lines else ""


def _lines(source: Source, options: Mapping[str, Any], count: int) -> list[str]:
    """Returns the first lines that ``pandas.read_csv`` would read, as they are in the file."""
    how: dict[str, Any] = {name: options[name] for name in LINES if name in options}
    how |= {"header": None, "dtype": str, "keep_default_na": False, "nrows": count}
    return [*map(str, _read_csv(source, how, sep="\x01", quoting=csv.QUOTE_NONE)[0])]


def _header(source: Source, path: str, options: dict[str, Any]) -> tuple[list[str], Text, bool]:
    """Returns the names of the columns, [] if no line names them, what is to be said of the separator if a
    column is not there, and whether another one is possible. Sets "sep" in ``options`` if it is not given.

    Raises:
      UserError: for two columns of one name, of which pandas would rename the second, and for numbers in
        place of names.
    """
    named = options.get("header", "infer") in ("infer", 0) and "names" not in options
    lines = _lines(source, options, SEEN)
    hint, doubtful = (), False
    given = options.get("sep") or options.get("delimiter")
    if (
        lines
        and "skiprows" not in options
        and (excel := EXCEL.fullmatch(lines[0].strip('\ufeff"')))
    ):
        options["skiprows"] = 1
        lines = lines[1:]
        if not given:
            options["sep"] = given = excel[1].replace(r"\t", "\t")
    if not given:
        options["sep"], hint, doubtful = _separator(lines, path, named)
    if not named:
        return [], hint, doubtful
    raw: Any = {"header": None, "dtype": str, "keep_default_na": False, "nrows": 1}
    raw |= {name: options[name] for name in (*LINES, *FIELDS) if name in options}
    names = [one_line(name) for name in _read_csv(source, raw).iloc[0]]
    narrow(path, len(names))
    all_different([name for name in names if name], path, hint)
    counted = [[str(j + first) for j in range(len(names))] for first in (0, 1)]
    if all(map(is_number, names)) and names not in counted:
        called = f" if it is a row (the columns are then called 0 to {len(names) - 1})"
        remedy = ("give ", *csv_option(header=None), called, ", or put a header line there.", *hint)
        raise fault(path, "has numbers in its first line, not the names of columns", remedy)
    return names, hint, doubtful


def _separator(lines: Sequence[str], path: str, named: bool) -> tuple[str, Text, bool]:
    """Returns the separator of the first lines' fields, a sentence that names it and the runner-up, and whether
    there is one.

    Marks that all lines have equally often come first, then those that the first line has most often.

    Args:
      lines: the first ones of the file.
      path: the file, for messages.
      named: whether the first line names columns.
    """
    bare = [re.sub('"[^"]*"', "", line) for line in lines]
    bare = [line for line, whole in zip(bare, lines) if '"' not in line] or bare[:1]
    counts = {mark: [line.count(mark) for line in bare] for mark in SEPARATORS}
    two = {mark: count for mark, count in counts.items() if count[0] and len({*count[:2]}) == 1}
    fitting = [mark for mark in two if len({*counts[mark]}) == 1] or [*two]
    if len(fitting) > 1 and not named:
        what = (
            f"has rows that {' or '.join(map(repr, fitting))} may separate, and no header decides"
        )
        remedy = [part for mark in fitting for part in (" or ", *csv_option(sep=mark))]
        raise fault(path, what, ("give ", *remedy[1:]))
    ranked = sorted(SEPARATORS, key=lambda mark: (mark not in fitting, -counts[mark][0]))
    best, second = ranked[:2]
    if not counts[best][0]:
        return best, (), False
    columns = f"{counts[best][0] + 1} columns"
    if len({*counts[best][:2]}) > 1:
        columns += f" (its second line has {counts[best][1] + 1})"
    hint: Text = (f" {best!r} was taken for the separator of its {columns}",)
    if counts[second][0]:
        hint = (*hint, f"; {second!r} would make {counts[second][0] + 1}: give ")
        hint = (*hint, *csv_option(sep=second), " if that is right")
    return best, (*hint, "."), bool(counts[second][0])


def _dtypes(source: Source, options: Mapping[str, Any], as_texts: Columns) -> Any:
    """Returns the option "dtype" by which some columns are read as texts, if the user says no type of them."""
    given = options.get("dtype")
    if given is not None and not isinstance(given, Mapping):
        return given
    rest = {name: value for name, value in options.items() if name not in ("skipfooter", "dtype")}
    columns = _read_csv(source, rest, nrows=0).columns
    texts = {*as_texts([one_line(name) for name in columns])}
    return {name: "str" for name in columns if one_line(name) in texts} | dict(given or {})


def _has_zeros(text: mmap.mmap | formats.Opener, options: Mapping[str, Any]) -> bool:
    """Returns whether some field of a text begins with a zero and another digit, and goes on with digits or
    ends: such numbers are codes, and pandas reads them without their zeros.

    Dates and times such as 01/02/2020 and 00:15 are not meant. Encodings are those that contain ASCII; zero
    bytes between letters, as in UTF-16, are skipped.
    """
    sep = str(options.get("sep") or options.get("delimiter") or ",").encode()
    marks = [*(sep if len(sep) == 1 else SEPARATORS.encode())]
    ends = [10, 13, *b'" ', *marks]
    encoding = str(options.get("encoding", "")).lower()
    wide = encoding.startswith(("utf-16", "utf_16", "utf16", "utf-32"))
    above = [mark for mark in marks if mark > ord(",")]
    possible, other = np.empty(
        (2, BLOCK + 4), bool
    )  # made once: a new array costs more than a look

    def led(block: np.ndarray) -> bool:
        before, first, second, third = (block[k : len(block) - 3 + k] for k in range(4))
        left, right = possible[: len(first)], other[: len(first)]
        np.equal(first, ord("0"), out=left)
        left &= np.greater_equal(second, ord("0"), out=right)
        if not above:  # all ends are at most a comma, and few places are left after this quick look
            left &= np.less_equal(before, ord(","), out=right)
        if not left.any():
            return False
        places = np.flatnonzero(left)
        before, second, third = before[places], second[places], third[places]
        ended = (third - ord("0") < 10) | np.isin(third, ends)  # unsigned: all others are larger
        return bool((np.isin(before, ends) & (second - ord("0") < 10) & ended).any())

    return any(led(block[block > 0] if wide else block) for block in _blocks(text))


def _blocks(text: mmap.mmap | formats.Opener) -> Iterator[np.ndarray]:
    """Returns a text between line breaks in blocks of bytes, each of which begins with the last three bytes of
    the one before."""
    line = np.full(3, ord("\n"), np.uint8)
    if not isinstance(text, mmap.mmap):
        end = line
        with text() as stream:
            while read := stream.read(BLOCK):
                block = np.append(end, np.frombuffer(read, np.uint8))
                yield block
                end = block[-3:]
        yield np.append(end, line[:1])
        return
    whole = np.frombuffer(text, np.uint8)  # no bytes are copied
    yield np.append(line[:1], whole[:3])
    for start in range(0, len(whole), BLOCK):
        yield whole[start : start + BLOCK + 3]
    yield np.append(whole[-3:], line[:1])


def _with_codes(
    frame: Any, source: Source, options: Mapping[str, Any], has_zeros: Callable[[], bool]
) -> Any:
    """Returns a frame in which whole numbers are the file's texts if they begin with a zero, or if they are so
    large that different ones may be equal as numbers.

    Args:
      frame: of ``pandas.read_csv``.
      source: the text.
      options: by which it was read.
      has_zeros: says whether a number of the text begins with a zero; it is asked if there are whole numbers.
    """
    given = options.get("dtype")
    if given is not None and not isinstance(given, Mapping):
        return frame
    whole = {
        name: frame[name].to_numpy()
        for name in frame.columns
        if isinstance(frame[name].dtype, np.dtype)
        and frame[name].dtype.kind in "iuf"
        and name not in (given or {})
        and are_whole(frame[name].to_numpy()[:SAMPLE])
    }
    zeros = bool(whole) and has_zeros()
    again = [name for name, x in whole.items() if (zeros or _largest(x) >= WHOLE) and are_whole(x)]
    if not again:
        return frame
    texts = _read_csv(source, {**options, "dtype": dict(given or {}) | dict.fromkeys(again, "str")})
    for name in again:
        values = [*pd.unique(texts[name].dropna().str.strip())]
        if values and all(map(is_number, values)) and codes_note(values):
            frame[name] = texts[name]
    return frame


def _largest(x: np.ndarray) -> float:
    """Returns the largest absolute value of numbers, leaving out NaN; 0 if there is none."""
    ends = float(x.min(initial=0)), float(x.max(initial=0))  # much faster than fmin and fmax
    if np.isnan(ends[0]):
        ends = np.fmin.reduce(x, initial=0), np.fmax.reduce(x, initial=0)
    return float(max(-ends[0], ends[1]))
