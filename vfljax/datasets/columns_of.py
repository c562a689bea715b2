"""What each column of a user's table is: a number or a category.

What enters: one Arrow column and what the user said of it. What leaves: a ``Source``, numbers with
NaN where one is missing, or codes of sorted values. CSV, Parquet, NPZ and data frames of equal content
give equal sources: texts that are all numbers are numbers, numbers named as categories are texts.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from vfljax.datasets.faults import shown
from vfljax.datasets.notations import PLAIN, dated, refuse_notations
from vfljax.errors import UserError

pc: Any = pyarrow.compute  # its functions are made when imported: no type checker knows them

MISSING = ("", "NA", "N/A", "<NA>", "NaN", "nan", "NAN", "null", "NULL", "Null")
NONE = "(missing)"  # the category of a missing one


class Source(NamedTuple):
    """One column of the user's table; either ``numbers`` or ``codes`` is set."""

    name: str
    numbers: np.ndarray | None = None  # [R] float64, NaN where missing
    codes: np.ndarray | None = None  # [R] int32, places in values
    values: tuple[str, ...] = ()  # sorted; NONE last, where one is missing
    missing: int = 0
    first: int = -1  # the first row with a missing value, from 0
    mixed: str = ""  # a column of words that looks like numbers: its first word and row

    @property
    def kind(self) -> str:
        return "category" if self.numbers is None else "number"


def source(place: str, name: str, column: Any, wanted: str = "", remedy: str = "") -> Source:
    """The column as ``wanted`` ("number", "category"), or as what it looks like (""). ``remedy``: what
    to do about a word among numbers, where nobody named the column in numeric=.

    Raises UserError, with column and row, for dates, numbers in a notation that is not read (1,000 or
    5%), a nested or binary column, an infinite number, one that float32 cannot hold, or a word where
    numbers are wanted.
    """
    array = _plain(place, name, column, wanted)
    if wanted != "category":
        numbers = _numbers(array)
        if numbers is not None:
            return _number(place, name, numbers)
        if wanted == "number":
            word, row = _first_word(array)
            raise UserError(
                f"{place}: column {name!r} has {shown(word)} in row {row + 1}, which is no number: "
                "correct it, leave it empty where it is missing, or "
                f"{remedy or 'take the name out of numeric='}."
            )
        refuse_notations(place, name, array)
    made = _category(name, array)
    return made if wanted else made._replace(mixed=_mixed(array))


def _plain(place: str, name: str, column: Any, wanted: str) -> pa.Array:
    """One array of booleans, whole numbers, floats or trimmed texts, null where missing."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    is_text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
    is_text |= pa.types.is_string_view(kind)
    if pa.types.is_temporal(kind):
        if wanted != "category":
            raise dated(place, name, f"of type {kind}")
        column, is_text = column.cast(pa.string()), True
    elif pa.types.is_null(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        column = column.cast(pa.float64())
    elif not (is_text or pa.types.is_integer(kind) or pa.types.is_boolean(kind)):
        raise UserError(
            f"{place}: column {name!r} is of type {shown(kind)[1:-1]}, neither number nor text: name it "
            "in drop=, or write it as columns of numbers or texts."
        )
    if is_text:  # large: more than 2 GiB of texts in one array
        column = pc.utf8_trim_whitespace(column.cast(pa.large_string()))
        gone = pc.is_in(column, value_set=pa.array(MISSING, pa.large_string()))
        column = pc.if_else(gone, pa.scalar(None, pa.large_string()), column)
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array


def _numbers(array: pa.Array) -> np.ndarray | None:
    """[R] float64 with NaN for null; None for texts that are not all numbers, or all true/false."""
    if pa.types.is_large_string(array.type):
        try:
            array = pc.cast(array, pa.float64())
        except pa.ArrowInvalid:
            lower = pc.utf8_lower(array)
            logical = pc.is_in(lower, value_set=pa.array(["true", "false"], pa.large_string()))
            if not pc.all(pc.or_(logical, pc.is_null(array))).as_py():
                return None
            array = pc.equal(lower, "true")
    return pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _number(place: str, name: str, numbers: np.ndarray) -> Source:
    with np.errstate(over="ignore"):
        wrong = np.isinf(numbers.astype(np.float32))
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "is infinite" if np.isinf(numbers[row]) else "is too large for float32"
        raise UserError(
            f"{place}: column {name!r} has {numbers[row]:g} in row {row + 1}, which {what}: correct "
            "it, or leave it empty if it is missing."
        )
    gone = np.isnan(numbers)
    return Source(name, numbers, missing=int(gone.sum()), first=int(np.argmax(gone)))


def words(array: pa.Array) -> pa.Array:
    """Any array as texts: whole numbers without a decimal point, however the file wrote them."""
    if pa.types.is_boolean(array.type):
        return pc.if_else(array, "True", "False").cast(pa.large_string())
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        distinct = array.dictionary_encode()
        names = [repr(value) for value in distinct.dictionary.to_pylist()]
        array = pc.take(pa.array(names, pa.large_string()), distinct.indices)
    text = array.cast(pa.large_string())
    text = pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")
    return pc.replace_substring_regex(text, r"^-0$", "0")


def _category(name: str, array: pa.Array) -> Source:
    text = words(array)
    gone = text.is_null().to_numpy(zero_copy_only=False)
    encoded = text.fill_null(NONE).dictionary_encode()
    found = encoded.dictionary.to_pylist()
    values = tuple(sorted(found, key=_order(found)))
    rank = {value: k for k, value in enumerate(values)}
    places = np.asarray([rank[value] for value in found], np.int32)
    codes = places[encoded.indices.to_numpy()]
    return Source(name, None, codes, values, int(gone.sum()), int(np.argmax(gone)))


def _order(values: list[str]) -> Any:
    """A sorting key: numbers by size, texts by character, NONE last."""
    if all(is_number(value) for value in values if value != NONE):
        return lambda v: (v == NONE, float(v) if v != NONE else 0.0, v)
    return lambda v: (v == NONE, 0.0, v)


def is_number(text: str) -> bool:
    """Whether ``text`` is a finite decimal number."""
    return re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", text, re.ASCII) is not None


def _first_word(array: pa.Array) -> tuple[str, int]:
    """The first text that is no number, and its row."""
    encoded = array.dictionary_encode()
    for k, value in enumerate(encoded.dictionary.to_pylist()):
        if not is_number(value) and value.lower().lstrip("+-") not in ("inf", "infinity", "nan"):
            return value, pc.index(encoded.indices, k).as_py()
    return "", 0


def _mixed(array: pa.Array) -> str:
    """ "'?' in row 7" where at least half of the values are numbers and some are not."""
    if not pa.types.is_large_string(array.type):
        return ""
    kinds = pc.match_substring_regex(array, PLAIN)
    if (pc.mean(kinds).as_py() or 0) < 0.5:
        return ""
    word, row = _first_word(array)
    return f"{shown(word)} in row {row + 1}"
