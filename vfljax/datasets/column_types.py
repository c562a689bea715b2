"""Finds whether each column of a user's table is a number, a date or a category, and reads it.

CSV, Parquet, NPZ and data frames of equal content give equal ``Source`` records: a column of texts that are
all numbers becomes numbers, and numbers that the user names as categories become texts. The training file's
rows decide what a column is, and a test file's rows are read in the same way.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa

from vfljax.datasets.number_formats import (
    SHARE,
    TEXT,
    Notation,
    Series,
    Since,
    days,
    is_number,
    matches,
    moments,
    numbers,
    refuse_mixture,
)
from vfljax.datasets.table_errors import Place, fault, shown
from vfljax.errors import options_in

NAN = ("", "NaN", "nan", "-NaN", "-nan", "NAN")
# the words of pandas 3.1 (pandas._libs.parsers.STR_NA_VALUES), the question mark, "NAN" and "Null"
MISSING = (
    *NAN,
    *("#N/A", "#N/A N/A", "#NA", "-1.#IND", "-1.#QNAN", "1.#IND", "1.#QNAN", "<NA>", "N/A", "NA"),
    *("NULL", "None", "n/a", "null", "Null", "?"),
)
NONE = "(missing)"  # the category of a missing value
OTHER = "(other)"  # the category that pools the rarest values
END = r"([-+]?(?:inf|\d+\.?\d*(?:e[-+]?\d+)?))"
INTERVAL = re.compile(rf"[\[(]{END}, {END}[\])]", re.ASCII)  # as pandas writes one
NEARLY = (20, 0.9)  # an identifier has more than 20 distinct texts, and as many as 90 % of its rows


class Rule(NamedTuple):
    """How columns are read, as ``user_table.table``'s options ask."""

    missing: tuple[str, ...] = MISSING  # words that stand for missing values
    notation: Notation = Notation()  # how numbers and dates are written
    refuse: bool = False  # whether missing values are refused
    codes: bool = False  # whether categories become codes; none are pooled then
    most: int = 256  # the most categories of a column, the pooled one included
    ignore: bool = False  # whether categories that only the test file has are ignored, not refused


class Source(NamedTuple):
    """One column of the user's table; either ``numbers`` or ``codes`` is set."""

    name: str
    missing: np.ndarray  # [R] bool
    numbers: np.ndarray | None = None  # [R] float64, NaN where missing
    codes: np.ndarray | None = None  # [R] int32, places in ``values``; -1 is none of them
    values: tuple[str, ...] = ()  # the categories, sorted; OTHER and NONE come last
    words: Mapping[str, int] = {}  # words read as missing, and their counts
    since: Since | None = None  # of dates: what their days count from
    pooled: int = 0  # number of rare values that became OTHER
    unknown: int = 0  # number of test rows whose category no training row has
    padded: str = ""  # the first number that is written with a leading zero
    merged: int = 0  # number of distinct values that are lost by rounding to float32


def source(parts: Sequence[Series], place: Place, rule: Rule, kind: str = "") -> Source:
    """Finds out what a column of a table is, and reads it.

    Args:
      parts: its values, as ``reading.framed`` returns them: the training file's, which decide what the column
        is, and then the test file's if there is one.
      place: the files and row numbers of all rows, for messages.
      rule: how it is read.
      kind: "number" or "category" if that is known; "" lets the values decide.

    Raises:
      UserError: with column and row, for a column that could be read in several ways, or for one of no use.
    """
    parts, words = _cleaned(parts, place, rule)
    column = None if kind == "category" else _numeric(parts, place, rule, kind)
    column = column or _category(_texts(parts), place, rule, kind)
    return column._replace(words=words + Counter(column.words))


def words_of(parts: Sequence[Series], place: Place, rule: Rule) -> Series:
    """Returns a column as trimmed texts of ``TEXT`` [R], with null for a missing value.

    Args:
      parts, place: as of ``source``.
      rule: which words are missing values.
    """
    return _texts(_cleaned(parts, place, rule)[0])


def ordered(values: Iterable[str]) -> list[str]:
    """Returns the values sorted: by size if all are numbers, or all intervals, else by character. ``NONE``
    comes last.

    >>> ordered(["(100.0, inf]", "(-inf, 5.0]", "(5.0, 100.0]", NONE])
    ['(-inf, 5.0]', '(5.0, 100.0]', '(100.0, inf]', '(missing)']
    """
    values = list(values)
    sizes = {value: _size(value) for value in values if value != NONE}
    if len({size and len(size) for size in sizes.values()}) > 1 or None in sizes.values():
        sizes = {}
    return sorted(values, key=lambda v: (v == NONE, sizes.get(v) or (), v))


def _size(value: str) -> tuple[float, ...] | None:
    """Returns a number, or both ends of an interval such as "(0, 30]"; None for any other text."""
    if is_number(value):
        return (float(value),)
    ends = INTERVAL.fullmatch(value)
    return tuple(map(float, ends.groups())) if ends else None


def _type(values: Series) -> Any:
    return values.dtype.pyarrow_dtype


