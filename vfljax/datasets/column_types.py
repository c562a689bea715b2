"""What each column of a user's table is: a number, a date, or a category.

CSV, Parquet, NPZ and data frames of equal content give equal sources: texts that are all numbers are
numbers, numbers named as categories are texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vfljax.datasets.dates import DATE, Since, days, moments, of_digits
from vfljax.datasets.number_formats import (
    NOTED,
    TEXT,
    Notation,
    Series,
    is_number,
    matches,
    numbers,
    ways,
)
from vfljax.datasets.table_errors import Place, shown

NAN = ("", "NaN", "nan", "-NaN", "-nan", "NAN")
# pandas' (3.1, pandas._libs.parsers.STR_NA_VALUES), the question mark, and two more of ours
MISSING = (
    *NAN,
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "None", "n/a", "null", "Null", "?"),
)
NONE = "(missing)"  # the category of a missing value
SEVERAL = 3  # values of one notation among words: fewer may well be the names of categories
SHARE = "^.*%$"
NEARLY = (20, 0.9)  # more distinct texts than this, and in this share of the rows: an identifier


class Rule(NamedTuple):
    """How texts are read: which words are missing values, and how numbers are written."""

    missing: tuple[str, ...] = MISSING
    notation: Notation = Notation()


class Source(NamedTuple):
    """One column of the user's table; either ``numbers`` or ``codes`` is set."""

    name: str
    numbers: np.ndarray | None = None  # [R] float64, NaN where missing
    codes: np.ndarray | None = None  # [R] int32, places in values
    values: tuple[str, ...] = ()  # sorted; NONE last, where one is missing
    missing: int = 0
    first: int = -1  # the first row with a missing value, from 0
    words: Mapping[str, int] = {}  # those read as missing, and how often
    since: Since | None = None  # of dates
    pooled: int = 0  # rare values that became one
    padded: str = ""  # of numbers: the first that was written with a zero before it
    percent: bool = False  # written with a %
    logical: bool = False  # true and false, read as 1 and 0
    merged: int = 0  # different numbers that are equal as float32

    @property
    def kind(self) -> str:
        return "category" if self.numbers is None else "number"


def source(
    place: Place, name: str, column: Series, rule: Rule, kind: str = "", like: Source | None = None
) -> Source:
    """Finds out what a column of a frame is.

    Args:
      place: where the table is, for messages.
      name: the column's name.
      column: its values [R], as of ``reading.framed``.
      rule: how texts are read.
      kind: "number", "category", or "": what it looks like, or is marked as by pandas or Arrow.
      like: the training file's column, where this is a test file's.

    Returns:
      The numbers or the categories of the column.

    Raises:
      UserError: with column and row, for what could be read in two ways, or as nothing that helps: numbers
        in a notation that no option names, words among numbers (half of the values or of the distinct
        values), texts that differ in nearly all rows; a nested or binary column, an infinite number, one
        that float32 cannot hold, a word where numbers must be.
    """
    place = place.at(name)
    values, words = _cleaned(place, column, rule)
    if not kind and isinstance(column.dtype, pd.CategoricalDtype):
        kind = "category"
    if (like.kind if like else kind) == "category":
        return _category(place, values, words)
    notation, since = rule.notation, like.since if like else None
    if notation.percent and values.dtype == TEXT:
        _check_percent(place, values, notation, like)
    temporal = pa.types.is_temporal(_type(values))
    date_format = "" if kind or like else notation.date_format
    digits = bool(date_format) and of_digits(texts(values), date_format)
    if digits or (since and not temporal):
        values = texts(values)
    dated = (since or digits or temporal) and values.notna().any()
    truth = _truth(values)
    read = None if dated else _numbers(values if truth is None else truth, notation)
    if read is None and (like is None or since):
        read, since = days(place, values, notation.date_format, since) or (None, None)
    if read is None and not (kind or like):
        _refuse(place, values, notation)
        return _category(place, values, words, NEARLY)
    if read is None:
        raise _no_number(place, values, notation, kind, like)
    number = _number(place, read, rule, words, since)._replace(merged=_merged(values, read))
    if since:
        return number
    number = number._replace(logical=truth is not None and bool(truth.notna().any()))
    if like:
        _check_truth(place, number, like)
    if values.dtype != TEXT:
        return number
    padded = values[matches(values, r"^0\d+$")]
    percent = bool(matches(values, SHARE).any())
    return number._replace(padded=padded.iloc[0] if len(padded) else "", percent=percent)


def _type(values: Series) -> Any:
    """The Arrow type of a column that is no category."""
    return values.dtype.pyarrow_dtype


