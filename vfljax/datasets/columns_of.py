"""What each column of a user's table is: a number, a date, or a category.

What enters: one Arrow column and what the user said of it. What leaves: a ``Source``, numbers with
NaN where one is missing, or codes of sorted values. CSV, Parquet, NPZ and data frames of equal content
give equal sources: texts that are all numbers are numbers, numbers named as categories are texts.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute

from vfljax.datasets.faults import Place, shown
from vfljax.datasets.notations import (
    DATE,
    NOTED,
    Notation,
    forms,
    is_number,
    moments,
    numbers,
    ways,
)
from vfljax.errors import UserError

pc: Any = pyarrow.compute  # its functions are made when imported: no type checker knows them
TEXT = pa.large_string()  # more than 2 GiB of texts in one array

NAN = ("", "NaN", "nan", "-NaN", "-nan", "NAN")
# pandas' (3.1, pandas._libs.parsers.STR_NA_VALUES), the question mark, and two more of ours
MISSING = (
    *NAN,
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "None", "n/a", "null", "Null", "?"),
)
NONE = "(missing)"  # the category of a missing one
SEVERAL = 3  # values of one notation: fewer may well be the names of categories
NEARLY = (20, 0.9)  # more distinct texts than this, and in this share of the rows: an identifier
DAY = 86_400_000_000  # microseconds


class Rule(NamedTuple):
    """How texts are read: which words are missing values, and how numbers are written."""

    missing: tuple[str, ...] = MISSING
    how: Notation = Notation()

    @property
    def gone(self) -> list[float]:
        """The missing words that are numbers: a number equal to one is missing too."""
        return [float(word) for word in self.missing if is_number(word)]


class Source(NamedTuple):
    """One column of the user's table; either ``numbers`` or ``codes`` is set."""

    name: str
    numbers: np.ndarray | None = None  # [R] float64, NaN where missing
    codes: np.ndarray | None = None  # [R] int32, places in values
    values: tuple[str, ...] = ()  # sorted; NONE last, where one is missing
    missing: int = 0
    first: int = -1  # the first row with a missing value, from 0
    words: Mapping[str, int] = {}  # those read as missing, and how often
    since: tuple[str, float] | None = None  # of dates: their form, and the first in microseconds
    pooled: int = 0  # rare values that became one

    @property
    def kind(self) -> str:
        return "category" if self.numbers is None else "number"


def source(
    place: Place, name: str, column: Any, rule: Rule, wanted: str = "", like: Source | None = None
) -> Source:
    """The column as ``wanted`` ("number", "category"), as the training file's column ``like``, or as
    what it looks like (""), where a column that pandas or Arrow marks as a category is one.

    Raises UserError, with column and row, for what could be read in two ways, or as nothing that helps:
    numbers in a notation that no option names, words among numbers (half of the values or of the
    distinct values), texts that differ in nearly all rows; a nested or binary column, an infinite
    number, one that float32 cannot hold, a word where numbers are wanted.
    """
    array, words = _plain(place, name, column, rule)
    if not wanted and pa.types.is_dictionary(column.type):
        wanted = "category"
    if (like.kind if like else wanted) != "category":
        since = like.since if like else None
        values = _numbers(array, rule.how) if since is None else None
        if values is None and (like is None or since):
            values, since = _days(place, name, array, rule.how, since)
        if values is not None:
            return _number(place, name, values, rule, words, since)
        if wanted or like:
            raise _no_number(place, name, array, rule.how, wanted, like)
        _refuse(place, name, array, rule.how)
    return _category(place, name, array, words, named=bool(wanted or like))