def _cleaned(
    parts: Sequence[Series], place: Place, rule: Rule
) -> tuple[list[Series], Counter[str]]:
    """Returns the parts, texts trimmed and missing values null, and the counts of words read as missing."""
    cleaned, words = [], Counter()
    for file, column in zip(place.files, parts, strict=True):
        kind = _type(column)
        if column.dtype == TEXT:
            column = column.str.strip()
            gone = column.isin(rule.missing)
            words.update(column[gone].value_counts(sort=False).drop("", errors="ignore").to_dict())
            column = column.mask(gone)
        elif pa.types.is_integer(kind) or pa.types.is_floating(kind):
            floats, met = _without(column.to_numpy(float, na_value=np.nan), rule)
            words.update(met)
            column = column.mask(np.isnan(floats))
        elif not (pa.types.is_boolean(kind) or pa.types.is_temporal(kind)):
            what = f"is of type {shown(kind)[1:-1]}, neither number nor text"
            remedy = options_in("name it in {drop}=, or write it as columns of numbers or texts")
            raise fault(file, what, remedy, column=place.column)
        cleaned.append(column)
    return cleaned, words


def _without(values: np.ndarray, rule: Rule) -> tuple[np.ndarray, dict[str, int]]:
    """Returns the numbers, with NaN for those that stand for a missing value, and the counts of those."""
    gone = np.isin(values, [float(word) for word in rule.missing if is_number(word)])
    met, counts = np.unique(values[gone], return_counts=True)
    words = {f"{x:g}": int(n) for x, n in zip(met, counts, strict=True)}
    return np.where(gone, np.nan, values), words


def _texts(parts: Sequence[Series]) -> Series:
    """Returns a cleaned column as texts [R]. Whole numbers have no decimal point, whatever a file wrote."""
    texts = []
    for values in parts:
        kind = _type(values)
        if pa.types.is_boolean(kind) or pa.types.is_floating(kind):
            codes, distinct = pd.factorize(values)
            names = [*map(repr, distinct.tolist()), None]  # code -1 (missing) takes the last
            values = pd.Series(pd.array(names, TEXT)).take(codes)
        texts.append(values.astype(TEXT).str.replace(r"^([+-]?\d+)\.0+$", r"\1", regex=True))
    return pd.concat(texts, ignore_index=True).str.replace("^-0$", "0", regex=True)


def _numeric(parts: list[Series], place: Place, rule: Rule, kind: str) -> Source | None:
    """Reads a column of numbers or dates; returns None if the training rows hold words."""
    notation, since, words = rule.notation, None, Counter()
    digits = notation.date_format and not kind and _of_digits(_texts(parts[:1]), notation)
    if digits:
        parts = [
            values if pa.types.is_temporal(_type(values)) else _texts([values]) for values in parts
        ]
    read = [_floats(values, notation) for values in parts]
    present = np.concatenate([values.notna().to_numpy(bool) for values in parts])
    if digits or (np.isnan(read[0]) & present[~place.held]).any():
        if dates := days(parts, place, notation.date_format):
            read, since = dates
        elif not kind:
            refuse_mixture(parts[0], place, notation)
            return None
    if notation.percent and since is None:
        _check_percent(parts, place, notation)
    x = np.concatenate(read)
    unread = present & np.isnan(x)
    if unread.any():
        kept = "name it in {categorical}= (the training rows have numbers)"
        place.check(
            unread,
            "has {value} in row {row}, which is no "
            + ("date as the training rows'" if since else "number"),
            "correct it, leave it empty or name it in {na_values}= where it is missing, or "
            + ("take the name out of {numeric}=" if kind else kept),
            _texts(parts),
        )
    with np.errstate(over="ignore"):
        infinite = np.isinf(x.astype(np.float32))
    why = "is infinite" if np.isinf(x[np.argmax(infinite)]) else "is too large for float32"
    remedy = "correct it, or leave it empty if it is missing"
    place.check(infinite, f"has {{value}} in row {{row}}, which {why}", remedy, x)
    padded = ""
    if since is None:
        x, words = _without(x, rule)
        _check_truth(parts, x, place)
        texts = [values for values in parts if values.dtype == TEXT]
        padded = next((t for values in texts for t in values[matches(values, r"^0\d+$")]), "")
    missing = np.isnan(x)
    _check_missing(missing, place, rule)
    column = Source(name=place.column, missing=missing, numbers=x, words=words, since=since)
    return column._replace(padded=padded, merged=max(map(_merged, parts, read)))


def _check_missing(missing: np.ndarray, place: Place, rule: Rule) -> None:
    what = "has no value in row {row} and missing='refuse'"
    place.check(missing & rule.refuse, what, "fill it, or {missing}='keep'")


def _floats(values: Series, notation: Notation) -> np.ndarray:
    """Returns a file's values as float64, NaN for a value that is no number; true and false are 1 and 0."""
    if (truth := _truth(values)) is not None:
        return truth.to_numpy(float, na_value=np.nan)
    if values.dtype == TEXT:
        return numbers(values, notation)
    if pa.types.is_temporal(_type(values)):
        return np.full(len(values), np.nan)
    return values.to_numpy(float, na_value=np.nan)