def _cleaned(place: Place, column: Series, rule: Rule) -> tuple[Series, dict[str, int]]:
    """(booleans, whole numbers, floats, times or trimmed texts, null where missing; the words, or
    numbers, that were missing values)."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    kind = _type(column)
    if column.dtype == TEXT:
        column = column.str.strip()
        gone = column.isin(rule.missing)
        words = column[gone].value_counts(sort=False).drop("", errors="ignore").to_dict()
        return column.mask(gone), words
    if pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        return column, {}
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        raise place.fault(
            f"is of type {shown(kind)[1:-1]}, neither number nor text",
            "name it in {drop}=, or write it as columns of numbers or texts",
        )
    floats, words = _without(column.to_numpy(float, na_value=np.nan), rule)
    return column.mask(np.isnan(floats)), words


def _without(numbers: np.ndarray, rule: Rule) -> tuple[np.ndarray, dict[str, int]]:
    """(the numbers, NaN where one is a missing value however it is spelled; those, and how often)."""
    gone = np.isin(numbers, [float(word) for word in rule.missing if is_number(word)])
    met, counts = np.unique(numbers[gone], return_counts=True)
    words = {f"{x:g}": int(n) for x, n in zip(met, counts, strict=True)}
    return np.where(gone, np.nan, numbers), words


def _numbers(values: Series, notation: Notation) -> np.ndarray | None:
    """[R] float64 with NaN for null; None for texts that are not all numbers."""
    if values.dtype == TEXT:
        read = numbers(values, notation)
        return None if np.isnan(read).sum() > values.isna().sum() else read
    if pa.types.is_temporal(_type(values)):  # all null
        return np.full(len(values), np.nan)
    return values.to_numpy(float, na_value=np.nan)


def _truth(values: Series) -> Series | None:
    """The booleans of a column of true and false; None of any other."""
    if values.dtype == TEXT:
        lower = values.str.lower()
        return lower == "true" if lower.isin(["true", "false", pd.NA]).all() else None
    return values if pa.types.is_boolean(_type(values)) else None


def _check_truth(place: Place, number: Source, like: Source) -> None:
    """Raise UserError where true and false in one file meet numbers beside 0 and 1 in the other."""
    other = like if number.logical else number
    assert number.numbers is not None
    assert other.numbers is not None
    rows = ~np.isin(other.numbers, (0, 1)) & ~np.isnan(other.numbers)
    if number.logical == like.logical or not rows.any():
        return
    here, there = "numbers beside 0 and 1", "true and false"
    if number.logical:
        rows, here, there = ~np.isnan(number.numbers), there, here
    raise place.fault(
        f"has {here} (row {place.row(np.argmax(rows))}), and the training rows have {there}",
        "write both files alike, or name it in {categorical}=",
    )


def _check_percent(place: Place, values: Series, notation: Notation, like: Source | None) -> None:
    """Raise UserError where a number without a % stands among numbers with one, here or in the training
    file: it would be a hundred times as large as is meant, or as it looks."""
    signed = matches(values, SHARE)
    if like is None and not signed.any():
        return
    bare = ~signed & ~np.isnan(numbers(values, notation))
    odd = signed if like is not None and not like.percent else bare
    if odd.any():
        row = int(np.argmax(odd))
        elsewhere = f"numbers {'without' if signed[row] else 'with'} a % elsewhere"
        raise place.fault(
            f"has {shown(values.iloc[row])} in row {place.row(row)}, and {elsewhere}",
            "write all of a column with it, or none",
        )


def _no_number(
    place: Place, values: Series, notation: Notation, kind: str, like: Source | None
) -> Exception:
    """The first word where numbers, or the training file's dates, must be."""
    words, form = texts(values), like.since[0] if like and like.since else ""
    if form:
        wrong = [not pd.isna(word) and moments([word], form) is None for word in words]
    else:
        wrong = np.isnan(numbers(words, notation)) & words.notna().to_numpy()
    row = int(np.argmax(wrong))
    kept = "name it in {categorical}= (the training rows have numbers)"
    return place.fault(
        f"has {shown(words.iloc[row])} in row {place.row(row)}, which is no "
        + ("date as the training rows'" if form else "number"),
        "correct it, leave it empty or name it in {na_values}= where it is missing, or "
        + ("take the name out of {numeric}=" if kind else kept),
    )