def _plain(place: Place, name: str, column: Any, rule: Rule) -> tuple[pa.Array, dict[str, int]]:
    """(one array of booleans, whole numbers, floats, times or trimmed texts, null where missing; the
    words that were missing values)."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    array = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    array = pa.concat_arrays(array.chunks) if isinstance(array, pa.ChunkedArray) else array
    if pa.types.is_null(kind) or pa.types.is_decimal(kind) or pa.types.is_floating(kind):
        array = array.cast(pa.float64())
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        array = pc.utf8_trim_whitespace(array.cast(TEXT))
        gone = pc.is_in(array, value_set=pa.array(rule.missing, TEXT))
        met = pc.value_counts(array.filter(gone)).to_pylist()
        words = {one["values"]: one["counts"] for one in met if one["values"]}
        return pc.if_else(gone, pa.scalar(None, TEXT), array), words
    if pa.types.is_temporal(kind) or pa.types.is_boolean(kind) or not rule.gone:
        words = {}
    elif pa.types.is_integer(kind) or pa.types.is_floating(array.type):
        values = array.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        gone = np.isin(values, rule.gone)
        words = {f"{one:g}": int(np.sum(values == one)) for one in np.unique(values[gone])}
        array = pc.if_else(pa.array(gone), pa.scalar(None, array.type), array)
    good = pa.types.is_temporal(kind) or pa.types.is_boolean(kind) or pa.types.is_integer(kind)
    if not good and not pa.types.is_floating(array.type):
        raise place.fault(
            name,
            f"is of type {shown(kind)[1:-1]}, neither number nor text",
            "name it in drop=, or write it as columns of numbers or texts",
        )
    return array, words


def _numbers(array: pa.Array, how: Notation) -> np.ndarray | None:
    """[R] float64 with NaN for null; None for what is not all numbers, or all true and false."""
    if pa.types.is_temporal(array.type):
        return None
    if array.type == TEXT:
        lower = pc.utf8_lower(array)
        logical = pc.is_in(lower, value_set=pa.array(["true", "false"], TEXT))
        if pc.all(pc.or_(logical, pc.is_null(array))).as_py():
            array = pc.equal(lower, "true")
        elif how.decimal == ".":
            with contextlib.suppress(pa.ArrowInvalid):
                array = pc.cast(array, pa.float64())
        if array.type == TEXT:
            found = numbers(array, how)
            if found.null_count > array.null_count:
                return None
            array = found
    return pc.cast(array, pa.float64(), safe=False).to_numpy(zero_copy_only=False)


def _days(
    place: Place, name: str, array: pa.Array, how: Notation, since: tuple[str, float] | None
) -> tuple[np.ndarray | None, tuple[str, float] | None]:
    """(days since the first date or time, NaN for null; (form, the first)); (None, None) for what is
    none. ``since``: the training file's."""
    if pa.types.is_temporal(array.type):
        form, kind = f"type {array.type}", array.type
        if pa.types.is_time(kind) or pa.types.is_duration(kind):
            unit = pa.duration("us") if pa.types.is_duration(kind) else pa.time64("us")
        else:
            unit = pa.timestamp("us", getattr(kind, "tz", None))
        found = pc.cast(pc.cast(array, unit, safe=False), pa.int64())
        found = pc.cast(found, pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    elif array.type == TEXT:
        encoded = array.dictionary_encode()
        values = encoded.dictionary
        if since is not None:
            form, found = since[0], moments(values, since[0])
        elif how.date_format and moments(values, how.date_format) is not None:
            form, found = how.date_format, moments(values, how.date_format)
        elif pc.all(pc.match_substring_regex(values, DATE)).as_py():
            several = forms(values, how.date_format)
            if len(several) != 1:
                one_of = " or ".join(f"date_format={one!r}" for one, _ in several)
                raise place.fault(
                    name,
                    f"holds dates or times (such as {shown(values[0].as_py())}) that "
                    f"{'may be read in several ways' if several else 'no known form reads'}",
                    f"give {one_of or 'date_format= as of strptime'}, write them as 2020-01-31, or name it "
                    "in drop= or categorical=",
                )
            ((form, found),) = several
        else:
            return None, None
        if found is None:
            return None, None
        places = encoded.indices.fill_null(0).to_numpy()
        found = np.where(array.is_null().to_numpy(zero_copy_only=False), np.nan, found[places])
    elif array.null_count == len(array):
        return np.full(len(array), np.nan), since
    else:
        return None, None
    if since is None:
        since = (form, float(np.nanmin(found)) if np.isfinite(found).any() else 0.0)
    return (found - since[1]) / DAY, since


def _no_number(
    place: Place, name: str, array: pa.Array, how: Notation, wanted: str, like: Source | None
) -> UserError:
    """The first word where numbers, or the training file's dates, must be."""
    text = texts(array)
    if like is None or like.since is None:
        good, what = numbers(text, how).is_valid(), "no number"
    else:
        form = like.since[0]
        read = [moments(pa.array([one], TEXT), form) is not None for one in text.to_pylist() if one]
        good, what = pa.array(read), "no date as the training rows'"
        good = pc.replace_with_mask(pa.array([False] * len(text)), text.is_valid(), good)
    row = pc.index(pc.and_not(text.is_valid(), good), True).as_py()
    remedy = (
        "take the name out of numeric="
        if wanted
        else "name it in categorical= (the training rows have numbers)"
    )
    return place.fault(
        name,
        f"has {shown(text[row].as_py())} in row {place.row(row)}, which is {what}",
        f"correct it, leave it empty or name it in na_values= where it is missing, or {remedy}",
    )


def _refuse(place: Place, name: str, array: pa.Array, how: Notation) -> None:
    """Raise UserError where a column of texts is mostly numbers or dates."""
    counted = pc.value_counts(array.drop_null())
    values, counts = counted.field("values"), counted.field("counts")

    def most(which: pa.Array, least: int, rows: bool) -> bool:
        held = pc.sum(pc.if_else(which, counts, 0)).as_py() or 0
        own = pc.sum(which).as_py() or 0
        half = 2 * own >= len(values) or (rows and 2 * held >= pc.sum(counts).as_py())
        return own >= least and half

    dates = pc.match_substring_regex(values, DATE)
    if most(dates, SEVERAL, rows=False):
        raise _words_among(place, name, array, values.filter(pc.invert(dates))[0].as_py(), "dates")
    plain = numbers(values, how).is_valid()
    noted = pc.match_substring_regex(values, NOTED)
    strange = pc.and_not(noted, plain)
    if most(noted, SEVERAL, rows=False) and pc.any(strange).as_py():
        value = values.filter(strange)[0].as_py()
        raise place.fault(
            name,
            f"holds numbers in a notation that is not read ({shown(value)} in row "
            f"{place.row(pc.index(array, value).as_py())})",
            f"{ways(values.filter(noted), how)}, or name it in categorical=",
        )
    if most(plain, 1, rows=True):
        raise _words_among(
            place, name, array, values.filter(pc.invert(plain))[0].as_py(), "numbers"
        )


def _words_among(place: Place, name: str, array: pa.Array, word: str, kind: str) -> UserError:
    row = place.row(pc.index(array, word).as_py())
    return place.fault(
        name,
        f"holds {kind}, and {shown(word)} in row {row}",
        "name such words in na_values= if they stand for missing values, or the column in categorical= if "
        f"it holds no {kind}",
    )


def _number(
    place: Place,
    name: str,
    values: np.ndarray,
    rule: Rule,
    words: Mapping[str, int],
    since: tuple[str, float] | None,
) -> Source:
    with np.errstate(over="ignore"):
        wrong = np.isinf(values.astype(np.float32))
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "is infinite" if np.isinf(values[row]) else "is too large for float32"
        raise place.fault(
            name,
            f"has {values[row]:g} in row {place.row(row)}, which {what}",
            "correct it, or leave it empty if it is missing",
        )
    if rule.gone and since is None:
        values = np.where(np.isin(values, rule.gone), np.nan, values)
    gone = np.isnan(values)
    missing = int(gone.sum())
    return Source(name, values, None, (), missing, int(np.argmax(gone)), words, since)


def texts(array: pa.Array) -> pa.Array:
    """Any array as texts: whole numbers without a decimal point, however the file wrote them."""
    if pa.types.is_boolean(array.type):
        return pc.if_else(array, "True", "False").cast(TEXT)
    if pa.types.is_floating(array.type):
        array = pc.if_else(pc.is_nan(array), pa.scalar(None, array.type), array)
        distinct = array.dictionary_encode()
        names = [repr(value) for value in distinct.dictionary.to_pylist()]
        array = pc.take(pa.array(names, TEXT), distinct.indices)
    text = (array.cast(pa.string()) if pa.types.is_temporal(array.type) else array).cast(TEXT)
    text = pc.replace_substring_regex(text, r"^([+-]?\d+)\.0+$", r"\1")
    return pc.replace_substring_regex(text, r"^-0$", "0")


def _category(
    place: Place, name: str, array: pa.Array, words: Mapping[str, int], named: bool
) -> Source:
    text = texts(array)
    gone = text.is_null().to_numpy(zero_copy_only=False)
    encoded = text.fill_null(NONE).dictionary_encode()
    found = encoded.dictionary.to_pylist()
    missing = int(gone.sum())
    distinct, rows = len(found) - bool(missing), len(gone) - missing
    if not named and distinct > NEARLY[0] and distinct >= NEARLY[1] * rows:
        raise place.fault(
            name,
            f"has {distinct:,} distinct texts in {rows:,} rows, like an identifier (the first is "
            f"{shown(found[0] if found[0] != NONE else found[1])})",
            "name it in drop=, or in categorical= if its values are categories; numbers with a unit are "
            "to be written without it",
        )
    values = tuple(sorted(found, key=_order(found)))
    rank = {value: k for k, value in enumerate(values)}
    places = np.asarray([rank[value] for value in found], np.int32)
    codes = places[encoded.indices.to_numpy()]
    return Source(name, None, codes, values, missing, int(np.argmax(gone)), words)


def _order(values: Sequence[str]) -> Any:
    """A sorting key: numbers by size, texts by character, NONE last."""
    if all(is_number(value) for value in values if value != NONE):
        return lambda v: (v == NONE, float(v) if v != NONE else 0.0, v)
    return lambda v: (v == NONE, 0.0, v)