def _truth(values: Series) -> Series | None:
    """Returns the booleans of a file that holds only true, false and missing values; None for any other."""
    if values.dtype == TEXT:
        lower = values.str.lower()
        return lower == "true" if lower.isin(["true", "false", pd.NA]).all() else None
    return values if pa.types.is_boolean(_type(values)) else None


def _check_percent(parts: Sequence[Series], place: Place, notation: Notation) -> None:
    """Raises UserError if some numbers are written with a % and others without: they would differ by a factor
    of 100. Only texts are checked. The training rows decide which of the two is wrong."""
    texts = [
        part if part.dtype == TEXT else pd.Series([None] * len(part), dtype=TEXT) for part in parts
    ]
    percent = bool(matches(texts[0], SHARE).any())
    text = pd.concat(texts, ignore_index=True)
    odd = (matches(text, SHARE) != percent) & ~np.isnan(numbers(text, notation))
    elsewhere = f"numbers {'with' if percent else 'without'} a % elsewhere"
    what = f"has {{value}} in row {{row}}, and {elsewhere}"
    place.check(odd, what, "write all of a column with it, or none", text)


def _check_truth(parts: Sequence[Series], x: np.ndarray, place: Place) -> None:
    """Raises UserError if one file holds true and false, and the other numbers that are neither 0 nor 1."""
    truths = [_truth(values) for values in parts]
    logical = [truth is not None and bool(truth.notna().any()) for truth in truths]
    of_truth = np.asarray(logical)[place.held.astype(int)]
    beside = ~of_truth & ~np.isnan(x) & ~np.isin(x, (0, 1))
    if logical[0] != logical[-1] and beside.any():
        names = ("numbers beside 0 and 1", "true and false")
        place.check(
            place.held & (of_truth & ~np.isnan(x) | beside),
            f"has {names[logical[1]]} (row {{row}}), and the training rows have {names[logical[0]]}",
            "write both files alike, or name it in {categorical}=",
        )


def _of_digits(texts: Series, notation: Notation) -> bool:
    """Returns True if all texts have the same number of digits, 6 to 14, and ``date_format`` reads them."""
    texts = texts.dropna()
    fixed = matches(texts, r"^\d{6,14}$").all() and texts.str.len().nunique() == 1
    return bool(fixed) and moments(list(texts.unique()), notation.date_format) is not None


def _category(text: Series, place: Place, rule: Rule, kind: str) -> Source:
    training = ~place.held
    gone = text.isna().to_numpy(bool)
    text = text.fillna(NONE)
    places, found = pd.factorize(text)
    counts = dict(zip(found.tolist(), np.bincount(places[training], minlength=len(found)).tolist()))
    values = ordered(value for value, count in counts.items() if count)
    missing = bool(gone[training].any())
    distinct, present = len(values) - missing, int((~gone[training]).sum())
    if not kind and distinct > NEARLY[0] and distinct >= NEARLY[1] * present:
        first = shown(next(value for value in counts if value != NONE))
        raise place.fault(
            f"has {distinct:,} distinct texts in {present:,} rows, like an identifier (the first is {first})",
            "name it in {drop}=, or in {categorical}= if its values are categories; numbers with a unit are "
            "to be written without it",
        )
    pooled, rest = 0, -1
    if not rule.codes and len(values) > rule.most:  # ties: the last are pooled
        frequent = sorted(values[:distinct], key=lambda value: -counts[value])
        kept = set(frequent[: max(0, rule.most - 1 - missing)])
        pooled, rest = distinct - len(kept), len(kept)
        values = [*(v for v in values[:distinct] if v in kept), OTHER, *values[distinct:]]
    code = {value: k for k, value in enumerate(values) if k != rest}
    codes = np.asarray([code.get(value, rest) for value in counts], np.int32)[places]
    unknown = codes < 0  # only in test rows
    _check_missing(gone, place, rule)
    place.check(
        unknown & (not rule.ignore),
        "has {value} in row {row}, an unknown category at test time (no training row has it)",
        "correct it, or {unknown}='ignore' reads it as "
        + ("the code of a missing one" if rule.codes else "none of the known"),
        text,
    )
    if unknown.any() and rule.codes:
        values = values if NONE in values else [*values, NONE]
        codes[unknown] = len(values) - 1
    found = Source(name=place.column, missing=gone, codes=codes, values=tuple(values))
    return found._replace(pooled=pooled, unknown=int(unknown.sum()))


def _merged(column: Series, values: np.ndarray) -> int:
    """Returns how many distinct numbers are lost by rounding to float32. The file's own values are counted,
    because float64 does not hold every whole number either."""
    kept = values[~np.isnan(values)]
    distinct = len(np.unique(kept))
    if column.dtype == TEXT:
        long = matches(column, r"^[1-9]\d{15,}$")
        distinct = column[long].nunique() + len(np.unique(values[~long & ~np.isnan(values)]))
    elif pa.types.is_integer(_type(column)):
        distinct = column.nunique()
    return distinct - len(np.unique(kept.astype(np.float32)))