def _refuse(place: Place, column: Series, notation: Notation) -> None:
    """Raise UserError where a column of texts is mostly numbers or dates."""
    codes, distinct = pd.factorize(column)
    values, counts = pd.Series(distinct), np.bincount(codes[codes >= 0])

    def first(which: np.ndarray) -> str:
        code = int(np.argmax(which))
        return f"{shown(values.iloc[code])} in row {place.row(np.argmax(codes == code))}"

    dates, noted = matches(values, DATE), matches(values, NOTED)
    numeric = ~np.isnan(numbers(values, notation))
    # an option says that numbers are so written, and a column of nothing else does
    named = notation != Notation() and noted.any()
    several = noted.sum() >= SEVERAL or noted.all() or named
    if several and 2 * noted.sum() >= len(noted) and (noted & ~numeric).any():
        raise place.fault(
            f"holds numbers in a notation that is not read ({first(noted & ~numeric)})",
            ways(values[noted], notation) + ", or name it in {categorical}=",
        )
    many = dates.sum() >= SEVERAL and 2 * dates.sum() >= len(dates)
    # of numbers, half of the rows are enough: a few words among them, often repeated, are no categories
    share = max(numeric.mean(), counts[numeric].sum() / counts.sum())
    if many or (numeric.any() and 2 * share >= 1):
        kind, known = ("dates", dates) if many else ("numbers", numeric)
        raise place.fault(
            f"holds {kind}, and {first(~known)}",
            "correct it, name such words in {na_values}= if they stand for missing values, or the column in "
            f"{{categorical}}= if it holds no {kind}",
        )


def _number(
    place: Place, values: np.ndarray, rule: Rule, words: Mapping[str, int], since: Since | None
) -> Source:
    with np.errstate(over="ignore"):
        wrong = np.isinf(values.astype(np.float32))
    if wrong.any():
        row = int(np.argmax(wrong))
        what = "is infinite" if np.isinf(values[row]) else "is too large for float32"
        raise place.fault(
            f"has {values[row]:g} in row {place.row(row)}, which {what}",
            "correct it, or leave it empty if it is missing",
        )
    if since is None:
        values, more = _without(values, rule)
        words = {**words, **more}
    return Source(
        place.column, numbers=values, words=words, since=since, **_missing(np.isnan(values))
    )


def _missing(gone: np.ndarray) -> dict[str, Any]:
    return {"missing": int(gone.sum()), "first": int(np.argmax(gone))}


def _merged(column: Series, values: np.ndarray) -> int:
    """How many different numbers are equal to another as float32. Counted of the file's own, as float64
    does not hold every whole number either."""
    kept = values[~np.isnan(values)]
    distinct = len(np.unique(kept))
    if column.dtype == TEXT:
        long = matches(column, r"^[1-9]\d{15,}$")
        short = values[~long & ~np.isnan(values)]
        distinct = column[long].nunique() + len(np.unique(short))
    elif pa.types.is_integer(_type(column)):
        distinct = column.nunique()
    return distinct - len(np.unique(kept.astype(np.float32)))


def texts(values: Series) -> Series:
    """Returns any column as texts: whole numbers without a decimal point, however the file wrote them."""
    kind = _type(values)
    if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
        codes, distinct = pd.factorize(values)
        names = [*map(repr, distinct.tolist()), None]  # -1 of a missing one is the last
        values = pd.Series(pd.array(names, TEXT)).take(codes).reset_index(drop=True)
    text = values.astype(TEXT).str.replace(r"^([+-]?\d+)\.0+$", r"\1", regex=True)
    return text.str.replace("^-0$", "0", regex=True)


def _category(
    place: Place,
    values: Series,
    words: Mapping[str, int],
    nearly: tuple[float, float] = (np.inf, 1.0),
) -> Source:
    text = texts(values)
    gone = text.isna().to_numpy(bool)
    codes, found = pd.factorize(text.fillna(NONE))
    categories = found.tolist()
    distinct, rows = len(categories) - bool(gone.any()), int((~gone).sum())
    if distinct > nearly[0] and distinct >= nearly[1] * rows:
        first = shown(next(value for value in categories if value != NONE))
        raise place.fault(
            f"has {distinct:,} distinct texts in {rows:,} rows, like an identifier (the first is {first})",
            "name it in {drop}=, or in {categorical}= if its values are categories; numbers with a unit are "
            "to be written without it",
        )
    # numbers by size, texts by character, NONE last
    numeric = all(is_number(value) for value in categories if value != NONE)
    ordered = sorted(categories, key=lambda v: (v == NONE, numeric and v != NONE and float(v), v))
    rank = {value: k for k, value in enumerate(ordered)}
    places = np.asarray([rank[value] for value in categories], np.int32)
    return Source(
        place.column, codes=places[codes], values=tuple(ordered), words=words, **_missing(gone)
    )
